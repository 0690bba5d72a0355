// SPDX-License-Identifier: MIT
// cuda/overlap-save: windows of the inputs, each with the span-1 samples before it;
// cuda/overlap-add: blocks of inputs that do not overlap, whose outputs do, and are added without
// atomics by K launches, each over windows whose outputs do not overlap. Both are one kernel
// (filter.h). Backward data is the same with the adjoint problem (decision 18); overlap-save has
// backward weight too (cuda/kernels/lags.h), and splits long taps of rows with one filter each
// (long_rows.h). Source: Stockham, High-speed convolution and correlation, AFIPS 1966; Oppenheim &
// Schafer, 8.7.3; Adamek, Dimoudi, Giles, Armour, GPU fast convolution via the overlap-and-save
// method in shared memory, ACM TACO 2020.
#include <assert.h>
#include <math.h>

#include "base/sizes.h"
#include "cuda/device/filter.h"
#include "cuda/kernels/spectra.h"
#include "filter.h"
#include "spectral.h"

// A plan's state: of backward weight the last member, else the others.
struct overlap {
    struct shape shape; // the problem that is run
    struct cuda_fft fft;
    struct cuda_filtering filtering;
    struct cuda_filter_decision decision;
    struct cuda_gradient_plan gradient;
};

// The problem that a direction runs as a forward one, but for the gradient, which is that of the
// problem itself.
static bool overlap_shape(const struct request *request, struct shape *ret, char *reason,
                          size_t size)
{
    const bool data = request->direction == PARTITA_BACKWARD_DATA;
    return shape_forward(request->shape, data ? PARTITA_BACKWARD_DATA : PARTITA_FORWARD, ret,
                         reason, size);
}

static struct cuda_filtering filtering_of(const struct shape *shape,
                                          const struct cuda_fft_form *form, int launches)
{
    const struct axis *axis = &shape->axis[0];
    const size_t samples = cuda_spectral_samples(shape, (size_t)1 << form->log2_points);
    const size_t hop = samples - axis->span + 1, last = (axis->out - 1) * axis->stride;
    assert(samples >= axis->span);
    // A window of overlap-add holds `hop` samples; those that reach back into the outputs come
    // besides.
    const size_t length = launches ? hop : samples;
    const size_t count = (launches ? last + axis->span - 1 : last) / hop + 1;
    // Windows of the first inputs of all groups, [group][item].
    struct cuda_windows in = cuda_row_windows(axis->size, shape->complex_signal);
    in.count = (int64_t)count, in.first = axis->begin;
    in.hop = (int64_t)hop, in.length = (int64_t)length;
    in.outer = (int64_t)shape->groups, in.inner = (int64_t)shape->batch;
    in.pitch = (int64_t)shape->group_in;
    return (struct cuda_filtering){
        .form = *form,
        .in = in,
        .out = {.skip = (int64_t)axis->span - 1,
                .hop = (int64_t)hop,
                .stride = (int64_t)axis->stride,
                .size = (int64_t)axis->out},
        .batch = (int64_t)shape->batch,
        .groups = (int64_t)shape->groups,
        .group_in = (int64_t)shape->group_in,
        .group_out = (int64_t)shape->group_out,
        .accumulate = launches > 0,
        .parts = 1,
    };
}

