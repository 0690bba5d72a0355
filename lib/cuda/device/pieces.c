// SPDX-License-Identifier: MIT
#include "pieces.h"

#include "base/sizes.h"
#include "device.h"
#include "geometry/segments.h"

// Bytes of a piece's arrays where nothing is limited: copying them takes a hundred times as long as
// launching what computes them.
static const size_t PIECE_BYTES = 16 << 20;

// How many times as much new a piece of lines should bring as it shares with the one before.
enum { NEW_OF_SHARED = 4 };

enum kind { OF_BATCH, OF_LINES, OF_TAPS };

static size_t item_of_x(const struct shape *shape)
{
    return shape->in_channels * shape_inputs(shape) * shape->sample_bytes;
}

static size_t item_of_y(const struct shape *shape)
{
    return shape->out_channels * shape_outputs(shape) * shape->sample_bytes;
}

static size_t bytes_of_w(const struct shape *shape)
{
    return shape->out_channels * shape->group_in * shape_taps(shape) * shape->tap_bytes;
}

static enum kind kind_of(const struct partita_plan *plan)
{
    const struct shape *whole = &plan->shape, *piece = &plan->piece->shape;
    if (piece->axis[0].kernel < whole->axis[0].kernel) return OF_TAPS;
    const bool shorter = plan->direction == PARTITA_BACKWARD_DATA
                             ? piece->axis[0].size < whole->axis[0].size
                             : piece->axis[0].out < whole->axis[0].out;
    return shorter ? OF_LINES : OF_BATCH;
}

bool cuda_pieces_are_taps(const struct partita_plan *plan)
{
    return plan->piece && kind_of(plan) == OF_TAPS;
}

// The first output that backward data's first input is seen by, were there outputs on either side.
static ptrdiff_t first_seen(const struct axis *axis)
{
    return -floor_div(axis->begin + (ptrdiff_t)axis->span - 1, axis->stride);
}

// The problem of a piece of n steps: of so many items; taps; outputs with all inputs that they see;
// of backward data `stride` times as many inputs, with all outputs that they are seen by.
static struct shape shape_of_piece(const struct partita_plan *plan, enum kind kind, size_t n)
{
    struct shape shape = plan->shape;
    struct axis *axis = &shape.axis[0];
    if (kind == OF_BATCH) {
        shape.batch = n;
        return shape;
    }
    if (kind == OF_LINES) shape.batch = 1;
    if (kind == OF_LINES && plan->direction == PARTITA_BACKWARD_DATA) {
        axis->size = n * axis->stride;
        axis->begin += (ptrdiff_t)axis->stride * first_seen(axis);
        axis->out = (size_t)floor_div((ptrdiff_t)axis->size - 1 - axis->begin, axis->stride) + 1;
        return shape;
    }
    if (kind == OF_LINES) axis->out = n;
    else axis->kernel = n, axis->span = (n - 1) * axis->dilation + 1;
    axis->begin = 0;
    axis->size = (axis->out - 1) * axis->stride + axis->span;
    return shape;
}

// Of a piece's arrays, but for those that stay where they are.
static size_t piece_bytes(const struct partita_plan *plan, enum kind kind, size_t n)
{
    const struct shape shape = shape_of_piece(plan, kind, n);
    const size_t x = size_mul(shape.batch, item_of_x(&shape));
    return size_add(x, kind == OF_TAPS ? bytes_of_w(&shape)
                                       : size_mul(shape.batch, item_of_y(&shape)));
}

static size_t steps_of(const struct partita_plan *plan, enum kind kind)
{
    const struct axis *axis = &plan->shape.axis[0];
    if (kind == OF_BATCH) return plan->shape.batch;
    if (kind == OF_TAPS) return axis->kernel;
    return plan->direction == PARTITA_BACKWARD_DATA ? ceil_div(axis->size, axis->stride)
                                                    : axis->out;
}

// Items of a piece: as many pieces as it takes, all about as large. Two pieces are in the device's
// memory.
static size_t cut_batch(const struct partita_plan *plan, size_t most)
{
    const size_t batch = plan->shape.batch, items = most / piece_bytes(plan, OF_BATCH, 1);
    return ceil_div(batch, ceil_div(batch, items > 1 ? items : 1));
}

