// SPDX-License-Identifier: MIT
// Lines on standard output, one a second, without ever waiting for who reads them: the thread that
// writes them watches over the device. A line that comes while the one before is still on its way
// is left out.
#ifndef PARTITA_APPS_LIVE_LINES_H
#define PARTITA_APPS_LIVE_LINES_H

#include <stdbool.h>
#include <stddef.h>

struct lines {
    char *text; // on its way; NULL: none
    size_t n, n_sent;
    int error; // errno of the write that failed; nothing is written any more. EPIPE: the reader is
               // gone
};

// Whether the line before has been taken.
bool lines_are_free(const struct lines *lines);

// Takes over `text` as the next line, which lines_push then writes as far as there is room.
// lines_are_free before.
void lines_put(struct lines *lines, char *text);
void lines_push(struct lines *lines);

// Waits until all is written, for at most this many milliseconds (negative: for ever) or until the
// descriptor `wake` can be read (-1: none). False if it is not, or was not before.
bool lines_flush(struct lines *lines, int milliseconds, int wake);

#endif
