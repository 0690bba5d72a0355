// SPDX-License-Identifier: MIT
// The gradient of the taps as one kernel (gradient.h): how it is cut, what it costs, its calls.
#include <math.h>

#include "base/sizes.h"
#include "cuda/kernels/sums.h"
#include "filtering.h"
#include "weight.h"

// Threads from which on there are several thread blocks for each place on any device.
static const size_t ENOUGH_THREADS = 1 << 18;
enum {
    FEWEST_TERMS = 4
}; // that a row of threads adds up, so that sums are a small part of what they are made of

static const double MOST_BLOCKS = 2147483647.; // of one launch

// Blocks of a line that the sums of a job see anything of x with: windows of `samples` from `begin`
// on, that of the last sum `reach` further.
static void look(const struct shape *shape, ptrdiff_t begin, size_t reach, size_t samples,
                 size_t hop, size_t blocks, int *ret_first, int *ret_end)
{
    const ptrdiff_t before = floor_div(-(ptrdiff_t)samples - begin - (ptrdiff_t)reach, hop) + 1;
    const ptrdiff_t behind = floor_div((ptrdiff_t)shape->axis[0].size - 1 - begin, hop) + 1;
    *ret_first = before > 0 ? (int)size_min((size_t)before, blocks) : 0;
    *ret_end = behind > 0 ? (int)size_min((size_t)behind, blocks) : 0;
    if (*ret_end < *ret_first) *ret_end = *ret_first;
}

static size_t cells_of(const struct shape *shape)
{
    return shape->out_channels * shape->group_in;
}

// Which lags a sum has, and which blocks of gy they are sums over.
static bool cut_lines(const struct shape *shape, size_t points, int sums, struct cuda_gradient *ret)
{
    const struct axis *axis = &shape->axis[0];
    const size_t samples = 2 * points;
    const bool whole =
        sums == 1 &&
        axis->span <= points; // one sum has all lags, and a block as many positions as then go
    const size_t part = whole ? axis->span : points, length = (axis->out - 1) * axis->stride + 1;
    const size_t parts = ceil_div(axis->span, part), jobs = ceil_div(parts, (size_t)sums);
    // One position less, if that takes no more blocks, lets windows begin a sample earlier: those
    // of causal lines then hold nothing in one half and a line in the other.
    const bool lead =
        !whole || ceil_div(length, samples - part) == ceil_div(length, samples - part + 1);
    const size_t hop = samples - part + !lead, blocks = ceil_div(length, hop);
    if (jobs > CUDA_GRADIENT_JOBS || blocks > INT32_MAX / 2) return false;
    if (sums == 2 && blocks > CUDA_GRADIENT_TERMS) return false; // a line is not cut
    struct shape of_gy = *shape;
    of_gy.axis[0].size = axis->out;
    ret->lead = lead;
    ret->x = cuda_input_windows(shape, axis->begin - (ptrdiff_t)ret->lead, hop, blocks, samples);
    ret->gy = cuda_input_windows(&of_gy, 0, hop, blocks, hop);
    ret->gy.step = (int64_t)axis->stride;
    ret->part = (int64_t)part;
    ret->parts = (int64_t)parts;
    ret->jobs = (int64_t)jobs;
    for (size_t j = 0; j < jobs; j++)
        look(shape, (ptrdiff_t)ret->x.first + (ptrdiff_t)(j * (size_t)sums * part),
             (size_t)(sums - 1) * part, samples, hop, blocks, &ret->seen[j].first,
             &ret->seen[j].end);
    return true;
}

size_t cuda_gradient_bytes(const struct shape *shape, const struct cuda_gradient *gradient)
{
    const size_t spectrum = ((size_t)1 << gradient->form.log2_points) * 2 * shape->scalar_bytes;
    return size_mul(size_mul((size_t)(gradient->runs * gradient->parts), cells_of(shape)),
                    spectrum);
}

bool cuda_gradient_cut(const struct shape *shape, size_t points, int sums, size_t limit,
                       size_t runs, struct cuda_gradient *ret)
{
    const size_t rows = (size_t)cuda_fft_rows(points),
                 threads = rows * (size_t)cuda_fft_threads(points);
    *ret = (struct cuda_gradient){.form = cuda_form_of(shape, points),
                                  .batch = (int64_t)shape->batch,
                                  .groups = (int64_t)shape->groups,
                                  .group_in = (int64_t)shape->group_in,
                                  .group_out = (int64_t)shape->group_out,
                                  .runs = 1};
    if (points > cuda_fft_most(shape->f64) || !cut_lines(shape, points, sums, ret)) return false;
    const size_t blocks = (size_t)ret->gy.windows, terms = size_mul(shape->batch, blocks);
    const size_t sum_bytes = cuda_gradient_bytes(shape, ret);
    if (!runs) {
        const size_t wished =
            ceil_div(ENOUGH_THREADS, size_mul(threads, cells_of(shape) * (size_t)ret->jobs));
        runs = size_min(size_min(wished, terms / (FEWEST_TERMS * rows)), limit / sum_bytes);
        if (sums == 2) runs = size_min(runs, shape->batch);
        if (!runs) runs = 1;
    }
    ret->runs = (int64_t)runs;
    // Chains are no longer than a sum's terms; no row of threads shall be without one.
    const size_t chains = ceil_div(blocks, CUDA_GRADIENT_TERMS),
                 wanted = ceil_div(runs * rows, shape->batch);
    ret->chains = sums == 2 ? 1 : (int64_t)size_min(wanted > chains ? wanted : chains, blocks);
    return sum_bytes <= limit && size_mul(shape->batch, (size_t)ret->chains) <= INT32_MAX / 2;
}

