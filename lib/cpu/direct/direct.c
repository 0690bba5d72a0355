// SPDX-License-Identifier: MIT
// cpu/direct: the defining sum, tap by tap, without added latency. With a stride it is polyphase:
// the input is deinterleaved into `stride` branches and each branch is filtered at the output's
// rate, so that discarded outputs are never computed. Bounded problems of real types may instead be
// computed as layers (cpu/conv/products.h), which share inputs between channels. Source: Crochiere
// & Rabiner, Multirate Digital Signal Processing (1983), 3.3.
#include "direct.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "base/thread.h"
#include "cpu/conv/finish.h"
#include "cpu/conv/passes.h"
#include "cpu/conv/products.h"
#include "geometry/samples.h"
#include "geometry/upsampling.h"
#include "kernels/kernels.h"
#include "resample.h"
#include "stream/stream.h"

enum direct_variant { DIRECT_FILTER, DIRECT_LAYER, DIRECT_RESAMPLE };

// Output p reads branch k < min(stride, span) at p - m with tap g[stride*m + k], m <
// branch_taps(k).
static size_t branch_taps(const struct axis *axis, size_t k)
{
    return (axis->span - k - 1) / axis->stride + 1;
}

static size_t branch_count(const struct axis *axis)
{
    return size_min(axis->stride, axis->span);
}

static size_t path_bytes(const struct shape *shape)
{
    return mem_round(shape->axis[0].span * shape->tap_bytes);
}

static size_t tile_bytes(const struct shape *shape)
{
    const size_t samples = DIRECT.tile + branch_taps(&shape->axis[0], 0);
    return mem_round(size_mul(samples, shape->sample_bytes));
}

static struct direct_stream *layout_stream(const struct shape *shape, struct arena *arena);

static size_t stream_bytes(const struct shape *shape)
{
    struct arena state = {0};
    layout_stream(shape, &state);
    return state.used;
}

static void estimate_filter(const struct request *request, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    const struct axis *axis = &shape->axis[0];
    const size_t paths = shape->out_channels * shape->group_in, branches = branch_count(axis);
    const double outputs =
        shape->stream ? 1.0 / (double)axis->stride : (double)axis->out * (double)shape->batch;
    const double factor = (shape->complex_signal ? 2 : 1) * (shape->complex_taps ? 2 : 1);
    const double products = factor * (double)axis->span * (double)paths;
    const double moved = outputs * (double)(shape->complex_signal ? 2 : 1) *
                         (double)(shape->out_channels + shape->in_channels * branches);
    const double sums = (double)(paths * branches);
    const size_t frames = size_min(shape->block, DIRECT.stream_chunk); // of a call
    const double calls =
        shape->stream ? sums / (double)frames : sums * outputs / (double)DIRECT.tile;
    struct ledger ledger = {.work = {.fma = outputs * products, .copy = moved, .call = calls}};
    const double taken =
        shape->up.branches && !shape->stream ? (double)upsampling_bytes(shape) : 0; // read again
    work_move(&ledger.work, request->model, taken / (double)shape->scalar_bytes, taken);
    ret->applicable = true;
    ret->variant = DIRECT_FILTER;
    ret->flops = 2 * outputs * products;
    ledger_price(request, &ledger, ret);
    ret->hop = DIRECT.tile;
    // Zeros between dilated taps, and behind those of a branch, are multiplied too.
    if (!shape->stream && (axis->dilation > 1 || axis->stride > 1)) ret->spread = 1;
    ret->worker = shape->stream ? 0 : tile_bytes(shape);
    ret->bytes = size_add(ret->worker, size_mul(paths, size_mul(axis->span, shape->tap_bytes)));
    if (shape->stream) ret->bytes = size_add(ret->bytes, stream_bytes(shape));
    ret->error = conv_cost_error(shape, (double)axis->span, fmin((double)axis->span, FIR_SEGMENT));
}

