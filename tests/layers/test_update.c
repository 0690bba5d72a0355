// SPDX-License-Identifier: MIT
// partita_filter_update: with every engine, type and direction an updated filter has the bits of a
// new one with the same taps and bias, whatever it held before; with a workspace nothing is
// allocated. What it refuses.
#include "support/rig.h"

#include "support/allocators.h"
#include "support/layer_rig.h"

#include <stdio.h>

// The engines of all devices; those of the device under test are tested.
static const char *const engines[] = {
    "cpu/direct",         "cpu/gemm",         "cpu/winograd",     "cpu/tiles",
    "cpu/depthwise",      "cpu/overlap-save", "cpu/overlap-add",  "cpu/blocks",
    "cuda/direct:plain",  "cuda/direct:halo", "cuda/gemm",        "cuda/winograd",
    "cuda/tiles:complex", "cuda/tiles:gauss", "cuda/tiles:fused", "cuda/separable",
    "cuda/overlap-save",  "cuda/overlap-add", "cuda/blocks",
};
enum { N_UPDATE_ENGINES = sizeof engines / sizeof *engines };

static const struct type_pair half_types[] = {{PARTITA_F16, PARTITA_F16, "f16"},
                                              {PARTITA_BF16, PARTITA_BF16, "bf16"}};
enum { N_HALF_TYPES = sizeof half_types / sizeof *half_types };

struct update_case {
    const char *engine;
    const struct type_pair *types;
};

static struct update_case cases[N_UPDATE_ENGINES * (N_TYPE_PAIRS + N_HALF_TYPES)];

// A plan, two sets of taps and biases, and the arrays of calls.
struct update {
    struct partita_problem problem;
    struct partita_plan *plan;
    struct meter meter;
    void *taps[2], *bias[2]; // bias NULL: filters have none
    void *x, *gy, *result[2];
    size_t bytes, taps_bytes, workspace; // of a result; of the workspace of an update
};

enum { INPUTS, OUTPUTS };

static size_t samples_of(const struct partita_problem *p, int which)
{
    return which == INPUTS ? problem_inputs(p) : problem_outputs(p);
}

static void *draw(struct random *random, enum partita_type type, size_t n)
{
    void *samples = guarded_alloc(n * partita_type_size(type), partita_type_size(type));
    random_samples(random, type, samples, n);
    return samples;
}

// Separable taps: each path's are products of a factor of its row and one of its column.
static void make_separable(const struct partita_problem *p, void *taps, struct random *random)
{
    const size_t rows = p->kernel[0], columns = p->kernel[1];
    for (size_t path = 0; path < problem_taps(p) / (rows * columns); path++) {
        double row[40], column[40];
        for (size_t i = 0; i < rows; i++) row[i] = 1 + (double)random_below(random, 9);
        for (size_t i = 0; i < columns; i++) column[i] = 1 + (double)random_below(random, 9);
        for (size_t i = 0; i < rows * columns; i++)
            sample_put(p->taps, taps, path * rows * columns + i,
                       row[i / columns] * column[i % columns]);
    }
}

static bool open_update(struct update *u, const struct partita_options *options, bool biased,
                        struct random *random)
{
    const struct partita_problem *p = &u->problem;
    struct partita_options all = layer_options(options);
    static const unsigned directions[] = {PARTITA_FORWARD | PARTITA_BACKWARD_DATA, PARTITA_FORWARD,
                                          PARTITA_BACKWARD_DATA};
    u->meter = (struct meter){0};
    all.allocator = meter_allocator(&u->meter);
    enum partita_status status = PARTITA_ERR_UNSUPPORTED;
    const size_t first = random_below(random, 3); // of the directions that are planned
    for (size_t i = 0; i < 3 && status != PARTITA_OK; i++) {
        all.directions = directions[(first + i) % 3];
        status = partita_plan_create(p, &all, &u->plan);
    }
    if (status != PARTITA_OK) {
        assert_int_equal(status, PARTITA_ERR_UNSUPPORTED);
        return false;
    }
    u->taps_bytes = problem_taps(p) * partita_type_size(p->taps);
    for (int i = 0; i < 2; i++) {
        u->taps[i] = draw(random, p->taps, problem_taps(p));
        if (p->separable) make_separable(p, u->taps[i], random);
        u->bias[i] = biased ? draw(random, p->signal, or_one(p->out_channels)) : NULL;
    }
    u->x = draw(random, p->signal, samples_of(p, INPUTS));
    u->gy = draw(random, p->signal, samples_of(p, OUTPUTS));
    u->bytes = (samples_of(p, INPUTS) + samples_of(p, OUTPUTS)) * partita_type_size(p->signal);
    for (int i = 0; i < 2; i++) u->result[i] = calloc(1, u->bytes);
    u->workspace = partita_plan_workspace(u->plan, PARTITA_FORWARD);
    const size_t data = partita_plan_workspace(u->plan, PARTITA_BACKWARD_DATA);
    if (data > u->workspace) u->workspace = data;
    return true;
}

