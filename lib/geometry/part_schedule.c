// SPDX-License-Identifier: MIT
#include "part_schedule.h"

#include <assert.h>

#include "base/ranges.h"

// The x < n with t * x = 1 modulo n, t and n having no common divisor: Euclid's algorithm, which
// also records each remainder as a multiple of t, modulo n.
static size_t inverse_modulo(size_t t, size_t n)
{
    ptrdiff_t rest = (ptrdiff_t)n, next = (ptrdiff_t)(t % n);
    ptrdiff_t of_rest = 0, of_next = 1;
    while (next) {
        const ptrdiff_t times = rest / next, later = rest - times * next;
        const ptrdiff_t of_later = of_rest - times * of_next;
        rest = next, next = later;
        of_rest = of_next, of_next = of_later;
    }
    return (size_t)(of_rest < 0 ? of_rest + (ptrdiff_t)n : of_rest) % n;
}

struct part_schedule part_schedule_of(const struct shape *shape, size_t taps_part,
                                      size_t signal_part)
{
    const struct axis *axis = &shape->axis[0];
    assert(taps_part > 0 && signal_part > 0 && axis->out > 0);
    const size_t unit = size_gcd(taps_part, signal_part);
    const ptrdiff_t first = causal_first(axis);
    return (struct part_schedule){.taps_part = taps_part,
                                  .signal_part = signal_part,
                                  .unit = unit,
                                  .inverse = inverse_modulo(taps_part / unit, signal_part / unit),
                                  .apart = taps_part + signal_part,
                                  .count = (taps_part + signal_part) / unit,
                                  .taps = ceil_div(axis->span, taps_part),
                                  .signals = ceil_div(axis->size, signal_part),
                                  .first = first,
                                  .end = first + (ptrdiff_t)((axis->out - 1) * axis->stride) + 1};
}

struct range part_schedule_signals(const struct part_schedule *schedule)
{
    const struct windows signals = {0, schedule->signal_part, schedule->signal_part};
    const ptrdiff_t low =
        schedule->first - (ptrdiff_t)(schedule->apart + schedule->taps * schedule->taps_part);
    const struct range reached = {low, (size_t)(schedule->end - low)};
    return range_within(windows_outputs(&signals, reached), 0, (ptrdiff_t)schedule->signals);
}

// Intervals of division k that end before the first output wanted.
static size_t part_schedule_skipped(const struct part_schedule *schedule, size_t k)
{
    const ptrdiff_t behind = (ptrdiff_t)(k * schedule->unit + schedule->apart) - 1; // interval 0
    return behind > schedule->first
               ? 0
               : ceil_div((size_t)(schedule->first - behind) + 1, schedule->apart);
}

size_t part_schedule_begin(const struct part_schedule *schedule, size_t k, size_t interval)
{
    assert(k < schedule->count);
    return k * schedule->unit + (part_schedule_skipped(schedule, k) + interval) * schedule->apart;
}

size_t part_schedule_intervals(const struct part_schedule *schedule, size_t k)
{
    const size_t last = (schedule->taps - 1) * schedule->taps_part +
                        (schedule->signals - 1) * schedule->signal_part;
    const ptrdiff_t end = schedule->end <= (ptrdiff_t)last ? schedule->end : (ptrdiff_t)last + 1;
    const ptrdiff_t begin = (ptrdiff_t)part_schedule_begin(schedule, k, 0);
    return begin >= end ? 0 : ceil_div((size_t)(end - begin), schedule->apart);
}

// In units the taps' part i begins at i * t, the signal's part j at j * s, and nothing divides both
// t and s: i t + j s = at is solved by the latest i in reach that leaves a multiple of s, and from
// there by steps of s and t.
struct part_schedule_pairs part_schedule_pairs(const struct part_schedule *schedule, size_t begin)
{
    const size_t t = schedule->taps_part / schedule->unit,
                 s = schedule->signal_part / schedule->unit;
    assert(begin % schedule->unit == 0);
    const size_t at = begin / schedule->unit;
    const size_t top = size_min(at / t, schedule->taps - 1);
    const unsigned __int128 wide = (unsigned __int128)(at % s) * schedule->inverse;
    const size_t back = (top % s + s - (size_t)(wide % s)) % s;
    if (back > top) return (struct part_schedule_pairs){.count = 0};
    const size_t i = top - back, j = (at - i * t) / s;
    assert((at - i * t) % s == 0);
    if (j >= schedule->signals) return (struct part_schedule_pairs){.count = 0};
    const size_t down = i / s, up = (schedule->signals - 1 - j) / t, more = down < up ? down : up;
    return (struct part_schedule_pairs){i - more * s, s, j + more * t, t, more + 1};
}

static void part_schedule_explain_interval(const struct part_schedule *schedule, size_t begin,
                                           struct text *text)
{
    enum { MAX_PAIRS = 8 };
    const struct part_schedule_pairs pairs = part_schedule_pairs(schedule, begin);
    if (!pairs.count) return;
    text_add(text, "    %8zu:", begin);
    for (size_t i = 0; i < pairs.count && i < MAX_PAIRS; i++)
        text_add(text, " (%zu, %zu)", pairs.taps + i * pairs.taps_step,
                 pairs.signal - i * pairs.signal_step);
    text_add(text, pairs.count > MAX_PAIRS ? " and %zu more\n" : "\n", pairs.count - MAX_PAIRS);
}

void part_schedule_explain(const struct part_schedule *schedule, struct text *text)
{
    enum { MAX_INTERVALS = 6, MAX_DIVISIONS = 4 };
    text_add(text,
             "  %zu parts of %zu taps, %zu parts of %zu samples: %zu divisions of intervals %zu "
             "outputs long\n",
             schedule->taps, schedule->taps_part, schedule->signals, schedule->signal_part,
             schedule->count, schedule->apart - 1);
    for (size_t k = 0; k < schedule->count && k < MAX_DIVISIONS; k++) {
        const size_t n = part_schedule_intervals(schedule, k);
        text_add(text, "  division %zu, %zu intervals\n", k, n);
        for (size_t i = 0; i < n && i < MAX_INTERVALS; i++)
            part_schedule_explain_interval(schedule, part_schedule_begin(schedule, k, i), text);
        if (n > MAX_INTERVALS) text_add(text, "    and %zu more\n", n - MAX_INTERVALS);
    }
    if (schedule->count > MAX_DIVISIONS)
        text_add(text, "  and %zu more divisions\n", schedule->count - MAX_DIVISIONS);
}
