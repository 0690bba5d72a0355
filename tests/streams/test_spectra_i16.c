// SPDX-License-Identifier: MIT
// Partitions with an error budget of 1e-4, whose filters have spectra of 16 bits: on the CPU in
// segments that come from memory, on a device in all. The error stays within the prediction for
// filters of all shapes, and what streams and banks do with filters works as with spectra of reals.
// The cost model of this program has a small last cache (--wrap), so that short filters come from
// memory. Runs on the device under test.

#include "core/cost_model.h"
#include "support/allocators.h"
#include "support/layer_rig.h"
#include "support/swap_rig.h"

#include <math.h>

enum { CACHE = 1 << 14, FRAMES = 16000 };
static const double BUDGET = 1e-4;

void __real_cost_model_default(struct cost_model *ret, enum cpu_isa isa);
void __wrap_cost_model_default(struct cost_model *ret, enum cpu_isa isa);

void __wrap_cost_model_default(struct cost_model *ret, enum cpu_isa isa)
{
    __real_cost_model_default(ret, isa);
    ret->shared_bytes = CACHE;
}

static const struct named_problem problems[] = {
    {"mono", {STREAM(64), KERNEL(6000)}},
    {"matrix", {STREAM(64), CHANNELS(3, 2), KERNEL(4000)}},
    {"groups", {STREAM(64), CHANNELS(2, 4), GROUPS(2), KERNEL(5000)}},
    {"late", {STREAM(64), KERNEL(6000), LATENCY(900)}},
    {"decimate", {STREAM(64), KERNEL(6000), STRIDE(3)}},
    {"dilation", {STREAM(64), KERNEL(2500), DILATION(3)}},
};
enum { N_PROBLEMS = sizeof problems / sizeof *problems, MATRIX = 1 };

static const struct call_split small = {"up-to-300", 300, true};

static bool explains_i16(const struct partita_plan *plan)
{
    static char text[16384];
    assert_true(partita_plan_explain(plan, text, sizeof text) < sizeof text);
    return strstr(text, ", 16 bits\n") && strstr(text, "16-bit mantissas");
}

static void open_rig(struct stream_rig *rig, const struct stream_case *c,
                     const struct partita_problem *problem, struct random *random)
{
    const struct partita_options options = {.error_budget = BUDGET};
    stream_rig_open_exactly(rig, c, problem, &options, FRAMES, random);
    assert_true(explains_i16(rig->plan));
    assert_true(rig->plan->choice.error <= BUDGET);
}

// Filters by their spectra: flat; falling in time by 60 dB; a tone, with the energy in few bins, at
// any frequency and at 0; one tap, with all bins equally large; a decaying chirp; paths with long
// spans of zeros, and paths of zeros.
enum filter_shape { WHITE, DECAYING, TONE, CONSTANT, IMPULSE, CHIRP, SPARSE, N_SHAPES };
static const char *const shape_names[N_SHAPES] = {"white",   "decaying", "tone",  "constant",
                                                  "impulse", "chirp",    "sparse"};

static double complex shaped_tap(enum filter_shape shape, double complex noise, size_t i, size_t n)
{
    const double at = (double)i / (double)n, cycles = 0.0813 * (double)i;
    if (shape == DECAYING) return noise * pow(10, -3 * at);
    if (shape == TONE) return cexp(2 * M_PI * I * cycles);
    if (shape == CONSTANT) return 1;
    if (shape == IMPULSE) return i == n * 9 / 10;
    if (shape == CHIRP) return cexp(2 * M_PI * I * cycles * at) * exp(-3 * at);
    return noise;
}

static void draw_shaped_taps(struct stream_rig *rig, enum filter_shape shape, struct random *random)
{
    const enum partita_type type = rig->problem.taps;
    const size_t n = rig->problem.kernel[0], paths = rig->n_taps / n;
    random_samples(random, type, rig->w, rig->n_taps);
    for (size_t k = 0; k < rig->n_taps; k++) {
        const double complex tap = shaped_tap(shape, reference_sample(type, rig->w, k), k % n, n);
        sample_put(type, rig->w, k, tap);
    }
    for (size_t path = 0; shape == SPARSE && path < paths; path++) {
        const size_t first = n / 8 + random_below(random, n / 8), last = n * 7 / 8;
        const bool all = path > 0 && path % 2 == 0;
        for (size_t i = all ? 0 : first; i < (all ? n : last); i++)
            sample_put(type, rig->w, path * n + i, 0);
    }
    stream_rig_replace_taps(rig);
}

