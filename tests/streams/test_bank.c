// SPDX-License-Identifier: MIT
// Banks: slots that open, close and swap in random order have the bits of streams of their own;
// filters shorter than the bank's, against the oracle; phases; memory; and another thread that
// opens, closes and swaps during calls (also for the thread sanitizer). On the device under test.

#include "support/rig.h"

#include <pthread.h>
#include <stdatomic.h>

#include "support/allocators.h"
#include "support/layer_rig.h"

struct bank_case {
    const char *name;
    struct partita_bank_options options;
};

static const struct bank_case bank_cases[] = {
    {"long", {.slots = 7, .n_taps = 9000}},
    {"whole-blocks-at-once", {.slots = 16, .n_taps = 3000}},
    {"one", {.slots = 1, .n_taps = 700}},
    {"short", {.slots = 5, .n_taps = 40, .block = 32}},
    {"matrix", {.slots = 3, .in_channels = 2, .out_channels = 3, .n_taps = 1500, .block = 48}},
    {"late", {.slots = 5, .n_taps = 3000, .latency = 512}},
    {"any-block", {.slots = 4, .n_taps = 3000, .block = 50}},
    {"f64", {.slots = 4, .n_taps = 2000, .signal = PARTITA_F64}},
    {"cf32-f32", {.slots = 4, .n_taps = 2000, .signal = PARTITA_CF32, .taps_type = PARTITA_F32}},
    // On a device these spectra have 16 bits; on the CPU caches hold them, so they stay in f32.
    {"budget", {.slots = 5, .out_channels = 2, .n_taps = 3000, .error_budget = 1e-4}},
    {"budget-cf32", {.slots = 3, .n_taps = 1500, .signal = PARTITA_CF32, .error_budget = 1e-4}},
};
enum { N_BANK_CASES = sizeof bank_cases / sizeof *bank_cases };

enum { MAX_SLOTS = 16, N_BANK_FILTERS = 4 };

// A bank with some filters of random taps and lengths; its plan, for single streams, with the same
// filters; and sizes of the slots.
struct bank_rig {
    struct partita_bank *bank;
    const struct partita_plan *plan;
    struct partita_filter *filters[N_BANK_FILTERS], *of_plan[N_BANK_FILTERS];
    enum partita_type signal, taps;
    size_t in, out, block, n_taps, sample_bytes;
};

// The same filter made by the bank and by its plan, which makes no shorter ones.
static void random_filter(struct bank_rig *rig, size_t f, size_t n_taps, struct random *random)
{
    const size_t paths = rig->in * rig->out, bytes = partita_type_size(rig->taps);
    char *taps = malloc(paths * n_taps * bytes), *all = calloc(paths, rig->n_taps * bytes);
    random_samples(random, rig->taps, taps, paths * n_taps);
    for (size_t p = 0; p < paths; p++)
        memcpy(all + p * rig->n_taps * bytes, taps + p * n_taps * bytes, n_taps * bytes);
    assert_ok(partita_bank_filter_create(rig->bank, taps, n_taps, &rig->filters[f]));
    assert_ok(partita_filter_create(rig->plan, all, &rig->of_plan[f]));
    free(taps);
    free(all);
}

static enum partita_status create_bank(const struct partita_bank_options *options,
                                       struct partita_bank **ret_bank)
{
    struct partita_bank_options on_device = *options;
    on_device.device =
        layer_options(&(struct partita_options){.engine = "cuda/partitioned"}).device;
    return partita_bank_create(&on_device, ret_bank);
}

static void bank_rig_open(struct bank_rig *rig, const struct partita_bank_options *options,
                          struct random *random)
{
    *rig = (struct bank_rig){.signal = options->signal ? options->signal : PARTITA_F32,
                             .in = or_one(options->in_channels),
                             .out = or_one(options->out_channels),
                             .block = options->block ? options->block : 64,
                             .n_taps = options->n_taps};
    rig->taps = options->taps_type ? options->taps_type : rig->signal;
    rig->sample_bytes = partita_type_size(rig->signal);
    assert_ok(create_bank(options, &rig->bank));
    rig->plan = partita_bank_plan(rig->bank);
    for (size_t f = 0; f < N_BANK_FILTERS; f++)
        random_filter(rig, f, f ? 1 + random_below(random, options->n_taps) : options->n_taps,
                      random);
}

