// SPDX-License-Identifier: MIT
#include "support/test.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

const struct type_pair type_pairs[N_TYPE_PAIRS] = {
    {PARTITA_F32, PARTITA_F32, "f32"},       {PARTITA_F64, PARTITA_F64, "f64"},
    {PARTITA_CF32, PARTITA_CF32, "cf32"},    {PARTITA_CF64, PARTITA_CF64, "cf64"},
    {PARTITA_CF32, PARTITA_F32, "cf32-f32"}, {PARTITA_CF64, PARTITA_F64, "cf64-f64"},
};

const char *const engine_names[N_SIGNAL_ENGINES] = {"cpu/direct", "cpu/overlap-save",
                                                    "cpu/overlap-add", "cpu/blocks"};

static uint64_t seed(void)
{
    const char *text = getenv("PARTITA_SEED");
    return text ? strtoull(text, NULL, 0) : 20261121;
}

// FNV-1a of the name, mixed with the seed.
struct random random_start(const char *name)
{
    struct random random = {1469598103934665603u ^ seed() * 0x9e3779b97f4a7c15u};
    for (; *name; name++) random.state = (random.state ^ (unsigned char)*name) * 1099511628211u;
    return random;
}

// SplitMix64 (Steele, Lea, Flood 2014).
uint64_t random_bits(struct random *random)
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

size_t random_below(struct random *random, size_t n)
{
    return (size_t)(random_bits(random) % n);
}

static double random_part(struct random *random)
{
    return (double)(random_bits(random) >> 11) * 0x1p-52 - 1;
}

void sample_put(enum partita_type type, void *samples, size_t i, double complex value)
{
    if (half_is(type)) ((uint16_t *)samples)[i] = half_bits(type, creal(value));
    else if (type == PARTITA_F32 || type == PARTITA_TYPE_DEFAULT)
        ((float *)samples)[i] = (float)creal(value);
    if (type == PARTITA_F64) ((double *)samples)[i] = creal(value);
    if (type == PARTITA_CF32) ((float complex *)samples)[i] = (float complex)value;
    if (type == PARTITA_CF64) ((double complex *)samples)[i] = value;
}

void random_samples(struct random *random, enum partita_type type, void *samples, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double re = random_part(random), im = random_part(random);
        sample_put(type, samples, i, re + im * I);
    }
}

// In front of the memory: one guard zone that starts with where the allocation began and how long
// the memory is.
enum { GUARD_BYTES = 256, GUARD_VALUE = 0xff };

struct guard_head {
    unsigned char *base;
    size_t bytes;
};

void *guarded_alloc(size_t bytes, size_t offset)
{
    size_t total = (GUARD_BYTES + offset + bytes + GUARD_BYTES + 63) / 64 * 64;
    unsigned char *base = aligned_alloc(64, total);
    assert_non_null(base);
    memset(base, GUARD_VALUE, total);
    unsigned char *memory = base + GUARD_BYTES + offset;
    struct guard_head head = {base, bytes};
    memcpy(base + offset, &head, sizeof head);
    return memory;
}

void guarded_free(void *memory)
{
    if (!memory) return;
    struct guard_head head;
    unsigned char *at = memory;
    memcpy(&head, at - GUARD_BYTES, sizeof head);
    for (size_t i = sizeof head; i < GUARD_BYTES; i++)
        assert_int_equal(at[(ptrdiff_t)i - GUARD_BYTES], GUARD_VALUE);
    for (size_t i = 0; i < GUARD_BYTES; i++) assert_int_equal(at[head.bytes + i], GUARD_VALUE);
    free(head.base);
}

static double roundoff(enum partita_type type)
{
    return type_is_f64(type) ? 0x1p-53 : 0x1p-24;
}

double winograd_growth(size_t edge, int rank)
{
    static const double of_axis[] = {1.29, 1.68, 2.32, 3.36, 4.98}; // of edges 4 to 8
    return pow(of_axis[edge < 4 ? 4 : edge - 4], rank < 3 ? 2 : 3);
}

double gate_direct(enum partita_type type, size_t products)
{
    return 4 * roundoff(type) * sqrt((double)products);
}

double gate_transform(enum partita_type type, size_t transform)
{
    return 3 * roundoff(type) * sqrt(log2((double)(transform < 2 ? 2 : transform)));
}

double gate_for_outputs(double gate, size_t n)
{
    double tail = 0.5 * (1 + 4 / sqrt((double)n));
    return gate * (tail > 1 ? tail : 1);
}

double error_against(enum partita_type type, const void *y, const double complex *reference,
                     size_t n, double typical)
{
    double error = 0, norm = 0;
    for (size_t i = 0; i < n; i++) {
        double complex expected = type_is_complex(type) ? reference[i] : creal(reference[i]);
        double complex e = reference_sample(type, y, i) - expected;
        error += creal(e) * creal(e) + cimag(e) * cimag(e);
        norm += creal(expected) * creal(expected) + cimag(expected) * cimag(expected);
    }
    double floor = typical * typical * (double)n;
    return error == 0 ? 0 : sqrt(error / (norm > floor ? norm : floor));
}

double typical_output(const struct partita_problem *problem)
{
    size_t products =
        (problem->in_channels ? problem->in_channels : 1) / (problem->groups ? problem->groups : 1);
    for (int a = 0; a < reference_rank(problem); a++)
        products *= problem->kernel[a] ? problem->kernel[a] : 1;
    products = (products + or_one(problem->up) - 1) / or_one(problem->up); // the others meet zeros
    double signal =
        type_is_complex(problem->signal) ? 2.0 / 3 : 1.0 / 3; // a uniform part has variance 1/3
    double taps = type_is_complex(problem->taps) ? 2.0 / 3 : 1.0 / 3;
    return sqrt(signal * taps * (double)products);
}

double process_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void collect_line(void *user, const char *text)
{
    struct log_lines *lines = user;
    size_t used = strlen(lines->text);
    lines->n_lines++;
    snprintf(lines->text + used, sizeof lines->text - used, "%s\n", text);
}

struct partita_log log_into(struct log_lines *lines)
{
    *lines = (struct log_lines){.n_lines = 0};
    return (struct partita_log){collect_line, lines};
}

struct CMUnitTest named_test(CMUnitTestFunction run, const void *state, const char *format, ...)
{
    static char names[1 << 18]; // of all tests of a program; cmocka keeps pointers to them
    static size_t used;
    assert_true(used + 160 < sizeof names);
    char *name = names + used;
    va_list arguments;
    va_start(arguments, format);
    used += 1 + (size_t)vsnprintf(name, 160, format, arguments);
    va_end(arguments);
    return (struct CMUnitTest){name, run, NULL, NULL, (void *)(uintptr_t)state};
}

int run_test_list(const struct CMUnitTest *tests, size_t n)
{
    printf("# seed %llu (PARTITA_SEED)\n", (unsigned long long)seed());
    fflush(stdout);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return _cmocka_run_group_tests("partita", tests, n, NULL, NULL);
}

enum partita_status filter_with_bias(const struct partita_plan *plan, const void *taps,
                                     const void *bias, struct partita_filter **ret_filter)
{
    return partita_filter_create_from(
        plan,
        &(struct partita_taps){
            .dense = taps, .dense_count = partita_plan_taps_count(plan), .bias = bias},
        ret_filter);
}
