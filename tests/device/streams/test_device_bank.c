// SPDX-License-Identifier: MIT
// What a bank makes the device do: calls of CUDA and waits do not depend on the number of slots,
// nothing is allocated, closed slots have no thread blocks, and the load is flat. A sample that is
// not finite stays in its slot. An error budget halves the spectra of filters. After a refused call
// outputs are zeros, and nothing is left behind. That slots have the bits of streams is in
// tests/streams/test_bank.c.
#include "support/rig.h"

#include <math.h>

#include "hostdev/hostdev.h"
#include "support/layer_rig.h"

enum { BLOCK = 16, TAPS = 2000, SLOTS = 64 };

struct device_bank {
    struct partita_bank *bank;
    struct partita_filter *filter;
    float taps[TAPS];
    struct random random;
};

static struct partita_bank_options bank_options(size_t slots)
{
    return (struct partita_bank_options){
        .slots = slots, .n_taps = TAPS, .block = BLOCK, .device = "cuda:0"};
}

static void device_bank_open(struct device_bank *d, size_t slots)
{
    const struct partita_bank_options options = bank_options(slots);
    d->random = random_start("device bank");
    random_samples(&d->random, PARTITA_F32, d->taps, TAPS);
    assert_ok(partita_bank_create(&options, &d->bank));
    assert_string_equal(partita_plan_engine(partita_bank_plan(d->bank), PARTITA_FORWARD),
                        "cuda/partitioned");
    assert_ok(partita_bank_filter_create(d->bank, d->taps, TAPS, &d->filter));
}

static void device_bank_close(struct device_bank *d)
{
    partita_filter_destroy(d->filter);
    partita_bank_destroy(d->bank);
    assert_int_equal(hostdev_allocations(), 0);
}

static size_t open_slot(const struct device_bank *d)
{
    size_t slot = SIZE_MAX;
    assert_ok(partita_bank_open(d->bank, d->filter, &slot));
    return slot;
}

// Calls of CUDA in a call of process with so many open slots.
static size_t calls_with(size_t open)
{
    struct device_bank d;
    device_bank_open(&d, SLOTS);
    for (size_t i = 0; i < open; i++) open_slot(&d);
    size_t calls = 0;
    for (int call = 0; call < 20; call++) {
        hostdev_fail(0, cudaSuccess); // counts from here on
        partita_bank_process(d.bank);
        assert_int_equal(hostdev_used().allocations, 0);
        assert_int_equal(hostdev_used().properties, 0);
        assert_int_equal(hostdev_used().waits, 1);
        if (call) assert_int_equal(hostdev_calls(), calls);
        calls = hostdev_calls();
    }
    assert_ok(partita_bank_status(d.bank));
    device_bank_close(&d);
    return calls;
}

static void calls_do_not_depend_on_slots(void **state)
{
    (void)state;
    assert_int_equal(calls_with(1), calls_with(SLOTS));
}

static size_t blocks_of_call(const struct device_bank *d)
{
    hostdev_allocations(); // runs what is queued
    const size_t before = hostdev_work().blocks;
    partita_bank_process(d->bank);
    return hostdev_work().blocks - before;
}

// Slots in as many phases as there are calls in a period, all open: the same number of thread
// blocks in every call. A bank of closed slots has none.
static void load_is_flat(void **state)
{
    (void)state;
    struct device_bank d;
    device_bank_open(&d, SLOTS);
    assert_int_equal(blocks_of_call(&d), 0);
    const size_t hop = partita_bank_plan(d.bank)->choice.hop;
    assert_true(hop > BLOCK && SLOTS % (hop / BLOCK) == 0);
    size_t slots[SLOTS];
    for (size_t i = 0; i < SLOTS; i++) slots[i] = open_slot(&d);
    const size_t all = blocks_of_call(&d);
    for (size_t call = 0; call < 2 * hop / BLOCK; call++) assert_int_equal(blocks_of_call(&d), all);
    for (size_t i = 0; i < SLOTS; i++) assert_ok(partita_bank_close(d.bank, slots[i]));
    partita_bank_process(d.bank);
    assert_int_equal(blocks_of_call(&d), 0);
    device_bank_close(&d);
}

// Only a slot that swaps is computed twice.
static void one_slot_fades(void **state)
{
    (void)state;
    struct device_bank d;
    struct partita_filter *other;
    device_bank_open(&d, SLOTS);
    assert_ok(partita_bank_filter_create(d.bank, d.taps, TAPS / 2, &other));
    size_t slot = 0;
    for (size_t i = 0; i < SLOTS; i++) slot = open_slot(&d);
    const size_t alone = blocks_of_call(&d);
    assert_ok(partita_bank_swap(d.bank, slot, other, 5 * BLOCK));
    size_t worst = 0;
    while (partita_bank_slot_state(d.bank, slot) == PARTITA_SLOT_SWAPPING) {
        const size_t blocks = blocks_of_call(&d);
        if (blocks > worst) worst = blocks;
    }
    // Of each segment one thread block multiplies and one transforms back, at most.
    assert_true(worst > alone && worst <= alone + 6);
    assert_int_equal(blocks_of_call(&d), alone);
    for (size_t i = 0; i < SLOTS; i++) assert_ok(partita_bank_close(d.bank, i));
    partita_filter_destroy(other);
    device_bank_close(&d);
}