static void close_update(struct update *u)
{
    partita_plan_destroy(u->plan);
    assert_int_equal(u->meter.n_live, 0);
    for (int i = 0; i < 2; i++) {
        guarded_free(u->taps[i]);
        if (u->bias[i]) guarded_free(u->bias[i]);
        free(u->result[i]);
    }
    guarded_free(u->x);
    guarded_free(u->gy);
}

static struct partita_filter *new_filter(const struct update *u, const void *taps, const void *bias)
{
    struct partita_filter *filter;
    assert_ok(filter_with_bias(u->plan, taps, bias, &filter));
    return filter;
}

// Results of all planned directions that read taps.
static void *run_filter(struct update *u, const struct partita_filter *filter, int result)
{
    char *y = u->result[result];
    char *gx = y + samples_of(&u->problem, OUTPUTS) * partita_type_size(u->problem.signal);
    if (*partita_plan_engine(u->plan, PARTITA_FORWARD))
        assert_ok(partita_forward(u->plan, filter, y, u->x, NULL));
    if (*partita_plan_engine(u->plan, PARTITA_BACKWARD_DATA))
        assert_ok(partita_backward_data(u->plan, filter, gx, u->gy, NULL));
    return y;
}

// Updates with exactly the workspace that is promised to suffice. On the CPU nothing is allocated.
static void update_within(struct update *u, struct partita_filter *filter, const void *taps,
                          const void *bias)
{
    void *workspace = guarded_alloc(u->workspace, 0);
    const size_t before = u->meter.n_allocated;
    assert_ok(
        partita_filter_update(filter, taps, bias, &(struct partita_call){.workspace = workspace}));
    if (layer_has_engine("cpu/direct")) assert_int_equal(u->meter.n_allocated, before);
    guarded_free(workspace);
}

// What a filter held before an update must not matter: other taps, zeros, or values that are not
// finite.
static void check_update(struct update *u, struct random *random)
{
    struct partita_filter *created = new_filter(u, u->taps[1], u->bias[1]);
    void *expected = run_filter(u, created, 0);
    void *before = malloc(u->taps_bytes);
    memcpy(before, u->taps[0], u->taps_bytes);
    const size_t kind = u->problem.separable ? 0 : random_below(random, 3);
    if (kind) memset(before, kind == 1 ? 0 : 0xff, u->taps_bytes);
    struct partita_filter *filter = new_filter(u, before, u->bias[0]);
    const size_t live = u->meter.n_live, bytes = u->meter.bytes_live;
    update_within(u, filter, u->taps[1], u->bias[1]);
    assert_memory_equal(run_filter(u, filter, 1), expected, u->bytes);
    // Without a workspace, and without memory for it: the filter can be updated again.
    u->meter.fail_at = u->meter.n_allocated + 1;
    const enum partita_status status = partita_filter_update(filter, before, u->bias[0], NULL);
    assert_true(status == PARTITA_OK || status == PARTITA_ERR_NOMEM);
    u->meter.fail_at = 0;
    // Without a bias the last one stays.
    assert_ok(partita_filter_update(filter, before, u->bias[0], NULL));
    assert_ok(partita_filter_update(filter, u->taps[0], u->bias[1], NULL));
    assert_ok(partita_filter_update(filter, u->taps[1], NULL, NULL));
    assert_memory_equal(run_filter(u, filter, 1), expected, u->bytes);
    assert_int_equal(u->meter.n_live, live);
    assert_int_equal(u->meter.bytes_live, bytes);
    partita_filter_destroy(filter);
    partita_filter_destroy(created);
    free(before);
}

