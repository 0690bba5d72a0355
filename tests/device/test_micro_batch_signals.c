// SPDX-License-Identifier: MIT
// Long sequences in host memory in micro-batches (decision 27): every engine's results are right
// for any split and the same from any memory; signals and filters may exceed device memory; after a
// failure all memory is released.
#include "support/rig.h"

#include <math.h>

#include "device/arrays.h"
#include "device/engines.h"
#include "support/layer_rig.h"

enum { TABLES = 36 << 10 }; // bytes of the twiddles of a transform of 4096 points of f32

// Sequences that are split: with padding and without, with more padding than a micro-batch has
// samples, with a part of the signal, with a part of the taps; several channels; strides and
// dilation; a batch.
static const struct partita_problem problems[] = {
    {LENGTH(500), KERNEL(33), PAD(32)},
    {LENGTH(400), CORRELATE, KERNEL(20)},
    {LENGTH(100), KERNEL(8), PAD_BEGIN(150), PAD_END(200)},
    {LENGTH(400), CORRELATE, KERNEL(8), PAD_BEGIN(-30), PAD_END(-50)},
    {LENGTH(100), KERNEL(50), PAD_BEGIN(500), PAD_END(-80)},
    {LENGTH(240), CORRELATE, KERNEL(5), DILATION(5), PAD(10)},
    {LENGTH(200), CHANNELS(4, 6), GROUPS(2), KERNEL(9), PAD(4), RELU},
    {LENGTH(303), CORRELATE, CHANNELS(2, 1), KERNEL(10), STRIDE(3), DILATION(2), PAD_BEGIN(7),
     PAD_END(5)},
    {LENGTH(200), OUTPUTS(2), KERNEL(5), PAD(4)},
    {LENGTH(301), KERNEL(3), STRIDE(4), PAD_BEGIN(-5), PAD_END(9)},
    {LENGTH(256), BATCH(3), OUTPUTS(2), KERNEL(17), PAD_BEGIN(16)},
    {LENGTH(333), TYPES(F64, F64), KERNEL(24), PAD_BEGIN(11), PAD_END(12)},
};
enum { N_PROBLEMS = sizeof problems / sizeof *problems };

// Bytes of x and y of one item.
static size_t item_bytes(const struct partita_problem *problem)
{
    const size_t samples = problem_inputs(problem) + problem_outputs(problem);
    return samples * partita_type_size(problem->signal) / (problem->batch ? problem->batch : 1);
}

// Outputs of a sequence in a micro-batch, inputs of backward data; 0: the plan does not split it.
static size_t micro_batch_outputs(const struct partita_plan *plan)
{
    if (!plan || !plan->micro_batch) return 0;
    const struct axis *part = &plan->micro_batch->shape.axis[0], *whole = &plan->shape.axis[0];
    if (plan->direction == PARTITA_BACKWARD_DATA) return part->size < whole->size ? part->size : 0;
    return part->out < whole->out ? part->out : 0;
}

static struct partita_options options_of(const char *engine, size_t limit)
{
    return layer_options(&(struct partita_options){
        .engine = engine, .directions = LAYER_ALL, .workspace_limit = limit});
}

// The number of an engine's directions that are split within a limit.
static size_t count_split_directions(const char *engine, const struct partita_problem *problem,
                                     size_t limit)
{
    size_t split = 0;
    for (unsigned direction = 1; direction <= PARTITA_BACKWARD_WEIGHT; direction *= 2) {
        struct partita_options options = options_of(engine, limit);
        struct partita_plan *plan;
        options.directions = direction;
        if (partita_plan_create(problem, &options, &plan) != PARTITA_OK) continue;
        split += micro_batch_outputs(plan) || micro_batch_outputs(plan->backward_data) ||
                 micro_batch_outputs(plan->backward_weight);
        partita_plan_destroy(plan);
    }
    return split;
}

// Whether an engine has these directions of a problem.
static bool serves(const char *engine, const struct partita_problem *problem, unsigned directions)
{
    struct partita_options options = options_of(engine, 0);
    struct partita_plan *plan;
    options.directions = directions;
    const enum partita_status status = partita_plan_create(problem, &options, &plan);
    if (status == PARTITA_OK) partita_plan_destroy(plan);
    return status == PARTITA_OK;
}