static void direct_estimate(const struct request *request, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    const bool filter = shape->rank == 1 && request->direction == PARTITA_FORWARD && !shape->half &&
                        !shape->channels_last;
    struct estimate layer = {.variant = DIRECT_LAYER};
    if (request->transform) {
        estimate_refuse(ret, "has no transform");
        return;
    }
    if (filter) estimate_filter(request, ret);
    if (!filter && shape->complex_signal)
        estimate_refuse(ret, "computes layers of real types alone");
    // Channels of their own share no inputs.
    const bool shared = shape->group_in * shape->group_out > 1;
    if (!shape->stream && !shape->complex_signal && (!filter || shared)) {
        products_estimate(request, &products_at_offsets, &layer);
        const bool better = !estimate_fits(request, ret) ||
                            request_cost(request, &layer) < request_cost(request, ret);
        if (!filter || (estimate_fits(request, &layer) && better)) *ret = layer;
    }
    if (shape->up.branches) {
        struct estimate outputs = {.variant = DIRECT_RESAMPLE};
        resample_estimate(request, &outputs);
        outputs.bytes = size_add(outputs.bytes, shape->stream ? stream_bytes(shape) : 0);
        const bool better = !estimate_fits(request, ret) ||
                            request_cost(request, &outputs) < request_cost(request, ret);
        if (estimate_fits(request, &outputs) && better) *ret = outputs;
        return;
    }
}

static void *build_layer(const struct partita_plan *plan, const struct request *request,
                         struct arena *arena)
{
    if (plan->choice.variant != DIRECT_LAYER) return NULL;
    return products_build(plan, request, &products_at_offsets, arena);
}

static struct filter_bytes direct_filter_bytes(const struct partita_plan *plan)
{
    const struct shape *shape = &plan->shape;
    if (plan->choice.variant == DIRECT_LAYER) return conv_passes_filter_bytes(plan);
    if (plan->choice.variant == DIRECT_RESAMPLE)
        return (struct filter_bytes){.packed = resample_filter_bytes(shape)};
    return (struct filter_bytes){
        .packed = size_mul(shape->out_channels * shape->group_in, path_bytes(shape))};
}

// Taps of all paths, [out][in of group], each sorted into its branches.
static enum partita_status direct_filter_pack(struct partita_filter *filter, const void *taps,
                                              const struct region *scratch)
{
    const struct shape *shape = &filter->plan->shape;
    const struct axis *axis = &shape->axis[0];
    if (filter->plan->choice.variant == DIRECT_LAYER)
        return conv_passes_filter_pack(filter, taps, scratch);
    if (filter->plan->choice.variant == DIRECT_RESAMPLE) return resample_filter_pack(filter, taps);
    const size_t paths = shape->out_channels * shape->group_in, bytes = shape->tap_bytes;
    const size_t adjacent = axis->stride == 1 ? axis->span : 1; // causal taps of a branch
    for (size_t path = 0; path < paths; path++) {
        const char *w = (const char *)taps + path * axis->kernel * bytes;
        char *h = (char *)filter->state + path * path_bytes(shape);
        memset(h + axis->span * bytes, 0, path_bytes(shape) - axis->span * bytes);
        for (size_t k = 0; k < branch_count(axis); k++)
            for (size_t tap = k; tap < axis->span; tap += axis->stride * adjacent, h += bytes)
                causal_part(shape, h, w, tap, adjacent);
    }
    return PARTITA_OK;
}

// y[n] += branch k of one path applied to x, whose sample of output 0 and tap 0 is x[0].
static void filter_branch(const struct partita_filter *filter, size_t path, size_t k, void *y,
                          const void *x, size_t n)
{
    const struct partita_plan *plan = filter->plan;
    const struct shape *shape = &plan->shape;
    const struct axis *axis = &shape->axis[0];
    // The branches are stored one after the other.
    const size_t whole = axis->span / axis->stride, extra = axis->span % axis->stride;
    const size_t first = k * whole + size_min(k, extra);
    const char *h =
        (const char *)filter->state + path * path_bytes(shape) + first * shape->tap_bytes;
    plan->kernels->fir(y, x, h, n, branch_taps(axis, k), shape_fir_type(shape));
}

// The samples that outputs p .. p+n-1 read through branch k; in place where they all lie inside the
// signal.
static const char *branch_window(const struct shape *shape, const char *x, size_t p, size_t n,
                                 size_t k, char *scratch)
{
    const struct axis *axis = &shape->axis[0];
    const size_t history = branch_taps(axis, k) - 1, bytes = shape->sample_bytes;
    const ptrdiff_t first = causal_first(axis) - (ptrdiff_t)k +
                            ((ptrdiff_t)p - (ptrdiff_t)history) * (ptrdiff_t)axis->stride;
    const ptrdiff_t last = first + (ptrdiff_t)((history + n - 1) * axis->stride);
    assert((history + n) * bytes <= tile_bytes(shape));
    if (axis->stride == 1 && first >= 0 && last < (ptrdiff_t)axis->size)
        return x + (size_t)(first + (ptrdiff_t)history) * bytes;
    samples_window(scratch, x, axis->size, first, axis->stride, history + n, bytes);
    return scratch + history * bytes;
}

