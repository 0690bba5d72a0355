// SPDX-License-Identifier: MIT
// Filters swapped in a stream: before the fade the output of the old one, then the header's blend
// of the outputs of both, then the output of the new one; the last filter wins; `swapping` tells
// when the others may be destroyed.

#include "support/swap_rig.h"

#include "support/layer_rig.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>

enum { KERNEL = 3000 };

static const struct named_problem problems[] = {
    {"mono", {STREAM(64), KERNEL(KERNEL)}},
    {"matrix", {STREAM(64), CHANNELS(3, 2), KERNEL(800)}},
    {"few-taps", {STREAM(64), KERNEL(150)}},
};
static const struct partita_problem strided = {STREAM(64), CHANNELS(2, 1), KERNEL(150), STRIDE(7)};
enum { N_PROBLEMS = sizeof problems / sizeof *problems };
static const struct partita_problem *const mono = &problems[0].problem,
                                           *const matrix = &problems[1].problem,
                                           *const few_taps = &problems[2].problem;

static const size_t fades[] = {0, 1, 100, 5000};
enum { N_FADES = sizeof fades / sizeof *fades, BEFORE = 4211, AFTER = 9000 };

static void fade_is_the_blend(void **state)
{
    const struct stream_case *c = *state;
    struct random random = random_start("fade");
    struct swap_rig s;
    swap_rig_open(&s, c, &c->named->problem, NULL, BEFORE + AFTER, &random);
    void *y = stream_rig_alloc_output(&s.rig);
    for (size_t i = 0; i < N_FADES; i++) {
        const struct swap one = {BEFORE + i, 1 + i % 3, fades[i]};
        struct partita_stream *stream =
            swap_rig_run(&s, y, &one, 1, &(struct call_split){"", 200, true}, &random);
        check_fade(&s, y, 0, one.filter, one.fade, 0, one.at, s.rig.n_outputs);
        assert_false(partita_stream_swapping(stream));
        partita_stream_close(stream);
    }
    guarded_free(y);
    swap_rig_close(&s);
}

// A stream fades also before its first call.
static void swap_before_the_first_call(void **state)
{
    struct random random = random_start("first");
    struct swap_rig s;
    swap_rig_open(&s, *state, mono, NULL, AFTER, &random);
    void *y = stream_rig_alloc_output(&s.rig);
    partita_stream_close(swap_rig_run(&s, y, &(struct swap){0, 2, 300}, 1,
                                      &(struct call_split){"", 200, true}, &random));
    check_fade(&s, y, 0, 2, 300, 0, 0, s.rig.n_outputs);
    guarded_free(y);
    swap_rig_close(&s);
}

// Of several filters swapped before the next call only the last one is used.
static void waiting_filter_is_replaced(void **state)
{
    struct random random = random_start("replaced");
    struct swap_rig s;
    swap_rig_open(&s, *state, mono, NULL, BEFORE + AFTER, &random);
    void *y = stream_rig_alloc_output(&s.rig);
    const struct swap both[] = {{BEFORE, 1, 10}, {BEFORE, 3, 0}, {BEFORE, 2, 777}};
    struct partita_stream *stream =
        swap_rig_run(&s, y, both, 3, &(struct call_split){"", 200, true}, &random);
    check_fade(&s, y, 0, 2, 777, 0, BEFORE, s.rig.n_outputs);
    assert_false(partita_stream_swapping(stream));
    partita_stream_close(stream);
    guarded_free(y);
    swap_rig_close(&s);
}

// A fade continues to its end; then the last of the filters that were swapped meanwhile follows,
// and the others are never used.
static void fades_follow_each_other(void **state)
{
    enum { LONG = 4000, SHORT = 500 };
    struct random random = random_start("follow");
    struct swap_rig s;
    swap_rig_open(&s, *state, mono, NULL, BEFORE + LONG + AFTER, &random);
    void *y = stream_rig_alloc_output(&s.rig);
    size_t during = BEFORE + s.load.swap_delay + 1000,
           fade = LONG + s.load.swap_delay; // also if it begins at once
    const struct swap three[] = {{BEFORE, 1, fade}, {during, 2, 0}, {during + 300, 3, SHORT}};
    struct partita_stream *stream =
        swap_rig_run(&s, y, three, 3, &(struct call_split){"", 200, true}, &random);
    assert_false(partita_stream_swapping(stream));
    partita_stream_close(stream);
    // Up to the end of the first fade, wherever it begins.
    size_t end = check_fade(&s, y, 0, 1, fade, 0, BEFORE, BEFORE + fade) + fade;
    check_fade(&s, y, 1, 3, SHORT, end, end, s.rig.n_outputs);
    guarded_free(y);
    swap_rig_close(&s);
}

