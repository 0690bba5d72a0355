// SPDX-License-Identifier: MIT
#include "part_schedule.h"

#include "base/sizes.h"

struct part_schedule part_schedule_of(const struct shape *shape, size_t taps_part,
                                      size_t signal_part)
{
    const struct axis *axis = &shape->axis[0];
    const size_t unit = size_gcd(taps_part, signal_part);
    const ptrdiff_t first = causal_first(axis);
    return (struct part_schedule){.taps_part = taps_part,
                                  .signal_part = signal_part,
                                  .unit = unit,
                                  .apart = taps_part + signal_part,
                                  .count = (taps_part + signal_part) / unit,
                                  .taps = ceil_div(axis->span, taps_part),
                                  .signals = ceil_div(axis->size, signal_part),
                                  .first = first,
                                  .end = first + (ptrdiff_t)((axis->out - 1) * axis->stride) + 1};
}

struct segment_range part_schedule_signals(const struct part_schedule *divisions)
{
    const ptrdiff_t low =
        divisions->first - (ptrdiff_t)(divisions->apart + divisions->taps * divisions->taps_part);
    const size_t first = low > 0 ? (size_t)low / divisions->signal_part : 0;
    const size_t behind =
        divisions->end > 0 ? (size_t)(divisions->end - 1) / divisions->signal_part + 1 : 0;
    const size_t end = size_min(behind, divisions->signals);
    return (struct segment_range){(ptrdiff_t)first, end > first ? end - first : 0};
}

// Intervals of division k that end before the first output wanted.
static size_t skipped(const struct part_schedule *divisions, size_t k)
{
    const ptrdiff_t behind = (ptrdiff_t)(k * divisions->unit + divisions->apart) - 1; // interval 0
    return behind > divisions->first
               ? 0
               : ceil_div((size_t)(divisions->first - behind) + 1, divisions->apart);
}

size_t part_schedule_begin(const struct part_schedule *divisions, size_t k, size_t interval)
{
    return k * divisions->unit + (skipped(divisions, k) + interval) * divisions->apart;
}

size_t part_schedule_intervals(const struct part_schedule *divisions, size_t k)
{
    const size_t last = (divisions->taps - 1) * divisions->taps_part +
                        (divisions->signals - 1) * divisions->signal_part;
    const ptrdiff_t end = divisions->end <= (ptrdiff_t)last ? divisions->end : (ptrdiff_t)last + 1;
    const ptrdiff_t begin = (ptrdiff_t)part_schedule_begin(divisions, k, 0);
    return begin >= end ? 0 : ceil_div((size_t)(end - begin), divisions->apart);
}

// In units the taps' part i begins at i * t, the signal's part j at j * s, and nothing divides both
// t and s: i t + j s = at is solved by the latest i in reach that leaves a multiple of s, and from
// there by steps of s and t.
struct part_schedule_pairs part_schedule_pairs(const struct part_schedule *divisions, size_t begin)
{
    const size_t t = divisions->taps_part / divisions->unit,
                 s = divisions->signal_part / divisions->unit;
    const size_t at = begin / divisions->unit;
    size_t i = at / t < divisions->taps ? at / t : divisions->taps - 1;
    while (i > 0 && (at - i * t) % s) i--;
    const size_t j = (at - i * t) / s;
    if ((at - i * t) % s || j >= divisions->signals)
        return (struct part_schedule_pairs){.count = 0};
    const size_t down = i / s, up = (divisions->signals - 1 - j) / t, more = down < up ? down : up;
    return (struct part_schedule_pairs){i - more * s, s, j + more * t, t, more + 1};
}

static void explain_interval(const struct part_schedule *divisions, size_t begin, struct text *text)
{
    enum { MOST_PAIRS = 8 };
    const struct part_schedule_pairs pairs = part_schedule_pairs(divisions, begin);
    if (!pairs.count) return;
    text_add(text, "    %8zu:", begin);
    for (size_t i = 0; i < pairs.count && i < MOST_PAIRS; i++)
        text_add(text, " (%zu, %zu)", pairs.taps + i * pairs.taps_step,
                 pairs.signal - i * pairs.signal_step);
    text_add(text, pairs.count > MOST_PAIRS ? " and %zu more\n" : "\n", pairs.count - MOST_PAIRS);
}

void part_schedule_explain(const struct part_schedule *divisions, struct text *text)
{
    enum { MOST_INTERVALS = 6, MOST_DIVISIONS = 4 };
    text_add(text,
             "  %zu parts of %zu taps, %zu parts of %zu samples: %zu divisions of intervals %zu "
             "outputs long\n",
             divisions->taps, divisions->taps_part, divisions->signals, divisions->signal_part,
             divisions->count, divisions->apart - 1);
    for (size_t k = 0; k < divisions->count && k < MOST_DIVISIONS; k++) {
        const size_t n = part_schedule_intervals(divisions, k);
        text_add(text, "  division %zu, %zu intervals\n", k, n);
        for (size_t i = 0; i < n && i < MOST_INTERVALS; i++)
            explain_interval(divisions, part_schedule_begin(divisions, k, i), text);
        if (n > MOST_INTERVALS) text_add(text, "    and %zu more\n", n - MOST_INTERVALS);
    }
    if (divisions->count > MOST_DIVISIONS)
        text_add(text, "  and %zu more divisions\n", divisions->count - MOST_DIVISIONS);
}
