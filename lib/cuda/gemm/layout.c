// SPDX-License-Identifier: MIT
#include <assert.h>
#include <math.h>

#include "base/mem.h"
#include "base/sizes.h"
#include "core/plan.h"
#include "cuda/device/bounded_call.h"
#include "cuda/device/filter.h"
#include "cuda/device/passes.h"
#include "cuda/device/rates.h"
#include "gemm.h"

enum {
    // Where the caller sets no limit: enough that a batch computes longer than it takes to queue.
    MAX_WORKSPACE = 256 << 20,
    // In place: for arrays that are not aligned.
    MAX_WORKSPACE_IN_PLACE = 16 << 20,
    ALIGNMENTS = 3 * 64, // of the matrices of a workspace, bytes
    BATCH_POSITIONS = 32,
    MAX_PASSES = 256,
    MAX_LAUNCHES = 64, // in place, of products
    // Forward and backward data: with more blocks of 64 x 64 sums terms are not split, since every
    // device has enough work.
    TARGET_BLOCKS = 256,
};

// Times of a multiply-add for an element that is brought to a panel, with several taps and with
// one, and for a sum of a chunk that is added and stored: instructions of the machine code (sm_90,
// f32).
static const double LOAD_SLOTS = 95, LOAD_POINT_SLOTS = 32, STORE_SLOTS = 40;

static enum cuda_element gemm_element(const struct shape *shape)
{
    return shape->f64 ? CUDA_F64 : CUDA_F32;
}

static struct cuda_pass gemm_pass_of(const struct shape *shape, enum partita_direction direction,
                                     size_t i)
{
    return direction == PARTITA_BACKWARD_DATA ? cuda_pass_backward(shape, i)
                                              : cuda_pass_forward(shape);
}

int64_t cuda_gemm_terms(const struct cuda_pass *pass)
{
    return pass->from * pass->axis[0].taps * pass->axis[1].taps * pass->axis[2].taps;
}

int64_t cuda_gemm_positions(const struct cuda_pass *pass)
{
    return pass->batch * pass->axis[0].n * pass->axis[1].n * pass->axis[2].n;
}

struct cuda_gemm cuda_gemm_pass(const struct cuda_gemm_layout *layout, size_t i)
{
    return (struct cuda_gemm){.pass = gemm_pass_of(layout->shape, layout->direction, i),
                              .storage = cuda_storage_of(layout->shape),
                              .pitch = layout->pitch,
                              .chunks = 1};
}

static int64_t tap_pitch_of(const struct cuda_gemm_layout *layout, const struct cuda_pass *pass)
{
    const bool weight = layout->direction == PARTITA_BACKWARD_WEIGHT;
    return cuda_product_pitch(gemm_element(layout->shape),
                              weight ? cuda_gemm_terms(pass) : pass->to);
}

size_t cuda_gemm_taps_size(const struct cuda_gemm_layout *layout, const struct cuda_pass *pass)
{
    return (size_t)(pass->groups * cuda_gemm_terms(pass) * tap_pitch_of(layout, pass));
}

struct cuda_product cuda_gemm_product(const struct cuda_gemm_layout *layout,
                                      const struct cuda_pass *pass, int64_t n)
{
    const int64_t pitch = layout->pitch, tap_pitch = tap_pitch_of(layout, pass);
    const int64_t terms = cuda_gemm_terms(pass), to = pass->to;
    struct cuda_product product = {
        .element = gemm_element(layout->shape),
        .arithmetic = layout->choice.arithmetic,
        .tf32_rate = layout->choice.tf32_rate,
        .batch = pass->groups,
        .rows = to,
        .columns = n,
        .terms = terms,
        .a = {tap_pitch, terms * tap_pitch, false},
        .b = {pitch, terms * pitch, false},
        .c = {pitch, to * pitch, false},
        .chunks = layout->choice.chunks,
    };
    if (layout->direction == PARTITA_BACKWARD_WEIGHT) {
        product.columns = terms;
        product.terms = n;
        product.a = (struct cuda_matrices){pitch, to * pitch, true};
        product.b = (struct cuda_matrices){pitch, terms * pitch, true};
        product.c = (struct cuda_matrices){tap_pitch, to * tap_pitch, false};
    }
    product.chunk_plane = product.batch * product.c.plane;
    return product;
}