// The same bits for any lengths of calls between swaps.
static void check_splits(const struct stream_case *c, const struct partita_problem *problem)
{
    static const struct call_split splits[] = {
        {"ones", 1, false}, {"up-to-70", 70, true}, {"up-to-3000", 3000, true}};
    struct random random = random_start("cuts");
    struct swap_rig s;
    swap_rig_open(&s, c, problem, NULL, BEFORE + AFTER, &random);
    const struct swap four[] = {{101, 1, 50},
                                {BEFORE, 2, 1000},
                                {BEFORE + 700, 3, 20},
                                {BEFORE + 5000 + 2 * s.load.swap_delay, 1, 0}};
    void *y = stream_rig_alloc_output(&s.rig), *other = stream_rig_alloc_output(&s.rig);
    partita_stream_close(swap_rig_run(&s, y, four, 4, &split_whole, &random));
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        memset(other, 0x55, stream_rig_output_bytes(&s.rig));
        partita_stream_close(swap_rig_run(&s, other, four, 4, &splits[i], &random));
        if (memcmp(y, other, stream_rig_output_bytes(&s.rig)))
            fail_msg("calls of %s have other bits", splits[i].name);
    }
    guarded_free(other);
    guarded_free(y);
    swap_rig_close(&s);
}

static void any_split_same_bits(void **state)
{
    check_splits(*state, matrix);
    check_splits(*state, &strided);
}

// partita_stream_swapping is true from the swap to the last frame of the fade, and then false: on
// the CPU at most a quantum later, since nothing is computed with a filter that no output needs.
static void swapping_until_done(void **state)
{
    enum { FADE = 400, STEP = 7 };
    struct random random = random_start("swapping");
    struct swap_rig s;
    swap_rig_open(&s, *state, mono, NULL, BEFORE + AFTER, &random);
    void *y = stream_rig_alloc_output(&s.rig);
    struct partita_stream *stream;
    assert_ok(partita_stream_open(s.rig.plan, s.filters[0], &stream));
    assert_false(partita_stream_swapping(stream));
    stream_rig_feed_span(&s.rig, stream, y, 0, BEFORE, &split_whole, &random);
    assert_ok(partita_stream_swap(stream, s.filters[1], FADE));
    size_t at = BEFORE;
    for (; partita_stream_swapping(stream) && at + STEP < s.rig.n_frames; at += STEP)
        stream_rig_feed_span(&s.rig, stream, y, at, at + STEP, &split_whole, &random);
    if (at + STEP >= s.rig.n_frames) fail_msg("still swapping after %zu frames", at - BEFORE);
    stream_rig_feed_span(&s.rig, stream, y, at, s.rig.n_frames, &split_whole, &random);
    size_t begin = check_fade(&s, y, 0, 1, FADE, 0, BEFORE, s.rig.n_outputs);
    if (at < begin + FADE)
        fail_msg("fade of %zu..%zu, no longer swapping at %zu", begin, begin + FADE, at);
    const bool cpu = !strncmp(((const struct stream_case *)*state)->engine, "cpu/", 4);
    if (cpu && at > begin + FADE + STEP + mono->block)
        fail_msg("fade of %zu..%zu, still swapping at %zu", begin, begin + FADE, at - STEP);
    partita_stream_close(stream);
    guarded_free(y);
    swap_rig_close(&s);
}