// The layout for a device of `processors` processors, with at most `shared_limit` bytes of shared
// memory per thread block and `cache_limit` bytes of spectra_cache; false: there is none.
static bool lay_out_filter(const struct cuda_filtering *filtering, bool f64, int processors,
                           size_t shared_limit, size_t cache_limit, struct cuda_filter_layout *ret)
{
    enum { BLOCKS_OF_PROCESSOR = 4 };
    const size_t points = (size_t)1 << filtering->form.log2_points;
    const size_t rows = (size_t)cuda_fft_rows(points);
    const size_t group_in = (size_t)filtering->group_in, group_out = (size_t)filtering->group_out;
    const size_t transforms = rows * cuda_fft_shared(points, f64);
    const size_t bytes_of_point = f64 ? 16 : 8;
    const size_t cached = group_in > 1 ? rows * group_in * points * bytes_of_point : 0;
    const size_t tasks = (size_t)(filtering->groups * filtering->batch * filtering->in.count);
    const size_t target = (size_t)processors * BLOCKS_OF_PROCESSOR;
    // Outputs are split into chunks where tasks alone leave processors idle.
    const size_t wanted = size_min(ceil_div(target * rows, tasks), group_out);
    const size_t chunk_outputs = ceil_div(group_out, wanted);
    const size_t chunks = ceil_div(group_out, chunk_outputs);
    size_t blocks = ceil_div(tasks * chunks, rows);
    *ret = (struct cuda_filter_layout){.chunks = (int64_t)chunks,
                                       .chunk_outputs = (int)chunk_outputs,
                                       .in_memory = transforms + cached > shared_limit};
    ret->shared_bytes = transforms + (ret->in_memory ? 0 : cached);
    if (ret->in_memory) blocks = size_min(size_min(blocks, target), cache_limit / cached);
    if (ret->in_memory) ret->cache_bytes = blocks * cached;
    ret->blocks = (int64_t)blocks;
    return transforms <= shared_limit && blocks > 0 && blocks <= INT32_MAX &&
           group_in <= INT32_MAX / points;
}

// Transforms, products and bytes of all windows.
static struct cuda_stage cuda_overlap_count_work(const struct shape *shape,
                                                 const struct cuda_filtering *filtering,
                                                 const struct cuda_filter_decision *decision)
{
    const struct cuda_filter_layout *layout = &decision->layout;
    const size_t points = decision->points;
    const double windows = (double)shape->batch * (double)filtering->in.count;
    const double in = (double)shape->in_channels, out = (double)shape->out_channels;
    const double paths = out * (double)shape->group_in;
    const double read =
        windows * in * (double)(cuda_spectral_samples(shape, points) * shape->sample_bytes);
    const double written = (double)cuda_output_bytes(shape);
    struct cuda_stage stage = {
        .launches = 1,
        .blocks = (double)layout->blocks,
        .threads = (double)(cuda_fft_rows(points) * cuda_fft_threads(points)),
        .slots = windows * (cuda_transform_slots(points, in * (double)layout->chunks + out) +
                            (double)points * paths * CUDA_PRODUCT_SLOTS),
        .bytes = read + written + paths * (double)(points * 2 * shape->scalar_bytes),
    };
    if (!decision->launches) return stage;
    stage.launches = decision->launches + 2;
    stage.blocks /= decision->launches;
    stage.bytes += 3 * written; // cleared, read and written
    return stage;
}

// Variants: 2 and 3 launches; ANY_VARIANT: overlap-save.
static bool try_filtering(const struct request *request, const struct shape *shape, size_t points,
                          int variant, struct estimate *ret)
{
    const int launches = variant == ANY_VARIANT ? 0 : variant + 2;
    const struct cuda_gpu *gpu = cuda_device_for(request)->gpu;
    const struct cuda_rates rates = cuda_rates_of(request);
    if (cuda_spectral_samples(shape, points) < shape->axis[0].span) return false;
    const struct cuda_fft_form form = cuda_form_of(shape, points);
    const struct cuda_filtering filtering = filtering_of(shape, &form, launches);
    const size_t hop = (size_t)filtering.out.hop, reach = hop + (size_t)filtering.out.skip;
    if (launches && (size_t)launches < ceil_div(reach, hop)) return false; // outputs would overlap
    struct cuda_filter_decision decision = {.points = points, .launches = launches};
    if (!lay_out_filter(&filtering, shape->f64, gpu->processors, gpu->shared_bytes,
                        request->workspace_limit, &decision.layout))
        return false;
    const struct cuda_stage stage = cuda_overlap_count_work(shape, &filtering, &decision);
    const double windows = (double)shape->batch * (double)filtering.in.count;
    const double paths = (double)shape->out_channels * (double)shape->group_in;
    const double channels = (double)(shape->in_channels + shape->out_channels);
    const size_t cache = decision.layout.cache_bytes;
    *ret = (struct estimate){
        .applicable = true,
        .transform = cuda_spectral_samples(shape, points),
        .variant = variant,
        .hop = hop,
        .seconds = cuda_stage_seconds(&rates, &stage),
        .flops = windows * (5 * channels * log2((double)points) + 8 * paths) * (double)points,
        .shared = cache,
        .bytes = size_add((size_t)paths * points * 2 * shape->scalar_bytes, cache),
        .error = cuda_transform_error(shape, points, (double)shape->group_in),
    };
    estimate_store(ret, &decision, sizeof decision);
    return true;
}