// Steps of a piece of lines or taps, no fewer than `least` >= 1; all of them where lines cannot be
// cut: within `room` bytes a piece then brings no more new than it shares.
static size_t cut_lines(const struct partita_plan *plan, enum kind kind, size_t least, size_t most,
                        size_t room)
{
    const size_t all = steps_of(plan, kind), one = piece_bytes(plan, kind, 1);
    if (all == 1) return 1;
    const size_t step = piece_bytes(plan, kind, 2) - one, shared = one > step ? one - step : 0;
    if (room <= shared) return all;
    size_t n = most > shared ? (most - shared) / step : 0;
    const size_t wished = ceil_div(NEW_OF_SHARED * shared, step), fitting = (room - shared) / step;
    if (n < wished) n = wished;
    if (n < least) n = least;
    if (n > fitting) n = fitting;
    if (n < least || n < ceil_div(shared, step)) return all;
    const size_t even = ceil_div(all, ceil_div(all, n));
    return even > least ? even : least;
}

// Filters of transforms hold no taps that no output sees; those of pieces hold them all.
static bool sees_all_taps(const struct partita_plan *plan)
{
    struct shape shape;
    char reason[96];
    if (plan->direction == PARTITA_BACKWARD_WEIGHT) return true; // no filter
    if (!shape_forward(&plan->shape, plan->direction, &shape, reason, sizeof reason)) return true;
    return segments_trim(&shape).taps == shape.axis[0].span;
}

// Whether a filter holds more than the taps: gradients of taps have none, engines that read taps in
// place keep them.
static bool has_spectra(const struct partita_plan *plan)
{
    return plan->direction != PARTITA_BACKWARD_WEIGHT && !plan->choice.from_taps;
}

// Steps of a piece, `all` where this kind is of no use.
static size_t cut(const struct partita_plan *plan, enum kind kind, size_t limit)
{
    const struct shape *shape = &plan->shape;
    const size_t most = size_min(PIECE_BYTES, limit / 4), all = steps_of(plan, kind);
    const size_t room = size_min(limit, cuda_device_of(plan)->memory / 2) / 4;
    if (kind == OF_BATCH) return cut_batch(plan, most);
    if (shape->rank > 1 || piece_bytes(plan, kind, all) <= most) return all;
    if (kind == OF_TAPS) {
        const bool lone = shape->batch == 1 && plan->direction == PARTITA_FORWARD && !shape->relu;
        return lone && plan->choice.from_taps && plan->engine->filter_taps
                   ? cut_lines(plan, kind, 1, most, room)
                   : all;
    }
    // Filters by transforms serve what has room for a transform; of dilated taps those of layers
    // are made for each phase.
    size_t least = has_spectra(plan) && plan->choice.transform ? plan->choice.transform : 1;
    if (plan->engine->max_rank) least = size_mul(least, shape->axis[0].dilation);
    return sees_all_taps(plan) ? cut_lines(plan, kind, least, most, room) : all;
}

// Whether the engine of the plan serves a piece, within a limit.
static bool serves(const struct partita_plan *plan, const struct request *request,
                   struct estimate *ret)
{
    const struct estimate *whole = &plan->choice;
    *ret = (struct estimate){0};
    plan->engine->estimate(request, ret);
    return ret->applicable && size_add(ret->shared, ret->worker) <= request->workspace_limit &&
           (!request->compatible_with || ret->variant == whole->variant) &&
           (!request->transform || ret->transform == request->transform);
}

// Makes plan->piece of n steps. PARTITA_ERR_UNSUPPORTED where the engine has no plan whose filters
// are the whole's.
static enum partita_status make(struct partita_plan *plan, const struct request *request,
                                enum kind kind, size_t n)
{
    const size_t limit = request->workspace_limit;
    struct partita_plan *piece = mem_allocate(&plan->allocator, sizeof *piece);
    if (!piece) return PARTITA_ERR_NOMEM;
    *piece = *plan;
    piece->shape = shape_of_piece(plan, kind, n);
    piece->state = NULL;
    struct request of_piece = *request;
    of_piece.shape = &piece->shape;
    if (plan->direction != PARTITA_BACKWARD_WEIGHT) of_piece.compatible_with = &plan->choice;
    if (!has_spectra(plan)) of_piece.transform = 0;
    // The arrays have one half of the limit, the workspace the other, or all of it where the engine
    // needs more.
    if (limit != SIZE_MAX) of_piece.workspace_limit = limit / 2;
    bool served = serves(plan, &of_piece, &piece->choice);
    if (!served) {
        of_piece.workspace_limit = limit;
        served = serves(plan, &of_piece, &piece->choice);
    }
    of_piece.transform = piece->choice.transform;
    plan->piece = piece;
    const enum partita_status status =
        served ? plan->engine->plan_create(piece, &of_piece) : PARTITA_ERR_UNSUPPORTED;
    if (status != PARTITA_OK) cuda_pieces_forget(plan);
    return status;
}