// A swap that changes one path of the matrix does not affect outputs that do not depend on it.
static void single_path(void **state)
{
    const struct stream_case *c = *state;
    struct random random = random_start("path");
    struct swap_rig s;
    swap_rig_open(&s, c, matrix, NULL, BEFORE + AFTER, &random);
    struct stream_rig *rig = &s.rig;
    size_t taps = rig->problem.kernel[0], bytes = partita_type_size(rig->problem.taps);
    // w has the last filter's taps; the other one differs from it in the path of output 1 and input
    // 2.
    random_samples(&random, rig->problem.taps, (char *)rig->w + 5 * taps * bytes, taps);
    partita_filter_destroy(s.filters[1]);
    if (strstr(c->engine, "/partitioned")) {
        const struct partita_path path = {1, 2, 0, taps, (char *)rig->w + 5 * taps * bytes};
        assert_ok(partita_filter_create_from(
            rig->plan,
            &(struct partita_taps){.base = s.filters[3], .paths = &path, .path_count = 1},
            &s.filters[1]));
    } else {
        assert_ok(partita_filter_create(rig->plan, rig->w, &s.filters[1]));
    }
    struct partita_stream *stream;
    assert_ok(partita_stream_open(rig->plan, s.filters[1], &stream));
    stream_rig_feed(rig, stream, s.alone[1], &split_whole, &random);
    partita_stream_close(stream);
    assert_ok(partita_stream_open(rig->plan, s.filters[3], &stream));
    char *y = stream_rig_alloc_output(rig);
    stream_rig_feed_span(rig, stream, y, 0, BEFORE, &(struct call_split){"", 200, true}, &random);
    assert_ok(partita_stream_swap(stream, s.filters[1], 250));
    stream_rig_feed_span(rig, stream, y, BEFORE, rig->n_frames, &(struct call_split){"", 200, true},
                         &random);
    check_fade(&s, y, 3, 1, 250, 0, BEFORE, rig->n_outputs);
    assert_memory_equal(y, s.alone[3], rig->n_outputs * rig->sample_bytes);
    assert_memory_equal(y, s.alone[1], rig->n_outputs * rig->sample_bytes);
    partita_stream_close(stream);
    guarded_free(y);
    swap_rig_close(&s);
}

// The longest possible fade never reaches the new filter: the output is that of the old one, nearly
// to the last bit.
static void endless_fade(void **state)
{
    struct random random = random_start("endless");
    struct swap_rig s;
    swap_rig_open(&s, *state, few_taps, NULL, BEFORE, &random);
    void *y = stream_rig_alloc_output(&s.rig);
    struct partita_stream *stream = swap_rig_run(&s, y, &(struct swap){500, 1, SIZE_MAX}, 1,
                                                 &(struct call_split){"", 200, true}, &random);
    assert_int_equal(first_mismatch(&s, y, 0, 0, 0, 0, 0, s.rig.n_outputs), s.rig.n_outputs);
    assert_true(partita_stream_swapping(stream));
    partita_stream_close(stream);
    guarded_free(y);
    swap_rig_close(&s);
}

static void swap_errors(void **state)
{
    const struct stream_case *c = *state;
    struct random random = random_start("errors");
    struct swap_rig s;
    swap_rig_open(&s, c, matrix, NULL, 5000, &random);
    struct stream_rig other;
    stream_rig_open_exactly(&other, c, &s.rig.problem, NULL, 100, &random);
    assert_int_equal(partita_stream_swap(NULL, s.filters[1], 0), PARTITA_ERR_ARG);
    assert_int_equal(partita_stream_swap(s.rig.stream, NULL, 0), PARTITA_ERR_ARG);
    assert_int_equal(partita_stream_swap(s.rig.stream, other.filter, 0), PARTITA_ERR_ARG);
    assert_false(partita_stream_swapping(s.rig.stream));
    void *y = stream_rig_alloc_output(&s.rig);
    stream_rig_feed(&s.rig, s.rig.stream, y, &(struct call_split){"", 200, true}, &random);
    assert_memory_equal(y, s.alone[0], stream_rig_output_bytes(&s.rig));
    guarded_free(y);
    stream_rig_close(&other);
    swap_rig_close(&s);
}

static void nothing_cannot_be_swapped(void **state)
{
    (void)state;
    const struct stream_case c = {"cpu/direct", type_pairs, NULL};
    struct random random = random_start("nothing");
    struct stream_rig rig;
    stream_rig_open(&rig, &c, matrix, 100, &random);
    assert_int_equal(partita_stream_swap(rig.stream, NULL, 0), PARTITA_ERR_ARG);
    assert_false(partita_stream_swapping(rig.stream));
    stream_rig_close(&rig);
}

// The thread that swaps filters while another one processes the stream: it makes a filter, swaps,
// sometimes another at once, polls, and destroys the previous ones.
struct swapper {
    struct swap_rig *s;
    uint64_t seed;
    struct partita_filter *last;
    int n_failed;
    atomic_bool done;
};

static void *swap_repeatedly(void *argument)
{
    enum { ROUNDS = 12 };
    struct swapper *swapper = argument;
    struct stream_rig *rig = &swapper->s->rig;
    struct random random = {swapper->seed};
    void *taps = malloc(rig->n_taps * partita_type_size(rig->problem.taps));
    for (int i = 0; i < ROUNDS; i++) {
        struct partita_filter *made[2];
        int n = i % 3 == 1 ? 2 : 1;
        for (int f = 0; f < n; f++) {
            random_samples(&random, rig->problem.taps, taps, rig->n_taps);
            swapper->n_failed += partita_filter_create(rig->plan, taps, &made[f]) != PARTITA_OK;
            swapper->n_failed +=
                partita_stream_swap(rig->stream, made[f], random_below(&random, 300)) != PARTITA_OK;
        }
        while (partita_stream_swapping(rig->stream)) sched_yield();
        if (n == 2) partita_filter_destroy(made[0]);
        partita_filter_destroy(swapper->last);
        swapper->last = made[n - 1];
    }
    free(taps);
    atomic_store(&swapper->done, true);
    return NULL;
}

