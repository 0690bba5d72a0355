// SPDX-License-Identifier: MIT
// Streams whose filter is a weighted sum of filters with moving weights: the weights of each tap
// over time, measured with impulses; the outputs of these weights exactly; the bound of the header
// on the difference from the weights that are asked for; the same bits for all cuts and threads;
// state, reset, requests from another thread, and refusals.

#include "morph_rig.h"
#include "support/pool.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

static const struct named_problem problems[] = {
    {"mono", {STREAM(64), KERNEL(3000)}},
    {"matrix", {STREAM(64), CHANNELS(3, 2), KERNEL(800)}},
    {"few-taps", {STREAM(64), KERNEL(150)}},
    {"late", {STREAM(64), KERNEL(2000), LATENCY(700)}},
    {"whole-blocks", {STREAM(64), KERNEL(1500), .whole_blocks = true}},
    {"decimate", {STREAM(64), CHANNELS(2, 1), KERNEL(500), STRIDE(3)}},
    {"up", {STREAM(64), KERNEL(900), STRIDE(2), UP(3)}},
};
enum { N_PROBLEMS = sizeof problems / sizeof *problems, N_BOUND_PROBLEMS = 5 };

// Every weight is among those that were asked for within its lag; it changes in a frame by no more
// than a jump over a quantum, and its slope only where quanta end.
static void check_weights(const struct morph_rig *m, const double *weights, double tolerance)
{
    const size_t taps = m->rig.problem.kernel[0], quantum = quantum_of(m->rig.plan);
    struct partita_stream *stream = open_stream(m);
    struct range *ranges = NULL;
    size_t lag = 0;
    for (size_t j = 0; j < taps; j++) {
        const size_t now = partita_stream_morph_lag(stream, j);
        const double *w = weights + j * FRAMES;
        if (now != lag) free(ranges), ranges = ranges_of(0, now, FRAMES);
        assert_true(now >= lag && now > 0);
        lag = now;
        for (size_t t = j; t < FRAMES; t++) {
            if (isnan(w[t])) continue;
            if (!(w[t] >= ranges[t].low - tolerance && w[t] <= ranges[t].high + tolerance))
                fail_msg("tap %zu at frame %zu: weight %.9g, asked for %.9g to %.9g", j, t, w[t],
                         ranges[t].low, ranges[t].high);
            if (t < j + 2 || isnan(w[t - 1])) continue;
            const double step = w[t] - w[t - 1], before = w[t - 1] - w[t - 2];
            if (!(fabs(step) <= 2.0 / (double)quantum + 2 * tolerance)) // from -1 to 1 at most
                fail_msg("tap %zu at frame %zu: a step of %.3g", j, t, step);
            if (t % quantum && !isnan(before) && !(fabs(step - before) <= 4 * tolerance))
                fail_msg("tap %zu at frame %zu: the slope changes by %.3g", j, t, step - before);
        }
    }
    free(ranges);
    partita_stream_close(stream);
}

// The output for any input and taps is that of the measured weights.
static void check_sum_of_weights(struct morph_rig *m, const double *weights, struct random *random)
{
    struct stream_rig *rig = &m->rig;
    const size_t taps = rig->problem.kernel[0];
    const enum partita_type type = rig->problem.signal, taps_type = rig->problem.taps;
    random_samples(random, type, rig->x, FRAMES);
    struct partita_stream *stream = open_filters(m, m->filters, true);
    void *y = stream_rig_alloc_output(rig);
    feed(m, stream, y, 0, FRAMES, &(struct feed){&split_whole, random, true});
    partita_stream_close(stream);
    double complex *expected = calloc(FRAMES, sizeof *expected);
    for (size_t j = 0; j < taps; j++) {
        const double complex a = reference_sample(taps_type, m->taps[0], j),
                             b = reference_sample(taps_type, m->taps[1], j);
        for (size_t t = j; t < FRAMES; t++) {
            const double w = weights[j * FRAMES + t];
            expected[t] += (w * a + (1 - w) * b) * reference_sample(type, rig->x, t - j);
        }
    }
    // Weights are -1 to 1 and 0 to 2, so that the norm of the spectra is at most sqrt(5) times that
    // of one filter, and that of their change sqrt(8) times; the norm of the outputs, with which
    // the gate is compared, is that of weights of 1/2 at least: (sqrt 5 + sqrt 8) sqrt 2 = 7.2.
    const double gate = 7.2 * plan_gate(rig->plan, &rig->problem, FRAMES);
    const double error = error_against(type, y, expected, FRAMES, typical_output(&rig->problem));
    if (!(error <= gate)) fail_msg("error %.3g above %.3g", error, gate);
    free(expected);
    guarded_free(y);
}