static void bank_rig_close(struct bank_rig *rig)
{
    for (size_t f = 0; f < N_BANK_FILTERS; f++) {
        partita_filter_destroy(rig->filters[f]);
        partita_filter_destroy(rig->of_plan[f]);
    }
    partita_bank_destroy(rig->bank);
}

static void stream_block(const struct bank_rig *rig, struct partita_stream *stream, char *y,
                         const char *x)
{
    const size_t channel = rig->block * rig->sample_bytes;
    const void *x_at[MAX_SLOTS];
    void *y_at[MAX_SLOTS];
    for (size_t c = 0; c < rig->in; c++) x_at[c] = x + c * channel;
    for (size_t k = 0; k < rig->out; k++) y_at[k] = y + k * channel;
    if (x) partita_stream_process(stream, y_at, x_at, rig->block);
    else partita_stream_process(stream, y_at, NULL, rig->block);
}

// A slot's stream of its own, or NULL while the slot is not open.
struct twins {
    struct partita_stream *stream[MAX_SLOTS];
};

static void open_twin(const struct bank_rig *rig, struct twins *twins, struct random *random)
{
    const size_t f = random_below(random, N_BANK_FILTERS);
    size_t slot = SIZE_MAX;
    if (partita_bank_open(rig->bank, rig->filters[f], &slot) != PARTITA_OK) return;
    assert_null(twins->stream[slot]);
    assert_ok(partita_stream_open(rig->plan, rig->of_plan[f], &twins->stream[slot]));
    char *y = malloc(rig->out * rig->block * rig->sample_bytes);
    assert_int_equal(partita_bank_lead(rig->bank, slot) % rig->block, 0);
    for (size_t lead = partita_bank_lead(rig->bank, slot); lead > 0; lead -= rig->block)
        stream_block(rig, twins->stream[slot], y, NULL);
    free(y);
}

static void close_twin(const struct bank_rig *rig, struct twins *twins, size_t slot)
{
    if (!twins->stream[slot]) {
        assert_int_equal(partita_bank_close(rig->bank, slot), PARTITA_ERR_STATE);
        assert_int_equal(partita_bank_swap(rig->bank, slot, rig->filters[0], 0), PARTITA_ERR_STATE);
        return;
    }
    assert_ok(partita_bank_close(rig->bank, slot));
    assert_int_equal(partita_bank_slot_state(rig->bank, slot), PARTITA_SLOT_CLOSING);
    partita_stream_close(twins->stream[slot]);
    twins->stream[slot] = NULL;
}

static void swap_twin(const struct bank_rig *rig, struct twins *twins, size_t slot,
                      struct random *random)
{
    const size_t f = random_below(random, N_BANK_FILTERS);
    const size_t fade = random_below(random, 5 * rig->block);
    if (!twins->stream[slot]) return;
    assert_int_equal(partita_bank_swap(rig->bank, slot, rig->filters[f], fade),
                     partita_stream_swap(twins->stream[slot], rig->of_plan[f], fade));
}

// Random input to every open slot and to its twin, and equal outputs.
static void process_twins(const struct bank_rig *rig, struct twins *twins, size_t slots,
                          struct random *random)
{
    const size_t out_bytes = rig->out * rig->block * rig->sample_bytes;
    char *y = malloc(out_bytes * slots);
    for (size_t i = 0; i < slots; i++) {
        if (!twins->stream[i]) continue;
        void *x = partita_bank_input(rig->bank, i);
        random_samples(random, rig->signal, x, rig->in * rig->block);
        stream_block(rig, twins->stream[i], y + i * out_bytes, x);
    }
    partita_bank_process(rig->bank);
    for (size_t i = 0; i < slots; i++) {
        if (!twins->stream[i]) {
            assert_int_equal(partita_bank_slot_state(rig->bank, i), PARTITA_SLOT_FREE);
            continue;
        }
        assert_int_equal(partita_bank_slot_state(rig->bank, i),
                         partita_stream_swapping(twins->stream[i]) ? PARTITA_SLOT_SWAPPING
                                                                   : PARTITA_SLOT_OPEN);
        if (memcmp(partita_bank_output(rig->bank, i), y + i * out_bytes, out_bytes))
            fail_msg("slot %zu has other bits than its stream", i);
    }
    free(y);
}

