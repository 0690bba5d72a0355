// SPDX-License-Identifier: MIT
// Memory for partita_options.allocator that is given out again at once, so that objects follow
// others at one address.
#ifndef PARTITA_TEST_RECYCLED_H
#define PARTITA_TEST_RECYCLED_H

#include <partita/common.h>

// Memory that was released is what is given out next to whoever wants as much.
struct recycled {
    void *memory[256];
    size_t bytes[256], n;
    bool used[256];
};

// `all` begins as zeros. Fails (NULL) after 256 pieces.
struct partita_allocator recycled_allocator(struct recycled *all);
void recycled_free(struct recycled *all);

#endif
