// SPDX-License-Identifier: MIT
// cuda/gemm: layers as products of matrices, taps by terms times terms by positions, with the
// kernel of product.h. Samples are brought to panels, an implicit im2col in batches that fit the
// workspace, or are the operand as they are. Every direction is passes without branches (decision
// 12). Source: Chetlur et al., cuDNN: efficient primitives for deep learning (2014).
#include <assert.h>

#include "base/sizes.h"
#include "cuda/device/bounded_call.h"
#include "cuda/device/filter.h"
#include "cuda/device/passes.h"
#include "cuda/layer/layer.h"
#include "kernels.h"

// Both variants have the same bits. In place: samples and outputs of a pass without gaps are
// operands of the product of forward and backward data as they are, if the arrays are aligned to
// CUDA_PRODUCT_ALIGN bytes.
enum cuda_gemm_variant { CUDA_GEMM_PANELS, CUDA_GEMM_IN_PLACE, CUDA_GEMM_VARIANTS };

enum {
    // Where the caller sets no limit: enough that a batch computes longer than it takes to queue.
    MAX_WORKSPACE = 256 << 20,
    // In place: for arrays that are not aligned.
    MAX_WORKSPACE_IN_PLACE = 16 << 20,
    MAX_PASSES = 256,
    MAX_LAUNCHES = 64, // in place, of products
};

// Times of a multiply-add for an element that is brought to a panel, with several taps and with
// one, and for a sum of a chunk that is added and stored: instructions of the machine code (sm_90,
// f32).
static const double LOAD_SLOTS = 95, LOAD_POINT_SLOTS = 32, STORE_SLOTS = 40;

struct cuda_gemm_choice { // the decision of an estimate
    int variant;
    struct cuda_layer_choice layer;
};

static struct cuda_layer_part part_of_pass(const struct cuda_pass *pass)
{
    return (struct cuda_layer_part){
        .matrices = pass->groups,
        .in = pass->from * pass->axis[0].taps * pass->axis[1].taps * pass->axis[2].taps,
        .out = pass->to,
        .positions = pass->batch * pass->axis[0].n * pass->axis[1].n * pass->axis[2].n};
}

static struct cuda_layer_part gemm_part(const struct partita_plan *plan, size_t number)
{
    const struct cuda_pass pass = cuda_pass_of(&plan->shape, plan->direction, number);
    return part_of_pass(&pass);
}

static cudaError_t gemm_queue(const struct cuda_layer_batch *batch, enum cuda_layer_move move,
                              void *to, const void *from, const void *bias)
{
    const struct partita_plan *plan = batch->plan;
    struct cuda_gemm gemm = {.pass = cuda_pass_of(&plan->shape, plan->direction, batch->number),
                             .storage = cuda_storage_of(&plan->shape),
                             .first = batch->first,
                             .n = batch->n,
                             .pitch = cuda_layer_pitch(batch, move),
                             .chunks = batch->product.chunks,
                             .chunk_plane = batch->product.chunk_plane};
    // The positions of gy as a panel are those of the pass, its terms output channels.
    if (move == CUDA_LOAD_GRADIENT) gemm.pass.from = gemm.pass.to;
    for (int a = 0; a < 3 && move == CUDA_LOAD_GRADIENT; a++) {
        struct cuda_axis *axis = &gemm.pass.axis[a];
        axis->taps = 1;
        axis->from_first = 0;
        axis->from_step = 1;
        axis->from_size = axis->n;
    }
    return cuda_gemm_queue(&gemm, move, to, from, bias);
}

static const struct cuda_transform gemm_transform = {gemm_part, gemm_queue};

// All passes of a direction, without a choice.
static struct cuda_layer lay_out_gemm(const struct request *request)
{
    struct cuda_layer layer = cuda_layer_of(request, false);
    struct cuda_layer_part *largest = &layer.largest;
    layer.transform = &gemm_transform;
    layer.parts = cuda_passes(request->shape, request->direction, &layer.covers);
    for (size_t i = 0; i < layer.parts; i++) {
        const struct cuda_pass pass = cuda_pass_of(request->shape, request->direction, i);
        const struct cuda_layer_part part = part_of_pass(&pass);
        layer.taps_bytes = size_add(layer.taps_bytes, cuda_layer_taps_bytes(&layer, &part));
        if (i == 0) *largest = part;
        if (part.in > largest->in) largest->in = part.in;
        if (part.positions > largest->positions) largest->positions = part.positions;
    }
    return layer;
}

