// SPDX-License-Identifier: MIT
// Filters made of the paths of a matrix: a sparse matrix equals the dense one with zeros, on
// every engine; invalid paths; filters edited path by path, whose base may be destroyed.

#include "support/allocators.h"
#include "support/stream_rig.h"

#include "support/layer_rig.h"

#include <stdio.h>

static const char *const engines_of_paths[] = {"cpu/direct", "cpu/overlap-save", "cpu/partitioned",
                                               "cuda/partitioned"};
enum { N_ENGINES_OF_PATHS = 4, KERNEL = 1200, MAX_PATHS = 16, N_FRAMES = 9000 };

static const struct partita_problem square = {STREAM(64), CHANNELS(4, 4), KERNEL(KERNEL)};
static const struct partita_problem oblong = {STREAM(64), CHANNELS(3, 2), KERNEL(KERNEL)};
static const struct partita_problem grouped = {STREAM(64), CHANNELS(4, 6), GROUPS(2),
                                               KERNEL(KERNEL)};
static const struct partita_problem correlating = {STREAM(64), CORRELATE, CHANNELS(2, 2),
                                                   KERNEL(KERNEL)};
static const struct partita_problem decimating = {STREAM(64), CHANNELS(2, 2), KERNEL(KERNEL),
                                                  STRIDE(2), DILATION(2)};

// A sparse matrix and its taps.
struct paths {
    struct partita_path at[MAX_PATHS];
    size_t n;
    void *taps[MAX_PATHS];
};

static size_t groups_of(const struct stream_rig *rig)
{
    return rig->problem.groups ? rig->problem.groups : 1;
}

// Draws every possible path with a probability of a half, with its own length, sometimes 0, and
// delay.
static struct paths draw_paths(const struct stream_rig *rig, struct random *random)
{
    struct paths paths = {.n = 0};
    size_t per_group = rig->in / groups_of(rig), out_per_group = rig->out / groups_of(rig);
    for (size_t i = 0; i < rig->out * per_group && paths.n < MAX_PATHS; i++) {
        if (random_below(random, 2)) continue;
        size_t out = i / per_group, in = out / out_per_group * per_group + i % per_group;
        size_t length = random_below(random, 8) ? 1 + random_below(random, KERNEL) : 0;
        size_t delay = random_below(random, KERNEL - length + 1);
        void *taps = length ? malloc(length * partita_type_size(rig->problem.taps)) : NULL;
        random_samples(random, rig->problem.taps, taps, length);
        paths.taps[paths.n] = taps;
        paths.at[paths.n++] = (struct partita_path){out, in, delay, length, taps};
    }
    return paths;
}

static void free_paths(struct paths *paths)
{
    for (size_t i = 0; i < paths->n; i++) free(paths->taps[i]);
    paths->n = 0;
}

// Copies paths into the rows of the dense filter w.
static void copy_paths(struct stream_rig *rig, const struct partita_path *paths, size_t n)
{
    size_t per_group = rig->in / groups_of(rig), bytes = partita_type_size(rig->problem.taps);
    for (size_t i = 0; i < n; i++) {
        char *row =
            (char *)rig->w + (paths[i].out * per_group + paths[i].in % per_group) * KERNEL * bytes;
        memset(row, 0, KERNEL * bytes);
        if (paths[i].length)
            memcpy(row + paths[i].delay * bytes, paths[i].taps, paths[i].length * bytes);
    }
}

static void silence_taps(struct stream_rig *rig)
{
    memset(rig->w, 0, rig->n_taps * partita_type_size(rig->problem.taps));
}

// Compares the stream of the rig's filter with the oracle for the taps of w, also in other lengths
// of calls.
static void check_filter(struct stream_rig *rig, struct random *random)
{
    void *y = stream_rig_alloc_output(rig);
    stream_rig_feed(rig, rig->stream, y, &split_whole, random);
    stream_rig_check_sampled(rig, y, random);
    stream_rig_check_splits(rig, y, &(struct call_split){"up-to-300", 300, true}, 1, random);
    guarded_free(y);
}

