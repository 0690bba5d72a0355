// SPDX-License-Identifier: MIT
// Random problems for a number of seconds (argument, 3 without): sizes, strides, dilations, padding
// from far negative to far positive, channels and groups, all directions, every engine and the
// planner's choice. Small problems are compared with the reference. A problem that takes more than
// MAX_SECONDS of processor time, or that fails, is printed with its number; PARTITA_SEED gives
// others.
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "problem_check.h"

// The longest of 10^5 problems took 2 s; a sanitizer takes several times as long.
#define MAX_SECONDS (strcmp(SANITIZE, "none") == 0 ? 20 : 100)

static uint64_t state;

static uint64_t bits(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static size_t below(size_t n)
{
    return (size_t)(bits() % n);
}

static bool chance(unsigned one_in)
{
    return below(one_in) == 0;
}

// Sizes of all magnitudes: half of them are at most the square root of `max`.
static size_t magnitude(size_t max)
{
    size_t shift = 0;
    while (max >> shift) shift++;
    const size_t n = (size_t)1 << below(shift);
    return 1 + (n + below(n)) % max;
}

// From far negative to far positive, or nothing, or what keeps the size.
static ptrdiff_t padding(size_t size, size_t span)
{
    const ptrdiff_t far = (ptrdiff_t)(2 * (size + span) + 2);
    switch (below(6)) {
    case 0:
        return 0;
    case 1:
        return (ptrdiff_t)span / 2;
    case 2:
        return (ptrdiff_t)below(span + 1);
    case 3:
        return -(ptrdiff_t)magnitude(size);
    default:
        return (ptrdiff_t)below(2 * (size_t)far) - far;
    }
}

static void random_axis(struct partita_problem *p, int a, size_t max, bool plain)
{
    p->size[a] = magnitude(max);
    p->kernel[a] = magnitude(chance(3) ? 600 : 12);
    p->stride[a] = plain || !chance(3) ? 1 : magnitude(5);
    p->dilation[a] = plain || !chance(4) ? 1 : magnitude(6);
    const size_t span = p->dilation[a] * (p->kernel[a] - 1) + 1;
    p->pad_begin[a] = padding(p->size[a], span);
    p->pad_end[a] = padding(p->size[a], span);
}

static struct partita_problem random_problem(void)
{
    static const enum partita_type types[][2] = {{PARTITA_F32, PARTITA_F32},
                                                 {PARTITA_F64, PARTITA_F64},
                                                 {PARTITA_CF32, PARTITA_CF32},
                                                 {PARTITA_CF64, PARTITA_CF64},
                                                 {PARTITA_CF32, PARTITA_F32}};
    const bool layer = !chance(4);
    const enum partita_type *type = types[below(layer ? 2 : 5)];
    struct partita_problem p = {
        .signal = type[0], .taps = type[1], .op = (enum partita_op)below(2)};
    p.rank = layer ? 1 + (int)below(3) : 1;
    p.batch = magnitude(16);
    // A third are small enough for the reference.
    const size_t channels = chance(3) ? 64 : 6;
    p.in_channels = magnitude(channels);
    p.out_channels = magnitude(channels);
    p.groups = 1;
    if (layer && chance(2)) {
        p.groups = p.in_channels;
        p.out_channels = p.in_channels * (chance(3) ? 2 : 1);
    }
    const bool plain = chance(2);
    const size_t max = channels > 6 ? (p.rank == 1 ? 4000 : 100) : p.rank == 1 ? 1500 : 24;
    for (int a = 0; a < p.rank; a++) random_axis(&p, a, max, plain);
    p.channels_last = layer && chance(3);
    p.separable = p.rank == 2 && chance(16);
    if (!layer && chance(2)) p.up = magnitude(12);
    else if (chance(4)) p.boundary = (enum partita_boundary)below(6);
    if (p.boundary == PARTITA_BOUNDARY_CONSTANT) p.boundary_value = 0.5;
    return p;
}

static void random_check(void)
{
    static const char *const engines[] = {
        "cpu/direct",   "cpu/overlap-add", "cpu/overlap-add:steps", "cpu/overlap-add:3-steps",
        "cpu/blocks",   "cpu/gemm",        "cpu/overlap-save",      "cpu/blocks:lags",
        "cpu/winograd", "cpu/tiles",       "cpu/depthwise"};
    static const char *const imposed[] = {"cpu/blocks", "cpu/blocks:divisions",
                                          "cpu/blocks:private-divisions"};
    static const unsigned directions[] = {0, PARTITA_FORWARD, PARTITA_BACKWARD_DATA,
                                          PARTITA_BACKWARD_WEIGHT};
    const struct partita_problem problem = random_problem();
    struct partita_options options = {
        .engine = chance(2) ? NULL : engines[below(sizeof engines / sizeof *engines)],
        .threads = (int)below(3),
        .directions = directions[below(4)],
        .workspace_limit = chance(8) ? magnitude(1 << 24) : 0,
        .filter_uses = (unsigned)below(3),
    };
    if (chance(8)) {
        options.engine = imposed[below(sizeof imposed / sizeof *imposed)];
        options.parts = (struct partita_parts){magnitude(60), magnitude(60), chance(3)};
    }
    problem_check(&problem, &options, bits());
}

static unsigned long long number;
static uint64_t seed;

static void describe(int signal_number)
{
    char text[120];
    const int n = snprintf(text, sizeof text, "not ok 1 - problem %llu of PARTITA_SEED=%llu: %s\n",
                           number, (unsigned long long)seed,
                           signal_number == SIGVTALRM ? "no end" : strsignal(signal_number));
    if (write(STDOUT_FILENO, text, (size_t)n) != n) _exit(2);
    _exit(1);
}

int main(int argc, char **argv)
{
    const double seconds = argc > 1 ? atof(argv[1]) : 3;
    const char *given = getenv("PARTITA_SEED"), *only = argc > 2 ? argv[2] : NULL;
    const struct itimerval limit = {.it_value.tv_sec = MAX_SECONDS};
    struct timespec begin, now;
    seed = given ? strtoull(given, NULL, 10) : 2026;
    signal(SIGVTALRM, describe);
    signal(SIGABRT, describe);
    if (!strstr(SANITIZE, "address")) signal(SIGSEGV, describe);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    puts("1..1");
    fflush(stdout);
    number = only ? strtoull(only, NULL, 10) : 0;
    do {
        // Each problem has a sequence of its own, so that it can be repeated alone.
        state = (seed << 32) + number;
        setitimer(ITIMER_VIRTUAL, &limit, NULL);
        random_check();
        number++;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (!only && (double)(now.tv_sec - begin.tv_sec) < seconds);
    printf("ok 1 - %llu problems\n", number);
    return 0;
}