// The error of y, relative to all outputs, against the oracle at random outputs.
static double measured_error(const struct stream_rig *rig, const void *y, struct random *random)
{
    enum { SOME = 700 };
    size_t at[SOME];
    const size_t late = partita_plan_latency(rig->plan) / rig->stride;
    for (size_t i = 0; i < SOME; i++) at[i] = random_below(random, rig->n_outputs - late);
    double complex *expected = malloc(rig->out * SOME * sizeof *expected);
    reference_stream_at(&rig->problem, rig->n_frames, at, SOME, expected, rig->x, rig->w);
    double error = 0, norm = 0;
    for (size_t i = 0; i < rig->out * SOME; i++) {
        const size_t from = i / SOME * rig->n_outputs + late + at[i % SOME];
        const double e = cabs(reference_sample(rig->problem.signal, y, from) - expected[i]);
        error += e * e;
        norm += creal(expected[i] * conj(expected[i]));
    }
    free(expected);
    return sqrt(error / norm);
}

// A line's rounding errors have at least the deviation 1 / (32767 sqrt(12)) of its norm, if its
// largest value is only as large as the others in the mean; more than half of the taps are in
// segments of 16 bits. A line's values have a crest factor of about 2.4 if they are normal, which
// gives 2.1e-5: the factor of two allows for segments of reals and for the sample of outputs.
static void white_error_is_as_derived(const struct stream_rig *rig, double error)
{
    if (!(error > sqrt(0.5) / 32767 / sqrt(12)))
        fail_msg("error %.3g: no spectra of 16 bits are in use", error);
    if (!(error < 2 * 2.4 / 32767 / sqrt(12)))
        fail_msg("error %.3g is beyond that of normal values", error);
    assert_true(error < rig->plan->choice.error);
}

static void error_is_within_the_prediction(void **state)
{
    const struct stream_case *c = *state;
    struct random random = random_start("error");
    struct stream_rig rig;
    open_rig(&rig, c, &c->named->problem, &random);
    void *y = stream_rig_alloc_output(&rig);
    for (enum filter_shape shape = 0; shape < N_SHAPES; shape++) {
        draw_shaped_taps(&rig, shape, &random);
        stream_rig_feed(&rig, rig.stream, y, &split_whole, &random);
        const double error = measured_error(&rig, y, &random);
        if (!(error <= rig.plan->choice.error))
            fail_msg("%s: error %.3g, predicted %.3g", shape_names[shape], error,
                     rig.plan->choice.error);
        if (shape == WHITE) white_error_is_as_derived(&rig, error);
        if (shape == WHITE || shape == SPARSE) stream_rig_check_splits(&rig, y, &small, 1, &random);
    }
    guarded_free(y);
    stream_rig_close(&rig);
}

// A budget that 16 bits do not meet changes no bit, and neither does one that is large enough in
// double precision.
static void other_budgets_change_nothing(void **state)
{
    const struct stream_case *c = *state;
    const double budgets[] = {0, 0.99 * BUDGET, BUDGET};
    const bool f64 = type_is_f64(c->types->signal);
    void *first = NULL;
    struct stream_rig rig;
    for (size_t i = 0; i < (f64 ? 3 : 2); i++) {
        struct random random = random_start("budgets"); // the same taps and input
        const struct partita_options options = {.error_budget = budgets[i]};
        stream_rig_open_exactly(&rig, c, &problems[MATRIX].problem, &options, FRAMES, &random);
        assert_false(explains_i16(rig.plan));
        void *y = stream_rig_alloc_output(&rig);
        stream_rig_feed(&rig, rig.stream, y, &split_whole, &random);
        stream_rig_check_first(&rig, y, &first);
        guarded_free(y);
        if (i + 1 < (f64 ? 3 : 2)) stream_rig_close(&rig);
    }
    struct random random = random_start("sample");
    stream_rig_check_sampled(&rig, first, &random);
    guarded_free(first);
    stream_rig_close(&rig);
}