// Into about how many micro-batches arrays are split; brief runs have the last of them.
static const size_t all_splits[] = {1, 6, 3};
enum { N_SPLITS = sizeof all_splits / sizeof *all_splits };

// Sequences split into shorter and shorter micro-batches.
static void lines(void **state)
{
    const char *engine = *state;
    struct random random = random_start("lines");
    size_t split = 0;
    bool served = false;
    for (size_t i = 0; i < N_PROBLEMS; i++)
        served = served || serves(engine, &problems[i], LAYER_ALL);
    for (size_t i = 0; i < N_PROBLEMS; i++)
        for (size_t k = layer_is_brief() ? N_SPLITS - 1 : 0; k < N_SPLITS; k++) {
            const size_t limit = 4 * item_bytes(&problems[i]) / all_splits[k] - 1;
            const struct partita_options options = options_of(engine, limit);
            struct partita_plan *plan;
            struct layer layer;
            const size_t directions = count_split_directions(engine, &problems[i], limit);
            if (!directions) continue;
            if (partita_plan_create(&problems[i], &options, &plan) != PARTITA_OK)
                continue; // only forward, see forward_lines
            partita_plan_destroy(plan);
            split += directions;
            layer_open(&layer, &problems[i], &options, &random);
            layer_run(&layer);
            layer_check(&layer);
            layer_close(&layer);
            assert_int_equal(hostdev_allocations(), 0);
        }
    if (!split && served) fail_msg("%s: no sequence is split in all directions", engine);
}

// Engines with forward only and types without gradients.
static void forward_lines(void **state)
{
    static const struct partita_problem complex_problems[] = {
        {LENGTH(400), TYPES(CF32, CF32), KERNEL(30), PAD_BEGIN(29)},
        {LENGTH(300), TYPES(CF64, CF64), CORRELATE, OUTPUTS(2), KERNEL(12), STRIDE(2), PAD_BEGIN(5),
         PAD_END(6)},
        {LENGTH(400), TYPES(CF32, F32), KERNEL(25), PAD_END(24)},
    };
    enum { N_COMPLEX = sizeof complex_problems / sizeof *complex_problems };
    const char *engine = *state;
    struct random random = random_start("forward-lines");
    size_t served = 0, split = 0;
    for (size_t i = 0; i < N_PROBLEMS + N_COMPLEX; i++)
        for (size_t k = layer_is_brief() ? N_SPLITS - 1 : 0; k < N_SPLITS; k++) {
            const struct partita_problem *problem =
                i < N_PROBLEMS ? &problems[i] : &complex_problems[i - N_PROBLEMS];
            if (problem->activation || serves(engine, problem, LAYER_ALL))
                continue; // tested by lines
            struct partita_options options =
                options_of(engine, 4 * item_bytes(problem) / all_splits[k] - 1);
            struct partita_plan *plan;
            struct rig rig;
            options.directions = PARTITA_FORWARD;
            served += serves(engine, problem, PARTITA_FORWARD);
            if (partita_plan_create(problem, &options, &plan) != PARTITA_OK) continue;
            const bool is_split = micro_batch_outputs(plan);
            partita_plan_destroy(plan);
            if (!is_split) continue;
            split++;
            rig_open(&rig, problem, &options, &random);
            rig_forward(&rig);
            rig_check(&rig);
            rig_close(&rig);
            assert_int_equal(hostdev_allocations(), 0);
        }
    if (!split && served && !layer_is_brief()) fail_msg("%s: no sequence is split", engine);
}

// Small integers for x, taps and gy, so that all sums are exact in any order.
static void put_integers(struct layer *layer, struct random *random)
{
    for (int a = 0; a < LAYER_Y; a++)
        for (size_t i = 0; i < layer->n[a]; i++)
            sample_put(layer->problem.signal, layer->array[a], i,
                       (double)random_below(random, 7) - 3);
}

static void copy_inputs(struct layer *to, const struct layer *from)
{
    for (int a = 0; a < LAYER_Y; a++) memcpy(to->array[a], from->array[a], layer_bytes(to, a));
}

// Makes the filter of a layer whose inputs were replaced.
static void renew_filter(struct layer *layer)
{
    partita_filter_destroy(layer->filter);
    layer->filter = NULL;
    assert_ok(filter_with_bias(layer->plan, layer->array[LAYER_W], layer->array[LAYER_BIAS],
                               &layer->filter));
}

