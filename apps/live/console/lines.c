// SPDX-License-Identifier: MIT
// See lines.h. A writable pipe accepts PIPE_BUF bytes without blocking. The descriptor itself stays
// in blocking mode, which is a property of the open file and may be shared with other processes.
#include "lines.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void lines_drop(struct lines *l)
{
    free(l->text);
    l->text = NULL;
}

void lines_put(struct lines *lines, char *text)
{
    if (lines->text || lines->error) free(text);
    else *lines = (struct lines){text, text ? strlen(text) : 0, 0, text ? 0 : ENOMEM};
}

// False: nothing more can be written now, or at all.
static bool push_some(struct lines *l)
{
    struct pollfd file = {.fd = STDOUT_FILENO, .events = POLLOUT};
    if (poll(&file, 1, 0) <= 0) return false;
    size_t left = l->n - l->n_sent;
    ssize_t put = write(STDOUT_FILENO, l->text + l->n_sent, left < PIPE_BUF ? left : PIPE_BUF);
    if (put < 0 && (errno == EINTR || errno == EAGAIN)) return false;
    if (put < 0) l->error = errno;
    else l->n_sent += (size_t)put;
    if (l->error || l->n_sent == l->n) lines_drop(l);
    return l->text;
}

void lines_push(struct lines *lines)
{
    while (lines->text && push_some(lines)) continue;
}

bool lines_flush(struct lines *l, int milliseconds, int wake)
{
    lines_push(l);
    while (l->text) {
        struct pollfd files[] = {{.fd = STDOUT_FILENO, .events = POLLOUT},
                                 {.fd = wake, .events = POLLIN}};
        if (poll(files, 2, milliseconds) <= 0 || files[1].revents) break;
        lines_push(l);
    }
    bool good = !l->text && !l->error;
    lines_drop(l);
    return good;
}
