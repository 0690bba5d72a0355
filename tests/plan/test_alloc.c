// SPDX-License-Identifier: MIT
// Out of memory: the n-th allocation of every public call fails, for every n until the call
// succeeds. It must return NOMEM, leave its result unchanged and nothing allocated. Objects use the
// caller's allocator. Calls without one use malloc and related functions, which the linker replaces
// in the library (--wrap).

#include "support/rig.h"

#include <errno.h>
#include <stdio.h>

#include "support/allocators.h"

// Meters the C library's functions while `wrapped` is set. Memory from elsewhere may be freed too.
static struct meter *wrapped;
enum { MAX_LIVE = 4096 };
static void *live[MAX_LIVE];

static void *live_add(void *memory)
{
    if (!wrapped || !memory) return memory;
    for (size_t i = 0; i < MAX_LIVE; i++) {
        if (live[i]) continue;
        live[i] = memory;
        wrapped->n_live++;
        return memory;
    }
    abort();
}

static void live_remove(const void *memory)
{
    for (size_t i = 0; wrapped && memory && i < MAX_LIVE; i++) {
        if (live[i] != memory) continue;
        live[i] = NULL;
        wrapped->n_live--;
        return;
    }
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
int __real_posix_memalign(void **memory, size_t alignment, size_t bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes);
void __wrap_free(void *memory);

void *__wrap_malloc(size_t bytes)
{
    return wrapped && meter_fails(wrapped) ? NULL : live_add(__real_malloc(bytes));
}

void *__wrap_calloc(size_t n, size_t bytes)
{
    return wrapped && meter_fails(wrapped) ? NULL : live_add(__real_calloc(n, bytes));
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    if (wrapped && meter_fails(wrapped)) return NULL;
    live_remove(memory);
    return live_add(__real_realloc(memory, bytes));
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return wrapped && meter_fails(wrapped) ? NULL
                                           : live_add(__real_aligned_alloc(alignment, bytes));
}

int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    if (wrapped && meter_fails(wrapped)) return ENOMEM;
    int status = __real_posix_memalign(memory, alignment, bytes);
    if (status == 0) live_add(*memory);
    return status;
}

void __wrap_free(void *memory)
{
    live_remove(memory);
    __real_free(memory);
}

// What to plan.
struct attempt {
    const char *engine;
    struct partita_problem problem;
    struct partita_parts parts;
};

static const struct partita_problem bounded = {LENGTH(700), BATCH(2), CHANNELS(2, 2), KERNEL(40),
                                               STRIDE(2)};
static const struct partita_problem lags = {LENGTH(700), CHANNELS(2, 2), KERNEL(698), CORRELATE};
static const struct partita_problem live_problem = {
    LENGTH(PARTITA_UNBOUNDED), CHANNELS(2, 2), KERNEL(40), STRIDE(2), LATENCY(PARTITA_UNBOUNDED)};
static const struct partita_problem bounded_up = {LENGTH(300), BATCH(2),  CHANNELS(2, 2),
                                                  KERNEL(40),  STRIDE(2), UP(3)};
static const struct partita_problem live_up = {
    LENGTH(PARTITA_UNBOUNDED),  CHANNELS(2, 2), KERNEL(40), STRIDE(4),
    LATENCY(PARTITA_UNBOUNDED), UP(3)};

// Repeats a call with a later failing allocation each time, until it succeeds. `growth` > 1: calls
// that take long have only some of these failures, at increasing distances.
#define UNTIL_OK(meter, before, call, untouched) UNTIL_OK_BY(meter, before, call, untouched, 1)
#define UNTIL_OK_BY(meter, before, call, untouched, growth)                                        \
    for (size_t failing_ = 0;; failing_ = (growth)*failing_ + 1) {                                 \
        (meter)->n_allocated = 0;                                                                  \
        (meter)->fail_at = failing_ + 1;                                                           \
        enum partita_status status_ = (call);                                                      \
        if (status_ == PARTITA_OK) {                                                               \
            assert_true((meter)->n_allocated <= failing_);                                         \
            break;                                                                                 \
        }                                                                                          \
        assert_int_equal(status_, PARTITA_ERR_NOMEM);                                              \
        assert_true(untouched);                                                                    \
        assert_int_equal((meter)->n_live, before);                                                 \
        assert_true(failing_ < 5000);                                                              \
    }                                                                                              \
    (meter)->fail_at = 0

