// SPDX-License-Identifier: MIT
// Numbers with prefixes and units.
#include <math.h>
#include <stdio.h>

#include "base/number.h"
#include "support/test.h"

static const struct {
    const char *text;
    enum quantity quantity;
    double value;
    long long integer; // -1: not whole
    bool is_time;
} accepted[] = {
    {"0", QUANTITY_COUNT, 0, 0, false},
    {"-17", QUANTITY_COUNT, -17, -17, false},
    {"+4", QUANTITY_COUNT, 4, 4, false},
    {"48k", QUANTITY_COUNT, 48000, 48000, false},
    {"48K", QUANTITY_COUNT, 48000, 48000, false},
    {"1M", QUANTITY_COUNT, 1e6, 1000000, false},
    {"1e6", QUANTITY_COUNT, 1e6, 1000000, false},
    {"2.5G", QUANTITY_COUNT, 2.5e9, 2500000000, false},
    {"1e3k", QUANTITY_COUNT, 1e6, 1000000, false},
    {".5k", QUANTITY_COUNT, 500, 500, false},
    {"1.5", QUANTITY_COUNT, 1.5, -1, false},
    {"12E-1", QUANTITY_COUNT, 1.2, -1, false},
    {"9223372036854775807", QUANTITY_COUNT, 0x1p63, 9223372036854775807, false},
    {"-9223372036854775807", QUANTITY_COUNT, -0x1p63, -9223372036854775807, false},
    {"1152921504606846977", QUANTITY_COUNT, 0x1p60, 1152921504606846977, false},
    {"1e30", QUANTITY_COUNT, 1e30, -1, false},
    // Not 4.35 * 1e6 in binary, which is below 4350000.
    {"4.35M", QUANTITY_COUNT, 4350000, 4350000, false},
    {"0.1k", QUANTITY_COUNT, 100, 100, false},
    {"44.1k", QUANTITY_FREQUENCY, 44100, 44100, false},
    {"44100Hz", QUANTITY_FREQUENCY, 44100, 44100, false},
    {"433.92MHz", QUANTITY_FREQUENCY, 433920000, 433920000, false},
    {"2.4G", QUANTITY_FREQUENCY, 2.4e9, 2400000000, false},
    {"512M", QUANTITY_BYTES, 0x1p29, 1ll << 29, false},
    {"4G", QUANTITY_BYTES, 0x1p32, 1ll << 32, false},
    {"4GiB", QUANTITY_BYTES, 0x1p32, 1ll << 32, false},
    {"4GB", QUANTITY_BYTES, 4e9, 4000000000, false},
    {"0.5K", QUANTITY_BYTES, 512, 512, false},
    {"100B", QUANTITY_BYTES, 100, 100, false},
    {"-6dB", QUANTITY_DECIBELS, -6, -6, false},
    {"10", QUANTITY_SECONDS, 10, 10, false},
    {"250ms", QUANTITY_SECONDS, 0.25, -1, false},
    {"1.5min", QUANTITY_SECONDS, 90, 90, false},
    {"50", QUANTITY_MILLISECONDS, 50, 50, false},
    {"50ms", QUANTITY_MILLISECONDS, 50, 50, false},
    {"0.5s", QUANTITY_MILLISECONDS, 500, 500, false},
    {"96k", QUANTITY_FRAMES, 96000, 96000, false},
    {"250ms", QUANTITY_FRAMES, 0.25, -1, true},
    {"-2s", QUANTITY_FRAMES, -2, -2, true},
    {"125us", QUANTITY_FRAMES, 125e-6, -1, true},
};

static void accepts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++) {
        struct number n;
        if (!number_parse(accepted[i].text, accepted[i].quantity, &n))
            fail_msg("%s is refused", accepted[i].text);
        // The parser rounds once from 64 bits or more, and once to double.
        if (fabs(n.value - accepted[i].value) > 0x1p-52 * fabs(accepted[i].value))
            fail_msg("%s is read as %.17g", accepted[i].text, n.value);
        assert_int_equal(n.whole, accepted[i].integer != -1);
        if (n.whole) assert_int_equal(n.integer, accepted[i].integer);
        assert_int_equal(n.is_time, accepted[i].is_time);
    }
}

static void refuses(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum quantity quantity;
    } refused[] = {
        {"", QUANTITY_COUNT},
        {"-", QUANTITY_COUNT},
        {".", QUANTITY_COUNT},
        {"k", QUANTITY_COUNT},
        {"e6", QUANTITY_COUNT},
        {"12x", QUANTITY_COUNT},
        {"1 k", QUANTITY_COUNT},
        {" 1", QUANTITY_COUNT},
        {"1,5", QUANTITY_COUNT},
        {"0x10", QUANTITY_COUNT},
        {"inf", QUANTITY_DECIBELS},
        {"nan", QUANTITY_DECIBELS},
        {"1e", QUANTITY_COUNT},
        {"1m", QUANTITY_COUNT},
        {"10s", QUANTITY_COUNT},
        {"48kHz", QUANTITY_COUNT},
        {"1kk", QUANTITY_COUNT},
        {"1e10000", QUANTITY_COUNT},
        {"10k", QUANTITY_SECONDS},
        {"4G", QUANTITY_SECONDS},
        {"6dB", QUANTITY_SECONDS},
        {"3s", QUANTITY_BYTES},
        {"4gb", QUANTITY_BYTES},
        {"10k", QUANTITY_DECIBELS},
        {"20ms", QUANTITY_FREQUENCY},
        {"1e-99999999999999999999", QUANTITY_COUNT},
        {"1111111111111111111111111111111111111111111111111111111111111", QUANTITY_COUNT},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct number n;
        if (number_parse(refused[i].text, refused[i].quantity, &n))
            fail_msg("\"%s\" is read as %g", refused[i].text, n.value);
    }
}

// Every whole number written in thousands.
static void prefixes_round_once(void **state)
{
    (void)state;
    for (int i = 0; i < 10000; i++) {
        char text[32];
        struct number n;
        snprintf(text, sizeof text, "%d.%03dk", i / 1000, i % 1000);
        assert_true(number_parse(text, QUANTITY_COUNT, &n));
        assert_true(n.whole);
        assert_int_equal(n.integer, i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts),
        cmocka_unit_test(refuses),
        cmocka_unit_test(prefixes_round_once),
    };
    return run_all(tests);
}
