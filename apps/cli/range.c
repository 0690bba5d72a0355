// SPDX-License-Identifier: MIT
// Converts SciPy's modes and --first, --last, --max-lag to ranges of the full result. For
// correlation these are lags; lag 0 is sample m - 1 of the full result.
#include "range.h"

static struct range range_of_mode(int mode, int64_t m, int64_t n_seen)
{
    if (mode == MODE_SAME) return (struct range){(m - 1) / 2, (m - 1) / 2, true};
    if (mode == MODE_FULL) return (struct range){0, m - 1, true};
    if (n_seen >= m) return (struct range){m - 1, 0, true};
    if (n_seen == 0) return (struct range){0, 0, false};
    return (struct range){n_seen - 1, m, false};
}

struct range range_of(const struct settings *settings, int64_t m, int64_t n_seen)
{
    int64_t origin = settings->command == COMMAND_CORRELATE ? m - 1 : 0;
    if (settings->max_lag != NOT_GIVEN)
        return (struct range){origin - settings->max_lag, origin + settings->max_lag + 1, false};
    if (settings->tail == TAIL_NO) return (struct range){0, 0, true};
    struct range range = range_of_mode(settings->mode, m, n_seen * settings->up);
    if (settings->first != NOT_GIVEN) range.begin = origin + settings->first;
    if (settings->last == NOT_GIVEN) return range;
    range.end = origin + settings->last;
    range.end_counts_from_n = false;
    return range;
}

int64_t range_count(const struct range *range, int64_t n, int64_t stride)
{
    int64_t end = range->end + (range->end_counts_from_n ? n : 0);
    if (end <= range->begin || (n == 0 && range->end_counts_from_n)) return 0;
    return (end - range->begin - 1) / stride + 1;
}

bool range_check(const struct settings *settings, struct fault *fault)
{
    bool slice = settings->first != NOT_GIVEN || settings->last != NOT_GIVEN;
    if (settings->tail == TAIL_NO && (slice || settings->mode != MODE_FULL))
        return fault_usage(fault,
                           "--tail no selects the result; leave out --mode, --first and --last");
    if (slice && settings->mode != MODE_FULL)
        return fault_usage(fault,
                           "--first and --last select from the full result; leave out --mode");
    if (settings->max_lag != NOT_GIVEN && (slice || settings->mode != MODE_FULL))
        return fault_usage(fault,
                           "--max-lag selects the lags; leave out --mode, --first and --last");
    const bool known = settings->first != GIVEN_AS_TIME && settings->last != GIVEN_AS_TIME;
    if (known && settings->first != NOT_GIVEN && settings->last != NOT_GIVEN &&
        settings->first >= settings->last)
        return fault_usage(fault, "--first %lld --last %lld: there is no sample in between",
                           (long long)settings->first, (long long)settings->last);
    return true;
}