// In double precision: the weights can be told from rounding errors.
static void weights_of_taps(void **state)
{
    const struct partita_problem *problem = *state;
    const struct stream_case c = {"cpu/partitioned", &type_pairs[0], NULL};
    struct random random = random_start("weights");
    struct partita_problem of_f64 = *problem;
    struct stream_case f64 = c;
    for (size_t t = 0; t < N_TYPE_PAIRS; t++)
        if (type_pairs[t].signal == PARTITA_F64) f64.types = &type_pairs[t];
    struct morph_rig m;
    rig_open_morph(&m, &f64, &of_f64, NULL, FRAMES, &random);
    const size_t taps = problem->kernel[0];
    double *ones = malloc(taps * sizeof *ones);
    struct partita_filter *filters[2];
    for (size_t k = 0; k < 2; k++) {
        for (size_t j = 0; j < taps; j++) ones[j] = k == 0;
        assert_ok(partita_filter_create(m.rig.plan, ones, &filters[k]));
    }
    const size_t every = taps > 1000 ? 50 : 1;
    double *weights = measure_weights(&m, filters, every, &random);
    check_weights(&m, weights, 1e-12); // of sums of some thousand taps of 1: 2^-52 * 4096 = 1e-12
    if (every == 1) check_sum_of_weights(&m, weights, &random);
    for (size_t k = 0; k < 2; k++) partita_filter_destroy(filters[k]);
    free(weights);
    free(ones);
    rig_close_morph(&m);
}

// Per output and filter: the sum of the magnitudes of the taps of each lag, times the range of the
// filter's weight within it.
static void add_bound(const struct morph_rig *m, const struct partita_stream *stream, size_t k,
                      double *bound)
{
    const struct stream_rig *rig = &m->rig;
    const size_t taps = rig->problem.kernel[0], per_output = rig->n_taps / rig->out;
    for (size_t j = 0; j < taps;) {
        const size_t lag = partita_stream_morph_lag(stream, j);
        struct range *ranges = ranges_of(k, lag, rig->n_frames);
        const size_t first = j;
        while (j < taps && partita_stream_morph_lag(stream, j) == lag) j++;
        for (size_t out = 0; out < rig->out; out++) {
            double sum = 0;
            for (size_t i = 0; i < per_output; i++)
                if (i % taps >= first && i % taps < j)
                    sum +=
                        cabs(reference_sample(rig->problem.taps, m->taps[k], out * per_output + i));
            for (size_t t = 0; t < rig->n_frames; t++)
                bound[out * rig->n_frames + t] += sum * sqrt(2) * (ranges[t].high - ranges[t].low);
        }
        free(ranges);
    }
}