// What only streams have: filters of paths, edited filters, clones, morphs.
static void stream_objects(struct meter *meter, const struct partita_filter *filter,
                           struct partita_stream *stream)
{
    static const float taps[40] = {1};
    const struct partita_path paths[2] = {{0, 1, 3, 30, taps}, {1, 0, 0, 40, taps}};
    const struct partita_plan *plan = filter->plan;
    struct partita_filter *made = (struct partita_filter *)1;
    struct partita_stream *clone = (struct partita_stream *)1;
    size_t before = meter->n_live;
    UNTIL_OK(meter, before,
             partita_filter_create_from(
                 plan, &(struct partita_taps){.paths = paths, .path_count = 2}, &made),
             made == (struct partita_filter *)1);
    partita_filter_destroy(made);
    assert_int_equal(meter->n_live, before);
    made = (struct partita_filter *)1;
    if (plan->engine->filter.create_paths) {
        UNTIL_OK(meter, before,
                 partita_filter_create_from(
                     plan, &(struct partita_taps){.base = filter, .paths = paths, .path_count = 2},
                     &made),
                 made == (struct partita_filter *)1);
        partita_filter_destroy(made);
        assert_int_equal(meter->n_live, before);
    }
    UNTIL_OK(meter, before, partita_stream_clone(stream, &clone),
             clone == (struct partita_stream *)1);
    partita_stream_close(clone);
    assert_int_equal(meter->n_live, before);
    if (strcmp(plan->engine->name, "cpu/partitioned")) return;
    clone = (struct partita_stream *)1;
    UNTIL_OK(meter, before, partita_stream_open_morph(plan, &filter, 1, &(const double){2}, &clone),
             clone == (struct partita_stream *)1);
    partita_stream_close(clone);
    assert_int_equal(meter->n_live, before);
}

static void objects(void **state)
{
    const struct attempt *attempt = *state;
    struct meter meter = {0};
    struct partita_options options = {
        .engine = attempt->engine, .parts = attempt->parts, .allocator = meter_allocator(&meter)};
    struct partita_plan *plan = (struct partita_plan *)1;
    struct partita_filter *filter = (struct partita_filter *)1;
    struct partita_stream *stream = (struct partita_stream *)1;
    static float w[4 * 700], x[2 * 2 * 700], y[2 * 2 * 700], kept[2 * 2 * 700];
    UNTIL_OK(&meter, 0, partita_plan_create(&attempt->problem, &options, &plan),
             plan == (struct partita_plan *)1);
    size_t with_plan = meter.n_live;
    assert_true(with_plan > 0);
    UNTIL_OK(&meter, with_plan, partita_filter_create(plan, w, &filter),
             filter == (struct partita_filter *)1);
    size_t with_filter = meter.n_live;
    assert_true(with_filter > with_plan);
    if (attempt->problem.size[0] == PARTITA_UNBOUNDED) {
        UNTIL_OK(&meter, with_filter, partita_stream_open(plan, filter, &stream),
                 stream == (struct partita_stream *)1);
        const size_t n_allocated = meter.n_allocated;
        meter.fail_at = n_allocated + 1; // process must not allocate
        partita_stream_process(stream, (void *[]){y, y + 700}, (const void *[]){x, x + 700}, 700);
        partita_stream_process(stream, (void *[]){y, y + 700}, NULL, 500);
        partita_stream_reset(stream);
        assert_int_equal(meter.n_allocated, n_allocated);
        stream_objects(&meter, filter, stream);
        partita_stream_close(stream);
    } else {
        memset(y, 0x77, sizeof y);
        memcpy(kept, y, sizeof y);
        UNTIL_OK(&meter, with_filter, partita_forward(plan, filter, y, x, NULL),
                 memcmp(y, kept, sizeof y) == 0);
        UNTIL_OK(&meter, with_filter, partita_filter_update(filter, w, NULL, NULL), true);
        void *workspace =
            aligned_alloc(64, (partita_plan_workspace(plan, PARTITA_FORWARD) + 64) / 64 * 64);
        const size_t n_allocated = meter.n_allocated;
        meter.fail_at = n_allocated + 1;
        assert_ok(
            partita_forward(plan, filter, y, x, &(struct partita_call){.workspace = workspace}));
        assert_int_equal(meter.n_allocated, n_allocated);
        free(workspace);
    }
    assert_int_equal(meter.n_live, with_filter);
    partita_filter_destroy(filter);
    assert_int_equal(meter.n_live, with_plan);
    partita_plan_destroy(plan);
    assert_int_equal(meter.n_live, 0);
}

