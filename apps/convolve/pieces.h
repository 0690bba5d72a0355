// SPDX-License-Identifier: MIT
// Pieces of a signal on their way through a filter: several in work at once, each by one thread,
// given back in the order in which they were sent. Without workers a piece is filtered when it is
// sent, by all threads of its plan.
#ifndef PARTITA_APPS_PIECES_H
#define PARTITA_APPS_PIECES_H

#include <partita/partita.h>
#include <pthread.h>
#include <stdbool.h>

enum { PIECES_WORKERS = 32 };

struct piece;

struct pieces {
    const struct partita_plan *plan;
    const struct partita_filter *filter;
    struct piece *ring;
    size_t n_ring, n_workers;
    uint64_t sent, begun, taken; // pieces since the start; those from `taken` to `sent` are in work
    bool stopped;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_t workers[PIECES_WORKERS];
};

// Bytes of a piece's inputs and results. `workers` threads, at most PIECES_WORKERS; 0: none. False
// without memory or threads. pieces_close waits for what is in work; safe on zeros.
bool pieces_open(struct pieces *pieces, const struct partita_plan *plan,
                 const struct partita_filter *filter, size_t x_bytes, size_t y_bytes,
                 size_t workers);
void pieces_close(struct pieces *pieces);

// Inputs of the next piece, to be filled; they lie there unchanged until the next piece but
// `n_ring` - 1 is sent, so that the following piece can have its history from them. NULL: take one
// first.
void *pieces_room(const struct pieces *pieces);
void pieces_send(struct pieces *pieces);

// The oldest piece's results, once they are there, valid until its room is given out again. Only if
// one is in work.
enum partita_status pieces_take(struct pieces *pieces, const void **ret_y);

size_t pieces_in_work(const struct pieces *pieces);

#endif
