// SPDX-License-Identifier: MIT
#include "head.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"

void cuda_head_sum(const struct request *request, struct cuda_cut *cut)
{
    const struct shape *shape = request->shape;
    const struct cost_rates *costs = &request->model->costs[shape->f64];
    const double cells = (double)dense_paths(shape),
                 call = fmin((double)shape->block, cut->partitions.tick);
    const double products =
        cells * (double)cut->head * (shape->complex_signal ? 2 : 1) * (shape->complex_taps ? 2 : 1);
    cut->head_engine = NULL;
    cut->head_bytes = 0;
    cut->head_seconds = products * costs->fma + (cut->head ? cells * costs->fir_call / call : 0);
    cut->head_flops = 2 * products;
}

// The problem of the head's stream: causal taps, and what latency there is.
static struct shape shape_of(const struct shape *outer, const struct cuda_cut *cut)
{
    struct shape shape = *outer;
    const size_t tick = (size_t)cut->partitions.tick, taps = cut->head;
    shape.flip = true;
    shape.latency = cut_visible_latency(cut);
    shape.whole_blocks = cut->whole;
    shape.block = cut->whole || tick < outer->block ? tick : outer->block;
    shape.axis[0] = (struct axis){.kernel = taps,
                                  .span = taps,
                                  .size = outer->axis[0].size,
                                  .stride = 1,
                                  .dilation = 1,
                                  .begin = -(ptrdiff_t)(taps - 1)};
    return shape;
}

static struct request request_of(const struct request *outer, const struct shape *shape)
{
    return (struct request){.shape = shape,
                            .direction = PARTITA_FORWARD,
                            .model = outer->model,
                            .workspace_limit = outer->workspace_limit,
                            .error_budget = outer->error_budget};
}

// Whether an engine of the CPU can be the head's: one that swaps filters, and leaves cells out that
// there are none of.
static bool serves(const struct engine *engine, const struct request *request, struct estimate *ret)
{
    *ret = (struct estimate){0};
    if (!engine->swap_begin || !engine->filter_create_cells) return false;
    engine->estimate(request, ret);
    return ret->applicable && ret->latency <= request->shape->latency &&
           !(request->error_budget > 0 && ret->error > request->error_budget);
}

// The CPU's cheapest engine for the head as it is cut; NULL: there is none.
static const struct engine *cheapest(const struct request *request, const struct cuda_cut *cut,
                                     struct estimate *ret)
{
    const struct shape shape = shape_of(request->shape, cut);
    const struct request own = request_of(request, &shape);
    const struct engine *best = NULL;
    for (const struct engine *const *engine = request->device->host_engines; *engine; engine++) {
        struct estimate estimate;
        if (!serves(*engine, &own, &estimate) || (best && estimate.seconds >= ret->seconds))
            continue;
        best = *engine;
        *ret = estimate;
    }
    return best;
}

bool cuda_head_stream(const struct request *request, struct cuda_cut *cut)
{
    const size_t stride = request->shape->axis[0].stride;
    struct estimate estimate = {.applicable = false};
    for (;;) {
        if (!cut->head || cut->head >= request->shape->axis[0].span) return false;
        cut->head_engine = cheapest(request, cut, &estimate);
        if (!cut->head_engine) return false;
        const size_t visible = cut_visible_latency(cut),
                     less = visible - estimate.latency / stride * stride;
        if (estimate.latency == visible) break;
        cut->latency -= less;
        cut->head += less;
    }
    cut->head_bytes = estimate.bytes;
    cut->head_seconds = estimate.seconds;
    cut->head_flops = estimate.flops;
    return true;
}

static const struct partita_plan *head_plan(const struct partita_plan *plan)
{
    return ((const struct cuda_partitioned *)plan->state)->head;
}