// The convolution with the weights that are asked for, in double precision, and the bound; in
// particular the exact sum where weights have rested for the largest lag.
static void within_the_bound(void **state)
{
    const struct stream_case *c = *state;
    struct random random = random_start("bound");
    struct morph_rig m;
    rig_open_morph(&m, c, &c->named->problem, NULL, 3 * FRAMES, &random);
    const struct stream_rig *rig = &m.rig;
    struct partita_stream *stream = open_stream(&m);
    const size_t n = rig->n_frames, latency = partita_stream_latency(stream);
    const size_t lag = partita_stream_morph_lag(stream, rig->problem.kernel[0] - 1);
    assert_true(requests[N_REQUESTS - 1].at + requests[N_REQUESTS - 1].frames + lag < n);
    void *y = stream_rig_alloc_output(rig);
    feed(&m, stream, y, 0, n, &(struct feed){&(struct call_split){"", 256, false}, &random, false});
    double complex *exact = calloc(rig->out * n, sizeof *exact);
    double complex *alone = malloc(rig->out * n * sizeof *alone);
    double *bound = calloc(rig->out * n, sizeof *bound), power = 0;
    for (size_t k = 0; k < FILTERS; k++) {
        reference_stream(&rig->problem, n, alone, rig->x, m.taps[k]);
        for (size_t out = 0; out < rig->out; out++)
            for (size_t t = latency; t < n; t++)
                exact[out * n + t] += asked(k, t) * alone[out * n + t - latency];
        for (size_t i = 0; i < rig->out * n; i++) power += pow(cabs(alone[i]), 2);
        add_bound(&m, stream, k, bound);
    }
    // Roundings, of the filter and of its change: relative to the norm of all filters, with weights
    // of 1 at most and changes of 2.
    const double limit = 3 * stream_rig_sample_limit(rig, sqrt(power / (double)(rig->out * n)));
    for (size_t i = 0; i < rig->out * n; i++) {
        const double error = cabs(reference_sample(rig->problem.signal, y, i) - exact[i]);
        if (!(error <= bound[i] + limit))
            fail_msg("output %zu of channel %zu: error %.3g, bound %.3g + %.3g", i % n, i / n,
                     error, bound[i], limit);
    }
    partita_stream_close(stream);
    free(bound);
    free(alone);
    free(exact);
    guarded_free(y);
    rig_close_morph(&m);
}

static void any_cut_same_bits(void **state)
{
    static const struct call_split splits[] = {
        {"ones", 1, false}, {"up-to-70", 70, true}, {"up-to-3000", 3000, true}};
    const struct stream_case *c = *state;
    struct random random = random_start("cuts");
    struct morph_rig m;
    rig_open_morph(&m, c, &c->named->problem, NULL, FRAMES, &random);
    void *y = stream_rig_alloc_output(&m.rig), *other = stream_rig_alloc_output(&m.rig);
    struct partita_stream *stream = open_stream(&m);
    feed(&m, stream, y, 0, FRAMES, &(struct feed){&split_whole, &random, false});
    for (size_t i = m.rig.problem.whole_blocks; i < sizeof splits / sizeof *splits; i++) {
        partita_stream_close(stream);
        stream = open_stream(&m);
        memset(other, 0x55, stream_rig_output_bytes(&m.rig));
        feed(&m, stream, other, 0, FRAMES, &(struct feed){&splits[i], &random, false});
        if (memcmp(y, other, stream_rig_output_bytes(&m.rig)))
            fail_msg("calls of %s have other bits", splits[i].name);
    }
    partita_stream_close(stream);
    guarded_free(other);
    guarded_free(y);
    rig_close_morph(&m);
}

// A request takes effect at the next quantum.
static void begins_at_a_quantum(void **state)
{
    struct random random = random_start("quantum");
    struct morph_rig m;
    rig_open_morph(&m, *state, &problems[0].problem, NULL, FRAMES, &random);
    const size_t quantum = quantum_of(m.rig.plan);
    const size_t at[] = {64 * quantum, 63 * quantum + 1, 64 * quantum - 1};
    void *y[3];
    for (size_t i = 0; i < 3; i++) {
        struct partita_stream *stream = open_stream(&m);
        y[i] = stream_rig_alloc_output(&m.rig);
        stream_rig_feed_span(&m.rig, stream, y[i], 0, at[i], &split_whole, &random);
        assert_ok(partita_stream_morph(stream, requests[1].weights, 300));
        stream_rig_feed_span(&m.rig, stream, y[i], at[i], FRAMES, &split_whole, &random);
        partita_stream_close(stream);
    }
    assert_memory_equal(y[0], y[1], stream_rig_output_bytes(&m.rig));
    assert_memory_equal(y[0], y[2], stream_rig_output_bytes(&m.rig));
    for (size_t i = 0; i < 3; i++) guarded_free(y[i]);
    rig_close_morph(&m);
}

