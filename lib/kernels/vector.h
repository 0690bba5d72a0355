// SPDX-License-Identifier: MIT
// The vector type of the kernels: VECTOR_BYTES wide (16 NEON, 32 AVX2, 64 AVX-512), GCC and Clang
// vector extensions. Everything is static and inlined: the linker must never use an out-of-line
// copy that was compiled for one instruction set in code for another.
#ifndef PARTITA_KERNEL_VECTOR_H
#define PARTITA_KERNEL_VECTOR_H

#if defined __x86_64__
#include <immintrin.h>
#elif defined __aarch64__
#include <arm_neon.h>
#endif

#include "names.h"

// The compiler unrolls loops of constant length marked UNROLL completely, so that small arrays stay
// in registers. NO_UNROLL prevents this where it would need more registers than exist.
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#define NO_UNROLL _Pragma("nounroll")
#else
#define UNROLL _Pragma("GCC unroll 64")
#define NO_UNROLL _Pragma("GCC unroll 1")
#endif
#define INLINE static inline __attribute__((always_inline))

// The statement DO(c) for that constant c of the list which n equals, the last one for any other n:
// loops over c become straight code.
// clang-format off
#define CONSTANT_CASE(c, DO) case c: DO(c); break;
#define CONSTANT_CASES4(DO, a, b, c, d) \
    CONSTANT_CASE(a, DO) CONSTANT_CASE(b, DO) CONSTANT_CASE(c, DO) CONSTANT_CASE(d, DO)
#define WITH_CONSTANT5(n, DO, a, b, c, d, e) \
    switch (n) { CONSTANT_CASES4(DO, a, b, c, d) default: DO(e); }
#define WITH_CONSTANT6(n, DO, a, b, c, d, e, f) \
    switch (n) { CONSTANT_CASES4(DO, a, b, c, d) CONSTANT_CASE(e, DO) default: DO(f); }
#define WITH_CONSTANT8(n, DO, a, b, c, d, e, f, g, h) \
    switch (n) { CONSTANT_CASES4(DO, a, b, c, d) CONSTANT_CASE(e, DO) CONSTANT_CASE(f, DO) \
                 CONSTANT_CASE(g, DO) default: DO(h); }
// clang-format on

typedef REAL vec __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef REAL unaligned_vec
    __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));

enum { LANES = VECTOR_BYTES / sizeof(REAL) };

INLINE vec vec_load(const REAL *x)
{
    return *(const unaligned_vec *)x;
}

// Keeps v in a register: gcc would otherwise read it from memory for each use, which costs more
// than the multiplication.
INLINE vec keep_in_register(vec v)
{
#if defined __x86_64__ && !defined __clang__
    __asm__("" : "+v"(v));
#elif defined __aarch64__ && !defined __clang__
    __asm__("" : "+w"(v));
#endif
    return v;
}

typedef BITS bits_vec __attribute__((vector_size(VECTOR_BYTES), may_alias));

// Negative lanes become 0; NaN stays.
INLINE vec vec_positive(vec v)
{
    return (vec)((bits_vec)v & ~(bits_vec)(v < (vec){0}));
}

INLINE void vec_store(REAL *y, vec v)
{
    *(unaligned_vec *)y = v;
}

INLINE vec vec_broadcast(REAL s)
{
    return s - (vec){0}; // unlike s + 0 this equals s for every s (also -0), so it costs nothing
}

#include "intrinsics.h"

// All lanes are lane k < LANES of v, a constant. aarch64 multiplies by a lane of a vector, so that
// this costs nothing there where it is a factor of vec_multiply_add.
#if VECTOR_BYTES == 16
INLINE vec vec_broadcast_lane(vec v, size_t k)
{
#if REAL_BYTES == 4
    if (k == 1) return __builtin_shufflevector(v, v, 1, 1, 1, 1);
    if (k == 2) return __builtin_shufflevector(v, v, 2, 2, 2, 2);
    if (k == 3) return __builtin_shufflevector(v, v, 3, 3, 3, 3);
    return __builtin_shufflevector(v, v, 0, 0, 0, 0);
#else
    if (k == 1) return __builtin_shufflevector(v, v, 1, 1);
    return __builtin_shufflevector(v, v, 0, 0);
#endif
}
#endif

// Index lists of shuffles, by number of lanes. SWAPPED: exchanges adjacent lanes of a vector. EVEN,
// ODD: the real or the imaginary parts of two vectors of interleaved complex numbers. LOWER, UPPER:
// the lower or the upper half of the complex numbers of a vector of real and one of imaginary
// parts, interleaved. clang-format off
#define LANES_IS(n) (VECTOR_BYTES / REAL_BYTES == n)
#if LANES_IS(2)
#define SWAPPED 1, 0
#define EVEN 0, 2
#define ODD 1, 3
#define LOWER 0, 2
#define UPPER 1, 3
#elif LANES_IS(4)
#define SWAPPED 1, 0, 3, 2
#define EVEN 0, 2, 4, 6
#define ODD 1, 3, 5, 7
#define LOWER 0, 4, 1, 5
#define UPPER 2, 6, 3, 7
#elif LANES_IS(8)
#define SWAPPED 1, 0, 3, 2, 5, 4, 7, 6
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14
#define ODD 1, 3, 5, 7, 9, 11, 13, 15
#define LOWER 0, 8, 1, 9, 2, 10, 3, 11
#define UPPER 4, 12, 5, 13, 6, 14, 7, 15
#elif LANES_IS(16)
#define SWAPPED 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODD 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#define LOWER 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define UPPER 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#endif
// clang-format on

enum { MAX_TRANSPOSED = 16 };

// Transposes in registers by log2(n) interleaves: element i of vector k of n, a power of two,
// becomes element i*n + k of all of them.
INLINE void vec_transpose(vec *v, size_t n)
{
    UNROLL
    for (size_t stage = 1; stage < n; stage *= 2) {
        vec next[MAX_TRANSPOSED];
        UNROLL
        for (size_t k = 0; k < n / 2; k++) {
            next[2 * k] = __builtin_shufflevector(v[k], v[k + n / 2], LOWER);
            next[2 * k + 1] = __builtin_shufflevector(v[k], v[k + n / 2], UPPER);
        }
        UNROLL
        for (size_t k = 0; k < n; k++) v[k] = next[k];
    }
}

#endif
