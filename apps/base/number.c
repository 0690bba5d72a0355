// SPDX-License-Identifier: MIT
// See number.h. A decimal prefix is added to the exponent before the text is converted, so that the
// conversion rounds only once.
#include "number.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COUNTS = 1 << QUANTITY_COUNT | 1 << QUANTITY_FRAMES,
    FREQUENCIES = 1 << QUANTITY_FREQUENCY,
    BYTES = 1 << QUANTITY_BYTES,
    TIMES = 1 << QUANTITY_SECONDS | 1 << QUANTITY_MILLISECONDS | 1 << QUANTITY_FRAMES,
    ALL = COUNTS | FREQUENCIES | BYTES | 1 << QUANTITY_DECIBELS | TIMES,
    MAX_DIGITS = 60,
    MAX_EXPONENT = 9999,
};

// The value is multiplied by factor * 10^exponent.
static const struct suffix {
    const char *text;
    int quantities, exponent;
    bool is_time;
    long double factor;
} suffixes[] = {
    {"", ALL, 0, false, 1},
    {"k", COUNTS | FREQUENCIES, 3, false, 1},
    {"K", COUNTS | FREQUENCIES, 3, false, 1},
    {"M", COUNTS | FREQUENCIES, 6, false, 1},
    {"G", COUNTS | FREQUENCIES, 9, false, 1},
    {"Hz", FREQUENCIES, 0, false, 1},
    {"kHz", FREQUENCIES, 3, false, 1},
    {"MHz", FREQUENCIES, 6, false, 1},
    {"GHz", FREQUENCIES, 9, false, 1},
    {"B", BYTES, 0, false, 1},
    {"k", BYTES, 0, false, 0x1p10L},
    {"K", BYTES, 0, false, 0x1p10L},
    {"M", BYTES, 0, false, 0x1p20L},
    {"G", BYTES, 0, false, 0x1p30L},
    {"T", BYTES, 0, false, 0x1p40L},
    {"KiB", BYTES, 0, false, 0x1p10L},
    {"MiB", BYTES, 0, false, 0x1p20L},
    {"GiB", BYTES, 0, false, 0x1p30L},
    {"TiB", BYTES, 0, false, 0x1p40L},
    {"kB", BYTES, 3, false, 1},
    {"MB", BYTES, 6, false, 1},
    {"GB", BYTES, 9, false, 1},
    {"TB", BYTES, 12, false, 1},
    {"dB", 1 << QUANTITY_DECIBELS, 0, false, 1},
    {"us", TIMES, -6, true, 1},
    {"ms", TIMES, -3, true, 1},
    {"s", TIMES, 0, true, 1},
    {"min", TIMES, 0, true, 60},
};

static const struct suffix *find_suffix(const char *text, enum quantity quantity)
{
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (suffixes[i].quantities & 1 << quantity && strcmp(text, suffixes[i].text) == 0)
            return &suffixes[i];
    return NULL;
}

static size_t count_digits(const char *text)
{
    return strspn(text, "0123456789");
}

// The characters of a sign, digits and a fraction; 0 if there is no digit.
static size_t mantissa_length(const char *text)
{
    const size_t sign = *text == '-' || *text == '+', whole = count_digits(text + sign);
    size_t n = sign + whole, fraction = 0;
    if (text[n] == '.') {
        fraction = count_digits(text + n + 1);
        n += 1 + fraction;
    }
    return whole + fraction ? n : 0;
}

// The characters of an exponent such as e6 or E-3; 0 if there is none.
static size_t exponent_length(const char *text)
{
    if (*text != 'e' && *text != 'E') return 0;
    const size_t sign = text[1] == '-' || text[1] == '+', digits = count_digits(text + 1 + sign);
    return digits ? 1 + sign + digits : 0;
}

struct fraction fraction_of(double above, double below, double max_n, double max_d)
{
    struct fraction before = {0, 1}, at = {1, 0};
    for (double a = above, b = below; b > 0;) {
        const double rest = fmod(a, b), whole = rint((a - rest) / b);
        const double n = whole * (double)at.n + (double)before.n,
                     d = whole * (double)at.d + (double)before.d;
        if (n > max_n || d > max_d) break;
        before = at;
        at = (struct fraction){(long long)n, (long long)d};
        a = b;
        b = rest;
    }
    return at;
}

bool number_parse_rate(const char *text, double *ret)
{
    char above[MAX_DIGITS + 16];
    struct number rate, divisor = {.value = 1};
    const char *slash = strchr(text, '/');
    const size_t n = slash ? (size_t)(slash - text) : strlen(text);
    if (n >= sizeof above || (slash && !number_parse(slash + 1, QUANTITY_COUNT, &divisor)))
        return false;
    snprintf(above, sizeof above, "%.*s", (int)n, text);
    if (!number_parse(above, QUANTITY_FREQUENCY, &rate)) return false;
    *ret = rate.value / divisor.value;
    return rate_is_usable(*ret);
}

bool number_parse(const char *text, enum quantity quantity, struct number *ret)
{
    char decimal[MAX_DIGITS + 16];
    const size_t n = mantissa_length(text), n_exponent = exponent_length(text + n);
    const struct suffix *suffix = find_suffix(text + n + n_exponent, quantity);
    long exponent = n_exponent ? strtol(text + n + 1, NULL, 10) : 0;
    if (n == 0 || n > MAX_DIGITS || !suffix || exponent > MAX_EXPONENT || exponent < -MAX_EXPONENT)
        return false;
    exponent += suffix->exponent;
    if (quantity == QUANTITY_MILLISECONDS && suffix->is_time) exponent += 3;
    snprintf(decimal, sizeof decimal, "%.*se%ld", (int)n, text, exponent);
    const long double value = strtold(decimal, NULL) * suffix->factor;
    const bool whole = fabsl(value) < 0x1p63L && floorl(value) == value;
    *ret = (struct number){.value = (double)value,
                           .is_time = suffix->is_time && quantity == QUANTITY_FRAMES,
                           .whole = whole,
                           .integer = whole ? (long long)value : 0};
    return true;
}

int number_parse_list(const char *text, enum quantity quantity, struct number *ret, int max)
{
    char word[MAX_DIGITS + 16];
    for (int n = 0; n < max; text++) {
        const size_t length = strcspn(text, ",");
        if (length >= sizeof word) return 0;
        snprintf(word, sizeof word, "%.*s", (int)length, text);
        if (!number_parse(word, quantity, &ret[n++])) return 0;
        text += length;
        if (!*text) return n;
    }
    return 0;
}