// Says it when a call cannot have what it needs, however little else is on the device.
static void say_too_large(const struct partita_plan *plan, const struct partita_plan *piece)
{
    const size_t arrays =
        size_mul(piece == plan ? 1 : 2, piece_bytes(piece, OF_BATCH, piece->shape.batch));
    const size_t others = piece->choice.bytes, memory = cuda_device_of(plan)->memory;
    if (size_add(arrays, others) <= memory) return;
    log_line(&plan->log,
             "%s: %zu MiB for arrays%s, %zu MiB for filter and workspace; the device has %zu MiB",
             plan->engine->name, arrays >> 20,
             piece == plan ? ", which are not cut" : " of two pieces", others >> 20, memory >> 20);
}

enum partita_status cuda_pieces_plan(struct partita_plan *plan, const struct request *request)
{
    static const enum kind kinds[] = {OF_TAPS, OF_LINES, OF_BATCH};
    const size_t limit = request->workspace_limit;
    // Lines of items that fit are left whole; taps that are read in place may be long beside them.
    const bool fits = piece_bytes(plan, OF_BATCH, 1) <= size_min(PIECE_BYTES, limit / 4);
    const bool possible[] = {
        [OF_TAPS] = !fits || plan->choice.from_taps, [OF_LINES] = !fits, [OF_BATCH] = true};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const size_t n = possible[kinds[i]] ? cut(plan, kinds[i], limit) : SIZE_MAX;
        if (n >= steps_of(plan, kinds[i])) continue;
        const enum partita_status status = make(plan, request, kinds[i], n);
        if (status == PARTITA_OK && kinds[i] != OF_TAPS) say_too_large(plan, plan->piece);
        if (status != PARTITA_ERR_UNSUPPORTED) return status;
    }
    say_too_large(plan, plan);
    return PARTITA_OK;
}

void cuda_pieces_forget(struct partita_plan *plan)
{
    if (!plan->piece) return;
    plan_destroy_state(plan->piece);
    mem_release(&plan->allocator, plan->piece);
    plan->piece = NULL;
}

// Items of a batch, one behind the other like a line.
static struct cuda_cut_lines batch_lines(size_t batch, size_t items, size_t item)
{
    return (struct cuda_cut_lines){.lines = 1,
                                   .pitch = batch * item,
                                   .end = batch * item,
                                   .bytes = items * item,
                                   .hop = (ptrdiff_t)(items * item)};
}

// Lines of `size` samples, in samples of so many bytes.
static struct cuda_cut_lines sample_lines(size_t lines, size_t size, size_t bytes)
{
    return (struct cuda_cut_lines){.lines = lines, .pitch = size * bytes, .end = size * bytes};
}

// How many of `size` samples lie before `end`.
static size_t up_to(ptrdiff_t end, size_t size)
{
    return end < 0 ? 0 : size_min((size_t)end, size);
}

// Pieces of n samples, the first from `first` on; none is seen from `end` on.
static struct cuda_cut_lines cut_samples(struct cuda_cut_lines lines, size_t sample,
                                         ptrdiff_t first, ptrdiff_t hop, size_t n, size_t end)
{
    lines.first = first * (ptrdiff_t)sample;
    lines.hop = hop * (ptrdiff_t)sample;
    lines.bytes = n * sample;
    lines.end = end * sample;
    return lines;
}

// x and y, or their gradients, in pieces of lines.
static void cut_x_and_y(const struct partita_plan *plan, struct cuda_cut_lines *ret_x,
                        struct cuda_cut_lines *ret_y)
{
    const struct shape *shape = &plan->shape;
    const struct axis *axis = &shape->axis[0], *piece = &plan->piece->shape.axis[0];
    const size_t sample = shape->sample_bytes;
    const struct cuda_cut_lines x = sample_lines(shape->in_channels, axis->size, sample);
    const struct cuda_cut_lines y = sample_lines(shape->out_channels, axis->out, sample);
    const ptrdiff_t stride = (ptrdiff_t)axis->stride;
    if (plan->direction == PARTITA_BACKWARD_DATA) {
        const ptrdiff_t last = (ptrdiff_t)axis->size - 1 - axis->begin;
        const size_t seen = up_to(floor_div(last, axis->stride) + 1, axis->out);
        *ret_x = cut_samples(x, sample, 0, (ptrdiff_t)piece->size, piece->size, axis->size);
        *ret_y = cut_samples(y, sample, first_seen(axis), (ptrdiff_t)piece->size / stride,
                             piece->out, seen);
        return;
    }
    const size_t seen =
        up_to(axis->begin + (ptrdiff_t)((axis->out - 1) * axis->stride + axis->span), axis->size);
    *ret_x = cut_samples(x, sample, axis->begin, (ptrdiff_t)piece->out * stride, piece->size, seen);
    *ret_y = cut_samples(y, sample, 0, (ptrdiff_t)piece->out, piece->out, axis->out);
}

