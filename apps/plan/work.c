// SPDX-License-Identifier: MIT
#include "work.h"

#include <stdio.h>
#include <string.h>

#include "../../lib/base/ranges.h"

// A problem as y[p] = sum over j < span of g[j] x[first + stride p - j], 0 <= p < out.
struct signal {
    long long span, size, stride, first, out;
    double rows, in, out_channels; // groups of channels, and channels, of all items of the batch
};

static long long max(long long a, long long b)
{
    return a > b ? a : b;
}

static long long up(long long a, long long b) // a / b, rounded up; b > 0
{
    return -floor_div(-a, (size_t)b);
}

static bool signal_of(const struct partita_problem *problem, struct signal *ret)
{
    size_t out[PARTITA_MAX_RANK];
    if (partita_problem_output_size(problem, out) != PARTITA_OK) return false;
    const double batch = problem->batch ? (double)problem->batch : 1;
    const size_t in = problem->in_channels ? problem->in_channels : 1;
    const size_t outputs = problem->out_channels ? problem->out_channels : 1;
    const long long dilation = problem->dilation[0] ? (long long)problem->dilation[0] : 1;
    *ret = (struct signal){.span = dilation * ((long long)problem->kernel[0] - 1) + 1,
                           .size = (long long)problem->size[0],
                           .stride = problem->stride[0] ? (long long)problem->stride[0] : 1,
                           .out = (long long)out[0],
                           .rows = batch * (problem->groups ? (double)problem->groups : 1),
                           .in = batch * (double)in,
                           .out_channels = batch * (double)outputs};
    ret->first = ret->span - 1 - (long long)problem->pad_begin[0];
    return true;
}

// The outputs among `size` samples of the full result from `begin` on.
static double outputs_within(const struct signal *signal, long long begin, long long size)
{
    const struct windows windows = {signal->first, (size_t)signal->stride, 1};
    const struct range result = {begin, (size_t)size};
    return (double)range_within(windows_outputs(&windows, result), 0, signal->out).size;
}

// The samples of x among `size` from `begin` on.
static double inside(const struct signal *signal, long long begin, long long size)
{
    return (double)range_within((struct range){begin, (size_t)size}, 0, signal->size).size;
}

// Overlap-save: each window is read whole, and each output written once.
static void count_save(const struct signal *signal, long long hop, long long n,
                       struct block_work *ret)
{
    const long long blocks = up((signal->out - 1) * signal->stride + 1, hop);
    for (long long b = 0; b < blocks; b++) {
        const long long end = signal->first + (b + 1) * hop;
        ret->reads += signal->in * inside(signal, end - n, n);
    }
    ret->groups = (size_t)((double)blocks * signal->rows), ret->size = (size_t)hop;
    ret->steps = 1;
    ret->writes = signal->out_channels * (double)signal->out;
}

// Overlap-add: y is cleared, and each block's result is added. On the CPU blocks begin with x and
// end with it; on a device they are all that the outputs depend on.
static void count_add(const struct signal *signal, long long hop, bool device,
                      struct block_work *ret)
{
    const long long result = hop + signal->span - 1;
    const long long end = signal->first + (signal->out - 1) * signal->stride + 1;
    const long long behind = device || end < signal->size ? end : signal->size;
    long long blocks = 0;
    ret->writes = signal->out_channels * (double)signal->out;
    for (long long at = device ? signal->first - signal->span + 1 : 0; at < behind; at += hop) {
        if (at + result <= signal->first) continue;
        blocks++;
        ret->reads += signal->in * inside(signal, at, hop);
        ret->writes += signal->out_channels * outputs_within(signal, at, result);
    }
    ret->groups = (size_t)((double)blocks * signal->rows), ret->size = (size_t)result;
    ret->steps = (size_t)(1 + up(signal->span - 1, hop));
}

struct parts {
    long long taps, taps_part, signals, signal_part, divisions;
};

// Imposed parts: pairs (i, j) and (i + s/g, j - t/g) begin at one output and share an interval.
static void count_parts(const struct signal *signal, const struct parts *parts, bool private_rows,
                        struct block_work *ret)
{
    const long long t = parts->taps_part, s = parts->signal_part;
    const long long unit = (long long)size_gcd((size_t)t, (size_t)s);
    const long long shared = max(parts->taps - s / unit, 0) * max(parts->signals - t / unit, 0);
    const long long all = parts->taps * parts->signals - shared;
    const long long low = max(up(signal->first - (t + s) + 2, unit), 0);
    const long long begun = up(signal->first + signal->out, unit) - low,
                    intervals = begun < all ? begun : all;
    const double added = private_rows ? (double)(2 * (parts->divisions - 1)) : 0;
    ret->groups = (size_t)((double)intervals * signal->out_channels);
    ret->size = (size_t)(t + s - 1);
    ret->steps = private_rows ? 2 : (size_t)parts->divisions;
    ret->reads = signal->in * (double)signal->size;
    ret->writes = signal->out_channels *
                  ((1 + added) * (double)signal->out + (double)intervals * (double)(t + s - 1));
}

bool block_work_count(const struct partita_problem *problem, const char *engine,
                      const char *explanation, struct block_work *ret)
{
    struct signal signal;
    struct parts parts;
    long long hop, n;
    const char *variant = strchr(engine, ':');
    *ret = (struct block_work){0};
    if (!signal_of(problem, &signal)) return false;
    for (const char *line = explanation; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (sscanf(line, " %lld parts of %lld taps, %lld parts of %lld samples: %lld divisions",
                   &parts.taps, &parts.taps_part, &parts.signals, &parts.signal_part,
                   &parts.divisions) == 5) {
            count_parts(&signal, &parts, variant && strstr(variant, "private"), ret);
            return true;
        }
        if (sscanf(line, " blocks of %lld frames by transforms of %lld samples", &hop, &n) != 2)
            continue;
        if (!strstr(engine, "overlap-add")) count_save(&signal, hop, n, ret);
        else count_add(&signal, hop, strncmp(engine, "cpu/", 4) != 0, ret);
        if (variant && sscanf(variant, ":%lld-steps", &n) == 1) ret->steps = (size_t)n;
        return true;
    }
    return false;
}
