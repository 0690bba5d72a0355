// SPDX-License-Identifier: MIT
// Numbers as users write them: digits, an exponent, an SI prefix, a unit.
#ifndef PARTITA_APPS_NUMBER_H
#define PARTITA_APPS_NUMBER_H

#include <stdbool.h>

// What a number counts or measures, which decides about the suffixes it may have.
enum quantity {
    QUANTITY_COUNT,        // 4096, 1e6, 48k, 2.5M
    QUANTITY_FREQUENCY,    // Hz: 48k, 2.4M, 433.92MHz
    QUANTITY_BYTES,        // 512M and 4GiB are powers of 1024, 4GB is a power of 1000
    QUANTITY_DECIBELS,     // -6, -6dB
    QUANTITY_SECONDS,      // 10, 10s, 250ms, 2min
    QUANTITY_MILLISECONDS, // 50, 50ms, 0.5s
    QUANTITY_FRAMES,       // a count, or a time: 4096, 48k, 250ms
};

struct number {
    double value; // in the quantity's own unit; of a time for QUANTITY_FRAMES: in seconds
    bool is_time; // of QUANTITY_FRAMES
    bool whole;   // without a fraction, and `integer` has the exact value
    long long integer;
};

// A sample rate that is neither 0 nor absurd.
static inline bool rate_is_usable(double rate)
{
    return rate >= 1e-9 && rate <= 1e18;
}

// Whether two rates are the same but for the rounding of what they were computed from.
static inline bool rates_agree(double a, double b)
{
    return a - b <= 1e-14 * a && b - a <= 1e-14 * a;
}

// The fraction n / d that is the ratio of two numbers, or the nearest of its continued fraction
// with terms up to max_n and max_d. Exact for ratios of whole numbers with such a fraction.
struct fraction {
    long long n, d;
};
struct fraction fraction_of(double above, double below, double max_n, double max_d);

// A sample rate in Hz: like QUANTITY_FREQUENCY, or a fraction such as 100M/3. False if it is no
// usable one.
bool number_parse_rate(const char *text, double *ret);

// Numbers that commas separate; returns how many, or 0 if one is no number or there are more than
// `max`.
int number_parse_list(const char *text, enum quantity quantity, struct number *ret, int max);

// False if the text is not such a number. Rounds once, also with a prefix: 4.35M is 4350000.
// Accepts neither spaces nor infinity nor NaN.
bool number_parse(const char *text, enum quantity quantity, struct number *ret);

#endif