static void designs(void **state)
{
    static const struct partita_design_point points[] = {{0.1, 0}, {0.2, -20}};
    static const struct partita_design kinds[] = {
        {.cutoff = {0.2}, .width = 0.1},
        {.cutoff = {0.2}, .width = 0.1, .method = PARTITA_DESIGN_EQUIRIPPLE},
        {.cutoff = {0.2}, .width = 0.1, .minimum_phase = true},
        {.kind = PARTITA_DESIGN_TABLE, .width = 0.1, .table = points, .table_count = 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct meter meter = {0};
        struct partita_design design = kinds[i];
        struct partita_design_result result = {.ripple = -1};
        double taps[200] = {7};
        size_t count = 0;
        design.allocator = meter_allocator(&meter);
        UNTIL_OK(&meter, 0, partita_design_taps_count(&design, &count), count == 0);
        assert_true(count > 0 && count <= 200);
        UNTIL_OK(&meter, 0, partita_design_taps(&design, taps, count), taps[0] == 7);
        UNTIL_OK(&meter, 0, partita_design_measure(&design, taps, count, &result),
                 result.ripple == -1);
        assert_int_equal(meter.n_live, 0);
    }
}

static void spectra(void **state)
{
    (void)state;
    struct meter meter = {0};
    struct partita_options options = {.threads = 1, .allocator = meter_allocator(&meter)};
    struct partita_spectrum *spectrum = (struct partita_spectrum *)1;
    static float x[700], y[1399], kept[1399];
    memset(y, 0x77, sizeof y);
    memcpy(kept, y, sizeof y);
    UNTIL_OK(&meter, 0, partita_spectrum_create(PARTITA_F32, x, 700, 64, &options, &spectrum),
             spectrum == (struct partita_spectrum *)1);
    const size_t with_spectrum = meter.n_live;
    UNTIL_OK(&meter, with_spectrum, partita_spectrum_convolve(y, spectrum, spectrum, NULL),
             memcmp(y, kept, sizeof y) == 0);
    assert_int_equal(meter.n_live, with_spectrum);
    partita_spectrum_destroy(spectrum);
}

// All directions of a layer: a plan for each, taps packed twice, a bias, workspace.
static void layer(void **state)
{
    (void)state;
    struct meter meter = {0};
    const struct partita_problem problem = {SIZE(12, 13), BATCH(2), CHANNELS(3, 5), KERNEL(3, 3),
                                            STRIDE(2, 1)};
    enum { TAPS = 5 * 3 * 9, INPUTS = 2 * 3 * 12 * 13, OUTPUTS = 2 * 5 * 5 * 11 };
    static float w[TAPS], x[INPUTS], y[OUTPUTS], kept[INPUTS], bias[5];
    struct partita_options options = {.directions = PARTITA_FORWARD | PARTITA_BACKWARD_DATA |
                                                    PARTITA_BACKWARD_WEIGHT,
                                      .allocator = meter_allocator(&meter)};
    struct partita_plan *plan = (struct partita_plan *)1;
    struct partita_filter *filter = (struct partita_filter *)1;
    UNTIL_OK(&meter, 0, partita_plan_create(&problem, &options, &plan),
             plan == (struct partita_plan *)1);
    size_t with_plan = meter.n_live;
    UNTIL_OK(&meter, with_plan, filter_with_bias(plan, w, bias, &filter),
             filter == (struct partita_filter *)1);
    size_t with_filter = meter.n_live;
    memset(kept, 0x77, sizeof kept);
    memcpy(y, kept, sizeof y);
    UNTIL_OK(&meter, with_filter, partita_forward(plan, filter, y, x, NULL),
             memcmp(y, kept, sizeof y) == 0);
    memcpy(x, kept, sizeof x);
    UNTIL_OK(&meter, with_filter, partita_backward_data(plan, filter, x, y, NULL),
             memcmp(x, kept, sizeof x) == 0);
    memcpy(w, kept, sizeof w);
    UNTIL_OK(&meter, with_filter, partita_backward_weight(plan, w, x, y, NULL),
             memcmp(w, kept, sizeof w) == 0);
    void *workspace = aligned_alloc(64, 1 << 20);
    for (int d = 1; d <= 4; d *= 2)
        assert_true(partita_plan_workspace(plan, (enum partita_direction)d) <= 1 << 20);
    const size_t n_allocated = meter.n_allocated;
    meter.fail_at = n_allocated + 1; // with a workspace nothing is allocated
    assert_ok(partita_forward(plan, filter, y, x, &(struct partita_call){.workspace = workspace}));
    assert_ok(
        partita_backward_data(plan, filter, x, y, &(struct partita_call){.workspace = workspace}));
    assert_ok(
        partita_backward_weight(plan, w, x, y, &(struct partita_call){.workspace = workspace}));
    assert_ok(partita_backward_bias(plan, bias, y, NULL));
    assert_int_equal(meter.n_allocated, n_allocated);
    meter.fail_at = 0;
    free(workspace);
    partita_filter_destroy(filter);
    assert_int_equal(meter.n_live, with_plan);
    partita_plan_destroy(plan);
    assert_int_equal(meter.n_live, 0);
    // Without memory for gradients that were not requested explicitly, planning must fail as well.
    options.directions = 0;
    plan = (struct partita_plan *)1;
    UNTIL_OK(&meter, 0, partita_plan_create(&problem, &options, &plan),
             plan == (struct partita_plan *)1);
    partita_plan_destroy(plan);
    assert_int_equal(meter.n_live, 0);
}

// Measuring allocates trial plans.
static void measuring(void **state)
{
    const struct attempt *attempt = *state;
    struct meter meter = {0};
    struct partita_options options = {.effort = PARTITA_MEASURE,
                                      .allocator = meter_allocator(&meter)};
    struct partita_plan *plan = (struct partita_plan *)1;
    UNTIL_OK(&meter, 0, partita_plan_create(&attempt->problem, &options, &plan),
             plan == (struct partita_plan *)1);
    partita_plan_destroy(plan);
    assert_int_equal(meter.n_live, 0);
}

// Trials are smaller than the problem and may split it differently: they must stay within memory
// for that.
static void measuring_layers(void **state)
{
    static const struct partita_problem layers[] = {
        {LENGTH(64), BATCH(3), CHANNELS(2048, 256), KERNEL(3), PAD_BEGIN(1)},
        {LENGTH(259840), CHANNELS(16, 16), GROUPS(16), KERNEL(17), PAD_BEGIN(16)},
    };
    (void)state;
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        struct meter meter = {0};
        struct partita_options options = {
            .effort = PARTITA_MEASURE, .threads = 1, .allocator = meter_allocator(&meter)};
        struct partita_plan *plan;
        assert_ok(partita_plan_create(&layers[i], &options, &plan));
        partita_plan_destroy(plan);
        assert_int_equal(meter.n_live, 0);
    }
}