static void add_filtered(const struct direct_tile *tile)
{
    const struct shape *shape = &tile->filter->plan->shape;
    for (size_t k = 0; k < branch_count(&shape->axis[0]); k++)
        filter_branch(tile->filter, tile->channel * shape->group_in + tile->in, k, tile->y,
                      branch_window(shape, tile->x, tile->first, tile->n, k, tile->scratch),
                      tile->n);
}

// A call on signals, tile by tile: `add` adds an input of the group to a tile of outputs.
struct direct_call {
    const struct partita_plan *plan;
    const struct partita_filter *filter;
    char *y;
    const char *x;
    char *workspace;
    size_t channels, out; // outputs of a channel
    void (*add)(const struct direct_tile *tile);
};

// One task: one tile of one output channel of one item of the batch.
static void run_signal_tile(void *context, size_t task, int worker)
{
    const struct direct_call *call = context;
    const struct shape *shape = &call->plan->shape;
    const size_t outputs = call->plan->choice.hop, tiles = ceil_div(call->out, outputs);
    const size_t row = task / tiles, item = row / call->channels, bytes = shape->sample_bytes;
    struct direct_tile tile = {.filter = call->filter,
                               .channel = row % call->channels,
                               .first = task % tiles * outputs,
                               .scratch =
                                   call->workspace + (size_t)worker * call->plan->choice.worker};
    const size_t group = tile.channel * (shape->out_channels / call->channels) / shape->group_out;
    tile.n = size_min(outputs, call->out - tile.first);
    tile.y = call->y + (row * call->out + tile.first) * bytes;
    memset(tile.y, 0, tile.n * bytes);
    for (; tile.in < shape->group_in; tile.in++) {
        const size_t in = item * shape->in_channels + group * shape->group_in + tile.in;
        tile.x = call->x + in * shape->axis[0].size * bytes;
        call->add(&tile);
    }
}

static enum partita_status direct_run(const struct partita_plan *plan,
                                      const struct partita_filter *filter,
                                      const struct operands *operands, void *workspace)
{
    const struct shape *shape = &plan->shape;
    if (plan->choice.variant == DIRECT_LAYER)
        return products_run(plan, filter, operands, workspace);
    const bool resample = plan->choice.variant == DIRECT_RESAMPLE;
    struct direct_call call = {.plan = plan,
                               .filter = filter,
                               .y = operands->to,
                               .x = operands->from[0],
                               .workspace = workspace,
                               .channels = resample ? shape->up.out_channels : shape->out_channels,
                               .out = resample ? shape->up.axis.out : shape->axis[0].out,
                               .add = resample ? resample_add_tile : add_filtered};
    thread_loop(plan->threads, shape->batch * call.channels * ceil_div(call.out, plan->choice.hop),
                run_signal_tile, &call);
    if (!resample) conv_finish_outputs(plan, filter, operands->to);
    return PARTITA_OK;
}

// Streams. Branch k holds the inputs that tap g[stride*m + k] meets: those at positions congruent
// to -k modulo the stride. Its samples are a plain array that slides back to its start when it is
// full.
struct direct_stream {
    size_t chunk;             // input frames taken at once: all branches of a channel stay in L1
    size_t history, capacity; // samples of one branch
    size_t *fill;             // [branches] samples written, history included
    char *branches;           // [in_channels][branches][capacity]
    char *sum, *faded;        // one chunk of outputs of either filter
};

static struct direct_stream *layout_stream(const struct shape *shape, struct arena *arena)
{
    const struct axis *axis = &shape->axis[0];
    // The branches of more than 1024 channels would take gigabytes.
    const size_t few = size_max(16, ((size_t)1 << 20) / shape->in_channels),
                 chunk = size_max(axis->stride, size_min(DIRECT.stream_chunk, few)),
                 per_chunk = chunk / axis->stride + 1, bytes = shape->sample_bytes;
    struct direct_stream *state = arena_take(arena, sizeof *state);
    struct direct_stream layout = {.chunk = chunk, .history = branch_taps(axis, 0)};
    layout.capacity = size_add(layout.history, size_max(layout.history, 4 * per_chunk));
    layout.fill = arena_take(arena, branch_count(axis) * sizeof *layout.fill);
    layout.branches = arena_take(arena, size_mul(size_mul(shape->in_channels, branch_count(axis)),
                                                 size_mul(layout.capacity, bytes)));
    layout.sum = arena_take(arena, per_chunk * bytes);
    layout.faded = arena_take(arena, per_chunk * bytes);
    if (!state) return NULL;
    for (size_t k = 0; k < branch_count(axis); k++) layout.fill[k] = layout.history;
    *state = layout;
    return state;
}

