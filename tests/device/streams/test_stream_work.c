// SPDX-License-Identifier: MIT
// What a stream makes the device do: thread blocks without work end at once, and groups of channels
// transform their long blocks in different quanta. Filters are brought to the device in batches,
// and edited ones transfer only what is new.
#include "support/stream_rig.h"

#include "device/arrays.h"

enum { QUANTUM = 16, QUANTA = 160, FRAMES = QUANTUM * QUANTA };

static const struct stream_case forced = {"cuda/partitioned", type_pairs, NULL};

// The number of segments of a stream's plan, from its text.
static size_t count_segments(const struct partita_plan *plan)
{
    char text[4096];
    size_t n = 0;
    assert_true(partita_plan_explain(plan, text, sizeof text) < sizeof text);
    for (const char *at = text; (at = strstr(at, "  segment ")) != NULL; at++) n++;
    return n;
}

// Barriers that thread blocks have passed: one less than its intervals in each.
static size_t count_barriers(void)
{
    hostdev_allocations(); // runs what is queued
    return hostdev_work().intervals - hostdev_work().blocks;
}

// The barriers of single calls.
struct barrier_counts {
    size_t least, greatest, sum;
};

static void count_call(struct barrier_counts *counts, size_t before)
{
    const size_t now = count_barriers() - before;
    if (now < counts->least) counts->least = now;
    if (now > counts->greatest) counts->greatest = now;
    counts->sum += now;
}

// As many groups as there are quanta in the longest block, or a multiple: the same work in each
// quantum. Thread blocks without work have no barriers.
static void groups_take_turns(void **state)
{
    enum { GROUPS_OF_TWO = 64 };
    const struct partita_problem problem = {STREAM(QUANTUM),
                                            CHANNELS(2 * GROUPS_OF_TWO, GROUPS_OF_TWO),
                                            GROUPS(GROUPS_OF_TWO), KERNEL(700)};
    struct random random = random_start("work");
    struct stream_rig rig;
    struct barrier_counts counts = {SIZE_MAX, 0, 0};
    (void)state;
    stream_rig_open_exactly(&rig, &forced, &problem, NULL, FRAMES, &random);
    assert_true(count_segments(rig.plan) > 1);
    char *y = stream_rig_alloc_output(&rig);
    for (size_t i = 0; i < QUANTA; i++) {
        const size_t before = count_barriers();
        stream_rig_feed_span(&rig, rig.stream, y, i * QUANTUM, (i + 1) * QUANTUM,
                             &(struct call_split){"", QUANTUM, false}, &random);
        count_call(&counts, before);
    }
    assert_int_equal(counts.least, counts.greatest);
    stream_rig_check_sampled(&rig, y, &random);
    guarded_free(y);
    stream_rig_close(&rig);
}

