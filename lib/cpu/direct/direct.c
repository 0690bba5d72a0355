// SPDX-License-Identifier: MIT
// cpu/direct: the defining sum, tap by tap, without added latency. With a stride it runs polyphase:
// the input is dealt out to `stride` lines and each line is filtered at the output's rate, so
// discarded outputs are never computed. Bounded problems of real types may instead run as layers
// (layer_direct.c), which share inputs between channels. Source: Crochiere & Rabiner, Multirate
// Digital Signal Processing (1983), 3.3.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "core/plan.h"
#include "cpu/conv/finish.h"
#include "geometry/samples.h"
#include "kernels/kernels.h"
#include "layer.h"
#include "stream/stream.h"

enum {
    TILE = 1024, // outputs of a bounded signal computed at once: x, y and taps of a tile stay in L1
    STREAM_CHUNK = 1024 // input frames of a stream taken at once, if the stride is not larger
};

// Output p reads line k < min(stride, span) at p - m with tap g[stride*m + k], m < line_taps(k).
static size_t line_taps(const struct axis *axis, size_t k)
{
    return (axis->span - k - 1) / axis->stride + 1;
}

// Where line k's taps start in a cell: the lines lie one after the other.
static size_t line_offset(const struct axis *axis, size_t k)
{
    const size_t whole = axis->span / axis->stride, extra = axis->span % axis->stride;
    return k * whole + (k < extra ? k : extra);
}

static size_t line_count(const struct axis *axis)
{
    return axis->stride < axis->span ? axis->stride : axis->span;
}

static double real_products(const struct shape *shape)
{
    const double factor = (shape->complex_signal ? 2 : 1) * (shape->complex_taps ? 2 : 1);
    return factor * (double)shape->axis[0].span * (double)shape->out_channels *
           (double)shape->group_in;
}

static size_t tile_bytes(const struct shape *shape)
{
    return mem_round(size_mul(TILE + line_taps(&shape->axis[0], 0), shape->sample_bytes));
}

static struct direct_stream *cut_stream(const struct shape *shape, struct arena *arena);

// The two ways: struct estimate's variant.
enum { AS_FILTER, AS_LAYER };

static void filter_estimate(const struct request *request, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    const struct axis *axis = &shape->axis[0];
    const struct cost_rates *costs = &request->model->costs[shape->f64];
    const double outputs =
        shape->stream ? 1.0 / (double)axis->stride : (double)axis->out * (double)shape->batch;
    const double moved = outputs * (double)(shape->complex_signal ? 2 : 1) *
                         (double)(shape->out_channels + shape->in_channels * line_count(axis));
    const double cells = (double)(shape->out_channels * shape->group_in * line_count(axis));
    const size_t call = shape->block < STREAM_CHUNK ? shape->block : STREAM_CHUNK; // input frames
    const double calls = shape->stream ? cells / (double)call : cells * outputs / TILE;
    ret->applicable = true;
    ret->flops = 2 * outputs * real_products(shape);
    ret->seconds =
        outputs * real_products(shape) * costs->fma + moved * costs->copy + calls * costs->fir_call;
    // Memory is read ahead while the sums run: whichever takes longer counts.
    if (!shape->stream) ret->seconds = fmax(ret->seconds, memory_seconds(request->model, shape));
    ret->hop = TILE;
    ret->worker = shape->stream ? 0 : tile_bytes(shape);
    ret->bytes = size_add(ret->worker, size_mul(shape->out_channels * shape->group_in,
                                                size_mul(axis->span, shape->tap_bytes)));
    if (shape->stream) {
        struct arena lines = {0};
        cut_stream(shape, &lines);
        ret->bytes = size_add(ret->bytes, lines.used);
    }
    // Blocked sums of 64: the rounding walk of one segment, then of the segments.
    const double segment = axis->span < FIR_SEGMENT ? (double)axis->span : FIR_SEGMENT,
                 segments = (double)axis->span / segment;
    ret->error = shape_roundoff(shape) * 0.3 * sqrt(segment + segments);
}

static void direct_estimate(const struct request *request, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    const bool filter = shape->rank == 1 && request->direction == PARTITA_FORWARD && !shape->half;
    struct estimate layer = {.variant = AS_LAYER};
    if (request->transform) {
        snprintf(ret->reason, sizeof ret->reason, "has no transform");
        return;
    }
    if (filter) filter_estimate(request, ret);
    if (!filter && shape->complex_signal)
        snprintf(ret->reason, sizeof ret->reason, "runs layers of real types alone");
    if (shape->stream || shape->complex_signal) return;
    layer_direct_estimate(request, &layer);
    const size_t limit = request->workspace_limit;
    const bool fits = layer.applicable && layer.worker <= limit;
    if (!filter || (fits && (ret->worker > limit || layer.seconds < ret->seconds))) *ret = layer;
}

