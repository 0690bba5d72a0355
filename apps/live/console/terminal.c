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

// A terminal of another session has no groups (-1) and is anybody's.
static bool is_ours(void)
{
    pid_t group = tcgetpgrp(STDIN_FILENO);
    return group == -1 || group == getpgrp();
}

bool terminal_is_there(void)
{
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO) && is_ours();
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

void terminal_take(void)
{
    struct termios now;
    if (tcgetattr(STDIN_FILENO, &before)) return;
    now = before;
    now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    now.c_iflag &= ~(tcflag_t)IXON; // ^S would stop the watch over the device with the screen
    now.c_cc[VMIN] = 0;
    now.c_cc[VTIME] = 0;
    now.c_cc[VSUSP] = _POSIX_VDISABLE;
    if (tcsetattr(STDIN_FILENO, TCSANOW, &now)) return;
    taken = 1;
    atexit(terminal_restore);
}

void terminal_restore(void)
{
    if (taken && is_ours()) tcsetattr(STDIN_FILENO, TCSANOW, &before);
    taken = 0;
}

int terminal_key(void)
{
    unsigned char key;
    return taken && is_ours() && read(STDIN_FILENO, &key, 1) == 1 ? key : 0;
}
