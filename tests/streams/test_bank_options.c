// SPDX-License-Identifier: MIT
// Options of a bank that are out of range are refused; the log names the field. The number of slots
// decides the plan, and not the number of allocations.
#include "support/rig.h"

#include <math.h>

#include "core/engine.h"
#include "stream/bank.h"
#include "support/allocators.h"

struct refused {
    const char *field; // the log names it
    struct partita_bank_options options;
    enum partita_status status; // 0: PARTITA_ERR_ARG
};

static const struct refused refused[] = {
    {"bank.slots = 0", {.n_taps = 10}, 0},
    {"bank.slots", {.slots = SIZE_MAX, .n_taps = 10}, 0},
    {"bank.n_taps = 0", {.slots = 1}, 0},
    {"bank.n_taps", {.slots = 1, .n_taps = SIZE_MAX}, 0},
    {"bank.block", {.slots = 1, .n_taps = 10, .block = 100000}, 0},
    {"bank.latency", {.slots = 1, .n_taps = 10, .latency = SIZE_MAX}, 0},
    {"bank.in_channels", {.slots = 1, .n_taps = 10, .in_channels = 2}, 0},
    {"bank.in_channels", {.slots = 1, .n_taps = 10, .in_channels = 5000, .out_channels = 1}, 0},
    {"bank.out_channels", {.slots = 1, .n_taps = 10, .out_channels = 5000}, 0},
    {"bank.signal", {.slots = 1, .n_taps = 10, .signal = PARTITA_F16}, 0},
    {"bank.signal", {.slots = 1, .n_taps = 10, .signal = (enum partita_type)77}, 0},
    {"bank.taps_type", {.slots = 1, .n_taps = 10, .taps_type = PARTITA_BF16}, 0},
    {"taps", {.slots = 1, .n_taps = 10, .taps_type = PARTITA_CF32}, 0},
    {"bank.sample_rate", {.slots = 1, .n_taps = 10, .sample_rate = -1}, 0},
    {"bank.error_budget", {.slots = 1, .n_taps = 10, .error_budget = -1}, 0},
    {"bank.error_budget", {.slots = 1, .n_taps = 10, .error_budget = (double)NAN}, 0},
    {"bank.allocator", {.slots = 1, .n_taps = 10, .allocator = {.allocate = meter_allocate}}, 0},
    {"bank.block",
     {.slots = 1, .n_taps = 10, .block = 50, .device = "cuda"},
     PARTITA_ERR_UNSUPPORTED},
    {"options.device", {.slots = 1, .n_taps = 10, .device = "tpu"}, PARTITA_ERR_DEVICE},
};

static void options_are_refused_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct log_lines lines = {0};
        struct partita_bank_options options = refused[i].options;
        struct partita_bank *bank = NULL;
        options.log = log_into(&lines);
        assert_int_equal(partita_bank_create(&options, &bank),
                         refused[i].status ? refused[i].status : PARTITA_ERR_ARG);
        assert_null(bank);
        assert_int_equal(lines.n_lines, 1);
        if (!strstr(lines.text, refused[i].field))
            fail_msg("'%s' does not name %s", lines.text, refused[i].field);
    }
}

// In a bank of many slots the work on a block takes one call, so that long blocks are in time for
// earlier taps than in a single stream.
static void many_slots_cost_less_each(void **state)
{
    (void)state;
    double seconds[2];
    for (size_t i = 0; i < 2; i++) {
        const struct partita_bank_options options = {.slots = i ? 64 : 1, .n_taps = 48000};
        struct partita_bank *bank;
        assert_ok(partita_bank_create(&options, &bank));
        seconds[i] = partita_bank_plan(bank)->choice.seconds;
        partita_bank_destroy(bank);
    }
    assert_true(seconds[1] < seconds[0]);
}

// The streams of all slots are in one region.
static void slots_need_no_allocations(void **state)
{
    (void)state;
    size_t live[2];
    for (size_t i = 0; i < 2; i++) {
        struct meter meter = {0};
        const struct partita_bank_options options = {
            .slots = i ? 32 : 2, .n_taps = 700, .allocator = meter_allocator(&meter)};
        struct partita_bank *bank;
        assert_ok(partita_bank_create(&options, &bank));
        live[i] = meter.n_live;
        partita_bank_destroy(bank);
        assert_int_equal(meter.n_live, 0);
    }
    assert_int_equal(live[0], live[1]);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        {"options-are-refused-by-name", options_are_refused_by_name, NULL, NULL, NULL},
        {"many-slots-cost-less-each", many_slots_cost_less_each, NULL, NULL, NULL},
        {"slots-need-no-allocations", slots_need_no_allocations, NULL, NULL, NULL},
    };
    return run_all(tests);
}