struct cuda_product cuda_gemm_product_in_place(const struct cuda_gemm_layout *layout,
                                               const struct cuda_pass *pass, int64_t n, bool to,
                                               int64_t *ret_launches, int64_t ret_step[3])
{
    struct cuda_product product = cuda_gemm_product(layout, pass, n);
    const int64_t plane = pass->axis[0].n * pass->axis[1].n * pass->axis[2].n, items = n / plane;
    // Of the operands: elements from one group to the next, and from one item to the next.
    const int64_t group[] = {product.a.plane, pass->from * plane,
                             to ? pass->to * plane : product.c.plane},
                  item[] = {0, pass->groups * pass->from * plane,
                            to ? pass->groups * pass->to * plane : plane};
    const bool of_group = pass->groups <= items; // all items of a group at once
    const int64_t *within = of_group ? item : group, *step = of_group ? group : item;
    assert(n % plane == 0);
    product.batch = of_group ? items : pass->groups;
    product.columns = plane;
    product.a.plane = within[0];
    product.b = (struct cuda_matrices){plane, within[1], false};
    product.c = (struct cuda_matrices){to ? plane : layout->pitch, within[2], false};
    *ret_launches = of_group ? pass->groups : items;
    for (int i = 0; i < 3; i++) ret_step[i] = step[i];
    return product;
}

size_t cuda_gemm_workspace(const struct cuda_gemm_layout *layout)
{
    return size_add(layout->panel_bytes, size_add(layout->other_bytes, layout->sum_bytes));
}

static size_t matrix_bytes(const struct shape *shape, int64_t lines, int64_t pitch)
{
    return mem_round(size_mul(size_mul((size_t)lines, (size_t)pitch), shape->scalar_bytes));
}

void cuda_gemm_lay_out(const struct shape *shape, enum partita_direction direction,
                       const struct cuda_gemm_choice *choice, struct cuda_gemm_layout *ret)
{
    const bool weight = direction == PARTITA_BACKWARD_WEIGHT;
    *ret =
        (struct cuda_gemm_layout){.choice = *choice,
                                  .shape = shape,
                                  .direction = direction,
                                  .passes = 1,
                                  .covers = true,
                                  .pitch = cuda_product_pitch(gemm_element(shape), choice->batch)};
    if (direction == PARTITA_BACKWARD_DATA) ret->passes = cuda_passes_backward(shape, &ret->covers);
    for (size_t i = 0; i < ret->passes; i++) {
        const struct cuda_pass pass = gemm_pass_of(shape, direction, i);
        const int64_t terms = cuda_gemm_terms(&pass), positions = cuda_gemm_positions(&pass);
        if (terms > ret->terms) ret->terms = terms;
        if (positions > ret->positions) ret->positions = positions;
    }
    const struct cuda_pass pass = gemm_pass_of(shape, direction, 0);
    const int64_t to = pass.groups * pass.to;
    ret->panel_bytes = matrix_bytes(shape, pass.groups * ret->terms, ret->pitch);
    ret->other_bytes = weight ? matrix_bytes(shape, to, ret->pitch) : 0;
    ret->sum_bytes =
        matrix_bytes(shape, choice->chunks * to, weight ? tap_pitch_of(ret, &pass) : ret->pitch);
}

// Backward weight has panels in both variants: their lines are terms of all items.
bool cuda_gemm_is_in_place(const struct cuda_gemm_layout *layout)
{
    return layout->choice.variant == CUDA_GEMM_IN_PLACE &&
           layout->direction != PARTITA_BACKWARD_WEIGHT;
}

// Whether samples and outputs of the only pass lie without gaps, in whole vectors.
static bool in_place_possible(const struct cuda_gemm_layout *layout)
{
    const struct cuda_pass pass = gemm_pass_of(layout->shape, layout->direction, 0);
    const int64_t vector = CUDA_PRODUCT_ALIGN / cuda_element_bytes(gemm_element(layout->shape));
    if (layout->passes != 1 || layout->shape->half || !layout->covers) return false;
    for (int a = 0; a < 3; a++) {
        const struct cuda_axis *axis = &pass.axis[a];
        if (axis->taps != 1 || axis->to_first || axis->to_step != 1 || axis->from_first ||
            axis->from_step != 1 || axis->n != axis->to_size || axis->n != axis->from_size)
            return false;
    }
    return pass.axis[0].n * pass.axis[1].n * pass.axis[2].n % vector == 0 &&
           (pass.groups <= MAX_LAUNCHES || pass.batch <= MAX_LAUNCHES);
}

// Chunks of the terms, at most as many as a quarter of the limit has room for sums.
static int64_t gemm_chunks(const struct cuda_gemm_layout *layout, size_t limit)
{
    const bool weight = layout->direction == PARTITA_BACKWARD_WEIGHT;
    const struct cuda_pass pass = gemm_pass_of(layout->shape, layout->direction, 0);
    const struct cuda_product product = cuda_gemm_product(layout, &pass, layout->positions);
    const int64_t edge = 64, blocks = product.batch * ((product.rows + edge - 1) / edge) *
                                      ((product.columns + edge - 1) / edge);
    const size_t sums = matrix_bytes(layout->shape, pass.groups * pass.to,
                                     weight ? product.c.pitch : layout->positions);
    int64_t max = (int64_t)(limit / 4 / size_max(sums, 1));
    if (!weight && blocks > 0 && max > TARGET_BLOCKS / blocks) max = TARGET_BLOCKS / blocks;
    return cuda_product_chunks(&product, product.terms, max);
}

