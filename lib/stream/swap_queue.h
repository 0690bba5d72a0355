// SPDX-License-Identifier: MIT
// Passes filters to a running stream: one thread posts, the stream's thread takes the latest, and
// neither ever waits. There are three slots: the poster fills one, the taker reads one, and the
// third is in the middle; posting and taking exchange a slot with the middle one.
#ifndef PARTITA_SWAP_QUEUE_H
#define PARTITA_SWAP_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct partita_filter;

struct pending_swap {
    const struct partita_filter *filter;
    size_t fade;
    unsigned number; // of swaps posted so far
};

struct swap_queue {
    struct pending_swap slot[3];
    unsigned posting, taken; // slots of the poster and of the taker
    atomic_uint middle;      // slot, and FRESH if it has not been taken
    atomic_uint posted;      // number of the last swap posted
    // Number of the last swap whose filter is the only one that the stream uses. A device may have
    // it in memory that it can write; otherwise it is `own_settled`.
    atomic_uint *settled, own_settled;
};

void swap_queue_open(struct swap_queue *swap_queue);
void swap_queue_post(struct swap_queue *swap_queue, const struct partita_filter *filter,
                     size_t fade);

// The latest swap that has not been taken, or NULL. It stays valid until the next take.
const struct pending_swap *swap_queue_take(struct swap_queue *swap_queue);

// Call when the stream uses no filter but that of the swap taken last.
void swap_queue_settle(struct swap_queue *swap_queue);
bool swap_queue_settled(const struct swap_queue *swap_queue);

#endif
