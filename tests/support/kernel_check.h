// SPDX-License-Identifier: MIT
// Shared by the kernel tests: memory between two inaccessible pages, sums in twice the precision of
// a double with a bound on the error of a kernel, and comparison by that bound, by class (NaN,
// infinity) or by bits.
#ifndef PARTITA_KERNEL_CHECK_H
#define PARTITA_KERNEL_CHECK_H

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cpu.h"
#include "kernels/kernels.h"
#include "support/test.h"

static inline size_t scalar_size(bool f64)
{
    return f64 ? sizeof(double) : sizeof(float);
}

static inline double scalar_get(bool f64, const void *p, size_t i)
{
    return f64 ? ((const double *)p)[i] : (double)((const float *)p)[i];
}

static inline void scalar_put(bool f64, void *p, size_t i, double value)
{
    if (f64) ((double *)p)[i] = value;
    else ((float *)p)[i] = (float)value;
}

static inline void *scalar_at(bool f64, void *p, size_t i)
{
    return (char *)p + i * scalar_size(f64);
}

static inline size_t vector_lanes(const struct kernels *k)
{
    const size_t bytes = !strcmp(k->isa, "avx512") ? 64 : !strcmp(k->isa, "avx2") ? 32 : 16;
    return bytes / scalar_size(k->f64);
}

static inline size_t block_lanes(bool f64)
{
    return SPECTRUM_LANES_BYTES / scalar_size(f64);
}

static inline void fill_random(struct random *random, bool f64, void *p, size_t n)
{
    random_samples(random, f64 ? PARTITA_F64 : PARTITA_F32, p, n);
}

// Draws a huge value, a tiny one or zero or, unless `finite`, also an infinity or a NaN. Sums stay
// finite if the other factors add up to at most 1.
static inline double extreme_value(struct random *random, bool f64, bool finite)
{
    const double huge = f64 ? DBL_MAX : (double)FLT_MAX, tiny = f64 ? 0x1p-1074 : 0x1p-149;
    const double values[] = {huge, -huge, tiny,     -tiny,     700 * tiny, 0,
                             -0.0, 1,     INFINITY, -INFINITY, NAN};
    return values[random_below(random, finite ? 8 : sizeof values / sizeof *values)];
}

// Memory with an inaccessible page before and after it. An array at one edge faults when it is
// overrun there; on its other side is a zone of bytes that are NaN as floats and must not change.
struct fence {
    char *memory;
    size_t size; // a multiple of the page
};
enum edge { EDGE_START, EDGE_END, N_EDGES };
enum { ZONE_BYTES = 128, ZONE_VALUE = 0xff };

static inline struct fence fence_open(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE),
                 size = (bytes + ZONE_BYTES + page - 1) / page * page;
    char *all = mmap(NULL, size + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(all != MAP_FAILED);
    assert_int_equal(mprotect(all + page, size, PROT_READ | PROT_WRITE), 0);
    return (struct fence){all + page, size};
}

static inline void fence_close(struct fence *fence)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    munmap(fence->memory - page, fence->size + 2 * page);
}

static inline unsigned char *fence_zone(const struct fence *fence, size_t bytes, enum edge edge)
{
    return (unsigned char *)fence->memory +
           (edge == EDGE_START ? bytes : fence->size - bytes - ZONE_BYTES);
}

// Returns the start of `bytes` bytes at the edge, filled from `from` unless that is NULL; fills the
// zone.
static inline void *fence_put(const struct fence *fence, const void *from, size_t bytes,
                              enum edge edge)
{
    char *at = edge == EDGE_START ? fence->memory : fence->memory + fence->size - bytes;
    if (from && bytes) memcpy(at, from, bytes);
    memset(fence_zone(fence, bytes, edge), ZONE_VALUE, ZONE_BYTES);
    return at;
}

static inline void fence_check(const struct fence *fence, size_t bytes, enum edge edge)
{
    const unsigned char *zone = fence_zone(fence, bytes, edge);
    for (size_t i = 0; i < ZONE_BYTES; i++) assert_int_equal(zone[i], ZONE_VALUE);
}

// A sum of products: its value in twice the precision of a double (Ogita, Rump, Oishi 2005, Dot2),
// its value in plain IEEE arithmetic, for infinities and NaNs, and the sum of the magnitudes.
struct sum {
    double high, low, plain, magnitude;
    size_t products;
};