static void cuda_overlap_save_estimate(const struct request *request, struct estimate *ret)
{
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    struct shape shape;
    if (!overlap_shape(request, &shape, ret->reason, sizeof ret->reason)) return;
    bool windows = true, rows = !weight;
    if (request->compatible_with && !weight) {
        struct cuda_filter_decision other;
        estimate_load(request->compatible_with, &other, sizeof other);
        windows = !other.long_rows;
        rows = other.long_rows;
    }
    if (windows)
        cuda_spectral_search(request, &shape, weight ? cuda_gradient_try : try_filtering,
                             weight ? 2 : 0, ret);
    if (rows) cuda_long_rows_search(request, &shape, ret);
}

static void cuda_overlap_add_estimate(const struct request *request, struct estimate *ret)
{
    struct shape shape;
    if (overlap_shape(request, &shape, ret->reason, sizeof ret->reason))
        cuda_spectral_search(request, &shape, try_filtering, 2, ret);
}

static enum partita_status prepare_filtering(struct partita_plan *plan, struct overlap *overlap)
{
    const struct shape *shape = &overlap->shape;
    struct cuda_filter_decision *decision = &overlap->decision;
    estimate_load(&plan->choice, decision, sizeof *decision);
    assert(decision->layout.cache_bytes == plan->choice.shared);
    const enum partita_status status =
        cuda_fft_create(plan, decision->points, 1, false, &overlap->fft);
    const struct cuda_fft_form *form = &overlap->fft.params.form;
    if (decision->long_rows) {
        const bool applies = cuda_long_rows_of(shape, form, &overlap->filtering);
        assert(applies); // as estimate saw
        (void)applies;
    } else overlap->filtering = filtering_of(shape, form, decision->launches);
    overlap->filtering.out.relu = plan->shape.relu && plan->direction == PARTITA_FORWARD;
    return status;
}

static enum partita_status cuda_overlap_plan_create(struct partita_plan *plan,
                                                    const struct request *request)
{
    struct overlap *overlap = plan->state;
    overlap_shape(request, &overlap->shape, plan->choice.reason, sizeof plan->choice.reason);
    return plan->direction == PARTITA_BACKWARD_WEIGHT
               ? cuda_gradient_create(plan, &overlap->gradient)
               : prepare_filtering(plan, overlap);
}

static void cuda_overlap_plan_destroy(struct partita_plan *plan)
{
    struct overlap *overlap = plan->state;
    cuda_fft_destroy(plan, &overlap->fft);
    cuda_fft_destroy(plan, &overlap->gradient.fft);
}

// Spectra of all paths [out_channels][group_in][parts][points], of taps in causal order, `dilation`
// apart: those of a correlation are read from the last one on.
static enum partita_status cuda_overlap_filter_pack(struct partita_filter *filter, const void *taps,
                                                    const struct region *scratch)
{
    const struct partita_plan *plan = filter->plan;
    const struct overlap *overlap = plan->state;
    const struct cuda_filter *state = filter->state;
    const struct shape *shape = &overlap->shape;
    struct cuda_fft_params params = overlap->fft.params;
    params.planes = 1; // windows hold the wrapped samples
    struct cuda_windows windows = cuda_taps_windows(shape, shape->adjoint);
    windows.count = overlap->filtering.parts;
    windows.length = (int64_t)cuda_spectral_samples(shape, (size_t)params.points);
    if (overlap->decision.long_rows) windows.hop = windows.length = params.points;
    windows.scale = 1 / (double)params.points;
    (void)scratch;
    return CU(plan, cuda_launch_windows(&params, state->taps, &windows,
                                        (int64_t)(shape->out_channels * shape->group_in), taps));
}