// Impulses on both sides of every split of x and of gy have the bits of the whole sequence.
static void impulses(struct layer *split, struct layer *whole)
{
    struct layer *const layers[] = {split, whole};
    const size_t hop = micro_batch_outputs(split->plan) * split->plan->shape.axis[0].stride;
    const ptrdiff_t begin = split->plan->shape.axis[0].begin;
    for (ptrdiff_t at = begin + (ptrdiff_t)hop - 1; at < (ptrdiff_t)split->n[LAYER_X];
         at += (ptrdiff_t)hop)
        for (ptrdiff_t i = at; i < at + 2; i++) {
            if (i < 0 || i >= (ptrdiff_t)split->n[LAYER_X] || i >= (ptrdiff_t)split->n[LAYER_GY])
                continue;
            for (int l = 0; l < 2; l++) {
                memset(layers[l]->array[LAYER_X], 0, layer_bytes(split, LAYER_X));
                memset(layers[l]->array[LAYER_GY], 0, layer_bytes(split, LAYER_GY));
                sample_put(split->problem.signal, layers[l]->array[LAYER_X], (size_t)i, 1);
                sample_put(split->problem.signal, layers[l]->array[LAYER_GY], (size_t)i, 1);
                layer_run(layers[l]);
            }
            layer_same_bits(split, whole);
        }
}

// Exact sums are the same for any split.
static void any_split_same_integers(void **state)
{
    static const struct partita_problem exact[] = {
        {LENGTH(60), KERNEL(5), PAD(4)},
        {LENGTH(70), CORRELATE, KERNEL(3), STRIDE(2), DILATION(2), PAD_BEGIN(1)},
        // Limits below one step of a micro-batch, which has no overlap.
        {LENGTH(20), CHANNELS(8, 8), KERNEL(1)},
    };
    (void)state;
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++) {
        struct random random = random_start("integers");
        struct layer whole, split;
        struct partita_options options = options_of("cuda/direct:plain", 0);
        size_t last = 0, sizes = 0;
        layer_open(&whole, &exact[i], &options, &random);
        assert_null(whole.plan->micro_batch);
        const size_t step = (size_t)64 << i; // of limits
        for (options.workspace_limit = 64; options.workspace_limit < 4 * item_bytes(&exact[i]);
             options.workspace_limit += step) {
            struct partita_plan *plan;
            assert_ok(partita_plan_create(&exact[i], &options, &plan));
            const size_t n = micro_batch_outputs(plan);
            partita_plan_destroy(plan);
            if (!n || n == last) continue;
            last = n, sizes++;
            layer_open_copy(&split, &whole, &options);
            put_integers(&split, &random);
            copy_inputs(&whole, &split);
            renew_filter(&split), renew_filter(&whole);
            layer_run(&split), layer_run(&whole);
            layer_same_bits(&split, &whole);
            if (i < 2) impulses(&split, &whole);
            layer_close(&split);
        }
        assert_true(sizes >= 5);
        layer_close(&whole);
    }
}