static inline void sum_product(struct sum *sum, double a, double b)
{
    const double p = a * b, error = fma(a, b, -p);
    const double total = sum->high + p, part = total - sum->high;
    sum->low += ((sum->high - (total - part)) + (p - part)) + error;
    sum->high = total;
    sum->plain += p;
    sum->magnitude += fabs(p);
    sum->products++;
}

static inline double sum_value(const struct sum *sum)
{
    return isfinite(sum->plain) ? sum->high + sum->low : sum->plain;
}

// Each product is rounded once, and once more with each addition (Higham 2002, section 4.2), so
// that the error is at most `additions` + 1 times u times the sum of magnitudes, plus underflow of
// half the smallest number for each product and its addition.
static inline double sum_bound(const struct sum *sum, bool f64, size_t additions)
{
    const double u = f64 ? 0x1p-53 : 0x1p-24, smallest = f64 ? 0x1p-1074 : 0x1p-149;
    return (double)(additions + 1) * u * sum->magnitude + (double)(sum->products + 1) * smallest;
}

// Whether both are NaN, both are the same infinity, or the error is within the bound.
static inline bool agrees(const struct sum *sum, bool f64, double actual, size_t additions)
{
    const double expected = sum_value(sum);
    if (isnan(expected)) return isnan(actual);
    if (isinf(expected)) return actual == expected; // same sign
    return fabs(actual - expected) <= sum_bound(sum, f64, additions);
}

// Fails unless y[i] is exactly the expected value, rounded to the precision. The sign of a zero
// counts; all NaN are equal.
static inline void assert_same(bool f64, const void *y, size_t i, double expected)
{
    const double actual = scalar_get(f64, y, i), rounded = f64 ? expected : (double)(float)expected;
    if (isnan(rounded) ? !isnan(actual) : memcmp(&rounded, &actual, sizeof actual))
        fail_msg("%zu: %.17g, not %.17g", i, actual, rounded);
}

extern const struct kernels k_table_f32_reference, k_table_f64_reference; // kernels/reference.c

// The state of a kernel test: the kernels of one instruction set and precision.
struct kernel_subject {
    const struct kernels *kernels;
    char name[16]; // "f32-avx512"
};

enum { MAX_TABLES = CPU_AVX512 + 2, MAX_SUBJECTS = 2 * MAX_TABLES, MAX_PROMISES = 16 };

// Table i < MAX_TABLES to test: the reference, and each instruction set that was built and that
// this processor has, NULL for others.
static inline const struct kernels *tested_kernels(int i, bool f64)
{
    if (i == 0) return f64 ? &k_table_f64_reference : &k_table_f32_reference;
    const enum cpu_isa isa = (enum cpu_isa)(i - 1);
    const struct kernels *kernels = kernels_select(isa, f64);
    return isa <= cpu_detect() && !strcmp(kernels->isa, cpu_isa_name(isa)) ? kernels : NULL;
}

// Tests all promises for the reference and every instruction set that this processor has; returns
// the status of main.
static inline int test_all_isas(const struct promise *promises, size_t n_promises)
{
    static struct kernel_subject subjects[MAX_SUBJECTS];
    static struct CMUnitTest tests[MAX_SUBJECTS * MAX_PROMISES];
    unsetenv("PARTITA_CPU"); // all instruction sets are tested here
    size_t n = 0;
    struct kernel_subject *s = subjects;
    for (int i = 0; i < MAX_TABLES; i++)
        for (int f64 = 0; f64 < 2; f64++) {
            s->kernels = tested_kernels(i, f64);
            if (!s->kernels) continue;
            snprintf(s->name, sizeof s->name, "%s-%s", f64 ? "f64" : "f32", s->kernels->isa);
            for (size_t p = 0; p < n_promises; p++)
                tests[n++] = named_test(promises[p].run, s, "%s: %s", s->name, promises[p].name);
            s++;
        }
    return run_test_list(tests, n);
}

// Scalars of a block, that is, planes in lanes.
static inline size_t lanes_of(bool f64)
{
    return CONV_BLOCK_BYTES / scalar_size(f64);
}

// n blocks of random numbers; guarded_free releases them.
static inline void *blocks(struct random *random, bool f64, size_t n)
{
    void *p = guarded_alloc(n * CONV_BLOCK_BYTES, 0);
    fill_random(random, f64, p, n * lanes_of(f64));
    return p;
}

#endif