// Narrow windows of two long signals, for which an engine has two algorithms of nearly the same
// cost.
static void windows(void **state)
{
    enum { MAX_SIZE = 30000 };
    static float x[MAX_SIZE], h[MAX_SIZE], y[MAX_SIZE];
    struct random random = random_start("windows");
    (void)state;
    for (int i = 0; i < 60; i++) {
        const size_t n = 5000 + random_below(&random, MAX_SIZE - 5000),
                     m = 5000 + random_below(&random, MAX_SIZE - 5000);
        const ptrdiff_t lag = i ? 50 + (ptrdiff_t)random_below(&random, 2000) : 418;
        const size_t size = i ? n : 13870, taps = i ? m : 25123;
        struct meter meter = {.guard = 1 << 19}; // an algorithm may start far behind
        const struct partita_problem problem = {
            LENGTH(size), CORRELATE, KERNEL(taps), PAD_BEGIN(lag),
            PAD_END(lag + 1 + (ptrdiff_t)taps - 1 - (ptrdiff_t)size)};
        struct partita_options options = {.engine = "cpu/blocks",
                                          .threads = 2,
                                          .directions = PARTITA_FORWARD,
                                          .allocator = meter_allocator(&meter)};
        struct partita_plan *plan;
        assert_ok(partita_plan_create(&problem, &options, &plan));
        assert_ok(partita_forward(plan, NULL, y, x, &(struct partita_call){.taps = h}));
        partita_plan_destroy(plan);
        assert_int_equal(meter.n_live, 0);
    }
}

