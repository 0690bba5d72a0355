// SPDX-License-Identifier: MIT
#include "swap_queue.h"

#include <assert.h>

enum { SLOT = 3, FRESH = 4 };

void swap_queue_open(struct swap_queue *swap_queue)
{
    swap_queue->posting = 0;
    swap_queue->taken = 1;
    atomic_init(&swap_queue->middle, 2);
    atomic_init(&swap_queue->posted, 0);
    atomic_init(&swap_queue->own_settled, 0);
    swap_queue->settled = &swap_queue->own_settled;
}

void swap_queue_post(struct swap_queue *swap_queue, const struct partita_filter *filter,
                     size_t fade)
{
    assert(filter);
    const unsigned number = atomic_load_explicit(&swap_queue->posted, memory_order_relaxed) + 1;
    atomic_store_explicit(&swap_queue->posted, number, memory_order_release);
    swap_queue->slot[swap_queue->posting] = (struct pending_swap){filter, fade, number};
    swap_queue->posting = atomic_exchange_explicit(&swap_queue->middle, swap_queue->posting | FRESH,
                                                   memory_order_acq_rel) &
                          SLOT;
}

const struct pending_swap *swap_queue_take(struct swap_queue *swap_queue)
{
    if (!(atomic_load_explicit(&swap_queue->middle, memory_order_relaxed) & FRESH)) return NULL;
    swap_queue->taken =
        atomic_exchange_explicit(&swap_queue->middle, swap_queue->taken, memory_order_acq_rel) &
        SLOT;
    assert(swap_queue->taken < 3);
    return &swap_queue->slot[swap_queue->taken];
}

void swap_queue_settle(struct swap_queue *swap_queue)
{
    atomic_store_explicit(swap_queue->settled, swap_queue->slot[swap_queue->taken].number,
                          memory_order_release);
}

bool swap_queue_settled(const struct swap_queue *swap_queue)
{
    return atomic_load_explicit(swap_queue->settled, memory_order_acquire) ==
           atomic_load_explicit(&swap_queue->posted, memory_order_acquire);
}