// A swap without a fade, posted in any quantum of a long block, between groups that begin their
// blocks at different times: every output is wholly the old filter's or wholly the new one's, and
// all channels change in the same frame.
static void swaps_change_all_groups_at_once(void **state)
{
    enum { CHANNELS_OUT = 10, POSTS = 40, SPAN = 60 };
    const struct partita_problem problem = {STREAM(QUANTUM), CHANNELS(5, CHANNELS_OUT), GROUPS(5),
                                            KERNEL(700)};
    struct random random = random_start("swap");
    struct stream_rig rig;
    (void)state;
    stream_rig_open_exactly(&rig, &forced, &problem, NULL, FRAMES, &random);
    const struct call_split split = {"", QUANTUM, false};
    float *old = stream_rig_alloc_output(&rig), *new = stream_rig_alloc_output(&rig),
          *y = stream_rig_alloc_output(&rig);
    struct partita_filter *other;
    float *taps = malloc(rig.n_taps * sizeof *taps);
    random_samples(&random, PARTITA_F32, taps, rig.n_taps);
    assert_ok(partita_filter_create(rig.plan, taps, &other));
    struct partita_stream *second;
    assert_ok(partita_stream_open(rig.plan, other, &second));
    stream_rig_feed(&rig, rig.stream, old, &split, &random);
    stream_rig_feed(&rig, second, new, &split, &random);
    partita_stream_close(second);
    for (size_t post = 0; post < POSTS; post++) {
        struct partita_stream *stream;
        assert_ok(partita_stream_open(rig.plan, rig.filter, &stream));
        stream_rig_feed_span(&rig, stream, y, 0, post * QUANTUM, &split, &random);
        assert_ok(partita_stream_swap(stream, other, 0));
        stream_rig_feed_span(&rig, stream, y, post * QUANTUM, (post + SPAN) * QUANTUM, &split,
                             &random);
        assert_false(partita_stream_swapping(stream));
        size_t changed = post * QUANTUM;
        while (changed < (post + SPAN) * QUANTUM && y[changed] == old[changed]) changed++;
        assert_true(changed < (post + SPAN) * QUANTUM);
        for (size_t k = 0; k < CHANNELS_OUT; k++)
            for (size_t i = 0; i < (post + SPAN) * QUANTUM; i++) {
                const size_t at = k * rig.n_outputs + i;
                assert_true(y[at] == (i < changed ? old : new)[at]);
            }
        partita_stream_close(stream);
    }
    free(taps);
    partita_filter_destroy(other);
    guarded_free(y);
    guarded_free(new);
    guarded_free(old);
    stream_rig_close(&rig);
}

// The taps of one path are replaced: the others stay where they are in the device's memory, also
// when the filter that they were made for is gone.
static void edit_copies_one_path(void **state)
{
    enum { INPUTS = 6, OUTPUTS = 6, TAPS = 700, EDITED_OUT = 3, EDITED_IN = 2 };
    const struct partita_problem problem = {STREAM(QUANTUM), CHANNELS(INPUTS, OUTPUTS),
                                            KERNEL(TAPS)};
    struct random random = random_start("edit");
    struct stream_rig rig;
    (void)state;
    hostdev_allocations();
    size_t before = hostdev_work().copied;
    stream_rig_open_exactly(&rig, &forced, &problem, NULL, FRAMES, &random);
    const size_t all = hostdev_work().copied - before;
    char *y = stream_rig_alloc_output(&rig);
    for (int i = 0; i < 3; i++) {
        float *taps = (float *)rig.w + (EDITED_OUT * INPUTS + EDITED_IN) * TAPS;
        random_samples(&random, PARTITA_F32, taps, TAPS);
        const struct partita_path path = {
            .out = EDITED_OUT, .in = EDITED_IN, .length = TAPS, .taps = taps};
        struct partita_filter *edited;
        before = hostdev_work().copied;
        assert_ok(partita_filter_create_from(
            rig.plan, &(struct partita_taps){.base = rig.filter, .paths = &path, .path_count = 1},
            &edited));
        const size_t copied = hostdev_work().copied - before;
        assert_true(copied >= TAPS * sizeof(float) && copied < all / 8);
        stream_rig_replace_filter(&rig, edited); // destroys the base
        stream_rig_feed(&rig, rig.stream, y, &(struct call_split){"", QUANTUM, false}, &random);
        stream_rig_check_sampled(&rig, y, &random);
    }
    guarded_free(y);
    stream_rig_close(&rig);
}

// What calls have in addition to the one with the fewest.
static size_t additional(const struct barrier_counts *counts)
{
    return counts->sum - QUANTA * counts->least;
}

