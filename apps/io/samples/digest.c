// SPDX-License-Identifier: MIT
// See samples.h.
#include <string.h>

#include "samples.h"

#include "../../../lib/base/hash.h"

// FNV-1a (lib/base/hash.h) over scalars instead of bytes. `bytes` is a constant where this is
// called.
static inline uint64_t digest_scalars(uint64_t digest, const unsigned char *x, size_t n,
                                      size_t bytes)
{
    for (size_t i = 0; i < n; i++) digest = hash_words(digest, x + i * bytes, bytes);
    return digest;
}

uint64_t samples_digest(uint64_t digest, const void *x, size_t n, unsigned bytes)
{
    switch (bytes) {
    case 1:
        return digest_scalars(digest, x, n, 1);
    case 2:
        return digest_scalars(digest, x, n, 2);
    case 3:
        return digest_scalars(digest, x, n, 3);
    case 4:
        return digest_scalars(digest, x, n, 4);
    default:
        return digest_scalars(digest, x, n, sizeof(uint64_t));
    }
}
