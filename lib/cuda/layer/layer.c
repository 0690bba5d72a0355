// SPDX-License-Identifier: MIT
#include "layer.h"

#include <assert.h>

#include "base/mem.h"
#include "base/sizes.h"
#include "cuda/device/bounded_call.h"
#include "cuda/device/filter.h"

enum {
    ALIGNMENTS = 3 * 64, // of the matrices of a workspace, bytes
    BATCH_POSITIONS = 32,
    // Forward and backward data: with more blocks of 64 x 64 sums terms are not split, since every
    // device has enough work.
    TARGET_BLOCKS = 256,
    BLOCK_EDGE = 64,
};

static bool is_weight(const struct cuda_layer *layer)
{
    return layer->direction == PARTITA_BACKWARD_WEIGHT;
}

struct cuda_layer cuda_layer_of(const struct request *request, bool complex)
{
    const bool f64 = request->shape->f64;
    const enum cuda_element real = f64 ? CUDA_F64 : CUDA_F32, pair = f64 ? CUDA_CF64 : CUDA_CF32;
    const enum cuda_element element = complex ? pair : real;
    return (struct cuda_layer){.direction = request->direction,
                               .element = element,
                               .tf32_rate = cuda_device_for(request)->rates.tf32,
                               .parts = 1,
                               .covers = true,
                               .step = 1,
                               .vector = CUDA_PRODUCT_ALIGN / cuda_element_bytes(element)};
}

static int64_t layer_pitch(const struct cuda_layer *layer, int64_t n)
{
    return (int64_t)size_round_up((size_t)n, (size_t)layer->vector);
}

struct cuda_product cuda_layer_product(const struct cuda_layer *layer,
                                       const struct cuda_layer_part *part, int64_t n)
{
    const bool weight = is_weight(layer), by_inputs = layer->inputs_rows;
    const int64_t pitch = layer->pitch, taps_pitch = layer_pitch(layer, part->out);
    const struct cuda_matrices in = {pitch, part->in * pitch, weight},
                               out = {pitch, part->out * pitch, weight};
    struct cuda_product product = {.element = layer->element,
                                   .arithmetic = layer->choice.arithmetic,
                                   .tf32_rate = layer->tf32_rate,
                                   .batch = part->matrices,
                                   .rows = part->out,
                                   .columns = n,
                                   .terms = part->in,
                                   .a = {taps_pitch, part->in * taps_pitch, false},
                                   .b = in,
                                   .c = out,
                                   .chunks = layer->choice.chunks};
    if (weight) {
        product.rows = by_inputs ? part->in : part->out;
        product.columns = by_inputs ? part->out : part->in;
        product.terms = n;
        product.a = by_inputs ? in : out;
        product.b = by_inputs ? out : in;
        product.c.pitch = layer_pitch(layer, product.columns);
        product.c.plane = product.rows * product.c.pitch;
        product.c.terms_inner = false;
    }
    product.chunk_plane = product.batch * product.c.plane;
    return product;
}

static size_t matrices_bytes(const struct cuda_layer *layer, int64_t lines, int64_t pitch)
{
    const size_t element = (size_t)cuda_element_bytes(layer->element);
    return mem_round(size_mul(size_mul((size_t)lines, (size_t)pitch), element));
}

void cuda_layer_set(struct cuda_layer *layer, const struct cuda_layer_choice *choice)
{
    const struct cuda_layer_part *part = &layer->largest;
    assert(choice->batch > 0 && choice->chunks > 0);
    layer->choice = *choice;
    layer->pitch = layer_pitch(layer, choice->batch);
    const struct cuda_product product = cuda_layer_product(layer, part, choice->batch);
    layer->from_bytes =
        layer->loaded ? 0 : matrices_bytes(layer, part->matrices * part->in, layer->pitch);
    layer->other_bytes =
        is_weight(layer) ? matrices_bytes(layer, part->matrices * part->out, layer->pitch) : 0;
    layer->sum_bytes = matrices_bytes(layer, product.chunks, product.chunk_plane);
}

int64_t cuda_layer_chunks(const struct cuda_layer *layer, int64_t n, size_t limit)
{
    const struct cuda_layer_part *part = &layer->largest;
    const struct cuda_product product = cuda_layer_product(layer, part, n);
    const size_t rows = (size_t)product.rows, columns = (size_t)product.columns;
    const int64_t blocks =
        product.batch * (int64_t)(ceil_div(rows, BLOCK_EDGE) * ceil_div(columns, BLOCK_EDGE));
    const size_t sums = matrices_bytes(layer, part->matrices * product.rows,
                                       is_weight(layer) ? product.c.pitch : n);
    int64_t max = (int64_t)(limit / 4 / size_max(sums, 1));
    if (!is_weight(layer) && blocks > 0 && max > TARGET_BLOCKS / blocks)
        max = TARGET_BLOCKS / blocks;
    return cuda_product_chunks(&product, product.terms, max);
}