static bool serves_signals(const char *engine)
{
    return strstr(engine, "overlap") || strstr(engine, "blocks");
}

static struct partita_problem draw_problem(const struct update_case *c, struct random *random)
{
    const bool is_complex = type_is_complex(c->types->signal);
    struct partita_problem p;
    if (!strcmp(c->engine, "cuda/separable")) {
        p = (struct partita_problem){SIZE(9, 14),  CHANNELS(3, 3), GROUPS(3),
                                     KERNEL(3, 5), PAD(1, 2),      .separable = true};
        p.kernel[0] += random_below(random, 3);
    } else {
        do p = layer_random(random);
        while ((is_complex || serves_signals(c->engine)) && p.rank != 1);
        p = layer_suit_engine(c->engine, &p);
        if (strstr(c->engine, "winograd"))
            for (int a = 0; a < p.rank; a++) p.dilation[a] = 1, p.kernel[a] = 1 + p.kernel[a] % 4;
        for (int a = 0; a < p.rank; a++) p.pad_end[a] += 8; // as kernels became larger
    }
    if (is_complex) p.activation = PARTITA_LINEAR;
    if (is_complex || serves_signals(c->engine)) p.channels_last = false;
    p.signal = c->types->signal;
    p.taps = c->types->taps;
    return p;
}

static void bits_of_new(void **state)
{
    const struct update_case *c = *state;
    struct random random = random_start(c->engine);
    int served = 0;
    for (int i = 0; i < layer_repeats(24); i++) {
        struct update u = {.problem = draw_problem(c, &random)};
        struct partita_options options = {.engine = c->engine,
                                          .threads = 1 + (int)random_below(&random, 3),
                                          .filter_uses = (unsigned)random_below(&random, 2)};
        if (random_below(&random, 2))
            options.workspace_limit = (size_t)1 << (12 + random_below(&random, 10));
        if (strstr(c->engine, "blocks") && random_below(&random, 2))
            options.parts = (struct partita_parts){.taps = 8, .signal = 24};
        const bool biased = !type_is_complex(c->types->signal) && random_below(&random, 3);
        if (!open_update(&u, &options, biased, &random)) continue;
        check_update(&u, &random);
        close_update(&u);
        served++;
    }
    printf("# %s %s: %d filters\n", c->engine, c->types->name, served);
    const bool half = partita_type_size(c->types->signal) == 2;
    const bool layers = !serves_signals(c->engine) && strcmp(c->engine, "cpu/direct") != 0;
    if (!half && !(layers && type_is_complex(c->types->signal))) assert_true(served > 0);
}

// A plan for one thread makes filters with the same results, which u->result[0] has.
static void same_with_one_thread(struct update *u, const struct partita_options *options)
{
    struct partita_plan *plan = u->plan;
    struct partita_options one = layer_options(options);
    one.threads = 1;
    if (*partita_plan_engine(plan, PARTITA_FORWARD)) one.directions |= PARTITA_FORWARD;
    if (*partita_plan_engine(plan, PARTITA_BACKWARD_DATA)) one.directions |= PARTITA_BACKWARD_DATA;
    assert_ok(partita_plan_create(&u->problem, &one, &u->plan));
    struct partita_filter *filter = new_filter(u, u->taps[1], u->bias[1]);
    assert_memory_equal(run_filter(u, filter, 1), u->result[0], u->bytes);
    partita_filter_destroy(filter);
    partita_plan_destroy(u->plan);
    u->plan = plan;
}