// Kernels of a stream have thread blocks for the most that can be due, since the host does not know
// the position. Those that have nothing to do end before their first barrier: quanta that complete
// long blocks have more barriers than others, on arrays of the host and of the device alike, and a
// call that does not complete a quantum has none of those of transforms and products.
static void idle_blocks_end_at_once(void **state)
{
    const struct partita_problem problem = {STREAM(QUANTUM), KERNEL(2000)};
    const struct partita_options options = {.engine = "cuda/partitioned", .device = "cuda:0"};
    static const float taps[2000] = {1}, x[QUANTUM];
    struct barrier_counts host = {SIZE_MAX, 0, 0}, whole = host, first = host, second = host;
    float y[QUANTUM];
    struct partita_plan *plan;
    struct partita_filter *filter;
    struct partita_stream *stream, *queued, *halves;
    (void)state;
    float *device_x = device_copy(x, sizeof x, 0), *device_y = device_copy(x, sizeof x, 0);
    assert_ok(partita_plan_create(&problem, &options, &plan));
    assert_ok(partita_filter_create(plan, taps, &filter));
    assert_ok(partita_stream_open(plan, filter, &stream));
    assert_ok(partita_stream_open(plan, filter, &queued));
    assert_ok(partita_stream_open(plan, filter, &halves));
    const void *const from[] = {device_x};
    void *const to[] = {device_y};
    for (size_t i = 0; i < QUANTA; i++) {
        size_t before = count_barriers();
        partita_stream_process(stream, (void *[]){y}, (const void *[]){x}, QUANTUM);
        count_call(&host, before);
        before = count_barriers();
        assert_ok(partita_stream_process_queued(queued, to, from, QUANTUM, cudaStreamPerThread));
        count_call(&whole, before);
        for (int half = 0; half < 2; half++) {
            before = count_barriers();
            assert_ok(
                partita_stream_process_queued(halves, to, from, QUANTUM / 2, cudaStreamPerThread));
            count_call(half ? &second : &first, before);
        }
    }
    assert_true(host.greatest > host.least);
    assert_int_equal(additional(&whole), additional(&host));
    assert_int_equal(additional(&second), additional(&host));
    assert_int_equal(first.greatest, first.least);
    assert_true(first.greatest < second.least);
    partita_stream_close(stream);
    partita_stream_close(queued);
    partita_stream_close(halves);
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
    array_release(DEVICE, device_x);
    array_release(DEVICE, device_y);
}

// Calls of CUDA in a quantum after the first one.
static size_t calls_of_quantum(size_t n_taps)
{
    const struct partita_problem problem = {STREAM(QUANTUM), KERNEL(n_taps)};
    const struct partita_options options = {.engine = "cuda/partitioned", .device = "cuda:0"};
    const float one = 1;
    const struct partita_path path = {.length = 1, .taps = &one};
    float x[QUANTUM] = {0}, y[QUANTUM];
    struct partita_plan *plan;
    struct partita_filter *filter;
    struct partita_stream *stream;
    assert_ok(partita_plan_create(&problem, &options, &plan));
    assert_ok(partita_filter_create_from(
        plan, &(struct partita_taps){.paths = &path, .path_count = 1}, &filter));
    assert_ok(partita_stream_open(plan, filter, &stream));
    size_t calls = 0;
    for (size_t at = 0; at < 32 * QUANTUM; at += QUANTUM) {
        hostdev_fail(0, cudaSuccess); // counts from here on
        partita_stream_process(stream, (void *[]){y}, (const void *[]){x}, QUANTUM);
        if (at && hostdev_calls() > calls) calls = hostdev_calls();
    }
    assert_ok(partita_stream_status(stream));
    partita_stream_close(stream);
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
    return calls;
}

// Long transforms, whose blocks need more shared memory than any kernel has without asking, ask for
// it when the stream is opened.
static void long_filters_need_no_more_calls(void **state)
{
    (void)state;
    assert_int_equal(calls_of_quantum(1 << 19), calls_of_quantum(2000));
}

