// SPDX-License-Identifier: MIT
#include "support/allocators.h"

#include "support/test.h"

// Before each allocation is its size, after it are the guard bytes.
enum { HEAD = 64, GUARD = 4096, FILL = 0xa5 };

static size_t guard_of(const struct meter *meter)
{
    return meter->guard ? meter->guard : GUARD;
}

bool meter_fails(struct meter *meter)
{
    return ++meter->n_allocated == meter->fail_at;
}

void *meter_allocate(void *user, size_t bytes)
{
    struct meter *meter = user;
    if (meter_fails(meter)) return NULL;
    meter->n_live++;
    meter->bytes_live += bytes;
    meter->bytes_allocated += bytes;
    char *block = aligned_alloc(64, (HEAD + bytes + guard_of(meter) + 63) / 64 * 64);
    memcpy(block, &bytes, sizeof bytes);
    memset(block + HEAD, FILL, bytes + guard_of(meter)); // the library must not rely on zeros
    return block + HEAD;
}

void meter_release(void *user, void *memory)
{
    struct meter *meter = user;
    size_t bytes;
    assert_non_null(memory);
    char *block = (char *)memory - HEAD;
    memcpy(&bytes, block, sizeof bytes);
    for (size_t i = 0; i < guard_of(meter); i++)
        assert_int_equal((unsigned char)block[HEAD + bytes + i], FILL);
    meter->n_live--;
    meter->bytes_live -= bytes;
    free(block);
}

struct partita_allocator meter_allocator(struct meter *meter)
{
    return (struct partita_allocator){meter_allocate, meter_release, meter};
}

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
