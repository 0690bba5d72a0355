// SPDX-License-Identifier: MIT
// Memory for partita_options.allocator that is reused at once, so that new objects have the
// addresses of earlier ones.
#ifndef PARTITA_TEST_RECYCLED_H
#define PARTITA_TEST_RECYCLED_H

#include <partita/common.h>

// Released memory is the next that is returned for the same size.
struct recycled {
    void *memory[256];
    size_t bytes[256], n;
    bool used[256];
};

// `all` must be zero at first. Returns NULL after 256 allocations.
struct partita_allocator recycled_allocator(struct recycled *all);
void recycled_free(struct recycled *all);

#endif