enum partita_status cuda_head_plan(struct partita_plan *plan, const struct request *request)
{
    struct cuda_partitioned *partitioned = plan->state;
    const struct cuda_cut *cut = &partitioned->cut;
    if (!cut->head_engine) return PARTITA_OK;
    struct partita_plan *head = mem_allocate(&plan->allocator, sizeof *head);
    if (!head) return PARTITA_ERR_NOMEM;
    partitioned->head = head;
    *head = (struct partita_plan){.engine = cut->head_engine,
                                  .engines = plan->device->host_engines,
                                  .direction = PARTITA_FORWARD,
                                  .kernels = plan->kernels,
                                  .shape = shape_of(&plan->shape, cut),
                                  .level = plan->level,
                                  .threads = 1,
                                  .stream_threads = 1,
                                  .allocator = plan->allocator,
                                  .log = plan->log};
    const struct request own = request_of(request, &head->shape);
    return serves(head->engine, &own, &head->choice) ? head->engine->plan_create(head, &own)
                                                     : PARTITA_ERR_UNSUPPORTED;
}

void cuda_head_forget(struct partita_plan *plan)
{
    struct partita_plan *head = ((struct cuda_partitioned *)plan->state)->head;
    if (!head) return;
    head->engine->plan_destroy(head);
    mem_release(&plan->allocator, head);
}

struct partita_load cuda_head_load(const struct partita_plan *plan)
{
    struct partita_load load = {.frames = 0};
    if (head_plan(plan)) head_plan(plan)->engine->plan_load(head_plan(plan), &load);
    return load;
}

uint64_t cuda_head_key(const struct partita_plan *plan, uint64_t hash)
{
    const struct partita_plan *head = head_plan(plan);
    if (!head) return hash;
    const uint64_t parts[] = {head->engine->region_key ? head->engine->region_key(head) : 0,
                              head->choice.hop, head->choice.transform, head->choice.latency};
    return hash_bytes(hash_bytes(hash, head->engine->name, strlen(head->engine->name)), parts,
                      sizeof parts);
}

enum partita_status cuda_head_filter(struct partita_filter *filter)
{
    struct cuda_partitioned_filter *state = filter->state;
    const struct partita_plan *plan = filter->plan, *head = head_plan(plan);
    if (!head) return PARTITA_OK;
    const size_t outputs = plan->shape.out_channels, n = state->first_cell[outputs];
    struct partita_cell *cells = mem_allocate(&plan->allocator, size_mul(n, sizeof *cells));
    if (!cells) return PARTITA_ERR_NOMEM;
    for (size_t out = 0; out < outputs; out++)
        for (size_t c = state->first_cell[out]; c < state->first_cell[out + 1]; c++)
            cells[c] = (struct partita_cell){.out = out,
                                             .in = (size_t)state->cells[c].in,
                                             .length = state->head_taps[c],
                                             .taps = state->heads[c]};
    state->head.plan = head;
    const enum partita_status status =
        head->engine->filter_create_cells(&state->head, cells, n, NULL);
    mem_release(&plan->allocator, cells);
    return status;
}

void cuda_head_filter_forget(struct partita_filter *filter)
{
    struct partita_filter *head = &((struct cuda_partitioned_filter *)filter->state)->head;
    if (!head->plan) return;
    if (head->plan->engine->filter_destroy) head->plan->engine->filter_destroy(head);
    else mem_release(&head->plan->allocator, head->state);
}

static const struct partita_filter *head_filter(const struct partita_filter *filter)
{
    return filter ? &((const struct cuda_partitioned_filter *)filter->state)->head : NULL;
}

// Brings filter and swap to where the outer stream's are `done` frames on.
static struct partita_stream *follow(const struct partita_stream *outer, struct cuda_head *head,
                                     size_t done)
{
    head->stream.filter = head_filter(outer->filter);
    head->stream.swap = outer->swap;
    head->stream.swap.incoming = head_filter(outer->swap.incoming);
    head->stream.swap.left -= outer->swap.state == SWAP_NONE ? 0 : done;
    return &head->stream;
}

