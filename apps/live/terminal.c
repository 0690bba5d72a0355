// SPDX-License-Identifier: MIT
// See terminal.h.
#include "terminal.h"

#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

static struct termios before;
static volatile int taken;

bool terminal_is_there(void)
{
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

void terminal_take(void)
{
    struct termios now;
    if (tcgetattr(STDIN_FILENO, &before)) return;
    now = before;
    now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    now.c_cc[VMIN] = 0;
    now.c_cc[VTIME] = 0;
    now.c_cc[VSUSP] = _POSIX_VDISABLE;
    if (tcsetattr(STDIN_FILENO, TCSANOW, &now)) return;
    taken = 1;
    atexit(terminal_restore);
}

void terminal_restore(void)
{
    if (taken) tcsetattr(STDIN_FILENO, TCSANOW, &before);
    taken = 0;
}

int terminal_key(void)
{
    unsigned char key;
    return taken && read(STDIN_FILENO, &key, 1) == 1 ? key : 0;
}
