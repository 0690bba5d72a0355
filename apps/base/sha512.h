// SPDX-License-Identifier: MIT
// SHA-512 of bytes that arrive in parts (FIPS 180-4).
#ifndef PARTITA_APPS_SHA512_H
#define PARTITA_APPS_SHA512_H

#include <stddef.h>
#include <stdint.h>

struct sha512 {
    uint64_t state[8];
    uint64_t n_bytes; // below 2^61
    unsigned char block[128];
};

enum { SHA512_TEXT = 128 + 1 }; // hexadecimal digits and a terminating zero

void sha512_begin(struct sha512 *sha);
void sha512_add(struct sha512 *sha, const void *bytes, size_t n);
void sha512_end(struct sha512 *sha, char text[SHA512_TEXT]);

#endif