static enum partita_status direct_plan_create(struct partita_plan *plan,
                                              const struct request *request)
{
    return plan->choice.variant == AS_LAYER ? layer_direct_plan_create(plan, request) : PARTITA_OK;
}

static void direct_plan_destroy(struct partita_plan *plan)
{
    if (plan->choice.variant == AS_LAYER) layer_direct_plan_destroy(plan);
}

static size_t cell_bytes(const struct shape *shape)
{
    return mem_round(shape->axis[0].span * shape->tap_bytes);
}

// Taps of all cells, [out][in of group], each dealt out to its lines.
static enum partita_status direct_filter_create(struct partita_filter *filter, const void *taps)
{
    const struct shape *shape = &filter->plan->shape;
    const struct axis *axis = &shape->axis[0];
    if (filter->plan->choice.variant == AS_LAYER) return layer_direct_filter_create(filter, taps);
    const size_t cells = shape->out_channels * shape->group_in, bytes = shape->tap_bytes;
    char *causal = mem_allocate(&filter->plan->allocator, axis->span * bytes);
    filter->state = mem_allocate(&filter->plan->allocator, size_mul(cells, cell_bytes(shape)));
    if (!causal || !filter->state) {
        mem_release(&filter->plan->allocator, causal);
        return PARTITA_ERR_NOMEM;
    }
    for (size_t cell = 0; cell < cells; cell++) {
        char *h = (char *)filter->state + cell * cell_bytes(shape);
        causal_taps(shape, causal, (const char *)taps + cell * axis->kernel * bytes);
        for (size_t k = 0; k < line_count(axis); k++)
            samples_copy(h + line_offset(axis, k) * bytes, 1, causal + k * bytes, axis->stride,
                         line_taps(axis, k), bytes);
    }
    mem_release(&filter->plan->allocator, causal);
    return PARTITA_OK;
}

// y[n] += line k of one cell applied to x, whose sample of output 0 and tap 0 is x[0].
static void filter_line(const struct partita_plan *plan, const struct partita_filter *filter,
                        size_t cell, size_t k, void *y, const void *x, size_t n)
{
    const struct shape *shape = &plan->shape;
    const struct axis *axis = &shape->axis[0];
    const char *h = (const char *)filter->state + cell * cell_bytes(shape) +
                    line_offset(axis, k) * shape->tap_bytes;
    if (shape->complex_taps) plan->kernels->fir_complex(y, x, h, n, line_taps(axis, k));
    else if (shape->complex_signal) plan->kernels->fir(y, x, h, 2 * n, line_taps(axis, k), 2);
    else plan->kernels->fir(y, x, h, n, line_taps(axis, k), 1);
}

struct forward {
    const struct partita_plan *plan;
    const struct partita_filter *filter;
    char *y;
    const char *x;
    char *workspace;
    size_t tiles;
};

// The samples that outputs p .. p+n-1 read through line k; in place where they all lie inside the
// signal.
static const char *line_window(const struct forward *call, const char *x, size_t p, size_t n,
                               size_t k, char *scratch)
{
    const struct shape *shape = &call->plan->shape;
    const struct axis *axis = &shape->axis[0];
    const size_t history = line_taps(axis, k) - 1, bytes = shape->sample_bytes;
    const ptrdiff_t first = causal_first(axis) - (ptrdiff_t)k +
                            ((ptrdiff_t)p - (ptrdiff_t)history) * (ptrdiff_t)axis->stride;
    const ptrdiff_t last = first + (ptrdiff_t)((history + n - 1) * axis->stride);
    if (axis->stride == 1 && first >= 0 && last < (ptrdiff_t)axis->size)
        return x + (size_t)(first + (ptrdiff_t)history) * bytes;
    samples_window(scratch, x, axis->size, first, axis->stride, history + n, bytes);
    return scratch + history * bytes;
}

// One task: one tile of one output channel of one item of the batch.
static void forward_tile(void *context, size_t task, int worker)
{
    const struct forward *call = context;
    const struct shape *shape = &call->plan->shape;
    const struct axis *axis = &shape->axis[0];
    const size_t tile = task % call->tiles, channel = task / call->tiles % shape->out_channels;
    const size_t item = task / call->tiles / shape->out_channels, bytes = shape->sample_bytes;
    const size_t p = tile * TILE, n = axis->out - p < TILE ? axis->out - p : TILE;
    const size_t group = channel / shape->group_out;
    char *scratch = call->workspace + (size_t)worker * tile_bytes(shape);
    char *y = call->y + ((item * shape->out_channels + channel) * axis->out + p) * bytes;
    memset(y, 0, n * bytes);
    for (size_t c = 0; c < shape->group_in; c++) {
        const char *x = call->x + (item * shape->in_channels + group * shape->group_in + c) *
                                      axis->size * bytes;
        for (size_t k = 0; k < line_count(axis); k++)
            filter_line(call->plan, call->filter, channel * shape->group_in + c, k, y,
                        line_window(call, x, p, n, k, scratch), n);
    }
}