static void threads_same_bits(void **state)
{
    const struct stream_case *c = *state;
    void *first = NULL;
    for (int threads = 1; threads <= 5; threads++) {
        struct pool pool;
        pool_open(&pool);
        struct partita_options options = {.threads = threads};
        if (threads == 5) options.executor = pool_executor(&pool), options.threads = 3;
        struct random random = random_start("threads");
        struct morph_rig m;
        rig_open_morph(&m, c, &c->named->problem, &options, FRAMES, &random);
        void *y = stream_rig_alloc_output(&m.rig);
        struct partita_stream *stream = open_stream(&m);
        const size_t unit = m.rig.problem.whole_blocks ? 64 : 50;
        feed(&m, stream, y, 0, FRAMES,
             &(struct feed){&(struct call_split){"", unit, false}, &random, false});
        partita_stream_close(stream);
        stream_rig_check_first(&m.rig, y, &first);
        guarded_free(y);
        rig_close_morph(&m);
        pool_close(&pool);
    }
    guarded_free(first);
}

// A state that was saved while weights move goes on with the same bits, in the same stream and in
// another one. A reset stream is like one that was opened with the weights asked for last.
static void state_goes_on(void **state)
{
    static const size_t positions[] = {0, 1, 1025, 1100, 2049, 3333, 4096, 7001};
    const struct stream_case *c = *state;
    for (int threads = 1; threads <= 3; threads += 2) {
        struct random random = random_start("state");
        struct morph_rig m;
        rig_open_morph(&m, c, &c->named->problem, &(struct partita_options){.threads = threads},
                       FRAMES, &random);
        const size_t bytes = stream_rig_output_bytes(&m.rig), scalar = m.rig.sample_bytes;
        void *y = stream_rig_alloc_output(&m.rig);
        char *other = stream_rig_alloc_output(&m.rig);
        struct partita_stream *stream = open_stream(&m), *second = open_stream(&m);
        const size_t size = partita_stream_state_size(stream);
        const struct call_split small = {"", 300, true};
        feed(&m, stream, y, 0, FRAMES, &(struct feed){&small, &random, false});
        void *kept = malloc(size);
        for (size_t i = 0; i < sizeof positions / sizeof *positions; i++) {
            const size_t at =
                positions[i] - (c->named->problem.whole_blocks ? positions[i] % 64 : 0);
            struct partita_stream *saved = open_stream(&m);
            memset(other, 0x55, bytes);
            feed(&m, saved, other, 0, at, &(struct feed){&small, &random, false});
            assert_ok(partita_stream_save(saved, kept));
            assert_ok(partita_stream_restore(second, kept, size));
            feed(&m, saved, other, at, FRAMES, &(struct feed){&small, &random, false});
            assert_memory_equal(other, y, bytes); // saving changes nothing
            const size_t given = stream_rig_outputs(&m.rig, at);
            for (size_t k = 0; k < m.rig.out; k++)
                memset(other + (k * m.rig.n_outputs + given) * scalar, 0x55,
                       (m.rig.n_outputs - given) * scalar);
            feed(&m, second, other, at, FRAMES, &(struct feed){&small, &random, false});
            assert_memory_equal(other, y, bytes);
            partita_stream_close(saved);
        }
        struct partita_stream *opened;
        assert_ok(partita_stream_open_morph(m.rig.plan, (const void *)m.filters, FILTERS,
                                            requests[N_REQUESTS - 1].weights, &opened));
        partita_stream_reset(stream);
        stream_rig_feed(&m.rig, opened, y, &split_whole, &random);
        stream_rig_feed(&m.rig, stream, other, &small, &random);
        assert_memory_equal(other, y, bytes);
        partita_stream_close(opened);
        partita_stream_close(second);
        partita_stream_close(stream);
        free(kept);
        guarded_free(other);
        guarded_free(y);
        rig_close_morph(&m);
    }
}

// A stream at rest has the outputs of one filter, whatever it was.
static void rest_is_one_filter(void **state)
{
    const struct stream_case *c = *state;
    struct random random = random_start("rest");
    struct morph_rig m;
    rig_open_morph(&m, c, &c->named->problem, NULL, FRAMES, &random);
    struct partita_stream *stream = open_stream(&m);
    void *y = stream_rig_alloc_output(&m.rig);
    stream_rig_feed(&m.rig, stream, y, &split_whole, &random);
    for (size_t i = 0; i < m.rig.n_taps; i++) {
        double complex sum = 0;
        for (size_t k = 0; k < FILTERS; k++)
            sum += requests[0].weights[k] * reference_sample(m.rig.problem.taps, m.taps[k], i);
        sample_put(m.rig.problem.taps, m.rig.w, i, sum);
    }
    stream_rig_check(&m.rig, y);
    partita_stream_close(stream);
    guarded_free(y);
    rig_close_morph(&m);
}