static void *direct_stream_layout(const struct partita_stream *stream, struct arena *arena)
{
    return layout_stream(&stream->plan->shape, arena);
}

static char *branch_at(const struct partita_stream *stream, size_t channel, size_t k, size_t index)
{
    const struct direct_stream *state = stream->state;
    const struct shape *shape = &stream->plan->shape;
    const size_t branch = channel * branch_count(&shape->axis[0]) + k;
    assert(index <= state->capacity);
    return state->branches + (branch * state->capacity + index) * shape->sample_bytes;
}

static void direct_stream_reset(struct partita_stream *stream)
{
    const struct direct_stream *state = stream->state;
    const struct shape *shape = &stream->plan->shape;
    for (size_t k = 0; k < branch_count(&shape->axis[0]); k++) {
        state->fill[k] = state->history;
        for (size_t c = 0; c < shape->in_channels; c++)
            memset(branch_at(stream, c, k, 0), 0, state->history * shape->sample_bytes);
    }
}

// Appends to branch k `count` inputs of the chunk, every stride-th from `first` on.
static void append_branch(struct partita_stream *stream, const struct frames *chunk, size_t k,
                          size_t first, size_t count)
{
    struct direct_stream *state = stream->state;
    const struct shape *shape = &stream->plan->shape;
    const size_t stride = shape->axis[0].stride, bytes = shape->sample_bytes;
    const bool slide = state->fill[k] + count > state->capacity;
    for (size_t c = 0; c < shape->in_channels; c++) {
        if (slide)
            memmove(branch_at(stream, c, k, 0),
                    branch_at(stream, c, k, state->fill[k] - state->history),
                    state->history * bytes);
        char *end = branch_at(stream, c, k, slide ? state->history : state->fill[k]);
        if (chunk->x)
            samples_copy(end, 1, frames_x(chunk, c, first, bytes), stride * chunk->x_stride, count,
                         bytes);
        else memset(end, 0, count * bytes);
    }
    if (slide) state->fill[k] = state->history;
    state->fill[k] += count;
    assert(state->fill[k] <= state->capacity);
}

// Deinterleaves the chunk into the branches; returns how many outputs fall due in it.
static size_t append_chunk(struct partita_stream *stream, const struct frames *chunk)
{
    const struct axis *axis = &stream->plan->shape.axis[0];
    size_t due = 0;
    for (size_t k = 0; k < branch_count(axis); k++) {
        const size_t first = (2 * axis->stride - k - stream->phase) % axis->stride;
        if (first >= chunk->n) continue;
        const size_t count = (chunk->n - first - 1) / axis->stride + 1;
        append_branch(stream, chunk, k, first, count);
        if (k == 0) due = count;
    }
    return due;
}

// The sample of branch k that the first of the last `due` outputs meets with the branch's first
// tap. `phase` is the position after the chunk modulo the stride: branches of residues below it
// hold one sample past the last output.
static const char *branch_head(const struct partita_stream *stream, size_t channel, size_t k,
                               size_t phase, size_t due)
{
    const struct direct_stream *state = stream->state;
    const size_t stride = stream->plan->shape.axis[0].stride;
    const bool past = k > 0 && stride - k <= (phase + stride - 1) % stride;
    return branch_at(stream, channel, k, state->fill[k] - past - due);
}

static void compute_channel(const struct partita_stream *stream,
                            const struct partita_filter *filter, size_t channel, char *y,
                            size_t phase, size_t due)
{
    const struct shape *shape = &stream->plan->shape;
    const size_t group = channel / shape->group_out;
    memset(y, 0, due * shape->sample_bytes);
    for (size_t c = 0; c < shape->group_in; c++)
        for (size_t k = 0; k < branch_count(&shape->axis[0]); k++)
            filter_branch(filter, channel * shape->group_in + c, k, y,
                          branch_head(stream, group * shape->group_in + c, k, phase, due), due);
}

static void compute_outputs(struct partita_stream *stream, const struct frames *chunk, size_t due)
{
    const struct direct_stream *state = stream->state;
    const struct shape *shape = &stream->plan->shape;
    const size_t stride = shape->axis[0].stride, phase = (stream->phase + chunk->n) % stride;
    const size_t first = (stride - stream->phase) % stride; // frame of the first output
    for (size_t channel = 0; channel < shape->out_channels; channel++) {
        char *result = frames_y(chunk, channel, 0, shape->sample_bytes);
        char *y = chunk->y_stride == 1 ? result : state->sum;
        compute_channel(stream, stream->filter, channel, y, phase, due);
        if (stream->swap.state == SWAP_FADING) {
            compute_channel(stream, stream->swap.incoming, channel, state->faded, phase, due);
            swap_fade(stream, y, state->faded, due, first, stride);
        }
        if (y == state->sum) samples_copy(result, chunk->y_stride, y, 1, due, shape->sample_bytes);
    }
}

