// SPDX-License-Identifier: MIT
// What every test shares: seeded random samples, guarded buffers, errors measured against the
// oracle, the table of gates, captured log lines, and a runner that prints TAP. Failures go through
// cmocka.
#ifndef PARTITA_TEST_H
#define PARTITA_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <partita/partita.h>

#include "support/problems.h"
#include "support/reference.h"

// The type pairs that a problem may have: signal and taps.
struct type_pair {
    enum partita_type signal, taps;
    const char *name; // "cf32-f32"
};
enum { N_TYPE_PAIRS = 6 };
extern const struct type_pair type_pairs[N_TYPE_PAIRS];

// The engines for bounded signals, by name; the first N_ENGINES of them serve those of any size,
// the first N_STREAM_ENGINES streams too. cpu/partitioned serves neither signals nor short filters:
// tests of streams with long filters name it in addition.
enum { N_STREAM_ENGINES = 2, N_ENGINES = 3, N_SIGNAL_ENGINES = 4 };
extern const char *const engine_names[N_SIGNAL_ENGINES];

// For parameters of which 0 stands for the default, 1.
static inline size_t or_one(size_t value)
{
    return value ? value : 1;
}

static inline bool type_is_f64(enum partita_type type)
{
    return type == PARTITA_F64 || type == PARTITA_CF64;
}

static inline bool type_is_complex(enum partita_type type)
{
    return type == PARTITA_CF32 || type == PARTITA_CF64;
}

// Random numbers. Each case starts its own sequence from the seed of the program (PARTITA_SEED,
// else fixed) and a name, so that it has the same numbers alone as among other cases.
struct random {
    uint64_t state;
};
struct random random_start(const char *name);
uint64_t random_bits(struct random *random);
size_t random_below(struct random *random, size_t n); // 0 .. n-1
// Real and imaginary parts are uniform in [-1, 1).
void random_samples(struct random *random, enum partita_type type, void *samples, size_t n);

void sample_put(enum partita_type type, void *samples, size_t i, double complex value);

// Memory with guard bytes on both sides, `offset` bytes past a 64-byte boundary, filled with a
// pattern that is NaN as a float or double. guarded_free fails the test if a guard byte changed.
void *guarded_alloc(size_t bytes, size_t offset);
void guarded_free(void *memory);

// Gates: the largest L2 norm of the error of y, relative to that of the oracle.
//
// Direct sums: each output is a sum of n products in partial sums. Errors of independent roundings
// grow as sqrt(n) times the unit roundoff u; the factor 4 covers the constant and the final
// rounding.
//
// Transforms: the error of one transform is u sqrt(log2 N) times 0.6 to 0.7 on average (Schatzman
// 1996). Two forward transforms, a product and an inverse add in squares to 1.3 at most; the gate
// has 3.
//
// Winograd: the sums that make a result are larger than it, and rounding errors grow with them:
// along an axis by sqrt(mean over outputs k of sum_i A'_ki^2 |B'_i|^2 |G_i|^2 / taps) for random
// inputs and taps. winograd_growth is that of the worst transform of an edge along 2 or, of rank 3,
// 3 axes: the multiple of gate_direct to allow.
double winograd_growth(size_t edge, int rank);
double gate_direct(enum partita_type type, size_t products);
double gate_transform(enum partita_type type, size_t transform);

// L2 norm of y - reference, divided by the norm of the reference or, if that is larger, by the norm
// that outputs in the middle of a long signal would have: a transform spreads its error evenly,
// also over outputs of only part of the taps.
double error_against(enum partita_type type, const void *y, const double complex *reference,
                     size_t n, double typical);

// Root mean square of an output that is a sum over all taps, with inputs of random_samples.
double typical_output(const struct partita_problem *problem);

// The gate for n outputs. Errors are nearly normal, their deviation is at most half the gate, and
// the norm of n normal numbers exceeds sqrt(n) deviations by four with probability below 4e-4. From
// 16 outputs on it is the gate itself.
double gate_for_outputs(double gate, size_t n);

// Collects log lines.
struct log_lines {
    char text[4096];
    int n_lines;
};
struct partita_log log_into(struct log_lines *lines);

// Time limits are multiplied by this, as sanitizers slow the library down. (gcc and clang announce
// them in different ways.)
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(undefined_behavior_sanitizer)
#define TEST_SLOWER 4
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_SLOWER 4
#endif
#ifndef TEST_SLOWER
#define TEST_SLOWER 1
#endif

// Processor time of this process in seconds, which excludes waiting and other processes.
double process_seconds(void);

// Fails unless the call returned OK.
#define assert_ok(call) assert_int_equal(call, PARTITA_OK)

// partita_filter_create_from with as many taps as the plan wants, and a bias or NULL.
enum partita_status filter_with_bias(const struct partita_plan *plan, const void *taps,
                                     const void *bias, struct partita_filter **ret_filter);

// Prints the seed and runs the tests in TAP. Returns the number of failures, for main.
#define run_all(tests) run_test_list(tests, sizeof(tests) / sizeof *(tests))
int run_test_list(const struct CMUnitTest *tests, size_t n);

// A problem in a table.
struct named_problem {
    const char *name;
    struct partita_problem problem;
};

// A property in a table, and its test.
struct promise {
    const char *name;
    CMUnitTestFunction run;
};

// Makes one named test; the name is copied, `state` is passed to the function.
struct CMUnitTest named_test(CMUnitTestFunction run, const void *state, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
