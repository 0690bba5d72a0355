// SPDX-License-Identifier: MIT
// Lines on standard output, one per second, without blocking when the reader is slow, since the
// writing thread also monitors the device. A line that follows before the previous one is written
// is dropped.
#ifndef PARTITA_APPS_LIVE_LINES_H
#define PARTITA_APPS_LIVE_LINES_H

#include <stdbool.h>
#include <stddef.h>

struct lines {
    char *text; // the line being written; NULL: none
    size_t n, n_sent;
    int error; // errno of the write that failed, which ends all output; EPIPE: no reader
};

// lines_put takes ownership of `text` as the next line. lines_push writes as much as fits without
// blocking.
void lines_put(struct lines *lines, char *text);
void lines_push(struct lines *lines);

// Waits until the line is written, for at most this many milliseconds (negative: no limit) or until
// the descriptor `wake` becomes readable (-1: none). False if it is not written, now or earlier.
bool lines_flush(struct lines *lines, int milliseconds, int wake);

#endif