// A plan has the memory of its first stream.
static void first_stream_allocates_nothing(void **state)
{
    static const float taps[700];
    const struct partita_problem problem = {STREAM(QUANTUM), KERNEL(700)};
    const struct partita_options options = {.engine = "cuda/partitioned", .device = "cuda:0"};
    struct partita_plan *plan;
    struct partita_filter *filter;
    struct partita_stream *stream;
    (void)state;
    assert_ok(partita_plan_create(&problem, &options, &plan));
    assert_ok(partita_filter_create(plan, taps, &filter));
    hostdev_fail(0, cudaSuccess); // counts from here on
    assert_ok(partita_stream_open(plan, filter, &stream));
    assert_int_equal(hostdev_used().allocations, 0);
    partita_stream_close(stream);
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
}

// Only more streams at once than ever before allocate on the device.
static void streams_open_in_kept_memory(void **state)
{
    const struct partita_problem problem = {STREAM(QUANTUM), KERNEL(700)};
    struct random random = random_start("open");
    struct stream_rig rig;
    struct partita_stream *other;
    (void)state;
    stream_rig_open_exactly(&rig, &forced, &problem, NULL, FRAMES, &random);
    char *y = stream_rig_alloc_output(&rig);
    assert_ok(partita_stream_open(rig.plan, rig.filter, &other));
    stream_rig_feed(&rig, other, y, &(struct call_split){"", QUANTUM, false}, &random);
    partita_stream_close(other);
    hostdev_fail(0, cudaSuccess); // counts from here on
    for (int i = 0; i < 3; i++) {
        assert_ok(partita_stream_open(rig.plan, rig.filter, &other));
        stream_rig_feed(&rig, other, y, &(struct call_split){"", QUANTUM, false}, &random);
        stream_rig_check_sampled(&rig, y, &random);
        partita_stream_close(other);
    }
    assert_int_equal(hostdev_used().allocations, 0);
    guarded_free(y);
    stream_rig_close(&rig);
}

static size_t largest;

static void *take(void *user, size_t bytes)
{
    (void)user;
    if (bytes > largest) largest = bytes;
    return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static void give(void *user, void *memory)
{
    (void)user;
    free(memory);
}

// Filters of 320 MiB of taps are brought to the device in batches of 256 MiB.
static void large_filters_in_batches(void **state)
{
    enum { TAPS = 1 << 22, OUTPUTS = 20, LENGTH = 100 };
    const struct partita_problem problem = {STREAM(4096), CHANNELS(1, OUTPUTS), KERNEL(TAPS)};
    const struct partita_options options = {
        .engine = "cuda/partitioned", .device = "cuda:0", .allocator = {take, give, NULL}};
    static float taps[OUTPUTS][LENGTH];
    struct partita_path paths[OUTPUTS];
    struct random random = random_start("batches");
    struct partita_plan *plan;
    struct partita_filter *filter;
    (void)state;
    random_samples(&random, PARTITA_F32, taps, OUTPUTS * LENGTH);
    for (size_t k = 0; k < OUTPUTS; k++)
        paths[k] = (struct partita_path){.out = k, .length = LENGTH, .taps = taps[k]};
    assert_ok(partita_plan_create(&problem, &options, &plan));
    largest = 0;
    assert_ok(partita_filter_create_from(
        plan, &(struct partita_taps){.paths = paths, .path_count = OUTPUTS}, &filter));
    assert_true(largest > (size_t)200 << 20 && largest < (size_t)257 << 20);
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_take_turns),
        cmocka_unit_test(idle_blocks_end_at_once),
        cmocka_unit_test(swaps_change_all_groups_at_once),
        cmocka_unit_test(edit_copies_one_path),
        cmocka_unit_test(long_filters_need_no_more_calls),
        cmocka_unit_test(first_stream_allocates_nothing),
        cmocka_unit_test(streams_open_in_kept_memory),
        cmocka_unit_test(large_filters_in_batches),
    };
    if (layer_device_check() != LAYER_DEVICE_READY) return 1;
    return run_test_list(tests, sizeof tests / sizeof *tests);
}
