// SPDX-License-Identifier: MIT
// Searches of planning that leave candidates out, for random problems and random rates of the cost
// model: no candidate is much cheaper than the one that is found.

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/winograd_matrix.h"
#include "core/problem.h"
#include "cpu/conv/signal_rates.h"
#include "cpu/partitioned/partitioned.h"
#include "fft/fft.h"
#include "geometry/tile_tables.h"
#include "geometry/winograd_search.h"
#include "planner/planner.h"

#include "support/rig.h" // after the others: it defines `complex`

static double random_unit(struct random *random)
{
    return (double)random_below(random, 1 << 20) / (1 << 20);
}

// 1 .. 2^bits, small numbers more often.
static size_t random_size(struct random *random, unsigned bits)
{
    return 1 + random_below(random, (size_t)1 << random_below(random, bits + 1));
}

// Rates up to e^max_spread times lower or higher than the built-in ones, each by a factor of its
// own, and caches of other sizes.
static struct cost_model random_model(struct random *random, double max_spread)
{
    struct cost_model model;
    const double spread = max_spread * random_unit(random);
    cost_model_default(&model, random_below(random, 2) ? CPU_AVX512 : CPU_C);
    double *rates = (double *)model.costs;
    for (size_t i = 0; i < sizeof model.costs / (sizeof *rates); i++)
        rates[i] *= exp(spread * (2 * random_unit(random) - 1));
    if (random_below(random, 2)) model.cache_bytes = (size_t)1 << (8 + random_below(random, 16));
    if (random_below(random, 2)) model.shared_bytes = (size_t)1 << (12 + random_below(random, 18));
    return model;
}

static struct request request_of(const struct shape *shape, enum partita_direction direction,
                                 const struct cost_model *model)
{
    return (struct request){.shape = shape,
                            .direction = direction,
                            .model = model,
                            .variant = ANY_VARIANT,
                            .workspace_limit = SIZE_MAX};
}

static const struct engine *engine_named(const char *name)
{
    size_t i = 0;
    while (strcmp(cpu_engines[i]->name, name) != 0) i++;
    return cpu_engines[i];
}

static bool canonical(const struct partita_problem *problem, struct shape *ret)
{
    static const struct partita_log silent;
    return problem_canonical(problem, &silent, ret) == PARTITA_OK;
}

static struct partita_problem random_layer(struct random *random)
{
    struct partita_problem problem = {.op = PARTITA_CORRELATE,
                                      .signal = random_below(random, 2) ? PARTITA_F32 : PARTITA_F64,
                                      .rank = 1 + (int)random_below(random, 2),
                                      .batch = random_size(random, 4),
                                      .channels_last = random_below(random, 3) == 0};
    problem.groups = random_below(random, 3) ? 1 : random_size(random, 4);
    problem.in_channels = problem.groups * random_size(random, 7);
    problem.out_channels = problem.groups * random_size(random, 7);
    for (int a = 0; a < problem.rank; a++) {
        problem.kernel[a] = random_size(random, 3);
        problem.size[a] = problem.kernel[a] * 3 + random_size(random, 6);
        problem.stride[a] = random_below(random, 3) ? 1 : random_size(random, 6);
        problem.dilation[a] = random_below(random, 3) ? 1 : random_size(random, 1);
        // With crops and long strides there are gradients that nothing reaches.
        problem.pad_begin[a] = (ptrdiff_t)random_below(random, 6) - 3;
        problem.pad_end[a] = (ptrdiff_t)random_below(random, 6) - 3;
    }
    return problem;
}

typedef size_t next_size_fn(size_t n);

// The least cost of all sizes of transforms, each asked for by itself.
static double cheapest_size(const struct engine *engine, struct request request, next_size_fn *next,
                            size_t max)
{
    double cost = INFINITY;
    for (size_t n = next(1); n && n <= max; n = next(n + 1)) {
        struct estimate estimate = {0};
        request.transform = n;
        engine->estimate(&request, &estimate);
        if (estimate.applicable) cost = fmin(cost, request_cost(&request, &estimate));
    }
    return cost;
}