static void from_another_thread(void **state)
{
    struct random random = random_start("thread");
    struct swap_rig s;
    swap_rig_open(&s, *state, matrix, NULL, 2000, &random);
    void *y = stream_rig_alloc_output(&s.rig), *expected = stream_rig_alloc_output(&s.rig);
    struct swapper swapper = {.s = &s, .seed = random_bits(&random)};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, swap_repeatedly, &swapper), 0);
    while (!atomic_load(&swapper.done)) {
        partita_stream_process(s.rig.stream, (void *[]){y, (char *)y + 100 * s.rig.sample_bytes},
                               (const void *[]){s.rig.x, s.rig.x, s.rig.x},
                               1 + random_below(&random, 100));
    }
    pthread_join(thread, NULL);
    assert_int_equal(swapper.n_failed, 0);
    assert_false(partita_stream_swapping(s.rig.stream));
    // The stream now equals a new stream of the last filter.
    struct partita_stream *second;
    assert_ok(partita_stream_open(s.rig.plan, swapper.last, &second));
    partita_stream_reset(s.rig.stream);
    stream_rig_feed(&s.rig, s.rig.stream, y, &(struct call_split){"", 200, true}, &random);
    stream_rig_feed(&s.rig, second, expected, &split_whole, &random);
    assert_memory_equal(y, expected, stream_rig_output_bytes(&s.rig));
    partita_stream_close(second);
    partita_stream_close(s.rig.stream);
    s.rig.stream = NULL;
    partita_filter_destroy(swapper.last);
    guarded_free(y);
    guarded_free(expected);
    swap_rig_close(&s);
}

// Memory on separate pages, which are inaccessible after release.
static void *paged_allocate(void *user, size_t bytes)
{
    (void)user;
    size_t total = bytes + 4096;
    char *base = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return NULL;
    memcpy(base, &total, sizeof total);
    return base + 4096;
}

