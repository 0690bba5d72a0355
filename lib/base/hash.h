// SPDX-License-Identifier: MIT
// FNV-1a, 64 bits (Fowler, Noll, Vo): tells things apart, against accidents and not against malice.
#ifndef PARTITA_HASH_H
#define PARTITA_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_BEGIN 0xcbf29ce484222325U

static inline uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *byte = data;
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ byte[i]) * 0x100000001b3U;
    return hash;
}

#endif