// Backward weight has panels in both variants: their lines are terms of all items.
static bool is_in_place(int variant, enum partita_direction direction)
{
    return variant == CUDA_GEMM_IN_PLACE && direction != PARTITA_BACKWARD_WEIGHT;
}

// Whether samples and outputs of the only pass lie without gaps, in whole vectors.
static bool in_place_possible(const struct request *request, const struct cuda_layer *layer)
{
    const struct cuda_pass pass = cuda_pass_of(request->shape, request->direction, 0);
    if (layer->parts != 1 || request->shape->half || !layer->covers) return false;
    for (int a = 0; a < 3; a++) {
        const struct cuda_axis *axis = &pass.axis[a];
        if (axis->taps != 1 || axis->to_first || axis->to_step != 1 || axis->from_first ||
            axis->from_step != 1 || axis->n != axis->to_size || axis->n != axis->from_size)
            return false;
    }
    return pass.axis[0].n * pass.axis[1].n * pass.axis[2].n % layer->vector == 0 &&
           (pass.groups <= MAX_LAUNCHES || pass.batch <= MAX_LAUNCHES);
}

// Products with samples in place, and with outputs in place if `to`. One product is either an item
// of all groups, or a group of all items: `launches` of them, whose operands A, B and C are the
// elements `step` apart.
struct in_place {
    struct cuda_product product;
    int64_t launches, step[3];
};

static struct in_place products_in_place(const struct cuda_layer *layer,
                                         const struct cuda_layer_part *part, int64_t items, bool to)
{
    const int64_t plane = part->positions / items, groups = part->matrices;
    struct in_place ret = {.product = cuda_layer_product(layer, part, plane)};
    struct cuda_product *product = &ret.product;
    // Of the operands: elements from one group to the next, and from one item to the next.
    const int64_t group[] = {product->a.plane, part->in * plane,
                             to ? part->out * plane : product->c.plane},
                  item[] = {0, groups * part->in * plane, to ? groups * part->out * plane : plane};
    const bool by_group = groups <= items; // all items of a group at once
    const int64_t *within = by_group ? item : group, *step = by_group ? group : item;
    product->batch = by_group ? items : groups;
    product->a.plane = within[0];
    product->b = (struct cuda_matrices){plane, within[1], false};
    product->c = (struct cuda_matrices){to ? plane : layer->pitch, within[2], false};
    ret.launches = by_group ? groups : items;
    for (int i = 0; i < 3; i++) ret.step[i] = step[i];
    return ret;
}

// Of multiply-adds. Sums of segments are added to each other.
static double gemm_error(const struct request *request, const struct cuda_layer_part *part)
{
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    const double terms = (double)(weight ? part->positions : part->in);
    return shape_roundoff(request->shape) * 0.3 *
           sqrt(fmin(terms, CUDA_PRODUCT_SEGMENT) + terms / CUDA_PRODUCT_SEGMENT);
}

// Arithmetic, chunks and batch of a variant, and its error; false: it does not have the problem.
static bool choose_gemm(const struct request *request, int variant, struct cuda_layer *ret,
                        double *ret_error)
{
    size_t limit = size_min(request->workspace_limit, MAX_WORKSPACE);
    *ret = lay_out_gemm(request);
    *ret_error = gemm_error(request, &ret->largest);
    const enum cuda_arithmetic arithmetic =
        cuda_arithmetic_within(request, request->error_budget, ret->element, 1, ret_error);
    if (variant == CUDA_GEMM_IN_PLACE && !in_place_possible(request, ret)) return false;
    const bool in_place = is_in_place(variant, request->direction);
    int64_t chunks = cuda_layer_chunks(ret, ret->largest.positions, limit);
    if (request->compatible_with) { // so that the bits are the same
        struct cuda_gemm_choice other;
        estimate_load(request->compatible_with, &other, sizeof other);
        chunks = other.layer.chunks;
        if (other.variant != variant) return false;
    }
    if (in_place && chunks == 1) limit = size_min(limit, MAX_WORKSPACE_IN_PLACE);
    cuda_layer_fit(ret, chunks, arithmetic, limit);
    // With samples in place all chunks of all sums are needed at once.
    return !in_place || chunks == 1 || ret->choice.batch == ret->largest.positions;
}

