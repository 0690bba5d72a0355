// SPDX-License-Identifier: MIT
// cuda/blocks: the signal and the taps in parts, for filters about as long as the signal, and for a
// few outputs of long operands. How it is cut is blocks_layout.c's choice; what is done then is in
// a file a way. (decision 24)
#include "blocks.h"

#include <math.h>

#include "cuda/device/cufft.h"

// Transforms walk as everywhere; products are summed up to 64 at a time and then the sums: two more
// walks.
static double error_of(const struct request *request, const struct cuda_blocks_layout *layout)
{
    const struct shape *shape = request->shape;
    const size_t lines =
        request->direction == PARTITA_BACKWARD_WEIGHT ? shape->batch : shape->group_in;
    const double terms = (double)layout->parts * (double)lines, row = fmin(terms, 64);
    return shape_roundoff(shape) *
           hypot(1.3 * sqrt(log2((double)layout->n)), 0.3 * sqrt(row + terms / 64));
}

static void estimate(const struct request *request, struct estimate *ret)
{
    struct cuda_blocks_layout layout;
    struct request run = *request;
    struct shape shape;
    if (!shape_forward(request->shape, request->direction, &shape, ret->reason, sizeof ret->reason))
        return;
    run.shape = &shape;
    const int way = run.compatible_with ? run.compatible_with->variant : -1;
    if (!cuda_blocks_search(&run, way, &layout, ret->reason, sizeof ret->reason)) return;
    *ret = (struct estimate){
        .applicable = true,
        .transform = layout.n,
        .variant = (int)layout.way,
        .hop = layout.hop,
        .seconds = layout.seconds,
        .flops = layout.flops,
        .shared = layout.workspace,
        .bytes = size_add(layout.filter, layout.workspace),
        .error = error_of(&run, &layout),
        .from_taps = layout.way == CUDA_BLOCKS_LAGS,
    };
}

static enum partita_status plan_create(struct partita_plan *plan, const struct request *request)
{
    struct cuda_blocks *blocks = mem_allocate(&plan->allocator, sizeof *blocks);
    char reason[96];
    plan->state = blocks;
    if (!blocks) return PARTITA_ERR_NOMEM;
    struct request run = *request;
    run.shape = &blocks->shape;
    if (!shape_forward(&plan->shape, plan->direction, &blocks->shape, reason, sizeof reason) ||
        !cuda_blocks_search(&run, plan->choice.variant, &blocks->layout, reason, sizeof reason))
        return PARTITA_ERR_UNSUPPORTED;
    const struct cuda_blocks_layout *layout = &blocks->layout;
    enum partita_status status = cuda_enter(plan);
    const bool kept = layout->way != CUDA_BLOCKS_LAGS; // spectra of both operands
    if (status == PARTITA_OK)
        status = cuda_parts_create(plan, layout->points, layout->transforms, kept, &blocks->parts);
    plan->choice.shared = layout->workspace;
    if (status == PARTITA_OK && !blocks->parts.fft.within && kept) {
        const struct cuda_pairs_bytes bytes =
            cuda_pairs_bytes(&blocks->shape, plan->direction, layout);
        const size_t taps = plan->direction == PARTITA_BACKWARD_WEIGHT ? mem_round(bytes.taps) : 0;
        plan->choice.shared =
            size_add(size_add(mem_round(bytes.inputs), mem_round(bytes.sums)),
                     size_add(taps, mem_round(cuda_fft_area(&blocks->parts.fft))));
    }
    return status;
}

static void plan_destroy(struct partita_plan *plan)
{
    struct cuda_blocks *blocks = plan->state;
    if (!blocks) return;
    CU(plan, cudaSetDevice(cuda_device_of(plan)->index));
    cuda_parts_destroy(plan, &blocks->parts);
    mem_release(&plan->allocator, blocks);
}

struct cuda_sink cuda_blocks_sink(const struct partita_plan *plan, void *y, size_t line,
                                  size_t lines, const void *bias)
{
    const struct cuda_blocks *blocks = cuda_blocks_of(plan);
    const struct axis *axis = &blocks->shape.axis[0];
    const bool forward = plan->direction == PARTITA_FORWARD;
    return (struct cuda_sink){.y = y,
                              .line = (int64_t)line,
                              .lines = (int64_t)lines,
                              .length = (int64_t)axis->out,
                              .stride = (int64_t)axis->stride,
                              .end = (int64_t)blocks->layout.trimmed.outputs,
                              .bias = bias,
                              .channels = (int64_t)blocks->shape.out_channels,
                              .complex = plan->shape.complex_signal,
                              .relu = forward && plan->shape.relu,
                              .reversed =
                                  plan->direction == PARTITA_BACKWARD_WEIGHT && plan->shape.flip};
}