static void start_wrapping(struct meter *meter)
{
    memset(live, 0, sizeof live);
    wrapped = meter;
}

static void helpers(void **state)
{
    (void)state;
    struct meter meter = {0};
    static float x[3000], h[300], y[3299], kept[3299];
    static double played[700] = {1}, room[700];
    memset(y, 0x77, sizeof y);
    memcpy(kept, y, sizeof y);
    start_wrapping(&meter);
    UNTIL_OK(&meter, 0, partita_convolve(PARTITA_F32, y, x, 3000, h, 300, NULL, NULL),
             memcmp(y, kept, sizeof y) == 0);
    assert_int_equal(meter.n_live, 0);
    memcpy(y, kept, sizeof y);
    UNTIL_OK(&meter, 0, partita_correlate(PARTITA_F32, y, x, 3000, h, 300, NULL, NULL),
             memcmp(y, kept, sizeof y) == 0);
    assert_int_equal(meter.n_live, 0);
    memcpy(y, kept, sizeof y);
    UNTIL_OK(&meter, 0, partita_correlate_normalised(PARTITA_F32, y, x, 3000, h, 300, NULL, NULL),
             true);
    UNTIL_OK(&meter, 0, partita_deconvolve(room, played, 700, played, 300, NULL), room[0] == 0);
    assert_int_equal(meter.n_live, 0);
    wrapped = NULL;
}

// cpu/depthwise by direct sums and by transforms.
static void depthwise(void **state)
{
    (void)state;
    for (size_t kernel = 3; kernel < 40; kernel += 28) {
        struct meter meter = {0};
        const ptrdiff_t pad = (ptrdiff_t)kernel / 2;
        const struct partita_problem problem = {SIZE(24, 24),           BATCH(2),
                                                CHANNELS(16, 16),       GROUPS(16),
                                                KERNEL(kernel, kernel), PAD(pad, pad)};
        static float w[16 * 31 * 31], x[2 * 16 * 24 * 24], y[2 * 16 * 24 * 24];
        struct partita_options options = {.engine = "cpu/depthwise",
                                          .allocator = meter_allocator(&meter)};
        struct partita_plan *plan = (struct partita_plan *)1;
        struct partita_filter *filter = (struct partita_filter *)1;
        char text[8192];
        UNTIL_OK(&meter, 0, partita_plan_create(&problem, &options, &plan),
                 plan == (struct partita_plan *)1);
        size_t with_plan = meter.n_live;
        partita_plan_explain(plan, text, sizeof text);
        assert_true((strstr(text, "by transforms") != NULL) == (kernel > 3));
        UNTIL_OK(&meter, with_plan, partita_filter_create(plan, w, &filter),
                 filter == (struct partita_filter *)1);
        size_t with_filter = meter.n_live;
        UNTIL_OK(&meter, with_filter, partita_forward(plan, filter, y, x, NULL), true);
        UNTIL_OK(&meter, with_filter, partita_backward_data(plan, filter, x, y, NULL), true);
        UNTIL_OK(&meter, with_filter, partita_backward_weight(plan, w, x, y, NULL), true);
        partita_filter_destroy(filter);
        partita_plan_destroy(plan);
        assert_int_equal(meter.n_live, 0);
    }
}