static struct partita_filter *make_paths(const struct stream_rig *rig,
                                         const struct partita_path *paths, size_t n)
{
    struct partita_filter *filter = NULL;
    assert_ok(partita_filter_create_from(
        rig->plan, &(struct partita_taps){.paths = paths, .path_count = n}, &filter));
    return filter;
}

static size_t frames_for(const struct stream_case *c, const struct partita_problem *problem)
{
    struct random random = random_start("probe");
    struct stream_rig probe;
    stream_rig_open_exactly(&probe, c, problem, NULL, 1, &random);
    size_t n = N_FRAMES + 2 * partita_plan_latency(probe.plan);
    stream_rig_close(&probe);
    return n;
}

static void open_rig(struct stream_rig *rig, const struct stream_case *c,
                     const struct partita_problem *problem, struct random *random)
{
    struct partita_problem relaxed = *problem;
    if (strncmp(c->engine, "cpu/overlap", 11) == 0) relaxed.latency = 4000;
    stream_rig_open_exactly(rig, c, &relaxed, NULL, frames_for(c, &relaxed), random);
}

static void sparse_is_dense_with_zeros(void **state)
{
    static const struct partita_problem *const problems[] = {&square, &oblong, &grouped,
                                                             &correlating, &decimating};
    const struct stream_case *c = *state;
    for (size_t p = 0; p < sizeof problems / sizeof *problems; p++) {
        struct random random = random_start("sparse");
        struct stream_rig rig;
        open_rig(&rig, c, problems[p], &random);
        for (int round = 0; round < (TEST_SLOWER > 1 ? 1 : 3); round++) {
            struct paths paths = draw_paths(&rig, &random);
            silence_taps(&rig);
            copy_paths(&rig, paths.at, paths.n);
            stream_rig_replace_filter(&rig, make_paths(&rig, paths.at, paths.n));
            free_paths(&paths); // taps were copied
            check_filter(&rig, &random);
        }
        stream_rig_close(&rig);
    }
}

// Paths of equal taps, and some that differ from them only in their delay, their length or one tap.
static void paths_alike(void **state)
{
    const struct stream_case *c = *state;
    struct random random = random_start("alike");
    struct stream_rig rig;
    open_rig(&rig, c, &square, &random);
    size_t bytes = partita_type_size(rig.problem.taps);
    char *taps[16];
    struct partita_path paths[16];
    for (size_t i = 0; i < 16; i++) {
        taps[i] = malloc(1000 * bytes);
        if (i == 0) random_samples(&random, rig.problem.taps, taps[0], 1000);
        memcpy(taps[i], taps[0], 1000 * bytes);
        paths[i] = (struct partita_path){i / 4, i % 4, 0, 1000, taps[i]};
    }
    paths[1].delay = 1;
    paths[2].delay = 200;
    paths[3].length = 999;
    paths[4] = (struct partita_path){1, 0, 1, 999, taps[4] + bytes}; // without the first tap
    sample_put(rig.problem.taps, taps[5], 0, 0.25);
    sample_put(rig.problem.taps, taps[6], 999, 0.25);
    sample_put(rig.problem.taps, taps[7], 500, 0.25);
    silence_taps(&rig);
    copy_paths(&rig, paths, 16);
    stream_rig_replace_filter(&rig, make_paths(&rig, paths, 16));
    for (int i = 0; i < 16; i++) free(taps[i]);
    check_filter(&rig, &random);
    stream_rig_close(&rig);
}

static void no_paths_are_silence(void **state)
{
    const struct stream_case *c = *state;
    struct random random = random_start("empty");
    struct stream_rig rig;
    open_rig(&rig, c, &oblong, &random);
    char taps[16] = {0};
    const struct partita_path none[2] = {{0, 1, 0, 0, NULL}, {1, 0, 7, 0, taps}};
    for (size_t n = 0; n <= 2; n += 2) {
        stream_rig_replace_filter(&rig, make_paths(&rig, none, n));
        char *y = stream_rig_alloc_output(&rig);
        stream_rig_feed(&rig, rig.stream, y, &(struct call_split){"", 300, true}, &random);
        for (size_t i = 0; i < rig.out * rig.n_outputs; i++)
            assert_true(reference_sample(rig.problem.signal, y, i) == 0);
        guarded_free(y);
    }
    stream_rig_close(&rig);
}