// Positions at once, as many as the limit has room for; layout->sum_bytes are of one position or,
// backward weight, complete.
static int64_t gemm_batch(const struct cuda_gemm_layout *layout, size_t limit)
{
    const bool weight = layout->direction == PARTITA_BACKWARD_WEIGHT;
    const struct cuda_pass pass = gemm_pass_of(layout->shape, layout->direction, 0);
    const size_t positions = size_max((size_t)layout->positions, 1);
    const size_t to = (size_t)(pass.groups * pass.to);
    const size_t lines = size_add((size_t)(pass.groups * layout->terms),
                                  weight ? to : size_mul(to, (size_t)layout->choice.chunks));
    const size_t taken = size_add(ALIGNMENTS, weight ? layout->sum_bytes : 0);
    const size_t most =
        (limit > taken ? limit - taken : 0) / size_mul(lines, layout->shape->scalar_bytes);
    const size_t vector =
        (size_t)(CUDA_PRODUCT_ALIGN / cuda_element_bytes(gemm_element(layout->shape)));
    if (size_round_up(positions, vector) <= most) return (int64_t)positions;
    const size_t step = most < BATCH_POSITIONS ? vector : BATCH_POSITIONS;
    const size_t whole = size_max(most / step * step, step);
    return (int64_t)size_min(positions, size_round_up(size_split_even(positions, whole), step));
}

// Of multiply-adds. Sums of segments are added to each other.
static double gemm_error(const struct cuda_gemm_layout *layout)
{
    const bool weight = layout->direction == PARTITA_BACKWARD_WEIGHT;
    const double terms = (double)(weight ? layout->positions : layout->terms);
    return shape_roundoff(layout->shape) * 0.3 *
           sqrt(fmin(terms, CUDA_PRODUCT_SEGMENT) + terms / CUDA_PRODUCT_SEGMENT);
}

// Arithmetic, chunks and batch of a variant, and its error; false: it does not have the problem.
static bool choose_gemm(const struct request *request, int variant, struct cuda_gemm_layout *ret,
                        double *ret_error)
{
    const struct shape *shape = request->shape;
    const enum partita_direction direction = request->direction;
    size_t limit = size_min(request->workspace_limit, MAX_WORKSPACE);
    struct cuda_gemm_choice choice = {
        variant, .batch = 1, .chunks = 1,
        .tf32_rate = ((const struct cuda_device *)request->device)->rates.tf32};
    cuda_gemm_lay_out(shape, direction, &choice, ret);
    *ret_error = gemm_error(ret);
    choice.arithmetic =
        cuda_arithmetic_within(request, request->error_budget, gemm_element(shape), 1, ret_error);
    if (variant == CUDA_GEMM_IN_PLACE && !in_place_possible(ret)) return false;
    const bool in_place = cuda_gemm_is_in_place(ret);
    if (request->compatible_with) { // so that the bits are the same
        struct cuda_gemm_choice other;
        estimate_load(request->compatible_with, &other, sizeof other);
        choice.chunks = other.chunks;
        if (other.variant != variant) return false;
    } else choice.chunks = gemm_chunks(ret, limit);
    if (in_place && choice.chunks == 1) limit = size_min(limit, MAX_WORKSPACE_IN_PLACE);
    cuda_gemm_lay_out(shape, direction, &choice, ret);
    choice.batch = gemm_batch(ret, limit);
    // With samples in place all chunks of all sums are needed at once.
    if (in_place && choice.chunks > 1 && choice.batch < ret->positions) return false;
    cuda_gemm_lay_out(shape, direction, &choice, ret);
    return true;
}

// What the kernels of a pass do: moving elements, and products.
struct gemm_work {
    struct cuda_stage moves, products;
};