// Long filters: transforms of several stages, which threads share, and blocks with few outputs.
static void long_filters(void **state)
{
    static const struct {
        const char *engine;
        struct partita_problem problem;
    } subjects[] = {
        {"cpu/overlap-save", {LENGTH(90000), KERNEL(40000)}},
        {"cpu/overlap-add", {LENGTH(9000), KERNEL(1000), STRIDE(3)}},
        {"cpu/blocks", {LENGTH(60000), KERNEL(50000), PAD_BEGIN(100)}},
        {"cpu/blocks", {LENGTH(30000), CORRELATE, KERNEL(29990)}},
        {"cpu/tiles", {SIZE(90, 90), CHANNELS(3, 5), KERNEL(31, 31)}},
        {"cpu/tiles", {SIZE(9, 9), CHANNELS(30, 50), KERNEL(9, 9), PAD(4, 4)}},
        {"cpu/winograd", {SIZE(7, 7), CHANNELS(300, 20), KERNEL(3, 3), PAD(1, 1)}},
        {"cpu/winograd", {SIZE(2, 2), CHANNELS(40, 90), KERNEL(3, 3), PAD(1, 1)}},
        {"cpu/winograd", {SIZE(1, 1), CHANNELS(300, 1), KERNEL(3, 3), PAD(1, 1)}},
        {"cpu/direct", {SIZE(5, 5), CHANNELS(72, 70), KERNEL(3, 3), PAD(1, 1)}},
        {"cpu/direct", {SIZE(9, 9), CHANNELS(72, 72), KERNEL(3, 3), STRIDE(2, 2), PAD(1, 1)}},
        {"cpu/gemm", {SIZE(5, 5), CHANNELS(70, 72), KERNEL(3, 3), PAD(1, 1)}},
        // Taps of bf16 as pairs, which threads make, or which they are as they lie.
        {"cpu/gemm", {SIZE(5, 5), CHANNELS(70, 72), KERNEL(3, 3), PAD(1, 1), TYPES(BF16, BF16)}},
        {"cpu/gemm", {SIZE(5, 5), CHANNELS(192, 200), TYPES(BF16, BF16)}},
        {"cpu/gemm", {SIZE(5, 5), CHANNELS(191, 201), TYPES(BF16, BF16)}},
        {"cpu/winograd", {SIZE(7, 7), CHANNELS(72, 76), KERNEL(3, 3), PAD(1, 1)}},
        {"cpu/winograd", {SIZE(7, 7), CHANNELS(75, 72), KERNEL(3, 3), PAD(1, 1)}},
        {"cpu/depthwise", {SIZE(9, 9), CHANNELS(3, 3), GROUPS(3), KERNEL(9, 9), PAD(4, 4)}},
        {"cuda/overlap-save", {LENGTH(5000), KERNEL(300)}},
        {"cuda/overlap-save", {LENGTH(18000), CHANNELS(2, 2), GROUPS(2), KERNEL(17000)}},
        {"cuda/blocks", {LENGTH(3000), CORRELATE, KERNEL(2990)}},
        {"cuda/blocks", {LENGTH(9000), KERNEL(3000), PAD_BEGIN(100)}},
    };
    struct random random = random_start("long");
    (void)state;
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        if (!layer_has_engine(subjects[i].engine)) continue;
        struct update u = {.problem = subjects[i].problem};
        if (!u.problem.signal) u.problem.signal = u.problem.taps = PARTITA_F32;
        const struct partita_options options = {.engine = subjects[i].engine, .threads = 3};
        assert_true(open_update(&u, &options, true, &random));
        check_update(&u, &random);
        same_with_one_thread(&u, &options);
        close_update(&u);
    }
}

// A filter that was made from paths takes dense taps.
static void made_from_paths(void **state)
{
    struct random random = random_start("paths");
    struct update u = {.problem = {LENGTH(60), CHANNELS(2, 2), KERNEL(5), .signal = PARTITA_F32,
                                   .taps = PARTITA_F32}};
    const float taps[] = {1, 2};
    const struct partita_path path = {.out = 1, .in = 0, .delay = 1, .length = 2, .taps = taps};
    struct partita_filter *filter;
    (void)state;
    assert_true(open_update(&u, NULL, false, &random));
    assert_ok(partita_filter_create_from(
        u.plan, &(struct partita_taps){.paths = &path, .path_count = 1}, &filter));
    update_within(&u, filter, u.taps[1], NULL);
    struct partita_filter *created = new_filter(&u, u.taps[1], NULL);
    run_filter(&u, created, 0);
    assert_memory_equal(run_filter(&u, filter, 1), u.result[0], u.bytes);
    partita_filter_destroy(created);
    partita_filter_destroy(filter);
    close_update(&u);
}