static enum partita_status direct_run(const struct partita_plan *plan,
                                      const struct partita_filter *filter,
                                      const struct operands *operands, void *workspace)
{
    const struct shape *shape = &plan->shape;
    if (plan->choice.variant == AS_LAYER) {
        layer_direct_run(plan, filter, operands, workspace);
        return PARTITA_OK;
    }
    struct forward call = {plan,         filter,
                           operands->to, operands->from[0],
                           workspace,    (shape->axis[0].out + TILE - 1) / TILE};
    thread_loop(plan->threads, shape->batch * shape->out_channels * call.tiles, forward_tile,
                &call);
    conv_finish_outputs(plan, filter, operands->to);
    return PARTITA_OK;
}

// Streams. Line k holds the inputs that tap g[stride*m + k] meets: those at positions congruent to
// -k modulo the stride. A line is a plain array that slides back to its start when it is full.
struct direct_stream {
    size_t history, capacity; // samples of one line
    size_t *fill;             // [lines] samples written, history included
    char *lines;              // [in_channels][lines][capacity]
    char *sum, *faded;        // one chunk of outputs of either filter
};

// Input frames taken at once: all lines of a channel together stay in L1.
static size_t chunk_frames(const struct axis *axis)
{
    return axis->stride > STREAM_CHUNK ? axis->stride : STREAM_CHUNK;
}

static struct direct_stream *cut_stream(const struct shape *shape, struct arena *arena)
{
    const struct axis *axis = &shape->axis[0];
    const size_t per_chunk = chunk_frames(axis) / axis->stride + 1;
    struct direct_stream *state = arena_take(arena, sizeof *state);
    struct direct_stream cut = {.history = line_taps(axis, 0)};
    cut.capacity = size_add(cut.history, cut.history > 4 * per_chunk ? cut.history : 4 * per_chunk);
    cut.fill = arena_take(arena, line_count(axis) * sizeof *cut.fill);
    cut.lines = arena_take(arena, size_mul(size_mul(shape->in_channels, line_count(axis)),
                                           size_mul(cut.capacity, shape->sample_bytes)));
    cut.sum = arena_take(arena, per_chunk * shape->sample_bytes);
    cut.faded = arena_take(arena, per_chunk * shape->sample_bytes);
    if (state) *state = cut;
    return state;
}

static char *line_at(const struct partita_stream *stream, size_t channel, size_t k, size_t index)
{
    const struct direct_stream *state = stream->state;
    const struct shape *shape = &stream->plan->shape;
    return state->lines + ((channel * line_count(&shape->axis[0]) + k) * state->capacity + index) *
                              shape->sample_bytes;
}

static void direct_reset(struct partita_stream *stream)
{
    const struct direct_stream *state = stream->state;
    const struct shape *shape = &stream->plan->shape;
    for (size_t k = 0; k < line_count(&shape->axis[0]); k++) {
        state->fill[k] = state->history;
        for (size_t c = 0; c < shape->in_channels; c++)
            memset(line_at(stream, c, k, 0), 0, state->history * shape->sample_bytes);
    }
}

static enum partita_status direct_stream_open(struct partita_stream *stream)
{
    const struct shape *shape = &stream->plan->shape;
    struct arena arena = {0};
    cut_stream(shape, &arena);
    arena.base = mem_allocate(&stream->plan->allocator, arena.used);
    if (!arena.base) return PARTITA_ERR_NOMEM;
    arena.used = 0;
    stream->state = cut_stream(shape, &arena);
    direct_reset(stream);
    return PARTITA_OK;
}

// Appends to line k `count` inputs of the chunk, every stride-th from `first` on.
static void append_line(struct partita_stream *stream, const struct frames *chunk, size_t k,
                        size_t first, size_t count)
{
    struct direct_stream *state = stream->state;
    const struct shape *shape = &stream->plan->shape;
    const size_t stride = shape->axis[0].stride, bytes = shape->sample_bytes;
    const bool slide = state->fill[k] + count > state->capacity;
    for (size_t c = 0; c < shape->in_channels; c++) {
        if (slide)
            memmove(line_at(stream, c, k, 0),
                    line_at(stream, c, k, state->fill[k] - state->history), state->history * bytes);
        char *end = line_at(stream, c, k, slide ? state->history : state->fill[k]);
        if (chunk->x)
            samples_copy(end, 1, frames_x(chunk, c, first, bytes), stride * chunk->x_stride, count,
                         bytes);
        else memset(end, 0, count * bytes);
    }
    if (slide) state->fill[k] = state->history;
    state->fill[k] += count;
}

