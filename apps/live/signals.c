// SPDX-License-Identifier: MIT
// See signals.h. The handler calls write, tcsetattr, signal and raise only, all safe there.
#include "signals.h"

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "terminal.h"

static int wake[2] = {-1, -1};
static volatile sig_atomic_t asked_to_end;

static void handle(int number)
{
    unsigned char byte = (unsigned char)number;
    if (number == SIGHUP || !asked_to_end) {
        if (number != SIGHUP) asked_to_end = 1;
        if (write(wake[1], &byte, 1) == 1) return;
        if (number == SIGHUP) return; // the pipe is full of them
    }
    terminal_restore();
    signal(number, SIG_DFL); // whoever waits for the program sees it end by the signal
    raise(number);
}

int signals_install(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    if (pipe2(wake, O_CLOEXEC | O_NONBLOCK)) return -1;
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_IGN); // a file that may grow no more is a full disk
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction before, action = {.sa_handler = handle, .sa_flags = SA_RESTART};
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler == SIG_IGN) continue; // nohup
        sigaction(signals[i], &action, NULL);
    }
    return wake[0];
}

int signals_next(int descriptor)
{
    unsigned char byte;
    return read(descriptor, &byte, 1) == 1 ? byte : 0;
}
