// SPDX-License-Identifier: MIT
// cuda/gemm: layers as products of matrices, taps by terms times terms by positions, with the
// kernel of product.h. Samples are brought to panels, an implicit im2col in batches that fit the
// workspace, or are the operand as they are. Every direction is passes without branches (decision
// 12). Source: Chetlur et al., cuDNN: efficient primitives for deep learning (2014).
#include "gemm.h"

#include <assert.h>

#include "core/plan.h"
#include "cuda/device/bounded_call.h"
#include "cuda/device/filter.h"
#include "cuda/kernels/sums.h"

static enum partita_status cuda_gemm_plan_create(struct partita_plan *plan,
                                                 const struct request *request)
{
    struct cuda_gemm_choice choice;
    plan->state = mem_allocate(&plan->allocator, sizeof(struct cuda_gemm_layout));
    if (!plan->state) return PARTITA_ERR_NOMEM;
    estimate_load(&plan->choice, &choice, sizeof choice);
    cuda_gemm_lay_out(request->shape, request->direction, &choice, plan->state);
    assert(cuda_gemm_workspace(plan->state) == plan->choice.shared);
    return PARTITA_OK;
}

static struct cuda_gemm_layout layout_of(const struct partita_plan *plan)
{
    struct cuda_gemm_layout layout = *(const struct cuda_gemm_layout *)plan->state;
    layout.shape = &plan->shape;
    return layout;
}

static void cuda_gemm_plan_explain(const struct partita_plan *plan, struct text *text)
{
    const struct cuda_gemm_layout layout = layout_of(plan);
    const struct cuda_gemm gemm = cuda_gemm_pass(&layout, 0);
    text_add(text, "  products of %lld channels, %lld terms and %lld positions, %lld at once",
             (long long)gemm.pass.to, (long long)layout.terms, (long long)layout.positions,
             (long long)layout.choice.batch);
    text_add(text, "; %lld chunks of the sum\n", (long long)layout.choice.chunks);
}

static struct filter_bytes cuda_gemm_filter_bytes(const struct partita_plan *plan)
{
    const struct cuda_gemm_layout layout = layout_of(plan);
    size_t n = 0;
    for (size_t i = 0; i < layout.passes; i++) {
        const struct cuda_gemm gemm = cuda_gemm_pass(&layout, i);
        n = size_add(n, cuda_gemm_taps_size(&layout, &gemm.pass));
    }
    return (struct filter_bytes){.packed = size_mul(n, plan->shape.scalar_bytes)};
}

static enum partita_status cuda_gemm_filter_pack(struct partita_filter *filter, const void *taps,
                                                 const struct region *scratch)
{
    const struct partita_plan *plan = filter->plan;
    const struct cuda_gemm_layout layout = layout_of(plan);
    char *packed = ((const struct cuda_filter *)filter->state)->taps;
    enum partita_status status = PARTITA_OK;
    (void)scratch;
    for (size_t i = 0; i < layout.passes && status == PARTITA_OK; i++) {
        struct cuda_gemm gemm = cuda_gemm_pass(&layout, i);
        gemm.pitch = cuda_gemm_product(&layout, &gemm.pass, 1).a.pitch;
        status = CU(plan, cuda_gemm_taps(&gemm, packed, taps));
        packed += cuda_gemm_taps_size(&layout, &gemm.pass) * plan->shape.scalar_bytes;
    }
    return status;
}

// One call of one pass.
struct gemm_call {
    const struct partita_plan *plan;
    const struct operands *operands;
    const struct cuda_gemm_layout *layout;
    struct cuda_gemm gemm;
    const char *taps; // packed
    const void *bias;
    char *panel, *other, *sums;
};

static enum partita_status gemm_multiply(const struct gemm_call *of,
                                         const struct cuda_product *product, void *c, const void *a,
                                         const void *b)
{
    const int processors = cuda_device_of(of->plan)->processors;
    return CU(of->plan, cuda_launch_product(product, processors, c, a, b));
}