// Deals the chunk out to the lines; returns how many outputs fall due in it.
static size_t append(struct partita_stream *stream, const struct frames *chunk)
{
    const struct axis *axis = &stream->plan->shape.axis[0];
    size_t due = 0;
    for (size_t k = 0; k < line_count(axis); k++) {
        const size_t first = (2 * axis->stride - k - stream->phase) % axis->stride;
        if (first >= chunk->n) continue;
        const size_t count = (chunk->n - first - 1) / axis->stride + 1;
        append_line(stream, chunk, k, first, count);
        if (k == 0) due = count;
    }
    return due;
}

// The sample of line k that the first of the last `due` outputs meets with the line's first tap.
// `phase` is the position after the chunk modulo the stride: lines of residues below it have gone
// one sample past the last output.
static const char *line_head(const struct partita_stream *stream, size_t channel, size_t k,
                             size_t phase, size_t due)
{
    const struct direct_stream *state = stream->state;
    const size_t stride = stream->plan->shape.axis[0].stride;
    const bool past = k > 0 && stride - k <= (phase + stride - 1) % stride;
    return line_at(stream, channel, k, state->fill[k] - past - due);
}

static void compute_channel(const struct partita_stream *stream,
                            const struct partita_filter *filter, size_t channel, char *y,
                            size_t phase, size_t due)
{
    const struct shape *shape = &stream->plan->shape;
    const size_t group = channel / shape->group_out;
    memset(y, 0, due * shape->sample_bytes);
    for (size_t c = 0; c < shape->group_in; c++)
        for (size_t k = 0; k < line_count(&shape->axis[0]); k++)
            filter_line(stream->plan, filter, channel * shape->group_in + c, k, y,
                        line_head(stream, group * shape->group_in + c, k, phase, due), due);
}

static void compute(struct partita_stream *stream, const struct frames *chunk, size_t due)
{
    const struct direct_stream *state = stream->state;
    const struct shape *shape = &stream->plan->shape;
    const size_t stride = shape->axis[0].stride, phase = (stream->phase + chunk->n) % stride;
    const size_t first = (stride - stream->phase) % stride; // frame of the first output
    for (size_t channel = 0; channel < shape->out_channels; channel++) {
        char *own = frames_y(chunk, channel, 0, shape->sample_bytes);
        char *y = chunk->y_stride == 1 ? own : state->sum;
        compute_channel(stream, stream->filter, channel, y, phase, due);
        if (stream->swap.state == SWAP_FADING) {
            compute_channel(stream, stream->swap.incoming, channel, state->faded, phase, due);
            swap_fade(stream, y, state->faded, due, first, stride);
        }
        if (y == state->sum) samples_copy(own, chunk->y_stride, y, 1, due, shape->sample_bytes);
    }
}

static struct step direct_step(struct partita_stream *stream, const struct frames *frames)
{
    const size_t most = chunk_frames(&stream->plan->shape.axis[0]);
    struct frames chunk = *frames;
    if (chunk.n > most) chunk.n = most;
    const size_t due = append(stream, &chunk);
    if (due) compute(stream, &chunk, due);
    return (struct step){chunk.n, due};
}

// The fill of the lines and the lines themselves lie side by side.
static struct region direct_region(struct partita_stream *stream)
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

static void direct_load(const struct partita_plan *plan, struct partita_load *ret)
{
    const double call = plan->choice.seconds * (double)plan->shape.block;
    *ret = (struct partita_load){.frames = plan->shape.block, .mean = call, .worst = call};
}

const struct engine engine_direct = {
    .name = "cpu/direct",
    .max_rank = PARTITA_MAX_RANK,
    .half = true,
    .estimate = direct_estimate,
    .plan_create = direct_plan_create,
    .plan_destroy = direct_plan_destroy,
    .filter_create = direct_filter_create,
    .stream_open = direct_stream_open,
    .stream_step = direct_step,
    .stream_reset = direct_reset,
    .stream_region = direct_region,
    .swap_begin = direct_swap,
    .swap_end = direct_swap,
    .plan_load = direct_load,
    .directions = PARTITA_FORWARD | PARTITA_BACKWARD_DATA | PARTITA_BACKWARD_WEIGHT,
    .run = direct_run,
};