static void swaps_fade(void **state)
{
    const struct stream_case *c = *state;
    const struct partita_options options = {.error_budget = BUDGET};
    struct random random = random_start("swaps");
    struct swap_rig s;
    swap_rig_open(&s, c, &problems[MATRIX].problem, &options, FRAMES, &random);
    assert_true(explains_i16(s.rig.plan));
    const size_t second = 3000 + 2 * s.load.swap_delay;
    const struct swap two[] = {{1000, 1, 300}, {second, 2, 0}};
    void *y = stream_rig_alloc_output(&s.rig);
    partita_stream_close(swap_rig_run(&s, y, two, 2, &small, &random));
    check_fade(&s, y, 0, 1, 300, 0, 1000, second);
    check_fade(&s, y, 1, 2, 0, second, second, s.rig.n_outputs);
    guarded_free(y);
    swap_rig_close(&s);
}

static void threads_same_bits(void **state)
{
    const struct stream_case *c = *state;
    void *first = NULL;
    for (int threads = 1; threads <= 3; threads++) {
        const struct partita_options options = {.error_budget = BUDGET, .threads = threads};
        struct random random = random_start("threads");
        struct stream_rig rig;
        stream_rig_open_exactly(&rig, c, &problems[MATRIX].problem, &options, FRAMES, &random);
        void *y = stream_rig_alloc_output(&rig);
        stream_rig_feed(&rig, rig.stream, y, &small, &random);
        stream_rig_check_first(&rig, y, &first);
        guarded_free(y);
        stream_rig_close(&rig);
    }
    guarded_free(first);
}

// Runs a filter that the rig then owns; its outputs must be those of the taps in w.
static void check_filter(struct stream_rig *rig, struct partita_filter *filter,
                         struct random *random)
{
    void *y = stream_rig_alloc_output(rig);
    stream_rig_replace_filter(rig, filter);
    stream_rig_feed(rig, rig->stream, y, &split_whole, random);
    const double error = measured_error(rig, y, random), predicted = rig->plan->choice.error;
    if (!(error <= predicted)) fail_msg("error %.3g, predicted %.3g", error, predicted);
    guarded_free(y);
}

// Spectra that an edited filter copies, and those that paths with the same taps share.
static void edited_filters_copy_and_share(void **state)
{
    const struct stream_case *c = *state;
    struct random random = random_start("edits");
    struct stream_rig rig;
    open_rig(&rig, c, &problems[MATRIX].problem, &random);
    const size_t kernel = rig.problem.kernel[0], bytes = partita_type_size(rig.problem.taps);
    char *w = rig.w, *one = w + kernel * bytes, *other = w + 4 * kernel * bytes;
    random_samples(&random, rig.problem.taps, one, kernel);
    const struct partita_path edit = {.out = 0, .in = 1, .length = kernel, .taps = one};
    struct partita_filter *filter;
    assert_ok(partita_filter_create_from(
        rig.plan, &(struct partita_taps){.base = rig.filter, .paths = &edit, .path_count = 1},
        &filter));
    check_filter(&rig, filter, &random);
    memset(w, 0, rig.n_taps * bytes);
    random_samples(&random, rig.problem.taps, one, kernel);
    memcpy(other, one, kernel * bytes);
    const struct partita_path twins[] = {edit, {.out = 1, .in = 1, .length = kernel, .taps = one}};
    assert_ok(partita_filter_create_from(
        rig.plan, &(struct partita_taps){.paths = twins, .path_count = 2}, &filter));
    check_filter(&rig, filter, &random);
    stream_rig_close(&rig);
}

static size_t filter_bytes(const struct stream_case *c, double budget)
{
    struct meter meter = {0};
    const struct partita_options options = {.allocator = meter_allocator(&meter),
                                            .error_budget = budget};
    struct random random = random_start("memory");
    struct stream_rig rig;
    struct partita_filter *filter;
    stream_rig_open_exactly(&rig, c, &problems[MATRIX].problem, &options, 1, &random);
    const size_t before = meter.bytes_live;
    assert_ok(partita_filter_create(rig.plan, rig.w, &filter));
    const size_t bytes = meter.bytes_live - before;
    partita_filter_destroy(filter);
    stream_rig_close(&rig);
    return bytes;
}