struct mover {
    struct partita_stream *stream;
    atomic_bool stop;
};

static void *move(void *context)
{
    struct mover *mover = context;
    struct random random = random_start("mover");
    while (!atomic_load(&mover->stop)) {
        const double s = (double)random_below(&random, 9) / 8;
        assert_ok(
            partita_stream_morph(mover->stream, (double[]){s, 1 - s}, random_below(&random, 500)));
    }
    return NULL;
}

// Another thread moves the weights all the time. Both filters are the same and their weights have
// the sum 1, so that the outputs are those of the filter at all times, unless weights are torn.
static void from_another_thread(void **state)
{
    const struct stream_case *c = *state;
    struct random random = random_start("thread");
    struct stream_rig rig;
    stream_rig_open_exactly(&rig, c, &c->named->problem, NULL, FRAMES, &random);
    const struct partita_filter *twice[] = {rig.filter, rig.filter};
    struct mover mover = {.stop = false};
    pthread_t thread;
    assert_ok(
        partita_stream_open_morph(rig.plan, twice, 2, (const double[]){0.25, 0.75}, &mover.stream));
    void *y = stream_rig_alloc_output(&rig);
    assert_int_equal(pthread_create(&thread, NULL, move, &mover), 0);
    const struct call_split block = {"", 64, false};
    stream_rig_feed(&rig, mover.stream, y, &block, &random);
    atomic_store(&mover.stop, true);
    pthread_join(thread, NULL);
    stream_rig_check(&rig, y);
    partita_stream_close(mover.stream);
    guarded_free(y);
    stream_rig_close(&rig);
}

static void assert_refused(struct log_lines *lines, enum partita_status expected,
                           enum partita_status status, const char *text)
{
    assert_int_equal(status, expected);
    assert_int_equal(lines->n_lines, 1);
    if (!strstr(lines->text, text)) fail_msg("\"%s\" is not in: %s", text, lines->text);
    *lines = (struct log_lines){.n_lines = 0};
}

