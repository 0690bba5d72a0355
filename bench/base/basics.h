// SPDX-License-Identifier: MIT
// What every part of the benchmarks uses: clock, memory, reproducible noise, properties of types.
#ifndef BENCH_BASICS_H
#define BENCH_BASICS_H

#include <partita/partita.h>

// Monotonic time in seconds.
double bench_now(void);

// Allocates zeroed memory, aligned to 64 bytes. Ends the program when there is none: a benchmark
// without memory has nothing to report.
void *bench_allocate(size_t bytes);

// Bytes that this program's heap holds.
size_t bench_heap_bytes(void);

// Compares two doubles, for qsort.
int bench_compare(const void *a, const void *b);

// One step of a xorshift generator.
uint64_t bench_random(uint64_t *state);

// Fills an array of reals with reproducible noise in [-0.5, 0.5).
void bench_noise(void *samples, size_t n_reals, bool f64, uint64_t seed);

static inline bool type_is_f64(enum partita_type type)
{
    return type == PARTITA_F64 || type == PARTITA_CF64;
}

static inline bool type_is_complex(enum partita_type type)
{
    return type == PARTITA_CF32 || type == PARTITA_CF64;
}

// For sizes of which 0 stands for the default, 1.
static inline size_t or_one(size_t value)
{
    return value ? value : 1;
}

#endif