// Spectra of 16 bits have 17/32 of the bytes; the rest is for the first segments and the head.
static void filters_are_half_as_large(void **state)
{
    const size_t i16 = filter_bytes(*state, BUDGET), reals = filter_bytes(*state, 0);
    if (!((double)i16 < 0.6 * (double)reals))
        fail_msg("%zu bytes, %zu with spectra of reals", i16, reals);
}

// States belong to plans whose spectra have the same form.
static void states_are_restored(void **state)
{
    const struct stream_case *c = *state;
    struct random random = random_start("states");
    struct stream_rig rig, reals;
    open_rig(&rig, c, &problems[0].problem, &random);
    stream_rig_open_exactly(&reals, c, &problems[0].problem, NULL, 1, &random);
    const size_t at = 9001, size = partita_stream_state_size(rig.stream);
    void *y = stream_rig_alloc_output(&rig), *other = stream_rig_alloc_output(&rig);
    void *kept = guarded_alloc(size, 1);
    stream_rig_feed(&rig, rig.stream, y, &split_whole, &random);
    partita_stream_reset(rig.stream);
    stream_rig_feed_span(&rig, rig.stream, other, 0, at, &small, &random);
    assert_ok(partita_stream_save(rig.stream, kept));
    partita_stream_reset(rig.stream);
    assert_ok(partita_stream_restore(rig.stream, kept, size));
    stream_rig_check_continues(&rig, rig.stream, y, at, &random);
    assert_int_equal(partita_stream_restore(reals.stream, kept, size), PARTITA_ERR_STATE);
    guarded_free(kept);
    guarded_free(other);
    guarded_free(y);
    stream_rig_close(&reals);
    stream_rig_close(&rig);
}

// Taps without a finite value spoil outputs, taps beyond the range of a scale do not.
static void extreme_taps(void **state)
{
    const struct stream_case *c = *state;
    struct random random = random_start("extreme");
    struct stream_rig rig;
    open_rig(&rig, c, &problems[0].problem, &random);
    const size_t n = rig.n_taps;
    const double complex last = reference_sample(rig.problem.taps, rig.w, n - 1);
    void *y = stream_rig_alloc_output(&rig);
    sample_put(rig.problem.taps, rig.w, n - 1, (double)NAN);
    stream_rig_replace_taps(&rig);
    stream_rig_feed(&rig, rig.stream, y, &split_whole, &random);
    assert_true(isnan(creal(reference_sample(rig.problem.signal, y, rig.n_outputs - 1))));
    sample_put(rig.problem.taps, rig.w, n - 1, last);
    const double scales[] = {0x1p-60, 0x1p60, 0x1p-126};
    for (size_t i = 0; i < 3; i++) {
        for (size_t k = 0; k < n; k++)
            sample_put(rig.problem.taps, rig.w, k,
                       reference_sample(rig.problem.taps, rig.w, k) * scales[i]);
        stream_rig_replace_taps(&rig);
        stream_rig_feed(&rig, rig.stream, y, &split_whole, &random);
        for (size_t k = 0; k < rig.n_outputs; k++)
            assert_true(isfinite(creal(reference_sample(rig.problem.signal, y, k))));
        if (i < 2) assert_true(measured_error(&rig, y, &random) <= rig.plan->choice.error);
    }
    guarded_free(y);
    stream_rig_close(&rig);
}