static void paged_release(void *user, void *memory)
{
    (void)user;
    char *base = (char *)memory - 4096;
    size_t total;
    memcpy(&total, base, sizeof total);
    if (mmap(base, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        abort();
}

// Filters that are destroyed as soon as allowed are not accessed any more.
static void old_filters_may_go(void **state)
{
    const struct stream_case *c = *state;
    struct partita_problem problem = *mono;
    if (strcmp(c->engine, "cpu/overlap-save") == 0) problem.latency = 2000;
    struct partita_options options = {.allocator = {paged_allocate, paged_release, NULL}};
    struct random random = random_start("go");
    struct stream_rig rig;
    stream_rig_open_exactly(&rig, c, &problem, &options, 48, &random);
    void *y = stream_rig_alloc_output(&rig);
    for (size_t round = 0; round < 8; round++) {
        struct partita_filter *next;
        assert_ok(partita_filter_create(rig.plan, rig.w, &next));
        assert_ok(partita_stream_swap(rig.stream, next, round * 37));
        while (partita_stream_swapping(rig.stream))
            stream_rig_feed(&rig, rig.stream, y, &split_whole, &random);
        partita_filter_destroy(rig.filter);
        rig.filter = next;
        for (size_t i = 0; i < 70 + round; i++)
            stream_rig_feed(&rig, rig.stream, y, &split_whole, &random);
    }
    guarded_free(y);
    stream_rig_close(&rig);
}

// A filter of a bank may lie where one was that an earlier swap replaced. A slot's segments have
// windows that are shorter than a block, so that a swap may end before one of them begins a block.
// The other stream's filters are all alive until the end. Shorter filters have fewer partitions.
static void filters_may_reuse_an_address(void **state)
{
    (void)state;
    enum { BLOCK = 40, TAPS = 800, ROUNDS = 300 };
    const struct partita_bank_options options = {.slots = 8, .n_taps = TAPS, .block = BLOCK};
    struct random random = random_start("reuse");
    struct partita_bank *bank;
    struct partita_stream *stream;
    struct partita_filter *reused[2] = {NULL, NULL}, *kept[ROUNDS + 1];
    float taps[TAPS] = {1}, y[BLOCK];
    size_t slot;
    assert_ok(partita_bank_create(&options, &bank));
    const struct partita_plan *plan = partita_bank_plan(bank);
    assert_ok(partita_bank_filter_create(bank, taps, TAPS, &reused[0]));
    assert_ok(partita_filter_create(plan, taps, &kept[0]));
    assert_ok(partita_bank_open(bank, reused[0], &slot));
    assert_ok(partita_stream_open(plan, kept[0], &stream));
    for (size_t lead = partita_bank_lead(bank, slot); lead > 0; lead -= BLOCK)
        partita_stream_process(stream, (void *[]){y}, NULL, BLOCK);
    for (size_t round = 1; round <= ROUNDS; round++) {
        struct partita_filter **next = &reused[round % 2];
        const size_t n = 1 + random_below(&random, TAPS), fade = random_below(&random, 2) * BLOCK;
        const size_t before = random_below(&random, 4);
        memset(taps, 0, sizeof taps);
        random_samples(&random, PARTITA_F32, taps, n);
        partita_filter_destroy(*next);
        assert_ok(partita_bank_filter_create(bank, taps, n, next));
        assert_ok(partita_filter_create(plan, taps, &kept[round]));
        for (size_t call = 0;
             call <= before || partita_bank_slot_state(bank, slot) == PARTITA_SLOT_SWAPPING;
             call++) {
            if (call == before) {
                assert_ok(partita_bank_swap(bank, slot, *next, fade));
                assert_ok(partita_stream_swap(stream, kept[round], fade));
            }
            float *x = partita_bank_input(bank, slot);
            random_samples(&random, PARTITA_F32, x, BLOCK);
            partita_stream_process(stream, (void *[]){y}, (const void *[]){x}, BLOCK);
            partita_bank_process(bank);
            assert_memory_equal(partita_bank_output(bank, slot), y, sizeof y);
        }
    }
    partita_stream_close(stream);
    for (size_t i = 0; i < 2; i++) partita_filter_destroy(reused[i]);
    for (size_t i = 0; i <= ROUNDS; i++) partita_filter_destroy(kept[i]);
    partita_bank_destroy(bank);
}

static const struct promise promises[] = {
    {"swap-before-the-first-call", swap_before_the_first_call},
    {"waiting-filter-is-replaced", waiting_filter_is_replaced},
    {"fades-follow-each-other", fades_follow_each_other},
    {"any-cut-same-bits", any_split_same_bits},
    {"swapping-until-done", swapping_until_done},
    {"endless-fade", endless_fade},
    {"old-filters-may-go", old_filters_may_go},
    {"single-path", single_path},
    {"swap-errors", swap_errors},
    {"from-another-thread", from_another_thread},
};
enum { N_PROMISES = sizeof promises / sizeof *promises };

int main(void)
{
    static struct stream_case cases[N_HISTORY_ENGINES][N_TYPE_PAIRS][N_PROBLEMS];
    static struct CMUnitTest
        tests[N_HISTORY_ENGINES * N_TYPE_PAIRS * (N_PROBLEMS + N_PROMISES) + 2];
    size_t n = 0;
    const enum layer_device device = layer_device_check();
    if (device != LAYER_DEVICE_READY) return device == LAYER_DEVICE_MISSING;
    for (size_t e = 0; e < N_HISTORY_ENGINES; e++) {
        for (size_t t = 0; t < N_TYPE_PAIRS; t++) {
            const char *engine = history_engines[e], *types = type_pairs[t].name;
            struct stream_case *c = cases[e][t];
            if (!rig_has_types(engine, t)) continue;
            for (size_t p = 0; p < N_PROBLEMS; p++) {
                c[p] = (struct stream_case){engine, &type_pairs[t], &problems[p]};
                if (!rig_has_problem(t, p)) continue;
                tests[n++] = named_test(fade_is_the_blend, &c[p], "%s/fade-is-the-blend/%s-%s",
                                        engine, problems[p].name, types);
            }
            for (size_t p = 0; p < N_PROMISES; p++)
                if (rig_has_problem(t, p))
                    tests[n++] = named_test(promises[p].run, &c[0], "%s/%s-%s", engine,
                                            promises[p].name, types);
        }
    }
    tests[n++] = named_test(nothing_cannot_be_swapped, NULL, "cpu/direct/refuses");
    if (layer_has_engine("cpu/partitioned"))
        tests[n++] = named_test(filters_may_reuse_an_address, NULL,
                                "cpu/partitioned/filters-may-reuse-an-address");
    return run_test_list(tests, n);
}
