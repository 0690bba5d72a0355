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
// Between instances of long loops: gcc's time grows faster than the length of a function.
#define NOINLINE static __attribute__((noinline))

// The statement DO(c) for that constant c of the list which n equals, the last one for any other n:
// loops over c become straight code.
// clang-format off
#define CONSTANT_CASE(c, DO) case c: DO(c); break;
#define CONSTANT_CASES4(DO, a, b, c, d) \
    CONSTANT_CASE(a, DO) CONSTANT_CASE(b, DO) CONSTANT_CASE(c, DO) CONSTANT_CASE(d, DO)
#define WITH_CONSTANT4(n, DO, a, b, c, d) \
    switch (n) { CONSTANT_CASE(a, DO) CONSTANT_CASE(b, DO) CONSTANT_CASE(c, DO) default: DO(d); }
#define WITH_CONSTANT6(n, DO, a, b, c, d, e, f) \
    switch (n) { CONSTANT_CASES4(DO, a, b, c, d) CONSTANT_CASE(e, DO) default: DO(f); }
#define WITH_CONSTANT8(n, DO, a, b, c, d, e, f, g, h) \
    switch (n) { CONSTANT_CASES4(DO, a, b, c, d) CONSTANT_CASE(e, DO) CONSTANT_CASE(f, DO) \
                 CONSTANT_CASE(g, DO) default: DO(h); }
#define WITH_CONSTANT9(n, DO, a, b, c, d, e, f, g, h, i) \
    switch (n) { CONSTANT_CASES4(DO, a, b, c, d) CONSTANT_CASES4(DO, e, f, g, h) default: DO(i); }
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

// `sum`, to which a product with v has been added in its own register: gcc would otherwise add to
// the register of v after v's last use, and move the sum back.
INLINE vec keep_in_own_register(vec sum, vec v)
{
#if defined __x86_64__ && !defined __clang__
    __asm__("" : "+v"(sum) : "v"(v));
#else
    (void)v;
#endif
    return sum;
}