// A filter that lives for ever, or is used so often.
static unsigned random_uses(struct random *random)
{
    return random_below(random, 2) ? 0 : (unsigned)random_size(random, 6);
}

static size_t next_tile(size_t n)
{
    return tile_tables_next_size(n, true);
}

static size_t next_even(size_t n)
{
    return n <= 4 ? 4 : n + n % 2;
}

// cpu/winograd finds the cheapest even size, or an odd one that is cheaper; imposed sizes may have
// odd ones beside them that a search leaves out. cpu/tiles searches the sizes that are cheapest
// with batches of one size: it finds one within its margin of the least where rates differ from the
// built-in ones as those of machines do.
static void tile_searches_find_cheap_sizes(void **state)
{
    (void)state;
    struct random random = random_start("tiles");
    static const struct {
        const char *engine;
        double spread, margin;
        bool limits; // of the workspace
        next_size_fn *next;
    } rows[] = {{"cpu/winograd", 5, 1.15, false, next_even},
                {"cpu/tiles", 0.7, 1.15, false, next_tile},
                {"cpu/tiles", 0, 1, true, next_tile}};
    // No output reads a sample of x, so that there is no tile of gx.
    static const struct partita_problem unread = {LENGTH(3), KERNEL(1),    CHANNELS(8, 8),
                                                  STRIDE(5), PAD_BEGIN(2), PAD_END(1)};
    // Few positions, whose transposed products read their factors during their sums.
    static const struct partita_problem few = {.op = PARTITA_CORRELATE,
                                               .rank = 2,
                                               CHANNELS(64, 96),
                                               .kernel = {3, 3},
                                               .size = {7, 7},
                                               .pad_begin = {1, 1},
                                               .pad_end = {1, 1}};
    int found_cheapest = 0, searched = 0;
    for (int i = 0; i < 600; i++) {
        struct partita_problem problem = i ? random_layer(&random) : unread;
        if (i % 8 == 1) problem = few;
        struct shape shape;
        if (!canonical(&problem, &shape)) continue;
        const enum partita_direction direction =
            i ? (enum partita_direction)(1 << random_below(&random, 3)) : PARTITA_BACKWARD_DATA;
        for (size_t e = 0; e < sizeof rows / sizeof *rows; e++) {
            const struct cost_model model = random_model(&random, rows[e].spread);
            const struct engine *engine = engine_named(rows[e].engine);
            struct request request = request_of(&shape, direction, &model);
            struct estimate found = {0};
            request.filter_uses = random_uses(&random);
            if (rows[e].limits) request.workspace_limit = random_size(&random, 20);
            engine->estimate(&request, &found);
            const double least = cheapest_size(engine, request, rows[e].next, 128);
            assert_true(found.applicable == (least < INFINITY) || e == 0);
            if (least == INFINITY) continue;
            assert_true(found.applicable);
            const double cost = request_cost(&request, &found);
            // Rates that fit no machine may make moving a sum less than nothing.
            if (cost > least + (rows[e].margin - 1) * fabs(least))
                fail_msg("%s, problem %d: costs %g, the least is %g", rows[e].engine, i, cost,
                         least);
            found_cheapest += cost <= least;
            searched++;
        }
    }
    assert_true(searched > 500 && found_cheapest > searched * 9 / 10);
}