// Resampled outputs of one channel, the first of which has this position from the chunk's start.
static void resample_channel(const struct partita_stream *stream,
                             const struct partita_filter *filter, struct resampled from, char *y,
                             const size_t counts[2])
{
    const struct direct_stream *state = stream->state;
    const struct shape *shape = &stream->plan->shape;
    const size_t frames = counts[0], due = counts[1];
    const size_t group = from.channel * shape->up.branches / shape->group_out;
    memset(y, 0, due * shape->sample_bytes);
    for (from.in = 0; from.in < shape->group_in; from.in++) {
        const size_t channel = group * shape->group_in + from.in;
        from.x = branch_at(stream, channel, 0, state->fill[0] - frames);
        resample_add(filter, &from, y, due);
    }
}

// At most as many outputs as fit into the buffers; `written`: those of the chunk that were before.
static void resample_outputs(const struct partita_stream *stream, const struct frames *chunk,
                             size_t written, size_t due)
{
    const struct direct_stream *state = stream->state;
    const struct shape *shape = &stream->plan->shape;
    const size_t bytes = shape->sample_bytes, counts[] = {chunk->n, due};
    struct resampled from = {.position = stream_outputs_wait(stream) + written * shape->up.stride};
    for (from.channel = 0; from.channel < shape->up.out_channels; from.channel++) {
        char *result = frames_y(chunk, from.channel, written, bytes);
        char *y = chunk->y_stride == 1 ? result : state->sum;
        resample_channel(stream, stream->filter, from, y, counts);
        if (stream->swap.state == SWAP_FADING) {
            resample_channel(stream, stream->swap.incoming, from, state->faded, counts);
            for (size_t i = 0; i < due; i++)
                swap_fade(stream, y + i * bytes, state->faded + i * bytes, 1,
                          (from.position + i * shape->up.stride) / shape->up.branches, 1);
        }
        if (y == state->sum) samples_copy(result, chunk->y_stride, y, 1, due, bytes);
    }
}

static struct step direct_stream_step(struct partita_stream *stream, const struct frames *frames)
{
    const struct direct_stream *state = stream->state;
    struct frames chunk = *frames;
    chunk.n = size_min(chunk.n, state->chunk);
    const size_t due = append_chunk(stream, &chunk);
    if (stream->plan->choice.variant == DIRECT_RESAMPLE) {
        const size_t outputs = stream_outputs_due(stream, chunk.n);
        for (size_t i = 0; i < outputs; i += state->chunk)
            resample_outputs(stream, &chunk, i, size_min(outputs - i, state->chunk));
        return (struct step){chunk.n, outputs};
    }
    if (due) compute_outputs(stream, &chunk, due);
    return (struct step){chunk.n, due};
}

// The fill of the branches and the branches themselves are adjacent.
static struct region direct_stream_region(struct partita_stream *stream)
{
    const struct direct_stream *state = stream->state;
    return (struct region){state->fill, (size_t)(state->sum - (char *)state->fill)};
}

// The history is all there is: either filter can be applied to it at any time.
static size_t direct_swap(struct partita_stream *stream)
{
    (void)stream;
    return 0;
}

static void direct_plan_load(const struct partita_plan *plan, struct partita_load *ret)
{
    const double call = plan->choice.seconds * (double)plan->shape.block;
    *ret = (struct partita_load){.frames = plan->shape.block, .mean = call, .worst = call};
}

const struct engine engine_direct = {
    .name = "cpu/direct",
    .max_rank = PARTITA_MAX_RANK,
    .half = true,
    .channels_last = true,
    .estimate = direct_estimate,
    .build = build_layer,
    .directions = PARTITA_FORWARD | PARTITA_BACKWARD_DATA | PARTITA_BACKWARD_WEIGHT,
    .filter = {.bytes = direct_filter_bytes, .pack = direct_filter_pack},
    .bounded = {.run = direct_run},
    .stream = {.layout = direct_stream_layout,
               .step = direct_stream_step,
               .reset = direct_stream_reset,
               .region = direct_stream_region,
               .swap_begin = direct_swap,
               .swap_end = direct_swap,
               .plan_load = direct_plan_load},
};