// The same address, whose origin the compiler does not know.
INLINE const REAL *keep_address(const REAL *x)
{
#ifndef __clang__
    __asm__("" : "+r"(x));
#endif
    return x;
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

// The nearest number of lanes.
INLINE size_t vec_lane(ptrdiff_t k)
{
    if (k < 0) return 0;
    return k < LANES ? (size_t)k : LANES;
}

// At most LANES reals are read or written: the first n, or all of a vector.
INLINE vec vec_load_up_to(const REAL *x, size_t n)
{
    return n < LANES ? vec_load_first(x, n) : vec_load(x);
}

INLINE void vec_store_up_to(REAL *y, vec v, size_t n)
{
    if (n < LANES) vec_store_first(y, v, n);
    else vec_store(y, v);
}

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

// Index lists of shuffles: F(lane, n, k, j) of every lane.
// clang-format off
#define LANES_IS(n) (VECTOR_BYTES / REAL_BYTES == n)
#define EACH_LANE2(F, l, n, k, j) F(l, n, k, j), F(l + 1, n, k, j)
#define EACH_LANE4(F, l, n, k, j) EACH_LANE2(F, l, n, k, j), EACH_LANE2(F, l + 2, n, k, j)
#define EACH_LANE8(F, l, n, k, j) EACH_LANE4(F, l, n, k, j), EACH_LANE4(F, l + 4, n, k, j)
#if LANES_IS(2)
#define EACH_LANE(F, n, k, j) EACH_LANE2(F, 0, n, k, j)
#elif LANES_IS(4)
#define EACH_LANE(F, n, k, j) EACH_LANE4(F, 0, n, k, j)
#elif LANES_IS(8)
#define EACH_LANE(F, n, k, j) EACH_LANE8(F, 0, n, k, j)
#elif LANES_IS(16)
#define EACH_LANE(F, n, k, j) EACH_LANE8(F, 0, n, k, j), EACH_LANE8(F, 8, n, k, j)
#endif

// Lane l of a vector that takes lanes of n others one after the other, here those of vector j,
// which follow the own ones; the first step permutes those of vector 0 too. INTERLEAVED: vector k of the
// n vectors' elements by turns. DEINTERLEAVED: elements k, k + n, .. of all of them.
#define TAKEN_FIRST(l, from, at, j) ((j) == 1 && (from) == 0 ? (at) : (l))
#define TAKEN(l, from, at, j) ((from) == (j) ? LANES + (at) : TAKEN_FIRST(l, from, at, j))
#define INTERLEAVED(l, n, k, j) TAKEN(l, ((k) * LANES + (l)) % (n), ((k) * LANES + (l)) / (n), j)
#define DEINTERLEAVED(l, n, k, j) TAKEN(l, ((l) * (n) + (k)) / LANES, ((l) * (n) + (k)) % LANES, j)
// SWAPPED: exchanges adjacent lanes of a vector. EVEN, ODD: the real or the imaginary parts of two
// vectors of interleaved complex numbers. LOWER, UPPER: the lower or the upper half of the complex
// numbers of a vector of real and one of imaginary parts, interleaved.
#define NEXT_LANE(l, n, k, j) (l) + 1
#define OTHER_LANE(l, n, k, j) (l) + 1 - (l) % 2 * 2
#define SWAPPED EACH_LANE(OTHER_LANE, 0, 0, 0)
#define EVEN EACH_LANE(DEINTERLEAVED, 2, 0, 1)
#define ODD EACH_LANE(DEINTERLEAVED, 2, 1, 1)
#define LOWER EACH_LANE(INTERLEAVED, 2, 0, 1)
#define UPPER EACH_LANE(INTERLEAVED, 2, 1, 1)
#define TAKE(F, n, k, j) y[k] = __builtin_shufflevector(y[k], v[j], EACH_LANE(F, n, k, j));
#define TAKE3(F, n, k) y[k] = v[0]; TAKE(F, n, k, 1) TAKE(F, n, k, 2)
#define TAKE5(F, n, k) TAKE3(F, n, k) TAKE(F, n, k, 3) TAKE(F, n, k, 4)
#define TAKE7(F, n, k) TAKE5(F, n, k) TAKE(F, n, k, 5) TAKE(F, n, k, 6)
#define TAKE_ALL3(F) TAKE3(F, 3, 0) TAKE3(F, 3, 1) TAKE3(F, 3, 2)
#define TAKE_ALL5(F) TAKE5(F, 5, 0) TAKE5(F, 5, 1) TAKE5(F, 5, 2) TAKE5(F, 5, 3) TAKE5(F, 5, 4)
#define TAKE_ALL7(F) TAKE7(F, 7, 0) TAKE7(F, 7, 1) TAKE7(F, 7, 2) TAKE7(F, 7, 3) TAKE7(F, 7, 4) \
                     TAKE7(F, 7, 5) TAKE7(F, 7, 6)
// clang-format on

// Element i of vector k of n = 3, 5 or 7 becomes element i*n + k of all of them, and back.
INLINE void vec_interleave_odd(vec *v, size_t n, bool back)
{
    vec y[7];
    if (n == 3 && back) {
        TAKE_ALL3(DEINTERLEAVED)
    } else if (n == 3) {
        TAKE_ALL3(INTERLEAVED)
    } else if (n == 5 && back) {
        TAKE_ALL5(DEINTERLEAVED)
    } else if (n == 5) {
        TAKE_ALL5(INTERLEAVED)
    } else if (back) {
        TAKE_ALL7(DEINTERLEAVED)
    } else {
        TAKE_ALL7(INTERLEAVED)
    }
    UNROLL
    for (size_t k = 0; k < n; k++) v[k] = y[k];
}

// The lanes after the first, and the first of `next`.
INLINE vec vec_shift(vec v, vec next)
{
    return __builtin_shufflevector(v, next, EACH_LANE(NEXT_LANE, 0, 0, 0));
}

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

// The same of 1 to 8 vectors.
INLINE void vec_interleave(vec *v, size_t n)
{
    vec half[6];
    if ((n & (n - 1)) == 0) vec_transpose(v, n);
    else if (n != 6) vec_interleave_odd(v, n, false);
    else {
        UNROLL
        for (size_t k = 0; k < 6; k++) half[k % 2 * 3 + k / 2] = v[k];
        vec_interleave_odd(half, 3, false);
        vec_interleave_odd(half + 3, 3, false);
        UNROLL
        for (size_t k = 0; k < 3; k++) {
            v[2 * k] = __builtin_shufflevector(half[k], half[k + 3], LOWER);
            v[2 * k + 1] = __builtin_shufflevector(half[k], half[k + 3], UPPER);
        }
    }
}

// Back: element i*n + k of all vectors becomes element i of vector k; of 1 to 7 vectors.
INLINE void vec_deinterleave(vec *v, size_t n)
{
    vec half[6];
    if (n % 2) {
        if (n > 1) vec_interleave_odd(v, n, true);
        return;
    }
    UNROLL
    for (size_t k = 0; k < n / 2; k++) {
        half[k] = __builtin_shufflevector(v[2 * k], v[2 * k + 1], EVEN);
        half[n / 2 + k] = __builtin_shufflevector(v[2 * k], v[2 * k + 1], ODD);
    }
    UNROLL
    for (size_t odd = 0; odd < 2; odd++) {
        vec *part = half + odd * (n / 2);
        const vec a = part[0], b = part[n / 2 > 1];
        if (n == 6) vec_interleave_odd(part, 3, true);
        if (n == 4) part[0] = __builtin_shufflevector(a, b, EVEN);
        if (n == 4) part[1] = __builtin_shufflevector(a, b, ODD);
    }
    UNROLL
    for (size_t k = 0; k < n; k++) v[k] = half[k % 2 * (n / 2) + k / 2];
}

#endif
