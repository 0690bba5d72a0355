// SPDX-License-Identifier: MIT
#include "support/recycled.h"

#include <stdlib.h>

static void *recycled_allocate(void *user, size_t bytes)
{
    struct recycled *all = user;
    for (size_t i = 0; i < all->n; i++) {
        if (all->used[i] || all->bytes[i] != bytes) continue;
        all->used[i] = true;
        return all->memory[i];
    }
    if (all->n == 256) return NULL;
    all->used[all->n] = true;
    all->bytes[all->n] = bytes;
    return all->memory[all->n++] = aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static void recycled_release(void *user, void *memory)
{
    struct recycled *all = user;
    for (size_t i = 0; i < all->n; i++)
        if (all->memory[i] == memory) all->used[i] = false;
}

struct partita_allocator recycled_allocator(struct recycled *all)
{
    return (struct partita_allocator){recycled_allocate, recycled_release, all};
}

void recycled_free(struct recycled *all)
{
    for (size_t i = 0; i < all->n; i++) free(all->memory[i]);
}