// A window of lags: x from where its first tap meets the first output on, and the taps in the order
// in which they meet it.
static struct cuda_pieces taps_of(const struct partita_plan *plan)
{
    const struct shape *shape = &plan->shape;
    const struct axis *axis = &shape->axis[0], *piece = &plan->piece->shape.axis[0];
    const size_t n = piece->kernel;
    const struct cuda_cut_lines x =
        sample_lines(shape->in_channels, axis->size, shape->sample_bytes);
    const struct cuda_cut_lines w =
        sample_lines(shape->out_channels * shape->group_in, axis->kernel, shape->tap_bytes);
    const size_t seen =
        up_to(axis->begin + (ptrdiff_t)((axis->out - 1) * axis->stride + axis->span), axis->size);
    const ptrdiff_t first = shape->flip ? (ptrdiff_t)axis->kernel - (ptrdiff_t)n : 0;
    return (struct cuda_pieces){
        .sets = 1,
        .of_set = ceil_div(axis->kernel, n),
        .from = {cut_samples(x, shape->sample_bytes, axis->begin, (ptrdiff_t)(n * axis->dilation),
                             piece->size, seen),
                 cut_samples(w, shape->tap_bytes, first, shape->flip ? -(ptrdiff_t)n : (ptrdiff_t)n,
                             n, axis->kernel)},
        .sum_bytes = item_of_y(shape),
    };
}

struct cuda_pieces cuda_pieces_of(const struct partita_plan *plan, bool from_taps)
{
    const struct shape *shape = &plan->shape, *piece = &plan->piece->shape;
    const enum kind kind = kind_of(plan);
    struct cuda_cut_lines x, y;
    struct cuda_pieces ret = {.sets = 1};
    if (kind == OF_TAPS) return taps_of(plan);
    if (kind == OF_LINES) {
        const size_t step = plan->direction == PARTITA_BACKWARD_DATA
                                ? piece->axis[0].size / piece->axis[0].stride
                                : piece->axis[0].out;
        ret.sets = shape->batch;
        ret.of_set = ceil_div(steps_of(plan, kind), step);
        cut_x_and_y(plan, &x, &y);
    } else {
        ret.of_set = ceil_div(shape->batch, piece->batch);
        x = batch_lines(shape->batch, piece->batch, item_of_x(shape));
        y = batch_lines(shape->batch, piece->batch, item_of_y(shape));
    }
    const size_t w = bytes_of_w(shape);
    if (from_taps)
        ret.from[1] =
            (struct cuda_cut_lines){.lines = 1, .end = w, .bytes = w}; // all with every piece
    if (plan->direction == PARTITA_FORWARD) ret.to = y, ret.from[0] = x;
    else if (plan->direction == PARTITA_BACKWARD_DATA) ret.to = x, ret.from[0] = y;
    else ret.from[0] = x, ret.from[1] = y, ret.sum_bytes = bytes_of_w(shape);
    return ret;
}

// As one of the plan's directions is cut.
bool cuda_pieces_of_bias(const struct partita_plan *plan, struct cuda_pieces *ret,
                         struct shape *ret_piece)
{
    const struct partita_plan *const plans[] = {plan, plan->backward_weight, plan->backward_data};
    const struct shape *shape = &plan->shape;
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        if (!plans[i] || !plans[i]->piece || kind_of(plans[i]) == OF_TAPS) continue;
        const size_t out = shape->axis[0].out, sample = shape->sample_bytes;
        *ret =
            (struct cuda_pieces){.sets = 1, .sum_bytes = shape->out_channels * shape->scalar_bytes};
        *ret_piece = plans[i]->piece->shape;
        if (kind_of(plans[i]) == OF_BATCH) {
            ret->of_set = ceil_div(shape->batch, ret_piece->batch);
            ret->from[0] = batch_lines(shape->batch, ret_piece->batch, item_of_y(shape));
            return true;
        }
        const size_t n = ret_piece->axis[0].out = size_min(ret_piece->axis[0].out, out);
        ret->sets = shape->batch;
        ret->of_set = ceil_div(out, n);
        ret->from[0] = cut_samples(sample_lines(shape->out_channels, out, sample), sample, 0,
                                   (ptrdiff_t)n, n, out);
        return true;
    }
    return false;
}