// A slot's outputs are those of a stream of the bank's plan, whose spectra have 16 bits.
static void banks_have_the_bits_of_streams(void **state)
{
    enum { BLOCK = 64, BLOCKS = 200, TAPS = 6000 };
    const struct type_pair *types = ((const struct stream_case *)*state)->types;
    const size_t bytes = partita_type_size(types->signal);
    const size_t tap_bytes = partita_type_size(types->taps);
    const struct partita_bank_options options = {
        .slots = 2,
        .n_taps = TAPS,
        .block = BLOCK,
        .signal = types->signal,
        .taps_type = types->taps,
        .error_budget = BUDGET,
        .device = layer_options(&(struct partita_options){.engine = partitioned_engine()}).device};
    struct random random = random_start("bank");
    struct partita_bank *bank;
    struct partita_filter *filter, *of_plan;
    struct partita_stream *stream;
    size_t slot;
    assert_ok(partita_bank_create(&options, &bank));
    const struct partita_plan *plan = partita_bank_plan(bank);
    assert_true(explains_i16(plan));
    void *w = guarded_alloc(TAPS * tap_bytes, tap_bytes);
    char *x = guarded_alloc(BLOCK * bytes, bytes), *y = guarded_alloc(BLOCK * bytes, bytes);
    random_samples(&random, types->taps, w, TAPS);
    assert_ok(partita_bank_filter_create(bank, w, TAPS, &filter));
    assert_ok(partita_filter_create(plan, w, &of_plan));
    assert_ok(partita_bank_open(bank, filter, &slot));
    assert_ok(partita_stream_open(plan, of_plan, &stream));
    for (size_t lead = partita_bank_lead(bank, slot); lead > 0; lead -= BLOCK)
        partita_stream_process(stream, (void *[]){y}, NULL, BLOCK);
    for (int block = 0; block < BLOCKS; block++) {
        random_samples(&random, types->signal, x, BLOCK);
        memcpy(partita_bank_input(bank, slot), x, BLOCK * bytes);
        partita_bank_process(bank);
        partita_stream_process(stream, (void *[]){y}, (const void *[]){x}, BLOCK);
        assert_memory_equal(partita_bank_output(bank, slot), y, BLOCK * bytes);
    }
    partita_stream_close(stream);
    partita_filter_destroy(of_plan);
    partita_filter_destroy(filter);
    partita_bank_destroy(bank);
    guarded_free(y);
    guarded_free(x);
    guarded_free(w);
}

static const struct promise promises[] = {
    {"banks-have-the-bits-of-streams", banks_have_the_bits_of_streams},
    {"swaps-fade", swaps_fade},
    {"edited-filters-copy-and-share", edited_filters_copy_and_share},
    {"states-are-restored", states_are_restored},
    {"extreme-taps", extreme_taps},
    // Of the CPU alone.
    {"threads-same-bits", threads_same_bits},
    {"filters-are-half-as-large", filters_are_half_as_large},
};
enum { N_PROMISES = sizeof promises / sizeof *promises };

int main(void)
{
    static struct stream_case cases[N_TYPE_PAIRS][N_PROBLEMS];
    static struct CMUnitTest tests[N_TYPE_PAIRS * (N_PROBLEMS + N_PROMISES + 1)];
    size_t n = 0;
    const enum layer_device device = layer_device_check();
    if (device != LAYER_DEVICE_READY) return device == LAYER_DEVICE_MISSING;
    const char *engine = partitioned_engine();
    const size_t n_promises = layer_has_engine("cpu/partitioned") ? N_PROMISES : N_PROMISES - 2;
    for (size_t t = 0; t < N_TYPE_PAIRS; t++) {
        const struct type_pair *types = &type_pairs[t];
        struct stream_case *c = cases[t];
        for (size_t p = 0; p < N_PROBLEMS; p++)
            c[p] = (struct stream_case){engine, types, &problems[p]};
        if (!rig_has_types(engine, t)) continue;
        tests[n++] = named_test(other_budgets_change_nothing, &c[0],
                                "other-budgets-change-nothing-%s", types->name);
        if (type_is_f64(types->signal)) continue;
        for (size_t p = 0; p < N_PROBLEMS; p++)
            if (rig_has_problem(t, p))
                tests[n++] = named_test(error_is_within_the_prediction, &c[p],
                                        "error-is-within-the-prediction/%s-%s", problems[p].name,
                                        types->name);
        for (size_t i = 0; i < n_promises; i++)
            tests[n++] = named_test(promises[i].run, &c[0], "%s-%s", promises[i].name, types->name);
    }
    return run_test_list(tests, n);
}
