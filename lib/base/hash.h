// SPDX-License-Identifier: MIT
// FNV-1a, 64 bits (Fowler, Noll, Vo): distinguishes data reliably unless somebody constructs
// collisions on purpose.
#ifndef PARTITA_HASH_H
#define PARTITA_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_BEGIN 0xcbf29ce484222325U

static inline uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *byte = data;
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ byte[i]) * 0x100000001b3U;
    return hash;
}

// The same over words of eight bytes, whose last one is filled with zeros: for large data. Any
// change within one word changes the result.
static inline uint64_t hash_words(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *byte = data;
    for (size_t i = 0; i < bytes; i += sizeof hash) {
        uint64_t word = 0;
        memcpy(&word, byte + i, bytes - i < sizeof word ? bytes - i : sizeof word);
        hash = (hash ^ word) * 0x100000001b3U;
    }
    return hash;
}

#endif