// What thread blocks do with one cell.
struct counted {
    double transforms, products, longest; // longest: products of one sum
};

static struct counted count(const struct cuda_gradient *gradient, int sums)
{
    struct counted ret = {0};
    const double batch = (double)gradient->batch;
    for (int64_t j = 0; j < gradient->jobs; j++) {
        const int64_t first = gradient->seen[j].first,
                      begin = gradient->x.first + j * sums * gradient->part;
        const double blocks = gradient->seen[j].end - gradient->seen[j].first;
        const int64_t window =
            begin + first * gradient->gy.hop; // two sums: before the first block's second one
        const bool more = sums == 2 && window > -gradient->x.length && window < gradient->x.size;
        ret.transforms += batch * (2 * blocks + more);
        ret.products += batch * sums * blocks;
        ret.longest = fmax(ret.longest, batch * blocks);
    }
    return ret;
}

bool cuda_gradient_consider(const struct request *request, const struct shape *shape, size_t points,
                            int sums, struct estimate *ret)
{
    const struct cuda_device *device = (const struct cuda_device *)request->device;
    struct cuda_gradient gradient;
    if (!cuda_gradient_cut(shape, points, sums, request->workspace_limit, 0, &gradient) ||
        cuda_gradient_shared(points, sums, shape->f64) > device->shared_bytes)
        return false;
    const double cells = (double)cells_of(shape), parts = (double)gradient.parts,
                 runs = (double)gradient.runs;
    const struct counted counted = count(&gradient, sums);
    const size_t sums_bytes = cuda_gradient_bytes(shape, &gradient);
    const double blocks = cells * (double)gradient.jobs * runs,
                 threads = (double)(points / CUDA_FFT_POINTS);
    const double lines = (double)(cuda_input_bytes(shape) / shape->in_channels +
                                  cuda_output_bytes(shape) / shape->out_channels);
    const struct cuda_work work = {
        .launches = gradient.runs > 1 ? 3 : 2,
        .slots = cuda_transform_slots(points, cells * (counted.transforms + parts)) +
                 cuda_kept_slots(points, cells * counted.products),
        .bytes = cells * (double)gradient.jobs * lines + 3 * (double)sums_bytes,
        .lanes = blocks * (double)cuda_fft_rows(points) * threads,
    };
    const double rows = fmin(counted.longest, CUDA_GRADIENT_TERMS);
    *ret = (struct estimate){
        .applicable = blocks <= MOST_BLOCKS,
        .transform = 2 * points,
        .hop = (size_t)gradient.gy.hop,
        .seconds = cuda_work_seconds(request, &work),
        .flops = (5 * cells * (counted.transforms + parts) * log2((double)points) +
                  8 * cells * counted.products) *
                 (double)points,
        .variant = (int)gradient.runs * CUDA_WEIGHT_SUMS + sums - 1,
        .shared = sums_bytes,
        .bytes = sums_bytes,
        .error = cuda_transform_error(shape, points,
                                      rows + counted.longest / CUDA_GRADIENT_TERMS + runs),
    };
    return ret->applicable;
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
    struct estimate two = {0};
    const bool one = cuda_weight_consider_1_sum(request, shape, points, ret);
    if (!cuda_weight_consider_2_sums(request, shape, points, &two)) return one;
    if (!one || two.seconds < ret->seconds) *ret = two;
    return true;
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
    const size_t points = cuda_spectral_points(shape, plan->choice.transform);
    const size_t runs = (size_t)plan->choice.variant / CUDA_WEIGHT_SUMS;
    ret->sums = plan->choice.variant % CUDA_WEIGHT_SUMS + 1;
    ret->lines = lines_of(shape);
    cuda_gradient_cut(shape, points, ret->sums, plan->choice.shared, runs,
                      &ret->gradient); // as estimate saw
    const enum partita_status status = cuda_fft_create(plan, points, true, 1, &ret->fft);
    ret->gradient.form = ret->fft.form;
    return status;
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
        status = CU(plan, cuda_launch_add_sums(f64, call->workspace, scalars, of->runs,
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
    enum partita_status status = cuda_call_begin(plan, operands, &sizes, workspace, &call);
    if (status == PARTITA_OK) status = run_kernel(&call, weight);
    return cuda_call_end(&call, status);
}
