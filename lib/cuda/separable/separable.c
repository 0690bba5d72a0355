// SPDX-License-Identifier: MIT
// cuda/separable: two axes one after the other, in one pass over memory, where the problem promises
// that the taps of each path are products of a factor of their row and one of their column; a
// channel from one channel. The factors are found when a filter is made.
#include "separable.h"

#include <assert.h>

#include "base/scalar.h"
#include "cuda/device/bounded_call.h"
#include "cuda/device/filter.h"
#include "cuda/device/passes.h"
#include "cuda/device/rates.h"

// Why not; NULL: it can.
static const char *reason_against(const struct request *request)
{
    const struct shape *shape = request->shape;
    if (!shape->separable) return "the problem does not promise that its taps are separable";
    if (request->direction == PARTITA_BACKWARD_WEIGHT) return "gradients of taps are not separable";
    if (shape->group_in != 1 || shape->group_out != 1) return "makes each channel from one channel";
    for (int a = 0; a < shape->rank; a++) {
        const struct axis *axis = &shape->axis[a];
        if (axis->stride != 1 || axis->dilation != 1) return "stride and dilation are to be 1";
        if (axis->kernel > CUDA_SEPARABLE_TAPS) return "serves up to 32 taps along an axis";
    }
    return NULL;
}

static void separable_estimate(const struct request *request, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    const struct cuda_gpu *gpu = cuda_device_for(request)->gpu;
    const char *reason = reason_against(request);
    if (reason) {
        estimate_refuse(ret, "%s", reason);
        return;
    }
    const struct cuda_pass pass = cuda_pass_of(shape, request->direction, 0);
    const struct cuda_separable_form form = cuda_separable_form_of(&pass, shape->f64);
    const struct cuda_rates rates = cuda_rates_of(request);
    const double outputs =
        (double)(pass.axis[1].n * pass.axis[2].n) * (double)(shape->batch * shape->out_channels);
    if (form.shared_bytes > gpu->shared_bytes || form.blocks > CUDA_MAX_BLOCKS) {
        estimate_refuse(ret, "%zu bytes of shared memory, %.3g thread blocks are too many",
                        form.shared_bytes, form.blocks);
        return;
    }
    const double terms = (double)(pass.axis[1].taps + pass.axis[2].taps);
    const struct cuda_stage stage = {.launches = 1,
                                     .blocks = form.blocks,
                                     .threads = CUDA_PASS_THREADS,
                                     .slots = outputs * form.slots,
                                     .bytes = cuda_sample_bytes(shape)};
    ret->seconds = cuda_stage_seconds(&rates, &stage);
    ret->flops = 2 * outputs * terms;
    // One rounding more than those of the sums: the factors'.
    ret->error = shape_roundoff(shape) * sqrt(0.09 * terms + 1);
    assert(form.pitch > 0 && form.slots > 0);
    ret->hop = (size_t)(outputs / fmax(1, form.blocks));
    ret->bytes = shape->out_channels * 2 * (size_t)form.pitch * shape->scalar_bytes;
    ret->applicable = true;
}

// One path's taps as row[i] * column[j]: from the cross through its greatest tap, then by one step
// of least squares for each factor. Returns the norm of the rest, over that of the taps.
static double factor_path(const struct shape *shape, const void *w, double *row, double *column)
{
    const size_t rows = shape->axis[0].kernel, columns = shape->axis[1].kernel;
    size_t greatest = 0;
    for (size_t i = 1; i < rows * columns; i++)
        if (fabs(scalar_get(shape->f64, w, i)) > fabs(scalar_get(shape->f64, w, greatest)))
            greatest = i;
    const double scale = fabs(scalar_get(shape->f64, w, greatest));
    double squares = 0, norm = 0, left = 0;
    for (size_t j = 0; j < columns; j++) {
        column[j] =
            scale > 0 ? scalar_get(shape->f64, w, greatest / columns * columns + j) / scale : 0;
        squares += column[j] * column[j];
    }
    double row_squares = 0;
    for (size_t i = 0; i < rows; i++) {
        row[i] = 0;
        for (size_t j = 0; j < columns && squares > 0; j++)
            row[i] += scalar_get(shape->f64, w, i * columns + j) * column[j] / squares;
        row_squares += row[i] * row[i];
    }
    for (size_t j = 0; j < columns; j++) {
        column[j] = 0;
        for (size_t i = 0; i < rows && row_squares > 0; i++)
            column[j] += scalar_get(shape->f64, w, i * columns + j) * (row[i] / row_squares);
    }
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) {
            const double tap = scalar_get(shape->f64, w, i * columns + j),
                         off = tap - row[i] * column[j];
            norm += tap * tap;
            left += off * off;
        }
    return norm != 0 ? sqrt(left / norm) : 0; // NaN if a tap is
}