// The engines that search blocks along one axis find a size whose cost is within their margins of
// the least: 5 % of overlap-save (SIZE_MARGIN), a tenth of its own of blocks (`margin`).
static void signal_searches_find_cheap_sizes(void **state)
{
    (void)state;
    struct random random = random_start("signals");
    static const struct {
        const char *engine;
        double margin;
    } rows[] = {{"cpu/overlap-save", 1.05}, {"cpu/blocks", 1 / 0.9}};
    int found_with_uses = 0;
    for (int i = 0; i < 400; i++) {
        const struct cost_model model = random_model(&random, 5);
        struct partita_problem problem = {.op = PARTITA_CORRELATE,
                                          .batch = random_size(&random, 4),
                                          .in_channels = random_size(&random, 3),
                                          .out_channels = random_size(&random, 3),
                                          .rank = 1};
        problem.kernel[0] = random_size(&random, 12);
        problem.size[0] = problem.kernel[0] + random_size(&random, 13);
        struct shape shape;
        if (!canonical(&problem, &shape)) continue;
        for (size_t e = 0; e < sizeof rows / sizeof *rows; e++) {
            const struct engine *engine = engine_named(rows[e].engine);
            struct request request = request_of(&shape, PARTITA_FORWARD, &model);
            struct estimate found = {0};
            request.filter_uses = random_uses(&random);
            engine->estimate(&request, &found);
            // A transform of this size holds everything.
            const size_t max = fft_good_size(problem.size[0] + 2 * problem.kernel[0]);
            const double least = cheapest_size(engine, request, fft_good_size, max);
            if (!found.applicable) continue;
            if (request_cost(&request, &found) > rows[e].margin * least * (1 + 1e-9))
                fail_msg("%s, %zu x %zu, %u uses: costs %g, the least is %g", rows[e].engine,
                         problem.size[0], problem.kernel[0], request.filter_uses,
                         request_cost(&request, &found), least);
            found_with_uses += request.filter_uses > 0;
        }
    }
    assert_true(found_with_uses > 100);
}

// The table against its definition: the terms that A' sums, over the result.
static void growth_is_that_of_the_matrices(void **state)
{
    (void)state;
    for (size_t extent = 4; extent <= WINOGRAD_EXTENT; extent++)
        for (size_t taps = 2; taps < extent; taps++) {
            const size_t tile = extent + 1 - taps;
            double sum = 0;
            for (size_t i = 0; i < extent; i++) {
                double row[WINOGRAD_EXTENT], inputs = 0, filter = 0, outputs = 0;
                winograd_input_row(extent, i, row);
                for (size_t k = 0; k < extent; k++) inputs += row[k] * row[k];
                for (size_t k = 0; k < taps; k++)
                    filter += pow(winograd_taps_entry(extent, taps, k, i), 2);
                for (size_t k = 0; k < tile; k++)
                    outputs += pow(winograd_output_entry(extent, tile, k, i), 2);
                sum += inputs * filter * outputs;
            }
            const double growth = sqrt(sum / (double)(tile * taps));
            assert_true(fabs(winograd_error_growth(extent, taps) / growth - 1) < 1e-14);
        }
    assert_true(winograd_error_growth(1, 1) == 1);
}

// A layout made from an estimate's decision is the one that the search found. Its transforms take
// the times that the search saw.
static void partitions_are_those_of_the_search(void **state)
{
    (void)state;
    struct random random = random_start("partitions");
    int made = 0;
    for (int i = 0; i < 100; i++) {
        struct cost_model model = random_model(&random, 5);
        struct partita_problem problem = {
            STREAM(random_size(&random, 11)), KERNEL(256 + random_size(&random, 16)),
            .in_channels = random_size(&random, 2), .out_channels = random_size(&random, 2)};
        problem.latency = random_below(&random, 2) ? 0 : random_size(&random, 12);
        struct shape shape;
        if (!canonical(&problem, &shape)) continue;
        struct request request = request_of(&shape, PARTITA_FORWARD, &model);
        request.error_budget = random_below(&random, 2) ? 0 : 1e-3;
        const struct signal_rates rates = cpu_signal_rates(&request);
        const struct partition_device device = cpu_partition_device(&request, &rates);
        struct partition_layout found, layout;
        if (!partition_search(&shape, &device, NULL, &found)) continue;
        made++;
        const struct partition_choice choice = {found.quantum, found.begin};
        struct estimate estimate;
        estimate_store(&estimate, &choice, sizeof choice);
        assert_true(partition_search(&shape, &device, &estimate, &layout));
        assert_int_equal(layout.n_segments, found.n_segments);
        assert_int_equal(layout.quantum, found.quantum);
        assert_int_equal(layout.latency, found.latency);
        assert_int_equal(layout.whole, found.whole);
        assert_int_equal(layout.head, found.head);
        assert_true(layout.seconds == found.seconds && layout.head_seconds == found.head_seconds &&
                    layout.segment_seconds == found.segment_seconds);
        for (size_t s = 0; s < found.n_segments; s++) {
            const struct partition_segment *a = &layout.segment[s], *b = &found.segment[s];
            assert_true(a->hop == b->hop && a->n == b->n && a->multiple == b->multiple &&
                        a->partitions == b->partitions && a->first == b->first &&
                        a->quanta == b->quanta && a->window == b->window && a->start == b->start &&
                        a->batch == b->batch && a->far == b->far && a->memory == b->memory &&
                        a->i16 == b->i16);
            assert_true(fft_interpolates(a->n));
        }
    }
    assert_true(made > 50);
}