static struct cuda_head *cut_head(const struct shape *shape, size_t tick, struct arena *arena)
{
    struct cuda_head *head = arena_take(arena, sizeof *head);
    const void **x = arena_take(arena, shape->in_channels * sizeof *x);
    void **y = arena_take(arena, shape->out_channels * sizeof *y);
    for (size_t k = 0; k < shape->out_channels; k++) {
        void *line = arena_take(arena, tick * shape->sample_bytes);
        if (y) y[k] = line;
    }
    if (head) {
        head->x = x;
        head->y = y;
    }
    return head;
}

enum partita_status cuda_head_open(const struct partita_stream *outer, struct cuda_head **ret_head)
{
    const struct partita_plan *plan = outer->plan, *own = head_plan(plan);
    const size_t tick = (size_t)((const struct cuda_partitioned *)plan->state)->cut.partitions.tick;
    struct arena arena = {0};
    *ret_head = NULL;
    if (!own) return PARTITA_OK;
    cut_head(&plan->shape, tick, &arena);
    arena.base = mem_allocate(&plan->allocator, arena.used);
    if (!arena.base) return PARTITA_ERR_NOMEM;
    arena.used = 0;
    struct cuda_head *head = *ret_head = cut_head(&plan->shape, tick, &arena);
    head->stream.plan = own;
    head->stream.filter = head_filter(outer->filter);
    return own->engine->stream_open(&head->stream);
}

void cuda_head_close(struct cuda_head *head)
{
    if (!head) return;
    const struct partita_plan *plan = head->stream.plan;
    if (plan->engine->stream_close) plan->engine->stream_close(&head->stream);
    mem_release(&plan->allocator, head->stream.state);
    mem_release(&plan->allocator, head);
}

void cuda_head_run(const struct partita_stream *outer, struct cuda_head *head, size_t at, size_t n,
                   size_t ready)
{
    struct frames frames = {
        .y = head->y, .y_stride = 1, .x = head->x, .x_stride = 1, .x_first = at};
    while (frames.y_first < n) {
        const size_t done = frames.y_first;
        struct partita_stream *stream = follow(outer, head, done);
        frames.n = n - done;
        frames.rest = ready - done;
        const struct step step = stream->plan->engine->stream_step(stream, &frames);
        frames.x_first += step.in;
        frames.y_first += step.out; // as many: its stride is 1
    }
}

void cuda_head_reset(const struct partita_stream *outer, struct cuda_head *head)
{
    if (head) head->stream.plan->engine->stream_reset(follow(outer, head, 0));
}

size_t cuda_head_swap_begin(const struct partita_stream *outer, struct cuda_head *head)
{
    return head ? head->stream.plan->engine->swap_begin(follow(outer, head, 0)) : 0;
}

size_t cuda_head_swap_end(const struct partita_stream *outer, struct cuda_head *head)
{
    return head ? head->stream.plan->engine->swap_end(follow(outer, head, 0)) : 0;
}

size_t cuda_head_region_bytes(struct cuda_head *head)
{
    return head ? head->stream.plan->engine->stream_region(&head->stream).bytes : 0;
}

void cuda_head_save(const struct partita_stream *outer, struct cuda_head *head, void *region)
{
    if (!head) return;
    struct partita_stream *stream = follow(outer, head, 0);
    const struct region own = stream->plan->engine->stream_region(stream);
    if (stream->plan->engine->stream_pause) stream->plan->engine->stream_pause(stream);
    memcpy(region, own.data, own.bytes);
}

void cuda_head_restore(const struct partita_stream *outer, struct cuda_head *head,
                       const void *region)
{
    if (!head) return;
    struct partita_stream *stream = follow(outer, head, 0);
    const struct region own = stream->plan->engine->stream_region(stream);
    memcpy(own.data, region, own.bytes);
    if (stream->plan->engine->stream_resume) stream->plan->engine->stream_resume(stream);
}