static void refusals(void **state)
{
    (void)state;
    static float taps[3000];
    struct log_lines lines = {.n_lines = 0};
    const struct partita_options options = {.engine = "cpu/partitioned", .log = log_into(&lines)};
    const struct partita_problem problem = {STREAM(64), KERNEL(3000)};
    struct partita_plan *plan, *other, *direct;
    struct partita_filter *filter, *of_other, *of_direct;
    struct partita_stream *stream = NULL, *clone;
    taps[0] = 1;
    assert_ok(partita_plan_create(&problem, &options, &plan));
    assert_ok(partita_plan_create(&problem, &options, &other));
    const struct partita_options sums = {.engine = "cpu/direct", .log = log_into(&lines)};
    assert_ok(partita_plan_create(&problem, &sums, &direct));
    assert_ok(partita_filter_create(plan, taps, &filter));
    assert_ok(partita_filter_create(other, taps, &of_other));
    assert_ok(partita_filter_create(direct, taps, &of_direct));
    const struct partita_filter *filters[9] = {filter, filter, filter, filter, filter,
                                               filter, filter, filter, filter};
    const double ones[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, bad[2] = {1, NAN};
    assert_refused(&lines, PARTITA_ERR_ARG, partita_stream_open_morph(plan, NULL, 2, ones, &stream),
                   "filters");
    assert_refused(&lines, PARTITA_ERR_ARG,
                   partita_stream_open_morph(plan, filters, 2, NULL, &stream), "weights");
    assert_refused(&lines, PARTITA_ERR_ARG,
                   partita_stream_open_morph(plan, filters, 0, ones, &stream), "n_filters = 0");
    assert_refused(&lines, PARTITA_ERR_ARG,
                   partita_stream_open_morph(plan, filters, 9, ones, &stream), "from 1 to 8");
    assert_refused(&lines, PARTITA_ERR_ARG,
                   partita_stream_open_morph(plan, filters, 2, bad, &stream), "finite");
    filters[1] = of_other;
    assert_refused(&lines, PARTITA_ERR_ARG,
                   partita_stream_open_morph(plan, filters, 2, ones, &stream),
                   "filters[1]: of another plan");
    filters[1] = NULL;
    assert_refused(&lines, PARTITA_ERR_ARG,
                   partita_stream_open_morph(plan, filters, 2, ones, &stream), "filters[1]: NULL");
    assert_refused(&lines, PARTITA_ERR_UNSUPPORTED,
                   partita_stream_open_morph(direct, (const struct partita_filter *[]){of_direct},
                                             1, ones, &stream),
                   "cpu/partitioned");
    assert_null(stream);
    assert_ok(partita_stream_open(plan, filter, &stream));
    assert_int_equal(partita_stream_morph(stream, ones, 0), PARTITA_ERR_UNSUPPORTED);
    assert_int_equal(partita_stream_morph_lag(stream, 0), 0);
    partita_stream_close(stream);
    assert_ok(partita_stream_open_morph(plan, filters, 1, ones, &stream));
    assert_int_equal(partita_stream_morph(NULL, ones, 0), PARTITA_ERR_ARG);
    assert_int_equal(partita_stream_morph(stream, NULL, 0), PARTITA_ERR_ARG);
    assert_int_equal(partita_stream_morph(stream, bad + 1, 0), PARTITA_ERR_ARG);
    assert_int_equal(partita_stream_swap(stream, filter, 0), PARTITA_ERR_UNSUPPORTED);
    assert_refused(&lines, PARTITA_ERR_UNSUPPORTED, partita_stream_clone(stream, &clone), "clones");
    partita_stream_close(stream);
    partita_filter_destroy(of_direct);
    partita_filter_destroy(of_other);
    partita_filter_destroy(filter);
    partita_plan_destroy(direct);
    partita_plan_destroy(other);
    partita_plan_destroy(plan);
}

static const struct {
    const char *name;
    void (*run)(void **state);
    size_t problems, types; // the first ones of their lists; the convolution in double is slow
} promises[] = {
    {"within-the-bound", within_the_bound, N_BOUND_PROBLEMS, 2},
    {"rest-is-one-filter", rest_is_one_filter, N_PROBLEMS, N_TYPE_PAIRS},
    {"any-cut-same-bits", any_cut_same_bits, N_PROBLEMS, N_TYPE_PAIRS},
    {"threads-same-bits", threads_same_bits, N_PROBLEMS, N_TYPE_PAIRS},
    {"state-goes-on", state_goes_on, N_PROBLEMS, N_TYPE_PAIRS},
    {"from-another-thread", from_another_thread, 1, N_TYPE_PAIRS},
    {"begins-at-a-quantum", begins_at_a_quantum, 1, N_TYPE_PAIRS},
};
enum { N_PROMISES = sizeof promises / sizeof *promises };

int main(void)
{
    static struct stream_case cases[N_TYPE_PAIRS][N_PROBLEMS];
    static struct CMUnitTest tests[N_TYPE_PAIRS * N_PROBLEMS * N_PROMISES + 4];
    // Batches of two blocks; blocks whose work takes several quanta; whole blocks; batches of four.
    static struct partita_problem measured[] = {{STREAM(64), KERNEL(400)},
                                                {STREAM(32), KERNEL(1500)},
                                                {STREAM(64), KERNEL(700), .whole_blocks = true},
                                                {STREAM(64), KERNEL(3000)}};
    size_t n = 0;
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++)
        tests[n++] =
            named_test(weights_of_taps, &measured[i], "weights-of-taps/%zu", measured[i].kernel[0]);
    tests[n++] = named_test(refusals, NULL, "refusals");
    for (size_t t = 0; t < N_TYPE_PAIRS; t++)
        for (size_t p = 0; p < N_PROBLEMS; p++) {
            cases[t][p] = (struct stream_case){"cpu/partitioned", &type_pairs[t], &problems[p]};
            if (!rig_has_problem(t, p)) continue;
            for (size_t i = 0; i < N_PROMISES; i++)
                if (p < promises[i].problems && t < promises[i].types)
                    tests[n++] = named_test(promises[i].run, &cases[t][p], "%s/%s-%s",
                                            promises[i].name, problems[p].name, type_pairs[t].name);
        }
    return run_test_list(tests, n);
}