static void slots_have_the_bits_of_streams(void **state)
{
    const struct bank_case *c = *state;
    struct random random = random_start(c->name);
    struct twins twins = {0};
    struct bank_rig rig;
    bank_rig_open(&rig, &c->options, &random);
    const int calls = layer_on_stand_in() ? 80 * layer_repeats(16) : 800;
    for (int call = 0; call < calls / TEST_SLOWER; call++) {
        const size_t slot = random_below(&random, c->options.slots);
        const size_t action = random_below(&random, 60);
        if (action < 6) open_twin(&rig, &twins, &random);
        else if (action == 6) close_twin(&rig, &twins, slot);
        else if (action < 10) swap_twin(&rig, &twins, slot, &random);
        process_twins(&rig, &twins, c->options.slots, &random);
    }
    for (size_t i = 0; i < c->options.slots; i++) partita_stream_close(twins.stream[i]);
    bank_rig_close(&rig);
}

// A filter of fewer taps than the bank's, in a slot that begins in the middle of its blocks.
static void shorter_filters_match_the_oracle(void **state)
{
    (void)state;
    enum { SLOTS = 2, TAPS = 3000, SHORTER = 1234, CALLS = 150, BLOCK = 64 };
    const struct partita_problem problem = {STREAM(BLOCK), KERNEL(SHORTER)};
    struct random random = random_start("shorter");
    struct partita_bank *bank;
    struct partita_filter *filter;
    size_t slot = 0;
    float taps[SHORTER], *x = malloc(CALLS * BLOCK * sizeof *x),
                         *y = malloc(CALLS * BLOCK * sizeof *y);
    double complex *expected = malloc(CALLS * BLOCK * sizeof *expected);
    random_samples(&random, PARTITA_F32, taps, SHORTER);
    random_samples(&random, PARTITA_F32, x, CALLS * BLOCK);
    assert_ok(create_bank(&(struct partita_bank_options){.slots = SLOTS, .n_taps = TAPS}, &bank));
    assert_ok(partita_bank_filter_create(bank, taps, SHORTER, &filter));
    for (int i = 0; i < SLOTS; i++) assert_ok(partita_bank_open(bank, filter, &slot));
    assert_int_not_equal(partita_bank_lead(bank, slot), 0);
    for (size_t at = 0; at < CALLS * BLOCK; at += BLOCK) {
        memcpy(partita_bank_input(bank, slot), x + at, BLOCK * sizeof *x);
        partita_bank_process(bank);
        memcpy(y + at, partita_bank_output(bank, slot), BLOCK * sizeof *y);
    }
    reference_stream(&problem, CALLS * BLOCK, expected, x, taps);
    const double error =
        error_against(PARTITA_F32, y, expected, CALLS * BLOCK, typical_output(&problem));
    const double gate = plan_gate(partita_bank_plan(bank), &problem, CALLS * BLOCK);
    if (!(error <= gate)) fail_msg("error %g, gate %g", error, gate);
    partita_filter_destroy(filter);
    partita_bank_destroy(bank);
    free(x);
    free(y);
    free(expected);
}

