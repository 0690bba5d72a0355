// SPDX-License-Identifier: MIT
#include "weight.h"

#include <math.h>

#include "base/sizes.h"

enum {
    ENOUGH_BLOCKS = 1024
}; // groups are cut into runs of jobs until there are so many blocks of 256 threads

// What is held where in the workspace: sums of runs, spectra of x, of gy, cuFFT's area.
struct layout {
    size_t jobs, of_group, hop, runs, room;
    size_t sums, x, gy, area; // bytes
};

static size_t cells_of(const struct shape *shape)
{
    return shape->out_channels * shape->group_in;
}

// Bytes of it all, SIZE_MAX if it cannot be within the limit; `runs` 0: as many as are good.
static size_t lay_out(const struct shape *shape, size_t points, size_t limit, size_t runs,
                      struct layout *ret)
{
    const struct axis *axis = &shape->axis[0];
    const bool within = points <= cuda_fft_most(shape->f64);
    const size_t spectrum = points * 2 * shape->scalar_bytes, cells = cells_of(shape);
    const size_t samples = cuda_spectral_samples(shape, points);
    *ret = (struct layout){.hop = samples - axis->span + 1};
    ret->of_group = shape->batch * ceil_div((axis->out - 1) * axis->stride + 1, ret->hop);
    ret->jobs = shape->groups * ret->of_group;
    // Sums of several runs are a small part of what they are made of.
    const size_t blocks = ceil_div(cells * points, 256);
    ret->runs = runs ? runs : size_min(ceil_div(ENOUGH_BLOCKS, blocks), ceil_div(ret->of_group, 4));
    const size_t spectra = shape->group_in + shape->group_out;
    while (!runs && ret->runs > 1 && size_mul(size_mul(ret->runs, cells), spectrum) > limit / 2)
        ret->runs--;
    ret->sums = size_mul(size_mul(ret->runs, cells), spectrum);
    if (ret->sums > limit) return SIZE_MAX;
    // Long transforms also need an area, of one more spectrum a job, and cells are transformed back
    // as many at once.
    ret->room = cuda_room(ret->jobs, spectra + !within, spectrum, limit - ret->sums);
    if (!ret->room) return SIZE_MAX;
    ret->x = ret->room * shape->group_in * spectrum;
    ret->gy = ret->room * shape->group_out * spectrum;
    ret->area = within ? 0 : ret->room * spectrum;
    return size_add(size_add(ret->sums, ret->x), size_add(ret->gy, ret->area));
}

bool cuda_weight_consider_spectra(const struct request *request, const struct shape *shape,
                                  size_t points, struct estimate *ret)
{
    struct layout layout;
    const size_t samples = cuda_spectral_samples(shape, points);
    if (samples < shape->axis[0].span) return false;
    const size_t bytes = lay_out(shape, points, request->workspace_limit, 0, &layout);
    if (bytes > request->workspace_limit) return false;
    const double jobs = (double)layout.jobs, pairs = (double)(shape->group_in * shape->group_out);
    const double lines = (double)(shape->group_in + shape->group_out),
                 cells = (double)cells_of(shape);
    const double spectrum = (double)points * 2 * (double)shape->scalar_bytes;
    const bool within = points <= cuda_fft_most(shape->f64);
    const struct cuda_work work = {
        .launches = ceil(jobs / (double)layout.room) * (lines * (within ? 1 : 2) + 1) + 3,
        .slots = cuda_transform_slots(points, jobs * lines + cells) +
                 cuda_spectral_slots(points, jobs * pairs),
        .bytes = jobs * lines * spectrum * (within ? 2 : 6) + 3 * (double)layout.sums +
                 (double)(cuda_input_bytes(shape) + cuda_output_bytes(shape)),
        .lanes = (double)layout.room * lines * (double)points / CUDA_FFT_POINTS,
    };
    *ret = (struct estimate){
        .applicable = true,
        .transform = samples,
        .variant = (int)layout.runs * CUDA_WEIGHT_WAYS,
        .hop = layout.hop,
        .seconds = cuda_work_seconds(request, &work),
        .flops =
            (5 * (jobs * lines + cells) * log2((double)points) + 8 * jobs * pairs) * (double)points,
        .shared = bytes,
        .bytes = bytes,
        .error = cuda_transform_error(
            shape, points, (double)layout.of_group / (double)layout.runs + (double)layout.runs),
    };
    return true;
}

bool cuda_weight_consider_1_sum(const struct request *request, const struct shape *shape,
                                size_t points, struct estimate *ret)
{
    return cuda_gradient_consider(request, shape, points, 1, ret);
}

bool cuda_weight_consider_2_sums(const struct request *request, const struct shape *shape,
                                 size_t points, struct estimate *ret)
{
    return cuda_gradient_consider(request, shape, points, 2, ret);
}