// Work of the kernels of a pass: moving elements, and products.
struct gemm_work {
    struct cuda_stage moves, products;
};

static void add_gemm_pass(const struct request *request, const struct cuda_layer *layer,
                          const struct cuda_pass *pass, bool in_place, struct gemm_work *work)
{
    const struct cuda_layer_part part = part_of_pass(pass);
    const int64_t n = part.positions, batch = layer->choice.batch;
    const bool weight = layer->direction == PARTITA_BACKWARD_WEIGHT;
    const double scalar = (double)request->shape->scalar_bytes, positions = (double)n;
    const double terms = (double)part.matrices * (double)part.in;
    const double to = (double)part.matrices * (double)part.out;
    const double chunks = (double)layer->choice.chunks;
    if (n == 0) return;
    struct cuda_product product = cuda_layer_product(layer, &part, n < batch ? n : batch);
    // Matrices of taps, or of their gradient.
    const double taps =
        (double)part.matrices * (double)(weight ? product.c.plane : product.a.plane);
    double batches = ceil(positions / (double)batch), launches = batches;
    const bool stored = !in_place || chunks > 1;
    if (in_place) {
        const struct in_place products = products_in_place(layer, &part, pass->batch, !stored);
        product = products.product;
        launches = (double)products.launches, batches = 1;
    }
    // Terms are read, and written to panels; chunks of sums are read, and stored.
    const double loaded = in_place ? 0 : terms * positions;
    const double sums = chunks * (weight ? taps * batches : to * positions);
    work->moves.launches += (in_place ? 0 : batches) * (weight ? 2 : 1) + (stored ? batches : 0);
    const double slots = part.in == pass->from ? LOAD_POINT_SLOTS : LOAD_SLOTS;
    work->moves.slots += slots * loaded + (weight ? LOAD_POINT_SLOTS * to * positions : 0) +
                         (stored ? STORE_SLOTS * sums : 0);
    work->moves.bytes += scalar * (loaded + (weight ? to * positions : 0) + (stored ? sums : 0));
    const struct cuda_stage products = cuda_layer_products(request, &product, launches, 0);
    work->products.launches += launches;
    work->products.slots += products.slots;
    work->products.bytes +=
        scalar * (terms * positions + (weight ? to * positions : taps * batches) + sums);
}

static double gemm_seconds(const struct request *request, const struct cuda_layer *layer,
                           bool in_place)
{
    const struct cuda_rates rates = cuda_rates_of(request);
    const struct shape *shape = request->shape;
    struct gemm_work work = {{.blocks = rates.threads, .threads = 1},
                             {.blocks = rates.threads, .threads = 1}};
    for (size_t i = 0; i < layer->parts; i++) {
        const struct cuda_pass pass = cuda_pass_of(shape, layer->direction, i);
        add_gemm_pass(request, layer, &pass, in_place, &work);
    }
    // In place the products read and write the samples themselves, and activation is another pass.
    const bool finished =
        in_place && layer->choice.chunks == 1 && shape->relu && layer->direction == PARTITA_FORWARD;
    if (!in_place) work.moves.bytes += cuda_sample_bytes(shape);
    else if (layer->choice.chunks > 1 || finished)
        work.moves.bytes += (finished ? 2 : 1) * (double)cuda_output_bytes(shape);
    if (finished) work.moves.launches += 1;
    return cuda_stage_seconds(&rates, &work.moves) + cuda_stage_seconds(&rates, &work.products);
}

static void gemm_estimate_variant(const struct request *request, int variant, struct estimate *ret)
{
    struct cuda_layer layer;
    const struct shape *shape = request->shape;
    if (!choose_gemm(request, variant, &layer, &ret->error)) {
        estimate_refuse(ret, "samples are not operands as they are");
        return;
    }
    if (layer.largest.positions > INT32_MAX) {
        estimate_refuse(ret, "more than 2^31 - 1 outputs of a channel");
        return;
    }
    const struct cuda_gemm_choice choice = {variant, layer.choice};
    ret->seconds = gemm_seconds(request, &layer, is_in_place(variant, request->direction));
    ret->flops = 2 * (double)shape->out_channels * (double)shape->group_in * (double)shape->batch *
                 (double)shape_outputs(shape) * (double)shape_taps(shape);
    ret->variant = variant;
    cuda_layer_estimate(&layer, ret);
    estimate_store(ret, &choice, sizeof choice);
}