static enum partita_status multiply_in_place(const struct gemm_call *of, bool to)
{
    const size_t scalar = of->plan->shape.scalar_bytes;
    const struct cuda_pass *pass = &of->gemm.pass;
    int64_t launches, step[3];
    const struct cuda_product product = cuda_gemm_product_in_place(
        of->layout, pass, cuda_gemm_positions(pass), to, &launches, step);
    char *c = to ? of->operands->to : of->sums;
    const char *a = of->taps, *b = of->operands->from[0];
    enum partita_status status = PARTITA_OK;
    for (int64_t i = 0; i < launches && status == PARTITA_OK; i++) {
        status = gemm_multiply(of, &product, c, a, b);
        a += (size_t)step[0] * scalar;
        b += (size_t)step[1] * scalar;
        c += (size_t)step[2] * scalar;
    }
    return status;
}

// Bias and activation of outputs that a product has written.
static enum partita_status finish_outputs(const struct gemm_call *of)
{
    const struct cuda_pass *pass = &of->gemm.pass;
    const struct cuda_finish finish = {.y = of->operands->to,
                                       .bias = of->bias,
                                       .rows = pass->batch * pass->groups * pass->to,
                                       .length = cuda_gemm_positions(pass) / pass->batch,
                                       .channels = pass->groups * pass->to,
                                       .relu = pass->relu};
    if (!of->bias && !pass->relu) return PARTITA_OK;
    return CU(of->plan, cuda_launch_finish(&finish, of->plan->shape.f64));
}

static enum partita_status store_sums(struct gemm_call *of, const struct cuda_product *product)
{
    of->gemm.chunks = product->chunks;
    of->gemm.chunk_plane = product->chunk_plane;
    return CU(of->plan, cuda_gemm_store(&of->gemm, of->operands->to, of->sums, of->bias));
}

// Without copies of samples; sums of one chunk are outputs.
static enum partita_status run_in_place(struct gemm_call *of)
{
    const bool stored = of->layout->choice.chunks > 1;
    const struct cuda_product product =
        cuda_gemm_product(of->layout, &of->gemm.pass, of->layout->positions);
    of->gemm.n = of->layout->positions;
    const enum partita_status status = multiply_in_place(of, !stored);
    if (status != PARTITA_OK) return status;
    return stored ? store_sums(of, &product) : finish_outputs(of);
}

static enum partita_status run_panels(struct gemm_call *of)
{
    const int64_t positions = cuda_gemm_positions(&of->gemm.pass), batch = of->layout->choice.batch;
    enum partita_status status = PARTITA_OK;
    for (int64_t first = 0; first < positions && status == PARTITA_OK; first += batch) {
        of->gemm.first = first;
        of->gemm.n = positions - first < batch ? positions - first : batch;
        const struct cuda_product product =
            cuda_gemm_product(of->layout, &of->gemm.pass, of->gemm.n);
        status = CU(of->plan, cuda_gemm_load(&of->gemm, of->panel, of->operands->from[0]));
        if (status == PARTITA_OK)
            status = gemm_multiply(of, &product, of->sums, of->taps, of->panel);
        if (status == PARTITA_OK) status = store_sums(of, &product);
    }
    return status;
}

// gy as a panel: its positions are those of the pass, its terms output channels.
static struct cuda_gemm gradient_of(const struct cuda_gemm *gemm)
{
    struct cuda_gemm gradient = *gemm;
    gradient.pass.from = gemm->pass.to;
    for (int a = 0; a < 3; a++) {
        struct cuda_axis *axis = &gradient.pass.axis[a];
        axis->taps = 1;
        axis->from_first = 0;
        axis->from_step = 1;
        axis->from_size = axis->n;
    }
    return gradient;
}

