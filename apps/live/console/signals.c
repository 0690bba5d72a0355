// SPDX-License-Identifier: MIT
// See signals.h. The handler calls write, tcgetpgrp, getpgrp, tcsetattr, signal and raise only, all
// safe there.
#include "signals.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "io/bytes/temp.h"
#include "terminal.h"

static int wake[2] = {-1, -1};
static volatile sig_atomic_t asked_to_end;

static void say(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0) return; // there is nobody left to tell
}

static void say_what_is_left(void)
{
    const char *path = temp_pending();
    if (!path) return;
    say("\npartita live: the unfinished recording is ");
    say(path);
    say("\n");
}

static void handle(int number)
{
    unsigned char byte = (unsigned char)number;
    bool at_once = number == SIGQUIT || (number != SIGHUP && asked_to_end);
    if (!at_once) {
        if (number != SIGHUP) asked_to_end = 1;
        if (write(wake[1], &byte, 1) == 1) return;
        if (number == SIGHUP) return; // the pipe is full of them
    }
    terminal_restore();
    say_what_is_left();
    signal(number, SIG_DFL); // whoever waits for the program sees it end by the signal
    raise(number);
}

int signals_install(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    if (pipe2(wake, O_CLOEXEC | O_NONBLOCK)) return -1;
    signal(SIGPIPE, SIG_IGN); // a reader that goes away is seen where it is written to
    // No terminal stops a program that plays.
    signal(SIGTTOU, SIG_IGN);
    signal(SIGTTIN, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); // a file that may grow no more is a full disk
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction before, action = {.sa_handler = handle, .sa_flags = SA_RESTART};
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler == SIG_IGN)
            continue; // nohup
        sigaction(signals[i], &action, NULL);
    }
    return wake[0];
}

int signals_next(int descriptor)
{
    unsigned char byte;
    return read(descriptor, &byte, 1) == 1 ? byte : 0;
}