static void add_gemm_pass(const struct request *request, const struct cuda_gemm_layout *layout,
                          const struct cuda_pass *pass, struct gemm_work *work)
{
    const int processors = ((const struct cuda_device *)request->device)->processors;
    const int64_t n = cuda_gemm_positions(pass), batch = layout->choice.batch;
    const bool weight = layout->direction == PARTITA_BACKWARD_WEIGHT;
    const double scalar = (double)layout->shape->scalar_bytes, positions = (double)n;
    const double terms = (double)pass->groups * (double)cuda_gemm_terms(pass);
    const double to = (double)pass->groups * (double)pass->to;
    const double chunks = (double)layout->choice.chunks;
    const double taps = (double)cuda_gemm_taps_size(layout, pass);
    if (n == 0) return;
    struct cuda_product product = cuda_gemm_product(layout, pass, n < batch ? n : batch);
    double batches = ceil(positions / (double)batch), launches = batches;
    const bool in_place = cuda_gemm_is_in_place(layout);
    const bool stored = !in_place || chunks > 1;
    if (in_place) {
        int64_t count, step[3];
        product = cuda_gemm_product_in_place(layout, pass, n, !stored, &count, step);
        launches = (double)count, batches = 1;
    }
    // Terms are read, and written to panels; chunks of sums are read, and stored.
    const double loaded = in_place ? 0 : terms * positions;
    const double sums =
        weight ? chunks * taps / (double)cuda_gemm_terms(pass) * (double)pass->to * batches
               : chunks * to * positions;
    work->moves.launches += (in_place ? 0 : batches) * (weight ? 2 : 1) + (stored ? batches : 0);
    const double slots = cuda_gemm_terms(pass) == pass->from ? LOAD_POINT_SLOTS : LOAD_SLOTS;
    work->moves.slots += slots * loaded + (weight ? LOAD_POINT_SLOTS * to * positions : 0) +
                         (stored ? STORE_SLOTS * sums : 0);
    work->moves.bytes += scalar * (loaded + (weight ? to * positions : 0) + (stored ? sums : 0));
    work->products.launches += launches;
    work->products.slots += launches * cuda_product_slots(&product, processors) * processors;
    work->products.bytes +=
        scalar * (terms * positions + (weight ? to * positions : taps * batches) + sums);
}

static double gemm_seconds(const struct request *request, const struct cuda_gemm_layout *layout)
{
    const struct cuda_rates rates = cuda_rates_of(request);
    const struct shape *shape = layout->shape;
    const bool in_place = cuda_gemm_is_in_place(layout);
    struct gemm_work work = {{.blocks = rates.threads, .threads = 1},
                             {.blocks = rates.threads, .threads = 1}};
    for (size_t i = 0; i < layout->passes; i++) {
        const struct cuda_pass pass = gemm_pass_of(shape, layout->direction, i);
        add_gemm_pass(request, layout, &pass, &work);
    }
    // In place the products read and write the samples themselves, and activation is another pass.
    const bool finished = in_place && layout->choice.chunks == 1 && shape->relu &&
                          layout->direction == PARTITA_FORWARD;
    if (!in_place) work.moves.bytes += cuda_sample_bytes(shape);
    else if (layout->choice.chunks > 1 || finished)
        work.moves.bytes += (finished ? 2 : 1) * (double)cuda_output_bytes(shape);
    if (finished) work.moves.launches += 1;
    return cuda_stage_seconds(&rates, &work.moves) + cuda_stage_seconds(&rates, &work.products);
}

static void gemm_estimate_variant(const struct request *request, int variant, struct estimate *ret)
{
    struct cuda_gemm_layout layout;
    const struct shape *shape = request->shape;
    if (!choose_gemm(request, variant, &layout, &ret->error)) {
        estimate_refuse(ret, "samples are not operands as they are");
        return;
    }
    if (layout.positions > INT32_MAX) {
        estimate_refuse(ret, "more than 2^31 - 1 outputs of a channel");
        return;
    }
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    size_t taps = 0;
    for (size_t i = 0; i < layout.passes && !weight; i++) {
        const struct cuda_pass pass = gemm_pass_of(shape, request->direction, i);
        taps = size_add(taps, cuda_gemm_taps_size(&layout, &pass));
    }
    ret->seconds = gemm_seconds(request, &layout);
    ret->flops = 2 * (double)shape->out_channels * (double)shape->group_in * (double)shape->batch *
                 (double)shape_outputs(shape) * (double)shape_taps(shape);
    ret->variant = variant;
    ret->hop = (size_t)layout.choice.batch;
    ret->shared = cuda_gemm_workspace(&layout);
    ret->bytes = size_add(ret->shared, size_mul(taps, shape->scalar_bytes));
    estimate_store(ret, &layout.choice, sizeof layout.choice);
    ret->applicable = true;
}

void cuda_gemm_estimate(const struct request *request, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    bool covers;
    if (request->direction == PARTITA_BACKWARD_DATA &&
        cuda_passes_backward(shape, &covers) > MAX_PASSES) {
        estimate_refuse(ret, "stride and kernel make more than %d passes", MAX_PASSES);
        return;
    }
    for (int v = 0; v < CUDA_GEMM_VARIANTS; v++) {
        struct estimate estimate = {0};
        if (!request_allows(request, v)) continue;
        gemm_estimate_variant(request, v, &estimate);
        if (estimate.applicable && !estimate_fits(request, &estimate) && ret->applicable) continue;
        if (!ret->applicable || (estimate.applicable && estimate.seconds < ret->seconds))
            *ret = estimate;
    }
}