static void refused(enum partita_status status, enum partita_status expected,
                    struct log_lines *lines, const char *text)
{
    assert_int_equal(status, expected);
    if (*text) assert_non_null(strstr(lines->text, text));
    lines->text[0] = 0;
}

static void refusals(void **state)
{
    static _Alignas(64) char workspace[128];
    const struct partita_problem problem = {LENGTH(20), KERNEL(3)};
    struct log_lines lines = {.n_lines = 0};
    struct partita_options options = layer_options(NULL);
    options.log = log_into(&lines);
    struct partita_plan *plan;
    struct partita_filter *filter;
    const float w[3] = {1, 2, 3}, x[20] = {1}, other[3] = {9, 9, 9}, bias = 1;
    float y[18];
    (void)state;
    assert_ok(partita_plan_create(&problem, &options, &plan));
    assert_ok(partita_filter_create(plan, w, &filter));
    refused(partita_filter_update(NULL, w, NULL, NULL), PARTITA_ERR_ARG, &lines, "");
    refused(partita_filter_update(filter, NULL, NULL, NULL), PARTITA_ERR_ARG, &lines, "");
    struct partita_call call = {.taps = w};
    refused(partita_filter_update(filter, other, NULL, &call), PARTITA_ERR_ARG, &lines,
            "call.taps");
    call = (struct partita_call){.saved = (struct partita_saved *)workspace};
    refused(partita_filter_update(filter, other, NULL, &call), PARTITA_ERR_ARG, &lines,
            "call.saved");
    call = (struct partita_call){.workspace = workspace + 4};
    refused(partita_filter_update(filter, other, NULL, &call), PARTITA_ERR_ARG, &lines, "");
    refused(partita_filter_update(filter, other, &bias, NULL), PARTITA_ERR_STATE, &lines, "bias");
    call = (struct partita_call){.queue = workspace};
    refused(partita_filter_update(filter, other, NULL, &call), PARTITA_ERR_UNSUPPORTED, &lines,
            "call.queue");
    assert_ok(partita_forward(plan, filter, y, x, NULL)); // is as it was
    for (int i = 0; i < 3; i++) assert_true(y[i] == (i ? 0.0F : w[2]));
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
}

// A stream reads its filter while it plays: another filter replaces it by a swap.
static void streams(void **state)
{
    const struct partita_problem problem = {.size = {PARTITA_UNBOUNDED}, .kernel = {3}};
    struct log_lines lines = {.n_lines = 0};
    const struct partita_options options = {.log = log_into(&lines)};
    struct partita_plan *plan;
    struct partita_filter *filter;
    const float w[3] = {1, 2, 3}, other[3] = {9, 9, 9};
    (void)state;
    assert_ok(partita_plan_create(&problem, &options, &plan));
    assert_ok(partita_filter_create(plan, w, &filter));
    refused(partita_filter_update(filter, other, NULL, NULL), PARTITA_ERR_STATE, &lines, "swap");
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
}

int main(void)
{
    static struct CMUnitTest tests[sizeof cases / sizeof *cases + 4];
    size_t n = 0, n_cases = 0;
    const enum layer_device device = layer_device_check();
    if (device != LAYER_DEVICE_READY) return device == LAYER_DEVICE_MISSING;
    for (int e = 0; e < N_UPDATE_ENGINES; e++)
        for (int t = 0; t < N_TYPE_PAIRS + N_HALF_TYPES && layer_has_engine(engines[e]); t++) {
            const struct type_pair *types =
                t < N_TYPE_PAIRS ? &type_pairs[t] : &half_types[t - N_TYPE_PAIRS];
            if (layer_is_brief() && t > 0) continue;
            cases[n_cases] = (struct update_case){engines[e], types};
            tests[n++] =
                named_test(bits_of_new, &cases[n_cases++], "%s/%s", engines[e], types->name);
        }
    tests[n++] = named_test(long_filters, NULL, "long-filters");
    if (!layer_has_engine("cpu/direct")) return run_test_list(tests, n);
    tests[n++] = named_test(made_from_paths, NULL, "made-from-paths");
    tests[n++] = named_test(refusals, NULL, "refusals");
    tests[n++] = named_test(streams, NULL, "streams");
    return run_test_list(tests, n);
}
