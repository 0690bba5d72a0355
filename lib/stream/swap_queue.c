// SPDX-License-Identifier: MIT
#include "swap_queue.h"

enum { SLOT = 3, FRESH = 4 };

void mailbox_open(struct mailbox *mailbox)
{
    mailbox->own = 0;
    mailbox->taken = 1;
    atomic_init(&mailbox->middle, 2);
    atomic_init(&mailbox->posted, 0);
    atomic_init(&mailbox->settled, 0);
}

void mailbox_post(struct mailbox *mailbox, const struct partita_filter *filter, size_t fade)
{
    const unsigned number = atomic_load_explicit(&mailbox->posted, memory_order_relaxed) + 1;
    atomic_store_explicit(&mailbox->posted, number, memory_order_release);
    mailbox->slot[mailbox->own] = (struct letter){filter, fade, number};
    mailbox->own =
        atomic_exchange_explicit(&mailbox->middle, mailbox->own | FRESH, memory_order_acq_rel) &
        SLOT;
}

const struct letter *mailbox_take(struct mailbox *mailbox)
{
    if (!(atomic_load_explicit(&mailbox->middle, memory_order_relaxed) & FRESH)) return NULL;
    mailbox->taken =
        atomic_exchange_explicit(&mailbox->middle, mailbox->taken, memory_order_acq_rel) & SLOT;
    return &mailbox->slot[mailbox->taken];
}

void mailbox_settle(struct mailbox *mailbox)
{
    atomic_store_explicit(&mailbox->settled, mailbox->slot[mailbox->taken].number,
                          memory_order_release);
}

bool mailbox_settled(const struct mailbox *mailbox)
{
    return atomic_load_explicit(&mailbox->settled, memory_order_acquire) ==
           atomic_load_explicit(&mailbox->posted, memory_order_acquire);
}