static enum partita_status run_weight(struct gemm_call *of)
{
    const int64_t positions = cuda_gemm_positions(&of->gemm.pass), batch = of->layout->choice.batch;
    enum partita_status status = PARTITA_OK;
    if (positions == 0) return cuda_clear_result(of->plan, of->operands->to);
    for (int64_t first = 0; first < positions && status == PARTITA_OK; first += batch) {
        of->gemm.first = first;
        of->gemm.n = positions - first < batch ? positions - first : batch;
        const struct cuda_gemm gradient = gradient_of(&of->gemm);
        struct cuda_product product = cuda_gemm_product(of->layout, &of->gemm.pass, of->gemm.n);
        product.onto = first > 0;
        status = CU(of->plan, cuda_gemm_load(&of->gemm, of->panel, of->operands->from[0]));
        if (status == PARTITA_OK)
            status = CU(of->plan, cuda_gemm_load(&gradient, of->other, of->operands->from[1]));
        if (status == PARTITA_OK)
            status = gemm_multiply(of, &product, of->sums, of->other, of->panel);
    }
    const struct cuda_product product = cuda_gemm_product(of->layout, &of->gemm.pass, batch);
    struct cuda_gemm result = of->gemm;
    result.pitch = product.c.pitch;
    result.chunks = product.chunks;
    result.chunk_plane = product.chunk_plane;
    if (status != PARTITA_OK) return status;
    return CU(of->plan, cuda_gemm_gradient(&result, of->operands->to, of->sums));
}

static bool is_aligned(const struct operands *operands)
{
    return ((uintptr_t)operands->to | (uintptr_t)operands->from[0]) % CUDA_PRODUCT_ALIGN == 0;
}

// Where in-place products are planned, arrays that are not aligned pass through panels; calls that
// load kernels load those of both.
static enum partita_status run_pass(struct gemm_call *of)
{
    const bool in_place = cuda_gemm_is_in_place(of->layout);
    enum partita_status status = PARTITA_OK;
    if (cuda_gemm_positions(&of->gemm.pass) == 0) return PARTITA_OK;
    if (in_place && is_aligned(of->operands)) {
        status = run_in_place(of);
        if (status != PARTITA_OK || !cuda_thread()->loads) return status;
    }
    return run_panels(of);
}

static enum partita_status cuda_gemm_run(const struct partita_plan *plan,
                                         const struct partita_filter *filter,
                                         const struct operands *operands, void *workspace)
{
    const struct cuda_gemm_layout layout = layout_of(plan);
    struct gemm_call of = {.plan = plan,
                           .operands = operands,
                           .layout = &layout,
                           .panel = workspace,
                           .bias = filter ? cuda_filter_added(filter) : NULL};
    of.other = of.panel + layout.panel_bytes;
    of.sums = of.other + layout.other_bytes;
    assert(of.sums + layout.sum_bytes - of.panel == (ptrdiff_t)plan->choice.shared);
    enum partita_status status = PARTITA_OK;
    if (filter) of.taps = ((const struct cuda_filter *)filter->state)->taps;
    if (!layout.covers) status = cuda_clear_result(plan, operands->to);
    for (size_t i = 0; i < layout.passes && status == PARTITA_OK; i++) {
        of.gemm = cuda_gemm_pass(&layout, i);
        status = filter ? run_pass(&of) : run_weight(&of);
        if (filter)
            of.taps += cuda_gemm_taps_size(&layout, &of.gemm.pass) * plan->shape.scalar_bytes;
    }
    return status;
}

const struct engine cuda_gemm = {
    .name = "cuda/gemm",
    .variants = (const char *const[]){"panels", "in-place", NULL},
    .directions = CUDA_ALL_DIRECTIONS,
    .max_rank = PARTITA_MAX_RANK,
    .real = true,
    .half = true,
    .estimate = cuda_gemm_estimate,
    .plan_create = cuda_gemm_plan_create,
    .plan_explain = cuda_gemm_plan_explain,
    .filter_bytes = cuda_gemm_filter_bytes,
    .filter_pack = cuda_gemm_filter_pack,
    .filter_create = cuda_filter_create,
    .filter_bias = cuda_filter_bias,
    .filter_destroy = cuda_filter_destroy,
    .run = cuda_gemm_run,
};