// As many slots as there are calls in a period, opened at any calls, all begin in different phases;
// the slots of any power of two of phases differ by one at most all the while.
static void phases_are_balanced(void **state)
{
    (void)state;
    enum { SLOTS = 64, MAX_PERIOD = 4096 };
    const struct partita_bank_options options = {.slots = SLOTS, .n_taps = 48000};
    struct random random = random_start("phases");
    struct bank_rig rig;
    bank_rig_open(&rig, &options, &random);
    size_t calls = 0, period = 1, in_phase[MAX_PERIOD] = {0};
    while (period < partita_bank_plan(rig.bank)->choice.hop / rig.block) period *= 2;
    assert_true(period >= 16 && period <= MAX_PERIOD);
    for (size_t opened = 1; opened <= SLOTS; opened++) {
        size_t slot;
        assert_ok(partita_bank_open(rig.bank, rig.filters[0], &slot));
        const size_t lead = partita_bank_lead(rig.bank, slot) / rig.block;
        assert_true(lead < period);
        in_phase[(lead + calls * (period - 1)) % period]++;
        for (size_t m = 1; m <= period; m *= 2)
            for (size_t r = 0; r < m; r++) {
                size_t n = 0;
                for (size_t phase = r; phase < period; phase += m) n += in_phase[phase];
                assert_true(n >= opened / m && n <= (opened + m - 1) / m);
            }
        for (size_t n = random_below(&random, 4); n > 0; n--, calls++)
            partita_bank_process(rig.bank);
    }
    bank_rig_close(&rig);
}

// Slots whose blocks end in the same calls are neighbours, at every length of blocks.
static void slots_of_a_phase_are_neighbours(void **state)
{
    (void)state;
    enum { SLOTS = 48 };
    const struct partita_bank_options options = {.slots = SLOTS, .n_taps = 48000};
    struct random random = random_start("neighbours");
    struct bank_rig rig;
    size_t slot, phase[SLOTS];
    bank_rig_open(&rig, &options, &random);
    for (size_t i = 0; i < SLOTS; i++) {
        assert_ok(partita_bank_open(rig.bank, rig.filters[0], &slot));
        phase[slot] = partita_bank_lead(rig.bank, slot) / rig.block;
    }
    for (size_t m = 2; m <= 16; m *= 2) {
        size_t changes = 0;
        for (size_t i = 1; i < SLOTS; i++) changes += phase[i] % m != phase[i - 1] % m;
        assert_int_equal(changes, m - 1);
    }
    bank_rig_close(&rig);
}