// Filters of bounded problems can have paths too.
static void signals_too(void **state)
{
    const struct stream_case *c = *state;
    enum { M = 50, N = 400 };
    struct partita_problem problem = {LENGTH(N), TYPE_PAIR(c->types), CHANNELS(2, 2), KERNEL(M),
                                      PAD_BEGIN(M - 1)};
    struct random random = random_start("signal");
    struct rig rig;
    rig_open(&rig, &problem, &(struct partita_options){.engine = c->engine}, &random);
    size_t bytes = partita_type_size(problem.taps);
    char *w = rig.w, *taps = malloc(20 * bytes);
    memcpy(taps, w, 20 * bytes);
    memset(w, 0, 4 * M * bytes);
    memcpy(w + (2 * M + 13) * bytes, taps, 20 * bytes);
    partita_filter_destroy(rig.filter);
    assert_ok(partita_filter_create_from(
        rig.plan,
        &(struct partita_taps){.paths = &(struct partita_path){1, 0, 13, 20, taps},
                               .path_count = 1},
        &rig.filter));
    free(taps);
    rig_forward(&rig);
    rig_check(&rig);
    rig_close(&rig);
}

// Each is refused with ARG and one line that names the mistake, and nothing is changed.
static void bad_paths(void **state)
{
    const struct stream_case *c = *state;
    static const double taps[2 * KERNEL];
    static const struct partita_path good = {0, 0, 0, 5, taps};
    static const struct partita_path bad[] = {
        {6, 0, 0, 5, taps},          {0, 4, 0, 5, taps},
        {SIZE_MAX, 0, 0, 5, taps},   {0, SIZE_MAX, 0, 5, taps},
        {0, 2, 0, 5, taps}, // output of the first group, input of the second
        {5, 1, 0, 5, taps},          {4, 2, 0, KERNEL + 1, taps},
        {4, 2, KERNEL - 4, 5, taps}, {4, 2, KERNEL + 1, 0, taps},
        {4, 2, SIZE_MAX, 5, taps}, // the sum wraps around
        {4, 2, 5, SIZE_MAX, taps},   {4, 2, 0, 5, NULL},
        {0, 0, 900, 5, taps}, // overlaps the valid one
        {0, 0, 0, 0, NULL},
    };
    struct log_lines lines;
    struct partita_options options = {.log = log_into(&lines)};
    struct random random = random_start("bad");
    struct partita_problem relaxed = grouped;
    relaxed.latency = PARTITA_UNBOUNDED;
    struct stream_rig rig;
    stream_rig_open_exactly(&rig, c, &relaxed, &options, 100, &random);
    struct partita_filter *filter = (struct partita_filter *)1;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct partita_path paths[2] = {good, bad[i]};
        log_into(&lines);
        if (partita_filter_create_from(rig.plan,
                                       &(struct partita_taps){.paths = paths, .path_count = 2},
                                       &filter) != PARTITA_ERR_ARG)
            fail_msg("path %zu is accepted", i);
        if (lines.n_lines != 1) fail_msg("path %zu: %d lines: %s", i, lines.n_lines, lines.text);
        assert_ptr_equal(filter, (struct partita_filter *)1);
    }
    assert_int_equal(partita_filter_create_from(
                         NULL, &(struct partita_taps){.paths = &good, .path_count = 1}, &filter),
                     PARTITA_ERR_ARG);
    assert_int_equal(partita_filter_create_from(
                         rig.plan, &(struct partita_taps){.paths = NULL, .path_count = 1}, &filter),
                     PARTITA_ERR_ARG);
    assert_int_equal(partita_filter_create_from(
                         rig.plan, &(struct partita_taps){.paths = &good, .path_count = 1}, NULL),
                     PARTITA_ERR_ARG);
    assert_ptr_equal(filter, (struct partita_filter *)1);
    stream_rig_close(&rig);
}