// Slots with samples that are infinite or NaN have the bits of their streams, and others too.
static void nonfinite_samples_stay_in_their_slot(void **state)
{
    (void)state;
    enum { SOME = 4, CALLS = 150, FIRST_BAD = 20, LAST_BAD = 25 };
    struct device_bank d;
    struct partita_stream *streams[SOME];
    struct partita_filter *of_plan;
    device_bank_open(&d, SOME);
    const struct partita_plan *plan = partita_bank_plan(d.bank);
    assert_ok(partita_filter_create(plan, d.taps, &of_plan));
    const float zeros[BLOCK] = {0};
    float y[BLOCK];
    for (size_t i = 0; i < SOME; i++) {
        const size_t slot = open_slot(&d);
        assert_ok(partita_stream_open(plan, of_plan, &streams[slot]));
        for (size_t lead = partita_bank_lead(d.bank, slot); lead > 0; lead -= BLOCK)
            partita_stream_process(streams[slot], (void *[]){y}, (const void *[]){zeros}, BLOCK);
    }
    size_t n_nan = 0;
    for (int call = 0; call < CALLS; call++) {
        for (size_t i = 0; i < SOME; i++) {
            float *x = partita_bank_input(d.bank, i);
            random_samples(&d.random, PARTITA_F32, x, BLOCK);
            if (i == 1 && call >= FIRST_BAD && call < LAST_BAD)
                x[random_below(&d.random, BLOCK)] = call % 2 ? INFINITY : NAN;
        }
        partita_bank_process(d.bank);
        for (size_t i = 0; i < SOME; i++) {
            const float *got = partita_bank_output(d.bank, i);
            partita_stream_process(streams[i], (void *[]){y},
                                   (const void *[]){partita_bank_input(d.bank, i)}, BLOCK);
            assert_memory_equal(got, y, sizeof y);
            for (size_t k = 0; k < BLOCK; k++) n_nan += isnan(got[k]) != 0;
        }
    }
    assert_true(n_nan >= TAPS && n_nan < TAPS + (LAST_BAD - FIRST_BAD + 1) * BLOCK);
    for (size_t i = 0; i < SOME; i++) partita_stream_close(streams[i]);
    partita_filter_destroy(of_plan);
    device_bank_close(&d);
}

static void assert_silent(const struct device_bank *d, size_t slot)
{
    const float *y = partita_bank_output(d->bank, slot);
    for (size_t i = 0; i < BLOCK; i++) assert_true(y[i] == 0);
}

// The k-th call of CUDA in a call of process is refused; false: there are fewer.
static bool refuse_call(size_t k)
{
    struct device_bank d;
    device_bank_open(&d, 2);
    const size_t slot = open_slot(&d), closed = open_slot(&d);
    for (int call = 0; call < 5; call++) {
        random_samples(&d.random, PARTITA_F32, partita_bank_input(d.bank, slot), BLOCK);
        partita_bank_process(d.bank);
    }
    assert_ok(partita_bank_swap(d.bank, slot, d.filter, 10));
    assert_ok(partita_bank_close(d.bank, closed));
    hostdev_fail(k, cudaErrorInvalidConfiguration);
    partita_bank_process(d.bank);
    const bool reached = hostdev_calls() >= k;
    hostdev_fail(0, cudaSuccess);
    assert_int_equal(partita_bank_slot_state(d.bank, closed), PARTITA_SLOT_FREE);
    if (partita_bank_status(d.bank) != PARTITA_OK) {
        size_t other;
        assert_int_equal(partita_bank_status(d.bank), PARTITA_ERR_DEVICE);
        assert_int_equal(partita_bank_slot_state(d.bank, slot), PARTITA_SLOT_OPEN);
        assert_silent(&d, slot);
        assert_ok(partita_bank_swap(d.bank, slot, d.filter, 10));
        partita_bank_process(d.bank);
        assert_int_equal(partita_bank_slot_state(d.bank, slot), PARTITA_SLOT_OPEN);
        assert_silent(&d, slot);
        assert_int_equal(partita_bank_open(d.bank, d.filter, &other), PARTITA_ERR_DEVICE);
    } else assert_true(!reached || k == 1);
    device_bank_close(&d);
    return reached;
}

static void a_refused_call_is_reported(void **state)
{
    (void)state;
    size_t k = 1;
    while (refuse_call(k)) k++;
    assert_true(k > 6);
}

