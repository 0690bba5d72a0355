// SPDX-License-Identifier: MIT
// Filters on their way to a running stream: one thread posts, the stream's thread takes the latest,
// neither ever waits. Three slots: the poster fills one, one lies in the middle, the taker reads
// one; posting and taking exchange a slot with the middle one.
#ifndef PARTITA_MAILBOX_H
#define PARTITA_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct partita_filter;

struct letter {
    const struct partita_filter *filter;
    size_t fade;
    unsigned number; // of letters posted so far
};

struct mailbox {
    struct letter slot[3];
    unsigned own, taken; // slots of the poster and of the taker
    atomic_uint middle;  // slot, and FRESH if it has not been taken
    atomic_uint posted;  // number of the last letter
    atomic_uint settled; // number of the last letter that is all the stream uses
};

void mailbox_open(struct mailbox *mailbox);
void mailbox_post(struct mailbox *mailbox, const struct partita_filter *filter, size_t fade);

// The latest letter that has not been taken, or NULL. It stays valid until the next take.
const struct letter *mailbox_take(struct mailbox *mailbox);

// The stream uses nothing but the filter of the letter taken last.
void mailbox_settle(struct mailbox *mailbox);
bool mailbox_settled(const struct mailbox *mailbox);

#endif