// The memory of sixteen paths, equal or all different. A filter releases all of it, also an edited
// one.
static size_t path_bytes(const struct stream_case *c, bool equal)
{
    struct meter meter = {0};
    struct partita_options options = {.allocator = meter_allocator(&meter)};
    struct random random = random_start("share");
    struct stream_rig rig;
    stream_rig_open_exactly(&rig, c, &square, &options, 100, &random);
    struct partita_path paths[16];
    size_t row = KERNEL * partita_type_size(rig.problem.taps), before = meter.bytes_live;
    for (size_t i = 0; i < 16; i++)
        paths[i] =
            (struct partita_path){i / 4, i % 4, 0, KERNEL, (char *)rig.w + (equal ? 0 : i * row)};
    struct partita_filter *filter = make_paths(&rig, paths, 16), *copy = NULL;
    size_t bytes = meter.bytes_live - before;
    assert_ok(partita_filter_create_from(
        rig.plan, &(struct partita_taps){.base = filter, .paths = paths, .path_count = 0}, &copy));
    partita_filter_destroy(filter);
    assert_int_equal(meter.bytes_live - before,
                     bytes); // equal paths are stored once in the copy as well
    partita_filter_destroy(copy);
    assert_int_equal(meter.bytes_live, before);
    stream_rig_close(&rig);
    return bytes;
}

// Equal paths share the spectra of one: they need at most a quarter of the memory of different
// ones, since references are small. A device has spectra in its own memory: of the host's, heads
// are shared.
static void equal_paths_share(void **state)
{
    const struct stream_case *c = *state;
    const size_t share = strncmp(c->engine, "cuda/", 5) == 0 ? 2 : 4;
    size_t different = path_bytes(c, false), equal = path_bytes(c, true);
    if (equal > different / share)
        fail_msg("equal paths take %zu bytes, different ones %zu", equal, different);
}

// Applies edits to the rig's filter and destroys the base before the new filter is used.
static void edit(struct stream_rig *rig, const struct partita_path *edits, size_t n)
{
    struct partita_filter *edited = NULL;
    assert_ok(partita_filter_create_from(
        rig->plan, &(struct partita_taps){.base = rig->filter, .paths = edits, .path_count = n},
        &edited));
    copy_paths(rig, edits, n);
    stream_rig_replace_filter(rig, edited);
}

static void edits(void **state)
{
    static const struct partita_problem *const problems[] = {&square, &oblong, &grouped};
    const struct stream_case *c = *state;
    for (size_t p = 0; p < sizeof problems / sizeof *problems; p++) {
        struct random random = random_start("edits");
        struct stream_rig rig;
        open_rig(&rig, c, problems[p], &random);
        check_filter(&rig, &random); // dense, as opened
        for (int round = 0; round < 5; round++) {
            struct paths paths = draw_paths(&rig, &random);
            edit(&rig, paths.at, round == 2 ? 0 : paths.n);
            free_paths(&paths);
            check_filter(&rig, &random);
        }
        struct paths paths = draw_paths(&rig, &random); // then with a sparse base
        silence_taps(&rig);
        copy_paths(&rig, paths.at, paths.n);
        stream_rig_replace_filter(&rig, make_paths(&rig, paths.at, paths.n));
        free_paths(&paths);
        paths = draw_paths(&rig, &random);
        edit(&rig, paths.at, paths.n);
        free_paths(&paths);
        check_filter(&rig, &random);
        stream_rig_close(&rig);
    }
}

// The base does not change, and base and edited filter may be destroyed in any order.
static void base_stays_as_it_was(void **state)
{
    const struct stream_case *c = *state;
    struct random random = random_start("base");
    struct stream_rig rig;
    open_rig(&rig, c, &oblong, &random);
    const struct partita_path silenced[2] = {{0, 0, 0, 0, NULL}, {1, 2, 0, 0, NULL}};
    struct partita_filter *first, *second;
    assert_ok(partita_filter_create_from(
        rig.plan, &(struct partita_taps){.base = rig.filter, .paths = silenced, .path_count = 2},
        &first));
    assert_ok(partita_filter_create_from(
        rig.plan, &(struct partita_taps){.base = first, .paths = silenced, .path_count = 1},
        &second));
    partita_filter_destroy(first);
    check_filter(&rig, &random);
    partita_filter_destroy(second);
    partita_stream_reset(rig.stream);
    check_filter(&rig, &random);
    stream_rig_close(&rig);
}