// Sums of backward weight are those of layer->sum_bytes.
static int64_t layer_positions(const struct cuda_layer *layer, size_t limit)
{
    const struct cuda_layer_part *part = &layer->largest;
    const bool weight = is_weight(layer);
    const size_t positions = size_max((size_t)part->positions, 1), vector = (size_t)layer->vector;
    const size_t out = (size_t)(part->matrices * part->out);
    const size_t lines = size_add((size_t)(part->matrices * part->in),
                                  weight ? out : size_mul(out, (size_t)layer->choice.chunks));
    const size_t taken = size_add(ALIGNMENTS, weight ? layer->sum_bytes : 0);
    const size_t element = (size_t)cuda_element_bytes(layer->element);
    const size_t max = (limit > taken ? limit - taken : 0) / size_mul(lines, element);
    if (size_round_up(positions, vector) <= max) return (int64_t)positions;
    const size_t step = max < BATCH_POSITIONS ? vector : BATCH_POSITIONS;
    const size_t whole = size_max(max / step * step, step);
    return (int64_t)size_min(positions, size_round_up(size_split_even(positions, whole), step));
}

void cuda_layer_fit(struct cuda_layer *layer, int64_t chunks, enum cuda_arithmetic arithmetic,
                    size_t limit)
{
    struct cuda_layer_choice choice = {.batch = 1, .chunks = chunks, .arithmetic = arithmetic};
    cuda_layer_set(layer, &choice);
    choice.batch = layer_positions(layer, limit);
    cuda_layer_set(layer, &choice);
}

size_t cuda_layer_workspace(const struct cuda_layer *layer)
{
    return size_add(layer->from_bytes, size_add(layer->other_bytes, layer->sum_bytes));
}

size_t cuda_layer_taps_bytes(const struct cuda_layer *layer, const struct cuda_layer_part *part)
{
    const size_t lines = size_mul((size_t)part->matrices, (size_t)part->in);
    return size_mul(size_mul(lines, (size_t)layer_pitch(layer, part->out)),
                    (size_t)cuda_element_bytes(layer->element));
}

struct cuda_stage cuda_layer_products(const struct request *request,
                                      const struct cuda_product *product, double launches,
                                      double bytes)
{
    const int processors = cuda_device_for(request)->gpu->processors;
    // The slots of a product are those of busy processors.
    return (struct cuda_stage){.launches = launches,
                               .blocks = cuda_rates_of(request).threads,
                               .threads = 1,
                               .slots =
                                   launches * cuda_product_slots(product, processors) * processors,
                               .bytes = bytes};
}

void cuda_layer_estimate(const struct cuda_layer *layer, struct estimate *ret)
{
    ret->hop = (size_t)layer->choice.batch;
    ret->shared = cuda_layer_workspace(layer);
    ret->bytes = size_add(ret->shared, is_weight(layer) ? 0 : layer->taps_bytes);
    ret->applicable = true;
}

struct cuda_layer_batch cuda_layer_whole(const struct partita_plan *plan, size_t number)
{
    const struct cuda_layer *layer = plan->state;
    struct cuda_layer_batch batch = {
        .plan = plan, .number = number, .part = layer->transform->part(plan, number)};
    batch.n = batch.part.positions;
    batch.product = cuda_layer_product(layer, &batch.part, batch.n);
    return batch;
}

struct filter_bytes cuda_layer_filter_bytes(const struct partita_plan *plan)
{
    return (struct filter_bytes){.packed = ((const struct cuda_layer *)plan->state)->taps_bytes};
}

enum partita_status cuda_layer_filter_pack(struct partita_filter *filter, const void *taps,
                                           const struct region *scratch)
{
    const struct partita_plan *plan = filter->plan;
    const struct cuda_layer *layer = plan->state;
    char *packed = cuda_filter_taps(filter);
    enum partita_status status = PARTITA_OK;
    (void)scratch;
    for (size_t i = 0; i < layer->parts && status == PARTITA_OK; i++) {
        const struct cuda_layer_batch whole = cuda_layer_whole(plan, i);
        status = CU(plan, layer->transform->queue(&whole, CUDA_PACK, packed, taps, NULL));
        packed += cuda_layer_taps_bytes(layer, &whole.part);
    }
    return status;
}