// Factors of all paths for the kernel, in the order of its sums.
static enum partita_status factor_all(const struct partita_plan *plan, const struct cuda_pass *pass,
                                      const char *w, void *ret_taps)
{
    const struct shape *shape = &plan->shape;
    const size_t pitch = (size_t)cuda_separable_form_of(pass, shape->f64).pitch;
    const size_t path = shape_taps(shape);
    // A tap that was rounded is off by half a unit in the last place, its product with others by no
    // more than a few.
    const double gate = 8 * shape_roundoff(shape);
    for (size_t c = 0; c < shape->out_channels; c++) {
        double factors[2][CUDA_SEPARABLE_TAPS];
        const double left =
            factor_path(shape, w + c * path * shape->tap_bytes, factors[0], factors[1]);
        if (!(left <= gate))
            return log_error(&plan->log, PARTITA_ERR_ARG,
                             "taps of channel %zu are not separable: %.1e of them is left", c,
                             left);
        for (int a = 0; a < 2; a++) {
            const struct cuda_axis *axis = &pass->axis[1 + a];
            assert((size_t)axis->taps <= pitch && pitch <= CUDA_SEPARABLE_TAPS);
            for (int64_t t = 0; t < axis->taps; t++)
                scalar_put(shape->f64, ret_taps, (2 * c + (size_t)a) * pitch + (size_t)t,
                           factors[a][axis->tap_first + axis->tap_step * t]);
        }
    }
    return PARTITA_OK;
}

static struct filter_bytes separable_filter_bytes(const struct partita_plan *plan)
{
    const struct shape *shape = &plan->shape;
    const struct cuda_pass pass = cuda_pass_of(shape, plan->direction, 0);
    const size_t pitch = (size_t)cuda_separable_form_of(&pass, shape->f64).pitch;
    return (struct filter_bytes){.packed = shape->out_channels * 2 * pitch * shape->tap_bytes};
}

static enum partita_status separable_filter_pack(struct partita_filter *filter, const void *taps,
                                                 const struct region *scratch)
{
    const struct partita_plan *plan = filter->plan;
    const struct cuda_filter *state = filter->state;
    const struct cuda_pass pass = cuda_pass_of(&plan->shape, plan->direction, 0);
    const size_t bytes = cuda_taps_bytes(&plan->shape),
                 packed = separable_filter_bytes(plan).packed;
    void *w = mem_allocate(&plan->allocator, bytes),
         *factors = mem_allocate(&plan->allocator, packed);
    enum partita_status status = w && factors ? PARTITA_OK : PARTITA_ERR_NOMEM;
    (void)scratch;
    if (status == PARTITA_OK) status = cuda_copy(plan, w, taps, bytes);
    if (status == PARTITA_OK) status = cuda_wait(plan);
    if (status == PARTITA_OK) status = factor_all(plan, &pass, w, factors);
    if (status == PARTITA_OK) status = cuda_copy(plan, state->taps, factors, packed);
    if (status == PARTITA_OK) status = cuda_wait(plan);
    mem_release(&plan->allocator, w);
    mem_release(&plan->allocator, factors);
    return status;
}

static enum partita_status separable_run(const struct partita_plan *plan,
                                         const struct partita_filter *filter,
                                         const struct operands *operands, void *workspace)
{
    const struct cuda_pass pass = cuda_pass_of(&plan->shape, plan->direction, 0);
    const struct cuda_arrays arrays = cuda_arrays_of(filter, operands, workspace);
    return CU(plan, cuda_separable_queue(&pass, plan->shape.f64, &arrays));
}

const struct engine cuda_separable = {
    .name = "cuda/separable",
    .max_rank = 2,
    .real = true,
    .estimate = separable_estimate,
    .directions = CUDA_ALL_DIRECTIONS,
    .filter = {CUDA_FILTER_OPS(separable_filter_bytes, separable_filter_pack), .on_host = true},
    .bounded = {.run = separable_run},
};