// A refused call of CUDA in create or open leaves nothing behind.
static void create_and_open_may_fail(void **state)
{
    (void)state;
    const struct partita_bank_options options = bank_options(3);
    for (size_t k = 1;; k++) {
        struct partita_bank *bank = NULL;
        hostdev_fail(k, cudaErrorMemoryAllocation);
        const enum partita_status status = partita_bank_create(&options, &bank);
        const bool reached = hostdev_calls() >= k;
        hostdev_fail(0, cudaSuccess);
        if (status == PARTITA_OK) partita_bank_destroy(bank);
        assert_int_equal(hostdev_allocations(), 0);
        if (!reached) break;
    }
    struct device_bank d;
    device_bank_open(&d, 1);
    bool reached = true;
    for (size_t k = 1; reached; k++) {
        size_t slot = 7;
        hostdev_fail(k, cudaErrorMemoryAllocation);
        const enum partita_status status = partita_bank_open(d.bank, d.filter, &slot);
        reached = hostdev_calls() >= k;
        hostdev_fail(0, cudaSuccess);
        assert_int_equal(partita_bank_slot_state(d.bank, 0),
                         status == PARTITA_OK ? PARTITA_SLOT_OPEN : PARTITA_SLOT_FREE);
        if (status != PARTITA_OK) continue;
        assert_ok(partita_bank_close(d.bank, slot));
        partita_bank_process(d.bank);
    }
    assert_ok(partita_bank_status(d.bank));
    device_bank_close(&d);
}

static struct partita_bank *budget_bank(double budget, enum partita_type type)
{
    struct partita_bank_options options = bank_options(4);
    struct partita_bank *bank;
    options.signal = type;
    options.error_budget = budget;
    assert_ok(partita_bank_create(&options, &bank));
    return bank;
}

static bool has_16_bits(const struct partita_bank *bank)
{
    static char text[8192];
    assert_true(partita_plan_explain(partita_bank_plan(bank), text, sizeof text) < sizeof text);
    return strstr(text, "16-bit mantissas");
}

// How many filters fit the device beside the bank.
static size_t filters_that_fit(const struct partita_bank *bank, size_t bytes)
{
    enum { MAX_FILTERS = 1000 };
    static struct partita_filter *filters[MAX_FILTERS];
    static float taps[TAPS];
    struct random random = random_start("filters");
    size_t n = 0;
    random_samples(&random, PARTITA_F32, taps, TAPS);
    hostdev_memory(bytes);
    while (n < MAX_FILTERS) {
        const enum partita_status status =
            partita_bank_filter_create(bank, taps, TAPS, &filters[n]);
        if (status == PARTITA_ERR_NOMEM) break;
        assert_ok(status);
        n++;
    }
    hostdev_memory(0);
    assert_true(n > 0 && n < MAX_FILTERS);
    for (size_t i = 0; i < n; i++) partita_filter_destroy(filters[i]);
    return n;
}

// A budget of 1e-4 gives filters spectra of 16 bits in f32, and none in f64; a smaller one none.
static void budgets_decide_about_16_bits(void **state)
{
    (void)state;
    const struct {
        double budget;
        enum partita_type type;
        bool expected;
    } cases[] = {{1e-4, PARTITA_F32, true},
                 {0.99e-4, PARTITA_F32, false},
                 {0, PARTITA_CF32, false},
                 {1, PARTITA_CF32, true},
                 {1e-4, PARTITA_F64, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct partita_bank *bank = budget_bank(cases[i].budget, cases[i].type);
        assert_int_equal(has_16_bits(bank), cases[i].expected);
        partita_bank_destroy(bank);
    }
}

// Spectra of filters have 17/32 of the bytes, in memory and in the model. The rest of a filter, and
// what the device needs while it is made, are the same; the plan's bytes count inputs and sums too.
static void filters_have_half_of_the_bytes(void **state)
{
    (void)state;
    struct partita_bank *bank[2];
    size_t n[2];
    const struct estimate *choice[2];
    for (int i = 0; i < 2; i++) {
        bank[i] = budget_bank(i ? 1e-4 : 0, PARTITA_F32);
        choice[i] = &partita_bank_plan(bank[i])->choice;
    }
    for (int i = 0; i < 2; i++) n[i] = filters_that_fit(bank[i], (size_t)4 << 20);
    if (!((double)n[1] > 1.7 * (double)n[0]))
        fail_msg("%zu filters fit, %zu with spectra of reals", n[1], n[0]);
    assert_true(choice[1]->bytes < choice[0]->bytes);
    assert_true(choice[1]->seconds < choice[0]->seconds);
    assert_true(choice[1]->error > choice[0]->error && choice[1]->error < 1e-4);
    for (int i = 0; i < 2; i++) partita_bank_destroy(bank[i]);
    assert_int_equal(hostdev_allocations(), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_do_not_depend_on_slots),
        cmocka_unit_test(load_is_flat),
        cmocka_unit_test(one_slot_fades),
        cmocka_unit_test(nonfinite_samples_stay_in_their_slot),
        cmocka_unit_test(a_refused_call_is_reported),
        cmocka_unit_test(create_and_open_may_fail),
        cmocka_unit_test(budgets_decide_about_16_bits),
        cmocka_unit_test(filters_have_half_of_the_bytes),
    };
    if (layer_device_check() != LAYER_DEVICE_READY) return 1;
    return run_test_list(tests, sizeof tests / sizeof *tests);
}