// Size of a micro-batch: 16 MiB including the overlap with the previous one, or four times the
// overlap; less within a limit, but at least the overlap.
static void sizes(void **state)
{
    enum { MIB = 1 << 20 };
    static const struct {
        size_t kernel, limit, min, max; // taps; bytes; outputs of a micro-batch, 0: not split
    } cases[] = {
        {1, 0, MIB, 2 * MIB},
        {100, 0, MIB, 2 * MIB},
        {4 * MIB + 1, 0, 7 * MIB, 8 * MIB},
        {4 * MIB + 1, 64 * MIB, 0, 0},
        {4 * MIB + 1, (size_t)160 * MIB, 2 * MIB, 3 * MIB},
        {100, 16 * MIB, MIB / 4, MIB / 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (unsigned direction = 1; direction <= PARTITA_BACKWARD_WEIGHT; direction *= 2) {
            const struct partita_problem problem = {.kernel = {cases[i].kernel},
                                                    .size = {(size_t)64 * MIB}};
            struct partita_options options = options_of("cuda/direct:plain", cases[i].limit);
            struct partita_plan *plan;
            options.directions = direction;
            assert_ok(partita_plan_create(&problem, &options, &plan));
            const size_t n = micro_batch_outputs(plan->backward_data     ? plan->backward_data
                                                 : plan->backward_weight ? plan->backward_weight
                                                                         : plan);
            if (n < cases[i].min || n > cases[i].max) fail_msg("case %zu: %zu outputs", i, n);
            partita_plan_destroy(plan);
        }
}

// A long filter on a long signal is not split, and the log says that it cannot fit; a signal that
// is split fits.
static void too_large(void **state)
{
    const size_t memory = (size_t)1 << 40; // the stand-in's
    struct log_lines lines = {0};
    struct partita_options options = options_of("cuda/direct:plain", 0);
    struct partita_plan *plan;
    (void)state;
    options.directions = PARTITA_FORWARD;
    options.log = log_into(&lines);
    const struct partita_problem fits = {LENGTH(memory / 4), KERNEL(1 << 20)};
    assert_ok(partita_plan_create(&fits, &options, &plan));
    assert_non_null(plan->micro_batch);
    partita_plan_destroy(plan);
    assert_int_equal(lines.n_lines, 0);
    const struct partita_problem large = {LENGTH(memory / 8), KERNEL(memory / 16),
                                          PAD_BEGIN((ptrdiff_t)memory / 16)};
    assert_ok(partita_plan_create(&large, &options, &plan));
    assert_null(plan->micro_batch);
    partita_plan_destroy(plan);
    assert_int_equal(lines.n_lines, 1);
    assert_non_null(strstr(lines.text, "for arrays, which are not split"));
}

// The bits are those of pageable arrays, except gradients of taps and bias of arrays on the device,
// which are not split.
static void any_memory_same_bits(void **state)
{
    static const enum memory memories[][2] = {
        {PINNED, PINNED}, {PINNED, PAGEABLE}, {DEVICE, PAGEABLE}, {PAGEABLE, DEVICE}};
    static const size_t tried[] = {0, 1, 6, 10};
    (void)state;
    for (size_t k = 0; k < sizeof tried / sizeof *tried; k++) {
        const struct partita_problem *problem = &problems[tried[k]];
        struct random random = random_start("memory");
        const struct partita_options options =
            options_of("cuda/direct", 4 * item_bytes(problem) / 2);
        struct layer first, other;
        layer_open(&first, problem, &options, &random);
        assert_true(micro_batch_outputs(first.plan) &&
                    micro_batch_outputs(first.plan->backward_data) &&
                    micro_batch_outputs(first.plan->backward_weight));
        layer_run(&first);
        for (size_t i = 0; i < sizeof memories / sizeof *memories; i++) {
            layer_open_copy(&other, &first, &options);
            layer_run_in(&other, LAYER_ALL, memories[i][0], memories[i][1]);
            for (int a = LAYER_Y; a < LAYER_ARRAYS; a++)
                if (!(memories[i][0] == DEVICE && a >= LAYER_GW))
                    assert_memory_equal(first.array[a], other.array[a], layer_bytes(&first, a));
            layer_close(&other);
        }
        layer_close(&first);
        assert_int_equal(hostdev_allocations(), 0);
    }
}

// A signal that exceeds device memory is filtered and has gradients within a limit.
static void larger_than_memory(void **state)
{
    const char *engine = *state;
    const struct partita_problem problem = {LENGTH(20000), KERNEL(40), PAD_BEGIN(39)};
    const size_t limit = 16 << 10;
    struct random random = random_start("larger");
    struct layer layer;
    // Arrays, a workspace of at most the limit, filters and two gradients.
    hostdev_memory(2 * limit + 8192 + TABLES);
    const struct partita_options options = options_of(engine, limit),
                                 unlimited = options_of(engine, 0);
    layer_open(&layer, &problem, &options, &random);
    layer_run(&layer);
    layer_check(&layer);
    layer_close(&layer);
    layer_open(&layer, &problem, &unlimited, &random);
    assert_int_equal(
        partita_forward(layer.plan, layer.filter, layer.array[LAYER_Y], layer.array[LAYER_X], NULL),
        PARTITA_ERR_NOMEM);
    layer_close(&layer);
    hostdev_memory(0);
    assert_int_equal(hostdev_allocations(), 0);
}

// Taps of a single use that every micro-batch of many outputs, or of a batch, reads.
static void taps_of_every_micro_batch(void **state)
{
    static const struct {
        struct partita_problem problem;
        size_t limit;
    } many[] = {{{LENGTH(20000), BATCH(3), KERNEL(40)}, 32 << 10},
                {{LENGTH(3010), BATCH(20), KERNEL(3000)}, 128 << 10}};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct partita_options options = options_of("cuda/blocks", many[i].limit);
        struct random random = random_start("every-piece");
        struct rig rig;
        options.directions = PARTITA_FORWARD;
        rig_open(&rig, &many[i].problem, &options, &random);
        assert_true(rig.plan->choice.from_taps);
        assert_true(i ? rig.plan->micro_batch->shape.batch > 1 : micro_batch_outputs(rig.plan) > 1);
        partita_filter_destroy(rig.filter);
        rig.filter = NULL;
        const struct shape *part = &rig.plan->micro_batch->shape;
        const size_t arrays = 2 * part->batch * item_bytes(&many[i].problem),
                     taps = rig.n_w * rig.sample_bytes;
        hostdev_memory(i ? arrays + taps + rig.plan->micro_batch->choice.shared + taps / 2
                         : 2 * many[i].limit);
        assert_ok(
            partita_forward(rig.plan, NULL, rig.y, rig.x, &(struct partita_call){.taps = rig.w}));
        hostdev_memory(0);
        rig_check(&rig);
        rig_close(&rig);
        assert_int_equal(hostdev_allocations(), 0);
    }
}

static void failing_lines(void **state)
{
    static const cudaError_t errors[] = {cudaErrorMemoryAllocation, cudaErrorIllegalAddress};
    static const struct partita_problem few = {LENGTH(50), KERNEL(4), PAD_BEGIN(3)};
    const struct partita_options options = options_of(*state, 4 * item_bytes(&few) / 2);
    struct random random = random_start("failing-lines");
    struct layer reference;
    layer_open(&reference, &few, &options, &random);
    assert_int_equal(count_split_directions(*state, &few, options.workspace_limit), 3);
    layer_run(&reference);
    for (size_t e = 0; e < 2; e++)
        for (size_t k = 1; layer_attempt(&reference, &options, k, errors[e]); k++) {
        }
    layer_close(&reference);
}

// The engines of the device that serve any of the sequences.
static size_t list_engines(struct engine_name ret[MAX_DEVICE_ENGINES])
{
    const size_t n_names = list_device_engines(ret);
    size_t n = 0;
    for (size_t e = 0; e < n_names; e++)
        for (size_t i = 0; i < N_PROBLEMS; i++) {
            if (!serves(ret[e].text, &problems[i], PARTITA_FORWARD)) continue;
            ret[n++] = ret[e];
            break;
        }
    return n;
}

int main(void)
{
    enum { ALONE = 8, FAILING = 1 };
    static struct CMUnitTest tests[ALONE + 2 * MAX_DEVICE_ENGINES + FAILING];
    static struct engine_name engines[MAX_DEVICE_ENGINES];
    size_t n = 0;
    if (layer_device_check() != LAYER_DEVICE_READY) return 1;
    tests[n++] = named_test(any_split_same_integers, NULL, "any-cut-same-integers");
    tests[n++] = named_test(sizes, NULL, "sizes");
    tests[n++] = named_test(too_large, NULL, "too-large");
    tests[n++] = named_test(any_memory_same_bits, NULL, "any-memory-same-bits");
    tests[n++] =
        named_test(larger_than_memory, "cuda/direct:plain", "cuda/direct:plain/larger-than-memory");
    tests[n++] =
        named_test(larger_than_memory, "cuda/overlap-save", "cuda/overlap-save/larger-than-memory");
    tests[n++] = named_test(larger_than_memory, "cuda/blocks", "cuda/blocks/larger-than-memory");
    tests[n++] = named_test(taps_of_every_micro_batch, NULL, "taps-with-every-piece");
    const size_t n_engines = list_engines(engines);
    for (size_t e = 0; e < n_engines; e++) {
        tests[n++] = named_test(lines, engines[e].text, "%s/lines", engines[e].text);
        tests[n++] =
            named_test(forward_lines, engines[e].text, "%s/forward-lines", engines[e].text);
    }
    if (!layer_is_brief())
        tests[n++] = named_test(failing_lines, "cuda/direct:plain", "failing-lines");
    return run_test_list(tests, n);
}