struct cuda_windows cuda_blocks_taps(const struct partita_plan *plan)
{
    const struct shape *shape = &cuda_blocks_of(plan)->shape;
    const bool weight = plan->direction == PARTITA_BACKWARD_WEIGHT;
    return (struct cuda_windows){.size = (int64_t)shape->axis[0].kernel,
                                 .step = (int64_t)shape->axis[0].dilation,
                                 .rows = shape->adjoint && !weight ? (int64_t)shape->group_out : 1,
                                 .columns =
                                     shape->adjoint && !weight ? (int64_t)shape->group_in : 1,
                                 .pitch = 1,
                                 .complex_samples = shape->complex_taps,
                                 .reversed = !shape->flip,
                                 .conjugated = !shape->flip,
                                 .scale = 1};
}

struct cuda_windows cuda_blocks_x(const struct partita_plan *plan)
{
    const struct shape *shape = &cuda_blocks_of(plan)->shape;
    return (struct cuda_windows){.size = (int64_t)shape->axis[0].size,
                                 .step = 1,
                                 .rows = 1,
                                 .columns = 1,
                                 .pitch = 1,
                                 .complex_samples = shape->complex_signal,
                                 .scale = 1};
}

static size_t taps_bytes(const struct partita_plan *plan)
{
    const struct shape *shape = &plan->shape;
    return shape->out_channels * shape->group_in * shape->axis[0].kernel * shape->tap_bytes;
}

// Spectra of taps that are in either memory.
static enum partita_status transform_taps(const struct partita_plan *plan, const void *taps,
                                          void **ret_spectra)
{
    const struct cuda_blocks *blocks = cuda_blocks_of(plan);
    bool owns = false;
    void *copy = NULL;
    enum partita_status status = cuda_enter(plan);
    if (status == PARTITA_OK) status = cuda_owns(plan, taps, &owns);
    if ((uintptr_t)taps % plan->shape.tap_bytes) owns = false; // complex taps are read as such
    if (status == PARTITA_OK && !owns) status = cuda_keep(plan, taps, taps_bytes(plan), &copy);
    if (status == PARTITA_OK) status = cuda_allocate(plan, blocks->layout.filter, ret_spectra);
    if (status == PARTITA_OK) status = cuda_pairs_filter(plan, *ret_spectra, owns ? taps : copy);
    cuda_release(plan, copy);
    return status;
}

static enum partita_status filter_create(struct partita_filter *filter, const void *taps)
{
    const struct partita_plan *plan = filter->plan;
    struct cuda_blocks_filter *state = mem_allocate(&plan->allocator, sizeof *state);
    filter->state = state;
    if (!state) return PARTITA_ERR_NOMEM;
    if (cuda_blocks_of(plan)->layout.way != CUDA_BLOCKS_LAGS)
        return transform_taps(plan, taps, &state->taps);
    return cuda_keep(plan, taps, taps_bytes(plan), &state->taps);
}

static enum partita_status filter_bias(struct partita_filter *filter, const void *bias)
{
    struct cuda_blocks_filter *state = filter->state;
    return cuda_keep(filter->plan, bias,
                     filter->plan->shape.out_channels * filter->plan->shape.scalar_bytes,
                     &state->bias);
}

static const void *filter_taps(const struct partita_filter *filter)
{
    const struct cuda_blocks_filter *state = filter->state;
    return cuda_blocks_of(filter->plan)->layout.way == CUDA_BLOCKS_LAGS && !state->bias
               ? state->taps
               : NULL;
}

static void filter_destroy(struct partita_filter *filter)
{
    const struct partita_plan *plan = filter->plan;
    struct cuda_blocks_filter *state = filter->state;
    if (!state) return;
    CU(plan, cudaSetDevice(cuda_device_of(plan)->index));
    cuda_release(plan, state->taps);
    cuda_release(plan, state->bias);
    mem_release(&plan->allocator, state);
}