static void cuda_gemm_estimate(const struct request *request, struct estimate *ret)
{
    cuda_passes_estimate(request, CUDA_GEMM_VARIANTS, MAX_PASSES, gemm_estimate_variant, ret);
}

static enum partita_status cuda_gemm_plan_create(struct partita_plan *plan,
                                                 const struct request *request)
{
    struct cuda_gemm_choice choice;
    struct cuda_layer *layer = plan->state;
    estimate_load(&plan->choice, &choice, sizeof choice);
    *layer = lay_out_gemm(request);
    cuda_layer_set(layer, &choice.layer);
    return PARTITA_OK;
}

static void cuda_gemm_plan_explain(const struct partita_plan *plan, struct text *text)
{
    const struct cuda_layer *layer = plan->state;
    text_add(text, "  products of %lld channels, %lld terms and %lld positions, %lld at once",
             (long long)layer->largest.out, (long long)layer->largest.in,
             (long long)layer->largest.positions, (long long)layer->choice.batch);
    text_add(text, "; %lld chunks of the sum\n", (long long)layer->choice.chunks);
}

// Without copies of samples; sums of one chunk are outputs.
static enum partita_status run_in_place(const struct partita_plan *plan,
                                        const struct partita_filter *filter,
                                        const struct operands *operands, char *sums)
{
    const struct cuda_layer *layer = plan->state;
    const bool stored = layer->choice.chunks > 1;
    const struct cuda_layer_batch whole = cuda_layer_whole(plan, 0);
    const struct in_place products =
        products_in_place(layer, &whole.part, (int64_t)plan->shape.batch, !stored);
    const int processors = cuda_device_of(plan)->gpu->processors;
    const size_t scalar = plan->shape.scalar_bytes;
    char *c = stored ? sums : operands->to;
    const char *a = cuda_filter_taps(filter), *b = operands->from[0];
    enum partita_status status = PARTITA_OK;
    for (int64_t i = 0; i < products.launches && status == PARTITA_OK; i++) {
        status = CU(plan, cuda_launch_product(&products.product, processors, c, a, b));
        a += (size_t)products.step[0] * scalar;
        b += (size_t)products.step[1] * scalar;
        c += (size_t)products.step[2] * scalar;
    }
    if (status != PARTITA_OK) return status;
    if (!stored) return cuda_finish_result(plan, operands->to, cuda_filter_added(filter));
    return CU(plan, gemm_queue(&whole, CUDA_STORE, operands->to, sums, cuda_filter_added(filter)));
}

static bool is_aligned(const struct operands *operands)
{
    return ((uintptr_t)operands->to | (uintptr_t)operands->from[0]) % CUDA_PRODUCT_ALIGN == 0;
}

// Where in-place products are planned, arrays that are not aligned pass through panels; calls that
// load kernels load those of both.
static enum partita_status cuda_gemm_run(const struct partita_plan *plan,
                                         const struct partita_filter *filter,
                                         const struct operands *operands, void *workspace)
{
    const struct cuda_layer *layer = plan->state;
    if (is_in_place(plan->choice.variant, plan->direction) && is_aligned(operands)) {
        const enum partita_status status =
            run_in_place(plan, filter, operands, (char *)workspace + layer->from_bytes);
        if (status != PARTITA_OK || !cuda_thread()->loads) return status;
    }
    return cuda_layer_run(plan, filter, operands, workspace);
}

const struct engine cuda_gemm = {
    .name = "cuda/gemm",
    .variants = (const char *const[]){"panels", "in-place", NULL},
    .directions = CUDA_ALL_DIRECTIONS,
    .max_rank = PARTITA_MAX_RANK,
    .real = true,
    .half = true,
    .estimate = cuda_gemm_estimate,
    .state_bytes = sizeof(struct cuda_layer),
    .plan_create = cuda_gemm_plan_create,
    .explain = cuda_gemm_plan_explain,
    .filter = {CUDA_FILTER_OPS(cuda_layer_filter_bytes, cuda_layer_filter_pack)},
    .bounded = {.run = cuda_gemm_run},
};
