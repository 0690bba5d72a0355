// SPDX-License-Identifier: MIT
// See terminal.h.
#include "terminal.h"

#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

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