bool cuda_weight_consider(const struct request *request, const struct shape *shape, size_t points,
                          struct estimate *ret)
{
    cuda_consider_fn *const ways[CUDA_WEIGHT_WAYS] = {
        cuda_weight_consider_spectra, cuda_weight_consider_1_sum, cuda_weight_consider_2_sums};
    *ret = (struct estimate){0};
    for (int way = 0; way < CUDA_WEIGHT_WAYS; way++) {
        struct estimate estimate = {0};
        if (ways[way](request, shape, points, &estimate) &&
            (!ret->applicable || estimate.seconds < ret->seconds))
            *ret = estimate;
    }
    return ret->applicable;
}

static struct cuda_lines lines_of(const struct shape *shape)
{
    return (struct cuda_lines){.lines = (int64_t)cells_of(shape),
                               .step = (int64_t)shape->axis[0].dilation,
                               .length = (int64_t)shape->axis[0].kernel,
                               .reversed = shape->flip};
}

enum partita_status cuda_weight_create(struct partita_plan *plan, struct cuda_weight *ret)
{
    const struct shape *shape = &plan->shape;
    const struct axis *axis = &shape->axis[0];
    const size_t samples = plan->choice.transform, points = cuda_spectral_points(shape, samples);
    const size_t runs = (size_t)(plan->choice.variant / CUDA_WEIGHT_WAYS);
    ret->sums = plan->choice.variant % CUDA_WEIGHT_WAYS;
    ret->lines = lines_of(shape);
    if (ret->sums) {
        cuda_gradient_cut(shape, points, ret->sums, plan->choice.shared, runs,
                          &ret->gradient); // as estimate saw
        const enum partita_status status = cuda_fft_create(plan, points, true, 1, &ret->fft);
        ret->gradient.form = ret->fft.form;
        return status;
    }
    struct layout layout;
    lay_out(shape, points, plan->choice.shared, runs, &layout); // the same again
    const size_t windows = layout.of_group / shape->batch, hop = layout.hop;
    struct shape of_gy = *shape;
    of_gy.axis[0].size = axis->out;
    of_gy.group_in = shape->group_out;
    ret->of_x = cuda_input_windows(shape, axis->begin, hop, windows, samples);
    ret->of_x.scale = 1 / (double)points;
    ret->of_gy = cuda_input_windows(&of_gy, 0, hop, windows, hop);
    ret->of_gy.step = (int64_t)axis->stride;
    ret->correlations = (struct cuda_correlations){.room = (int64_t)layout.room,
                                                   .of_group = (int64_t)layout.of_group,
                                                   .runs = (int64_t)layout.runs,
                                                   .groups = (int64_t)shape->groups,
                                                   .group_in = (int64_t)shape->group_in,
                                                   .group_out = (int64_t)shape->group_out,
                                                   .points = (int64_t)points};
    const enum partita_status status = cuda_fft_create(plan, points, true, layout.room, &ret->fft);
    const size_t area = cuda_fft_area(&ret->fft);
    if (area > layout.area) plan->choice.shared += area - layout.area; // it lies last
    return status;
}

// The places in the workspace.
struct places {
    char *sums, *x, *gy, *area;
};

static struct places places_of(const struct cuda_weight *weight, char *workspace)
{
    const struct cuda_correlations *of = &weight->correlations;
    const size_t spectrum = weight->fft.points * 2 * (weight->fft.f64 ? 8 : 4);
    struct places places = {.sums = workspace};
    places.x =
        places.sums + (size_t)(of->runs * of->groups * of->group_out * of->group_in) * spectrum;
    places.gy = places.x + (size_t)(of->room * of->group_in) * spectrum;
    places.area = places.gy + (size_t)(of->room * of->group_out) * spectrum;
    return places;
}

// Spectra of one range of windows of `channels` lines of a group, each at its place.
static enum partita_status
transform(const struct partita_plan *plan, const struct cuda_weight *weight,
          const struct cuda_fft_lease *lease, const struct cuda_windows *windows,
          const struct cuda_range *range, size_t channels, char *spectra, const char *x)
{
    const size_t scalar = weight->fft.f64 ? 8 : 4, room = (size_t)weight->correlations.room;
    enum partita_status status = PARTITA_OK;
    for (size_t c = 0; c < channels && status == PARTITA_OK; c++)
        status = cuda_spectra_of(plan, &weight->fft, lease, windows, range,
                                 spectra + c * room * weight->fft.points * 2 * scalar,
                                 x + c * (size_t)windows->size * scalar);
    return status;
}