// The arrays of a call.
struct layer_call {
    const struct operands *operands;
    const char *taps; // of the part
    const void *bias;
    char *from, *other, *sums;
};

static int64_t batches_of_part(const struct cuda_layer *layer)
{
    return (int64_t)ceil_div((size_t)layer->largest.positions, (size_t)layer->choice.batch);
}

size_t cuda_layer_cached_bytes(const struct partita_plan *plan)
{
    const struct cuda_layer *layer = plan->state;
    return size_mul(size_mul(layer->parts, (size_t)batches_of_part(layer)), layer->from_bytes);
}

// The matrices of x, or gy of backward data, of one batch.
static char *batch_matrices(const struct layer_call *call, const struct cuda_layer_batch *batch)
{
    const struct cuda_layer *layer = batch->plan->state;
    const struct saved_slot *saved = call->operands->saved[SAVED_X];
    if (!saved) return call->from;
    const int64_t before =
        (int64_t)batch->number * batches_of_part(layer) + batch->first / layer->choice.batch;
    return (char *)saved->data +
           (size_t)before *
               matrices_bytes(layer, layer->largest.matrices * layer->largest.in, layer->pitch);
}

// Backward weight adds the sums of a batch to those of the batches before it.
static enum partita_status run_batch(const struct layer_call *call,
                                     const struct cuda_layer_batch *batch)
{
    const struct partita_plan *plan = batch->plan;
    const struct cuda_layer *layer = plan->state;
    const struct cuda_transform *transform = layer->transform;
    const void *const *samples = call->operands->from;
    const bool weight = is_weight(layer);
    char *const from = batch_matrices(call, batch);
    const char *a = weight ? call->other : call->taps, *b = from;
    enum partita_status status = PARTITA_OK;
    if (layer->inputs_rows) a = from, b = call->other;
    if (!layer->loaded)
        status = CU(plan, transform->queue(batch, CUDA_LOAD, from, samples[0], NULL));
    if (status == PARTITA_OK && weight)
        status =
            CU(plan, transform->queue(batch, CUDA_LOAD_GRADIENT, call->other, samples[1], NULL));
    if (status == PARTITA_OK)
        status =
            CU(plan, cuda_launch_product(&batch->product, cuda_device_of(plan)->gpu->processors,
                                         call->sums, a, b));
    if (status != PARTITA_OK || weight) return status;
    return CU(plan,
              transform->queue(batch, CUDA_STORE, call->operands->to, call->sums, call->bias));
}

static enum partita_status run_part(const struct layer_call *call,
                                    const struct cuda_layer_batch *whole)
{
    const struct cuda_layer *layer = whole->plan->state;
    const int64_t batch = layer->choice.batch;
    struct cuda_layer_batch now = *whole;
    enum partita_status status = PARTITA_OK;
    for (; now.first < whole->n && status == PARTITA_OK; now.first += batch) {
        const size_t left = (size_t)(whole->n - now.first);
        now.n = (int64_t)size_min(size_round_up(left, (size_t)layer->step), (size_t)batch);
        now.product = cuda_layer_product(layer, &now.part, now.n);
        now.product.onto = is_weight(layer) && now.first > 0;
        status = run_batch(call, &now);
    }
    if (status != PARTITA_OK || !is_weight(layer) || whole->n == 0) return status;
    return CU(whole->plan,
              layer->transform->queue(whole, CUDA_UNPACK, call->operands->to, call->sums, NULL));
}

enum partita_status cuda_layer_run(const struct partita_plan *plan,
                                   const struct partita_filter *filter,
                                   const struct operands *operands, void *workspace)
{
    const struct cuda_layer *layer = plan->state;
    struct layer_call call = {.operands = operands, .from = workspace};
    call.other = call.from + layer->from_bytes;
    call.sums = call.other + layer->other_bytes;
    assert(call.sums + layer->sum_bytes - call.from == (ptrdiff_t)plan->choice.shared);
    if (filter) {
        call.taps = cuda_filter_taps(filter);
        call.bias = cuda_filter_added(filter);
    }
    enum partita_status status = PARTITA_OK;
    if (plan->direction != PARTITA_FORWARD && (!layer->covers || layer->largest.positions == 0))
        status = cuda_clear_result(plan, operands->to);
    for (size_t i = 0; i < layer->parts && status == PARTITA_OK; i++) {
        const struct cuda_layer_batch whole = cuda_layer_whole(plan, i);
        status = run_part(&call, &whole);
        if (filter) call.taps += cuda_layer_taps_bytes(layer, &whole.part);
    }
    return status;
}