static void bad_edits(void **state)
{
    const struct stream_case *c = *state;
    struct random random = random_start("bad-edits");
    struct partita_filter *filter = (struct partita_filter *)1;
    struct stream_rig rig;
    open_rig(&rig, c, &oblong, &random);
    const struct partita_path good = {0, 0, 0, 5, rig.w}, bad = {2, 0, 0, 5, rig.w},
                              twice[2] = {good, good};
    bool served = strstr(c->engine, "partitioned");
    assert_int_equal(partita_filter_create_from(
                         rig.plan,
                         &(struct partita_taps){.base = rig.filter, .paths = NULL, .path_count = 1},
                         &filter),
                     PARTITA_ERR_ARG);
    assert_int_equal(
        partita_filter_create_from(
            rig.plan, &(struct partita_taps){.base = rig.filter, .paths = &good, .path_count = 1},
            NULL),
        PARTITA_ERR_ARG);
    if (served) {
        assert_int_equal(
            partita_filter_create_from(
                rig.plan,
                &(struct partita_taps){.base = rig.filter, .paths = &bad, .path_count = 1},
                &filter),
            PARTITA_ERR_ARG);
        assert_int_equal(
            partita_filter_create_from(
                rig.plan,
                &(struct partita_taps){.base = rig.filter, .paths = twice, .path_count = 2},
                &filter),
            PARTITA_ERR_ARG);
    } else {
        assert_int_equal(
            partita_filter_create_from(
                rig.plan,
                &(struct partita_taps){.base = rig.filter, .paths = &good, .path_count = 1},
                &filter),
            PARTITA_ERR_UNSUPPORTED);
    }
    assert_ptr_equal(filter, (struct partita_filter *)1);
    stream_rig_close(&rig);
}

static const struct promise promises[] = {
    {"sparse-is-dense-with-zeros", sparse_is_dense_with_zeros},
    {"paths-alike", paths_alike},
    {"no-paths-are-silence", no_paths_are_silence},
    {"bad-paths", bad_paths},
    {"bad-edits", bad_edits},
};
static const struct promise of_partitioned[] = {
    {"equal-paths-share", equal_paths_share},
    {"edits", edits},
    {"base-stays-as-it-was", base_stays_as_it_was},
};
enum {
    N_PROMISES = sizeof promises / sizeof *promises,
    N_OF_PARTITIONED = sizeof of_partitioned / sizeof *of_partitioned,
};

int main(void)
{
    static struct stream_case cases[N_ENGINES_OF_PATHS][N_TYPE_PAIRS];
    static struct CMUnitTest
        tests[N_ENGINES_OF_PATHS * N_TYPE_PAIRS * (N_PROMISES + N_OF_PARTITIONED)];
    size_t n = 0;
    const enum layer_device device = layer_device_check();
    if (device != LAYER_DEVICE_READY) return device == LAYER_DEVICE_MISSING;
    for (size_t e = 0; e < N_ENGINES_OF_PATHS; e++) {
        for (size_t t = 0; t < N_TYPE_PAIRS; t++) {
            const char *engine = engines_of_paths[e], *types = type_pairs[t].name;
            struct stream_case *c = &cases[e][t];
            if (!rig_has_types(engine, t)) continue;
            *c = (struct stream_case){engine, &type_pairs[t], NULL};
            bool partitioned = strstr(engine, "partitioned");
            for (size_t p = 0; p < N_PROMISES; p++)
                tests[n++] =
                    named_test(promises[p].run, c, "%s/%s-%s", engine, promises[p].name, types);
            if (!partitioned)
                tests[n++] = named_test(signals_too, c, "%s/signals-too-%s", engine, types);
            for (size_t p = 0; partitioned && p < N_OF_PARTITIONED; p++)
                tests[n++] = named_test(of_partitioned[p].run, c, "%s/%s-%s", engine,
                                        of_partitioned[p].name, types);
        }
    }
    return run_test_list(tests, n);
}