// The sums become gw.
static enum partita_status store(const struct partita_plan *plan, const struct cuda_weight *weight,
                                 const struct cuda_fft_lease *lease, const struct places *places,
                                 void *gw)
{
    const struct cuda_fft *fft = &weight->fft;
    const struct cuda_correlations *of = &weight->correlations;
    const int64_t cells = weight->lines.lines, scalars = cells * of->points * 2;
    const size_t scalar = fft->f64 ? 8 : 4, spectrum = fft->points * 2 * scalar;
    enum partita_status status = PARTITA_OK;
    if (of->runs > 1)
        status = CU(plan, cuda_launch_add_runs(fft->f64, places->sums, scalars, of->runs,
                                               cudaStreamPerThread));
    if (status == PARTITA_OK && fft->within)
        return CU(plan, cuda_launch_lines(&fft->form, fft->f64, &weight->lines, gw, places->sums,
                                          cudaStreamPerThread));
    for (int64_t cell = 0; cell < cells && status == PARTITA_OK; cell += of->room) {
        struct cuda_lines lines = weight->lines;
        lines.lines = cells - cell < of->room ? cells - cell : of->room;
        status = cuda_copy(plan, places->x, places->sums + (size_t)cell * spectrum,
                           (size_t)lines.lines * spectrum);
        if (status == PARTITA_OK) status = cuda_fft_run(plan, fft, lease, places->x, true);
        if (status == PARTITA_OK)
            status = CU(
                plan, cuda_launch_points_lines(&fft->form, fft->f64, &lines,
                                               (char *)gw + (size_t)(cell * lines.length) * scalar,
                                               places->x, cudaStreamPerThread));
    }
    return status;
}

static enum partita_status add_up(const struct cuda_call *call, const struct cuda_weight *weight,
                                  const struct cuda_fft_lease *lease, const struct places *places)
{
    const struct partita_plan *plan = call->plan;
    struct cuda_correlations of = weight->correlations;
    const int64_t jobs = of.groups * of.of_group;
    enum partita_status status = PARTITA_OK;
    for (int64_t first = 0; first < jobs && status == PARTITA_OK; first += of.room) {
        of.jobs = (struct cuda_range){first, jobs - first < of.room ? jobs - first : of.room};
        status = transform(plan, weight, lease, &weight->of_x, &of.jobs, (size_t)of.group_in,
                           places->x, call->from[0]);
        if (status == PARTITA_OK)
            status = transform(plan, weight, lease, &weight->of_gy, &of.jobs, (size_t)of.group_out,
                               places->gy, call->from[1]);
        if (status == PARTITA_OK)
            status = CU(plan, cuda_launch_correlations(&of, weight->fft.f64, places->sums,
                                                       places->x, places->gy, cudaStreamPerThread));
    }
    return status == PARTITA_OK ? store(plan, weight, lease, places, call->to) : status;
}

static enum partita_status run_kernel(const struct cuda_call *call,
                                      const struct cuda_weight *weight)
{
    const struct partita_plan *plan = call->plan;
    const struct cuda_gradient *of = &weight->gradient;
    const bool f64 = weight->fft.f64;
    const int64_t scalars = weight->lines.lines * of->parts * (int64_t)weight->fft.points * 2;
    enum partita_status status =
        CU(plan, cuda_launch_gradient(of, weight->sums, f64, call->workspace, call->from[0],
                                      call->from[1], cudaStreamPerThread));
    if (status == PARTITA_OK && of->runs > 1)
        status = CU(plan, cuda_launch_add_runs(f64, call->workspace, scalars, of->runs,
                                               cudaStreamPerThread));
    if (status != PARTITA_OK) return status;
    return CU(plan, cuda_launch_gradient_lines(of, &weight->lines, f64, call->to, call->workspace,
                                               cudaStreamPerThread));
}

enum partita_status cuda_weight_run(const struct partita_plan *plan,
                                    const struct cuda_weight *weight,
                                    const struct operands *operands, void *workspace)
{
    const struct shape *shape = &plan->shape;
    const struct cuda_sizes sizes = {.to =
                                         cells_of(shape) * shape_taps(shape) * shape->scalar_bytes,
                                     .from = {cuda_input_bytes(shape), cuda_output_bytes(shape)},
                                     .workspace = plan->choice.shared};
    struct cuda_call call;
    struct cuda_fft_lease *lease = NULL;
    enum partita_status status = cuda_call_begin(plan, operands, &sizes, workspace, &call);
    const struct places places = places_of(weight, call.workspace);
    if (status == PARTITA_OK && !weight->fft.within)
        status = cuda_fft_borrow(plan, &weight->fft, places.area, &lease);
    if (status == PARTITA_OK)
        status = weight->sums ? run_kernel(&call, weight) : add_up(&call, weight, lease, &places);
    status = cuda_call_end(&call, status);
    cuda_fft_give_back(&weight->fft, lease);
    return status;
}