static void wisdom(void **state)
{
    bool slow = *state != NULL;
    struct meter meter = {0};
    struct partita_wisdom *store = (struct partita_wisdom *)1;
    char path[] = "/tmp/partita-alloc-XXXXXX";
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    start_wrapping(&meter);
    UNTIL_OK(&meter, 0, partita_wisdom_create(&store), store == (struct partita_wisdom *)1);
    size_t with_store = meter.n_live;
    UNTIL_OK_BY(&meter, with_store, partita_wisdom_calibrate(store), true, slow ? 1 : 3);
    UNTIL_OK(&meter, with_store, partita_wisdom_save(store, path), true);
    UNTIL_OK(&meter, with_store, partita_wisdom_load(store, path), true);
    partita_wisdom_destroy(store);
    assert_int_equal(meter.n_live, 0);
    wrapped = NULL;
    remove(path);
}

int main(int n_arguments, char **arguments)
{
    static bool slow;
    slow = n_arguments > 1 && strcmp(arguments[1], "slow") == 0;
    static struct attempt attempts[20];
    struct CMUnitTest tests[32];
    size_t n = 0, n_attempts = 0;
    const struct partita_problem problems[] = {bounded, live_problem, bounded_up, live_up};
    for (size_t e = 0; e < N_ENGINES; e++)
        for (size_t i = 0; i < 4; i++) {
            const bool stream = i % 2;
            if (stream && e >= N_STREAM_ENGINES) continue;
            attempts[n_attempts] = (struct attempt){engine_names[e], problems[i], {0}};
            tests[n++] = named_test(objects, &attempts[n_attempts++], "%s/%s%s", engine_names[e],
                                    stream ? "stream" : "signal", i > 1 ? "-up" : "");
        }
    attempts[n_attempts] = (struct attempt){.engine = "cpu/partitioned", .problem = live_problem};
    tests[n++] = named_test(objects, &attempts[n_attempts++], "cpu/partitioned/stream");
    attempts[n_attempts] = (struct attempt){.engine = "cpu/blocks", .problem = bounded};
    tests[n++] = named_test(objects, &attempts[n_attempts++], "cpu/blocks/signal");
    attempts[n_attempts] = (struct attempt){.engine = "cpu/blocks", .problem = lags};
    tests[n++] = named_test(objects, &attempts[n_attempts++], "cpu/blocks/lags");
    attempts[n_attempts] = (struct attempt){"cpu/blocks", bounded, {24, 60, false}};
    attempts[n_attempts].problem.stride[0] = 1;
    tests[n++] = named_test(objects, &attempts[n_attempts++], "cpu/blocks/divisions");
    tests[n++] = named_test(designs, NULL, "designs");
    tests[n++] = named_test(spectra, NULL, "spectra");
    tests[n++] = named_test(layer, NULL, "layer");
    tests[n++] = named_test(depthwise, NULL, "depthwise");
    tests[n++] = named_test(measuring, &attempts[0], "measuring-signal");
    tests[n++] = named_test(measuring, &attempts[1], "measuring-stream");
    tests[n++] = named_test(measuring_layers, NULL, "measuring-layers");
    tests[n++] = named_test(windows, NULL, "windows");
    tests[n++] = named_test(helpers, NULL, "helpers");
    tests[n++] = named_test(wisdom, slow ? &slow : NULL, "wisdom");
    return run_test_list(tests, n);
}