// Bytes of a call's arrays; of the taps only where they are read as they are.
static struct cuda_sizes sizes_of(const struct partita_plan *plan, bool taps)
{
    const struct shape *shape = &plan->shape;
    const size_t x = shape->batch * shape->in_channels * shape_inputs(shape) * shape->sample_bytes;
    const size_t y =
        shape->batch * shape->out_channels * shape_outputs(shape) * shape->sample_bytes;
    struct cuda_sizes sizes = {.to = y,
                               .from = {x, taps ? taps_bytes(plan) : 0},
                               .workspace = plan->choice.shared,
                               .alignment = shape->sample_bytes};
    if (plan->direction == PARTITA_BACKWARD_DATA) sizes.to = x, sizes.from[0] = y;
    if (plan->direction == PARTITA_BACKWARD_WEIGHT) sizes.to = taps_bytes(plan), sizes.from[1] = y;
    return sizes;
}

static enum partita_status run(const struct partita_plan *plan, const struct partita_filter *filter,
                               const struct operands *operands, void *workspace)
{
    const struct cuda_blocks_filter *state = filter ? filter->state : NULL;
    const struct cuda_sizes sizes = sizes_of(plan, operands->from[1] != NULL);
    struct cuda_call call;
    enum partita_status status = cuda_call_begin(plan, operands, &sizes, workspace, &call);
    if (status != PARTITA_OK) return cuda_call_end(&call, status);
    const enum cuda_blocks_way way = cuda_blocks_of(plan)->layout.way;
    if (way == CUDA_BLOCKS_PAIRS) status = cuda_pairs_run(&call, state);
    else if (way == CUDA_BLOCKS_DIVISIONS) status = cuda_divisions_run(&call, state);
    else
        status =
            cuda_lags_run(&call, state ? state->taps : call.from[1], state ? state->bias : NULL);
    return cuda_call_end(&call, status);
}

static void explain(const struct partita_plan *plan, struct text *text)
{
    const struct cuda_blocks *blocks = cuda_blocks_of(plan);
    const struct cuda_blocks_layout *layout = &blocks->layout;
    const struct trimmed *trimmed = &layout->trimmed;
    if (trimmed->first_tap || trimmed->taps < blocks->shape.axis[0].span)
        text_add(text, "  taps %zu to %zu are all that these outputs see\n", trimmed->first_tap,
                 trimmed->first_tap + trimmed->taps - (trimmed->taps > 0));
    if (layout->way == CUDA_BLOCKS_LAGS) {
        text_add(text,
                 "  %zu window%s of %zu outputs, each the sum of %zu parts of %zu taps by "
                 "transforms of %zu samples\n",
                 layout->blocks, layout->blocks == 1 ? "" : "s", layout->hop, layout->parts,
                 layout->part, layout->n);
        text_add(text, "  %zu at once, in %zu runs of parts each; one inverse a window\n",
                 layout->items, layout->runs);
        return;
    }
    const char *where = blocks->parts.fft.within ? "in a thread block" : "by cuFFT";
    if (layout->way == CUDA_BLOCKS_DIVISIONS) {
        const struct part_schedule divisions = cuda_blocks_divisions(&blocks->shape, layout);
        text_add(text,
                 "  parts of %zu taps and of %zu samples, with zeros behind them, by transforms %s "
                 "of %zu\n",
                 layout->part, layout->signal_part, where, layout->n);
        if (layout->run < layout->blocks)
            text_add(text, "  %zu intervals of a division at a time\n", layout->run);
        part_schedule_explain(&divisions, text);
        return;
    }
    const size_t inputs =
        segments_inside(trimmed->first, layout->part, blocks->shape.axis[0].size).count;
    text_add(text,
             "  parts of %zu samples by transforms %s of %zu: %zu of the taps, %zu of the signal "
             "-> %zu of the result\n",
             layout->part, where, layout->n, layout->parts, inputs, layout->blocks);
    if (layout->run < layout->blocks)
        text_add(text, "  %zu parts of the result at a time\n", layout->run);
    text_add(text,
             "  products of all pairs summed in the spectrum, one inverse a part of the result\n");
}

const struct engine cuda_blocks_engine = {
    .name = "cuda/blocks",
    .estimate = estimate,
    .plan_create = plan_create,
    .plan_destroy = plan_destroy,
    .plan_explain = explain,
    .filter_create = filter_create,
    .filter_bias = filter_bias,
    .filter_taps = filter_taps,
    .filter_destroy = filter_destroy,
    .directions = CUDA_ALL_DIRECTIONS,
    .run = run,
};