// The copies of spectra, which one of nine blocks of the last segment makes here, are spread over
// its window like other work: at the speed of copies within the caches, with the widest vectors, no
// quantum copies more than fits into the worst call.
static void copies_of_spectra_fit_the_worst_call(void **state)
{
    (void)state;
    const struct partita_problem problem = {STREAM(64), KERNEL(480000)};
    struct partita_plan *plan;
    struct cost_model model;
    assert_ok(partita_plan_create(&problem, NULL, &plan));
    const struct partitioned *partitioned = partitioned_of(plan);
    cost_model_default(&model, CPU_AVX512);
    size_t copied = 0;
    for (size_t i = 0; i < partitioned->layout.n_segments; i++) {
        const struct segment_work *work = &partitioned->work[i];
        const size_t each = work->store.each * (SPECTRUM_LINE_BYTES / sizeof(float));
        const double task = (double)each * model.costs[0].work.copy;
        for (size_t r = 0; r < partitioned->layout.segment[i].quanta; r++) {
            const struct fft_steps due = {r ? work->due[r - 1] : 0, work->due[r]};
            const struct fft_steps copies =
                fft_steps_within(due, work->transform.tasks, work->store.tasks);
            assert_true((double)(copies.end - copies.first) * task <= partitioned->load.worst);
            copied += copies.end - copies.first;
        }
    }
    assert_true(copied > partitioned->layout.n_segments);
    partita_plan_destroy(plan);
}

static bool tried_for_layers; // an engine for layers

enum partita_status __real_filter_create(const struct partita_plan *plan, const void *taps,
                                         void *workspace, struct partita_filter **ret_filter);
enum partita_status __wrap_filter_create(const struct partita_plan *plan, const void *taps,
                                         void *workspace, struct partita_filter **ret_filter);
enum partita_status __wrap_filter_create(const struct partita_plan *plan, const void *taps,
                                         void *workspace, struct partita_filter **ret_filter)
{
    // Planning makes a filter only to time an engine.
    if (plan->direction == PARTITA_FORWARD && plan->engine->layers) tried_for_layers = true;
    return __real_filter_create(plan, taps, workspace, ret_filter);
}

// A trial is shorter than its problem, but no engine may refuse it for that: engines for layers
// serve a batch of signals, not one signal.
static void trials_of_batches_are_timed(void **state)
{
    (void)state;
    const struct partita_problem problem = {LENGTH(5000), KERNEL(100), BATCH(32)};
    struct partita_plan *plan;
    assert_ok(
        partita_plan_create(&problem, &(struct partita_options){.effort = PARTITA_MEASURE}, &plan));
    partita_plan_destroy(plan);
    assert_true(tried_for_layers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        named_test(trials_of_batches_are_timed, NULL, "trials-of-batches-are-timed"),
        named_test(tile_searches_find_cheap_sizes, NULL, "tile-searches-find-cheap-sizes"),
        named_test(signal_searches_find_cheap_sizes, NULL, "signal-searches-find-cheap-sizes"),
        named_test(growth_is_that_of_the_matrices, NULL, "growth-is-that-of-the-matrices"),
        named_test(partitions_are_those_of_the_search, NULL, "partitions-are-those-of-the-search"),
        named_test(copies_of_spectra_fit_the_worst_call, NULL,
                   "copies-of-spectra-fit-the-worst-call"),
    };
    return run_test_list(tests, sizeof tests / sizeof *tests);
}
