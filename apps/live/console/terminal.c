// SPDX-License-Identifier: MIT
// See terminal.h. The handler of signals calls only write, tcgetpgrp, getpgrp, tcsetattr, signal
// and raise, which are async-signal-safe.
#include "terminal.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "io/bytes/temp.h"

static struct termios before;
static volatile int taken;

enum { N_STREAMS = 3 }; // the standard ones
static bool was_there[N_STREAMS];

// Whether our process group is in the foreground. tcgetpgrp returns -1 for the terminal of another
// session, which has no foreground group for us.
static bool in_foreground(void)
{
    pid_t group = tcgetpgrp(STDIN_FILENO);
    return group == -1 || group == getpgrp();
}

bool terminal_available(void)
{
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO) && in_foreground();
}

void terminal_remember(void)
{
    for (int i = 0; i < N_STREAMS; i++) was_there[i] = isatty(i);
}

bool terminal_has_gone(void)
{
    for (int i = 0; i < N_STREAMS; i++)
        if (was_there[i] && !isatty(i)) return true;
    return false;
}

void terminal_enter_raw(void)
{
    struct termios now;
    if (tcgetattr(STDIN_FILENO, &before)) return;
    now = before;
    now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    now.c_iflag &= ~(tcflag_t)IXON; // ^S would also stop the monitoring of the device
    now.c_cc[VMIN] = 0;
    now.c_cc[VTIME] = 0;
    now.c_cc[VSUSP] = _POSIX_VDISABLE;
    if (tcsetattr(STDIN_FILENO, TCSANOW, &now)) return;
    taken = 1;
    atexit(terminal_restore);
}

void terminal_restore(void)
{
    if (taken && in_foreground()) tcsetattr(STDIN_FILENO, TCSANOW, &before);
    taken = 0;
}

int terminal_read_key(void)
{
    unsigned char key;
    return taken && in_foreground() && read(STDIN_FILENO, &key, 1) == 1 ? key : 0;
}

static int wake[2] = {-1, -1};
static volatile sig_atomic_t end_requested;

static void print_error(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0) return; // nothing can be done
}

static void print_unfinished_file(void)
{
    const char *path = temp_pending();
    if (!path) return;
    print_error("\npartita live: the unfinished recording is ");
    print_error(path);
    print_error("\n");
}

static void handle_live_signal(int number)
{
    unsigned char byte = (unsigned char)number;
    bool at_once = number != SIGHUP && end_requested;
    if (!at_once) {
        if (number != SIGHUP) end_requested = 1;
        if (write(wake[1], &byte, 1) == 1) return;
        if (number == SIGHUP) return; // the pipe is full of unread SIGHUPs
    }
    terminal_restore();
    print_unfinished_file();
    signal(number, SIG_DFL); // the parent process sees that the signal ended the program
    raise(number);
}

int signals_install(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    if (pipe2(wake, O_CLOEXEC | O_NONBLOCK)) return -1;
    signal(SIGPIPE, SIG_IGN); // writes to a closed pipe fail with EPIPE
    // Terminal access from the background must not stop a program that plays.
    signal(SIGTTOU, SIG_IGN);
    signal(SIGTTIN, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); // a file size limit is reported like a full disk
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction old, action = {.sa_handler = handle_live_signal, .sa_flags = SA_RESTART};
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN) continue; // nohup
        sigaction(signals[i], &action, NULL);
    }
    return wake[0];
}

int signals_next(int descriptor)
{
    unsigned char byte;
    return read(descriptor, &byte, 1) == 1 ? byte : 0;
}