static struct filter_bytes cuda_overlap_filter_bytes(const struct partita_plan *plan)
{
    const struct overlap *overlap = plan->state;
    const size_t paths = overlap->shape.out_channels * overlap->shape.group_in;
    return (struct filter_bytes){.packed = paths * (size_t)overlap->filtering.parts *
                                           overlap->decision.points * 2 *
                                           overlap->shape.scalar_bytes};
}

// Each launch's windows do not meet in an output.
static enum partita_status accumulate(const struct partita_plan *plan,
                                      const struct cuda_arrays *arrays)
{
    const struct overlap *overlap = plan->state;
    struct cuda_filter_windows windows = {0, overlap->decision.launches};
    enum partita_status status = cuda_clear_result(plan, arrays->to);
    for (; windows.first < windows.step && windows.first < overlap->filtering.in.count &&
           status == PARTITA_OK;
         windows.first++)
        status = CU(plan, cuda_launch_filter(&overlap->filtering, &overlap->decision.layout,
                                             overlap->shape.f64, &windows, arrays));
    return status == PARTITA_OK ? cuda_finish_result(plan, arrays->to, arrays->bias) : status;
}

static enum partita_status overlap_run(const struct partita_plan *plan,
                                       const struct partita_filter *filter,
                                       const struct operands *operands, void *workspace)
{
    const struct overlap *overlap = plan->state;
    if (plan->direction == PARTITA_BACKWARD_WEIGHT)
        return cuda_gradient_run(plan, &overlap->gradient, operands, workspace);
    const struct cuda_filter_windows all = {0, 1};
    const struct cuda_arrays arrays = cuda_arrays_of(filter, operands, workspace);
    if (overlap->decision.long_rows)
        return CU(plan, cuda_launch_long_rows(&overlap->filtering, overlap->shape.f64,
                                              overlap->decision.layout.blocks, &arrays));
    if (overlap->filtering.accumulate) return accumulate(plan, &arrays);
    return CU(plan, cuda_launch_filter(&overlap->filtering, &overlap->decision.layout,
                                       overlap->shape.f64, &all, &arrays));
}

static const char *const save_variants[] = {"1-sum", "2-sums", NULL}; // of backward weight
static const char *const add_variants[] = {"2-steps", "3-steps", NULL};

const struct engine cuda_overlap_save = {
    .name = "cuda/overlap-save",
    .variants = save_variants,
    .directions = CUDA_ALL_DIRECTIONS,
    .estimate = cuda_overlap_save_estimate,
    .state_bytes = sizeof(struct overlap),
    .plan_create = cuda_overlap_plan_create,
    .plan_destroy = cuda_overlap_plan_destroy,
    .filter = {CUDA_FILTER_OPS(cuda_overlap_filter_bytes, cuda_overlap_filter_pack)},
    .bounded = {.run = overlap_run},
};

const struct engine cuda_overlap_add = {
    .name = "cuda/overlap-add",
    .variants = add_variants,
    .directions = PARTITA_FORWARD | PARTITA_BACKWARD_DATA,
    .estimate = cuda_overlap_add_estimate,
    .state_bytes = sizeof(struct overlap),
    .plan_create = cuda_overlap_plan_create,
    .plan_destroy = cuda_overlap_plan_destroy,
    .filter = {CUDA_FILTER_OPS(cuda_overlap_filter_bytes, cuda_overlap_filter_pack)},
    .bounded = {.run = overlap_run},
};