static void arguments_are_checked(void **state)
{
    (void)state;
    const struct partita_bank_options options = {.slots = 1, .n_taps = 100};
    struct partita_stream_stats stats;
    struct partita_filter *filter;
    struct random random = random_start("arguments");
    struct bank_rig rig, other;
    size_t slot;
    float taps[101] = {0};
    bank_rig_open(&rig, &options, &random);
    bank_rig_open(&other, &options, &random);
    assert_int_equal(partita_bank_create(NULL, &rig.bank), PARTITA_ERR_ARG);
    assert_int_equal(partita_bank_create(&options, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_bank_filter_create(rig.bank, taps, 0, &filter), PARTITA_ERR_ARG);
    assert_int_equal(partita_bank_filter_create(rig.bank, taps, 101, &filter), PARTITA_ERR_ARG);
    assert_int_equal(partita_bank_filter_create(rig.bank, NULL, 10, &filter), PARTITA_ERR_ARG);
    assert_int_equal(partita_bank_open(rig.bank, other.filters[0], &slot), PARTITA_ERR_ARG);
    assert_int_equal(partita_bank_open(rig.bank, NULL, &slot), PARTITA_ERR_ARG);
    assert_ok(partita_bank_open(rig.bank, rig.filters[0], &slot));
    assert_int_equal(partita_bank_open(rig.bank, rig.filters[0], &slot), PARTITA_ERR_STATE);
    assert_int_equal(partita_bank_swap(rig.bank, slot, other.filters[0], 0), PARTITA_ERR_ARG);
    assert_int_equal(partita_bank_swap(rig.bank, slot, NULL, 0), PARTITA_ERR_ARG);
    assert_int_equal(partita_bank_swap(rig.bank, 1, rig.filters[0], 0), PARTITA_ERR_ARG);
    assert_int_equal(partita_bank_close(rig.bank, 1), PARTITA_ERR_ARG);
    assert_int_equal(partita_bank_slot_state(rig.bank, 1), PARTITA_SLOT_FREE);
    assert_null(partita_bank_input(rig.bank, 1));
    assert_null(partita_bank_output(rig.bank, 1));
    assert_int_equal(partita_bank_stats(rig.bank, &stats), PARTITA_ERR_STATE);
    assert_ok(partita_bank_close(rig.bank, slot));
    assert_int_equal(partita_bank_open(rig.bank, rig.filters[0], &slot), PARTITA_ERR_STATE);
    partita_bank_process(rig.bank);
    assert_ok(partita_bank_open(rig.bank, rig.filters[0], &slot));
    bank_rig_close(&rig);
    bank_rig_close(&other);
    partita_bank_destroy(NULL);
}

static void calls_are_timed(void **state)
{
    (void)state;
    // Blocks of less than a nanosecond, so that every call is late.
    const struct partita_bank_options options = {.slots = 2, .n_taps = 100, .sample_rate = 1e12};
    struct random random = random_start("timed");
    struct partita_stream_stats stats;
    struct bank_rig rig;
    size_t slot;
    bank_rig_open(&rig, &options, &random);
    assert_ok(partita_bank_open(rig.bank, rig.filters[0], &slot));
    for (int i = 0; i < 25; i++) partita_bank_process(rig.bank);
    assert_ok(partita_bank_stats(rig.bank, &stats));
    assert_int_equal(stats.calls, 25);
    assert_int_equal(stats.missed, 25);
    assert_true(stats.p50 > 0 && stats.p50 <= stats.p999 && stats.p999 <= stats.max);
    bank_rig_close(&rig);
}

// Every allocation of create and filter may fail; the other calls make none.
static void memory_is_allocated_at_first(void **state)
{
    (void)state;
    struct meter meter = {0};
    const struct partita_bank_options options = {
        .slots = 4, .n_taps = 700, .allocator = meter_allocator(&meter)};
    struct partita_bank *bank = NULL;
    struct partita_filter *filter = NULL;
    static const float taps[700] = {1};
    for (size_t n = 1; !bank; n++) {
        meter.n_allocated = 0, meter.fail_at = n;
        if (create_bank(&options, &bank) == PARTITA_OK) break;
        assert_int_equal(meter.n_live, 0);
        assert_true(n < 1000);
    }
    const size_t of_bank = meter.n_live;
    for (size_t n = 1; !filter; n++) {
        meter.n_allocated = 0, meter.fail_at = n;
        if (partita_bank_filter_create(bank, taps, 400, &filter) == PARTITA_OK) break;
        assert_int_equal(meter.n_live, of_bank);
        assert_true(n < 1000);
    }
    meter.fail_at = 0;
    const size_t allocated = meter.n_allocated;
    for (int i = 0; i < 300; i++) {
        size_t slot = 0;
        partita_bank_open(bank, filter, &slot);
        partita_bank_swap(bank, slot, filter, 20);
        partita_bank_process(bank);
        if (i % 7 == 0) partita_bank_close(bank, slot);
    }
    assert_int_equal(meter.n_allocated, allocated);
    partita_filter_destroy(filter);
    partita_bank_destroy(bank);
    assert_int_equal(meter.n_live, 0);
}

// Another thread opens, closes and swaps, and destroys filters as soon as no slot uses them.
struct control {
    struct partita_bank *bank;
    atomic_bool open[MAX_SLOTS]; // the slots whose arrays the thread that processes may touch
    atomic_bool done;
    atomic_int n_failed; // counted, since cmocka is for the main thread only
};

enum { OPERATED_SLOTS = 6, OPERATED_TAPS = 2000, OPERATIONS = 1500 / TEST_SLOWER };

static struct partita_filter *control_filter(struct control *op, struct random *random)
{
    struct partita_filter *filter = NULL;
    float taps[OPERATED_TAPS];
    random_samples(random, PARTITA_F32, taps, OPERATED_TAPS);
    op->n_failed +=
        partita_bank_filter_create(op->bank, taps, 1 + random_below(random, OPERATED_TAPS),
                                   &filter) != PARTITA_OK;
    return filter;
}

static void wait_for_slot(const struct control *op, size_t slot, enum partita_slot_state state)
{
    while (partita_bank_slot_state(op->bank, slot) != state) sched_yield();
}

static void *operate(void *argument)
{
    struct control *op = argument;
    struct random random = random_start("operator");
    struct partita_filter *opened[OPERATED_SLOTS] = {0};
    for (int i = 0; i < OPERATIONS; i++) {
        size_t slot = random_below(&random, OPERATED_SLOTS);
        if (!opened[slot]) {
            struct partita_filter *filter = control_filter(op, &random);
            op->n_failed += partita_bank_open(op->bank, filter, &slot) != PARTITA_OK;
            op->n_failed += opened[slot] != NULL;
            opened[slot] = filter;
            atomic_store(&op->open[slot], true);
        } else if (random_below(&random, 3)) {
            struct partita_filter *filter = control_filter(op, &random);
            op->n_failed +=
                partita_bank_swap(op->bank, slot, filter, random_below(&random, 300)) != PARTITA_OK;
            wait_for_slot(op, slot, PARTITA_SLOT_OPEN);
            partita_filter_destroy(opened[slot]);
            opened[slot] = filter;
        } else {
            atomic_store(&op->open[slot], false);
            op->n_failed += partita_bank_close(op->bank, slot) != PARTITA_OK;
            wait_for_slot(op, slot, PARTITA_SLOT_FREE);
            partita_filter_destroy(opened[slot]);
            opened[slot] = NULL;
        }
    }
    for (size_t slot = 0; slot < OPERATED_SLOTS; slot++) {
        if (!opened[slot]) continue;
        atomic_store(&op->open[slot], false);
        op->n_failed += partita_bank_close(op->bank, slot) != PARTITA_OK;
        wait_for_slot(op, slot, PARTITA_SLOT_FREE);
        partita_filter_destroy(opened[slot]);
    }
    atomic_store(&op->done, true);
    return NULL;
}

static void another_thread_opens_and_closes(void **state)
{
    (void)state;
    static struct control op;
    const struct partita_bank_options options = {
        .slots = OPERATED_SLOTS, .n_taps = OPERATED_TAPS, .sample_rate = 48000};
    struct random random = random_start("operated");
    pthread_t thread;
    uint64_t calls = 0;
    assert_ok(create_bank(&options, &op.bank));
    assert_int_equal(pthread_create(&thread, NULL, operate, &op), 0);
    for (; !atomic_load(&op.done); calls++) {
        for (size_t slot = 0; slot < OPERATED_SLOTS; slot++)
            if (atomic_load(&op.open[slot])) {
                random_samples(&random, PARTITA_F32, partita_bank_input(op.bank, slot), 64);
                const float *y = partita_bank_output(op.bank, slot);
                for (size_t i = 0; i < 64; i++) op.n_failed += !(y[i] * y[i] < 1e6F);
            }
        partita_bank_process(op.bank);
    }
    pthread_join(thread, NULL);
    struct partita_stream_stats stats;
    assert_ok(partita_bank_stats(op.bank, &stats));
    assert_int_equal(stats.calls, calls);
    assert_int_equal(op.n_failed, 0);
    partita_bank_destroy(op.bank);
}

static const struct promise promises[] = {
    {"shorter-filters-match-the-oracle", shorter_filters_match_the_oracle},
    {"phases-are-balanced", phases_are_balanced},
    {"slots-of-a-phase-are-neighbours", slots_of_a_phase_are_neighbours},
    {"arguments-are-checked", arguments_are_checked},
    {"calls-are-timed", calls_are_timed},
    {"memory-is-allocated-at-first", memory_is_allocated_at_first},
    {"another-thread-opens-and-closes", another_thread_opens_and_closes},
};
enum { N_PROMISES = sizeof promises / sizeof *promises };

int main(void)
{
    static struct CMUnitTest tests[N_BANK_CASES + N_PROMISES];
    size_t n = 0;
    const enum layer_device device = layer_device_check();
    if (device != LAYER_DEVICE_READY) return device == LAYER_DEVICE_MISSING;
    for (size_t c = 0; c < N_BANK_CASES; c++)
        if (layer_has_engine("cpu/partitioned") || bank_cases[c].options.block % 16 == 0)
            tests[n++] = named_test(slots_have_the_bits_of_streams, &bank_cases[c],
                                    "slots-have-the-bits-of-streams/%s", bank_cases[c].name);
    for (size_t p = 0; p < N_PROMISES; p++)
        tests[n++] = named_test(promises[p].run, NULL, "%s", promises[p].name);
    return run_test_list(tests, n);
}
