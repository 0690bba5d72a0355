// SPDX-License-Identifier: MIT
// Spectra as objects (decision 28): blocks as those of cuda/blocks, products by its kernels.
// Correlation is convolution with the template's blocks mirrored (spectra.h).
#include "core/spectrum.h"

#include "cuda/device/bounded_call.h"
#include "cuda/device/filter.h"
#include "cuda/device/staging.h"
#include "transforms.h"

enum {
    MIN_BLOCKS = 8,       // of a result at once: as many as a thread sums together (pairs.cu),
    SUM_BYTES = 32 << 20, // and as many sums as stay in a second-level cache
    MAX_BLOCKS = 1 << 29, // of a spectrum: kernels count them in int
};

struct cuda_spectrum {
    struct partita_plan plan; // of no engine: calls, memory and transforms find the device by it
    struct cuda_fft fft;
    void *blocks; // [blocks][planes][points], in device memory
};

static struct cuda_spectrum *cuda_spectrum_state(const struct partita_spectrum *spectrum)
{
    return spectrum->state;
}

static size_t block_bytes(const struct cuda_fft *fft, size_t blocks, size_t batch)
{
    const struct cuda_fft_params *params = &fft->params;
    return cuda_blocks_bytes(blocks, (size_t)params->planes, (size_t)params->points, batch,
                             params->f64);
}

static size_t cuda_blocks_spectrum_spectra_bytes(const struct cuda_fft *fft, size_t blocks)
{
    return block_bytes(fft, blocks, cuda_fft_batch(fft));
}

// Points of a transform, which are the samples of a block; 0 if none is as long as requested.
static size_t choose_points(const struct partita_spectrum *spectrum, size_t block)
{
    const size_t max = cuda_fft_has_long() ? (size_t)CUDA_FFT_MAX_CUFFT
                                           : cuda_fft_max(spectrum->scalar_bytes == 8);
    const size_t wished = spectrum_wished(spectrum->n, block), points = cuda_fft_size(wished);
    if (points && points <= max) return points;
    if (!block) return max;
    log_line(&spectrum->log,
             "partita_spectrum_create: blocks of %zu on %s, where %zu%s are the most", wished,
             spectrum->device->name, max, cuda_fft_has_long() ? "" : " without cuFFT");
    return 0;
}

static enum partita_status queue_transform(void *context, const struct operands *operands,
                                           void *workspace)
{
    const struct partita_spectrum *spectrum = context;
    const struct cuda_spectrum *state = cuda_spectrum_state(spectrum);
    const struct partita_plan *plan = &state->plan;
    struct cuda_windows windows = cuda_row_windows(spectrum->n, plan->shape.complex_signal);
    windows.count = (int64_t)spectrum_count(spectrum);
    windows.hop = windows.length = (int64_t)spectrum->block;
    enum partita_status status = cuda_fft_begin(plan, &state->fft, workspace);
    if (status == PARTITA_OK)
        status =
            cuda_blocks_forward(plan, &state->fft, operands->to, &windows, 1, operands->from[0]);
    cuda_fft_end(&state->fft);
    return status;
}

static enum partita_status cuda_spectrum_transform(struct partita_spectrum *spectrum, const void *x)
{
    const struct cuda_spectrum *state = cuda_spectrum_state(spectrum);
    const struct operands operands = {.to = state->blocks, .from = {x}};
    const struct cuda_call call = {.plan = &state->plan,
                                   .sizes = {.to = spectrum->bytes,
                                             .from = {spectrum->n * spectrum->sample_bytes},
                                             .workspace = cuda_fft_work_bytes(&state->fft),
                                             .alignment = spectrum->sample_bytes},
                                   .queue = queue_transform,
                                   .context = spectrum};
    return cuda_call_run(&call, NULL, &operands, NULL);
}

static enum partita_status cuda_spectrum_prepare(struct partita_spectrum *spectrum, size_t points)
{
    struct cuda_spectrum *state = cuda_spectrum_state(spectrum);
    const bool f64 = spectrum->scalar_bytes == 8;
    const size_t batch = cuda_blocks_fft_batch(points, f64, spectrum_count(spectrum));
    return cuda_fft_create(&state->plan, points, batch, true, &state->fft);
}

static enum partita_status fill_cuda_spectrum(struct partita_spectrum *spectrum, const void *x,
                                              size_t points)
{
    struct cuda_spectrum *state = cuda_spectrum_state(spectrum);
    enum partita_status status = cuda_spectrum_prepare(spectrum, points);
    if (status != PARTITA_OK) return status;
    spectrum->bytes = cuda_blocks_spectrum_spectra_bytes(&state->fft, spectrum_count(spectrum));
    status = cuda_allocate(&state->plan, spectrum->bytes, &state->blocks);
    return status == PARTITA_OK ? cuda_spectrum_transform(spectrum, x) : status;
}

static enum partita_status cuda_spectrum_create(struct partita_spectrum *spectrum, const void *x,
                                                size_t block)
{
    struct cuda_spectrum *state = mem_allocate(&spectrum->allocator, sizeof *state);
    spectrum->state = state;
    if (!state) return PARTITA_ERR_NOMEM;
    state->plan = (struct partita_plan){
        .device = spectrum->device,
        .direction = PARTITA_FORWARD,
        .shape = {.f64 = spectrum->scalar_bytes == 8,
                  .complex_signal = spectrum->sample_bytes > spectrum->scalar_bytes,
                  .scalar_bytes = spectrum->scalar_bytes,
                  .sample_bytes = spectrum->sample_bytes},
        .allocator = spectrum->allocator,
        .log = spectrum->log};
    const size_t points = choose_points(spectrum, block);
    if (!points) return PARTITA_ERR_UNSUPPORTED;
    spectrum->block = points;
    if (spectrum_count(spectrum) > MAX_BLOCKS)
        return log_error(
            &spectrum->log, PARTITA_ERR_UNSUPPORTED,
            "partita_spectrum_create: %zu samples in blocks of %zu are more than %d blocks",
            spectrum->n, points, MAX_BLOCKS);
    struct cuda_scope scope;
    enum partita_status status = cuda_enter(&state->plan, &scope);
    if (status == PARTITA_OK) status = fill_cuda_spectrum(spectrum, x, points);
    cuda_leave(&scope);
    return status;
}

static void cuda_spectrum_destroy(struct partita_spectrum *spectrum)
{
    struct cuda_spectrum *state = cuda_spectrum_state(spectrum);
    if (!state) return;
    const struct partita_plan *plan = &state->plan;
    struct cuda_scope scope;
    cuda_enter(plan, &scope);
    cuda_release(plan, state->blocks);
    cuda_fft_destroy(plan, &state->fft);
    cuda_staging_close(plan);
    cuda_leave(&scope);
    mem_release(&spectrum->allocator, state);
}

static bool cuda_spectrum_meet(const struct partita_spectrum *x, const struct partita_spectrum *h)
{
    return cuda_device_of(&cuda_spectrum_state(x)->plan)->gpu->index ==
           cuda_device_of(&cuda_spectrum_state(h)->plan)->gpu->index;
}

// One call.
struct product {
    const struct partita_spectrum *x, *h;
    bool lags;
    struct spectrum_wanted wanted;
    size_t at_once;        // blocks of the result
    void *y, *left, *sums; // on the device: the result; h's blocks as the sums take them; [at_once]
};

// Blocks at once: as many as fit the limit, at least one. The bits do not depend on it.
static size_t choose_blocks(const struct partita_spectrum *x, const struct spectrum_wanted *wanted)
{
    const size_t block = block_bytes(&cuda_spectrum_state(x)->fft, 1, 1);
    const size_t limit = x->workspace_limit, min = limit ? 1 : MIN_BLOCKS;
    const size_t fitting = (limit ? limit : SUM_BYTES) / block;
    return size_min(size_max(wanted->blocks.size, 1), size_max(fitting, min));
}

static enum partita_status multiply_blocks(const struct product *product, ptrdiff_t block,
                                           size_t count)
{
    const struct partita_spectrum *x = product->x;
    const struct cuda_spectrum *state = cuda_spectrum_state(x);
    const struct cuda_fft_params *params = &state->fft.params;
    const int64_t left = (int64_t)spectrum_count(product->h),
                  size = (int64_t)product->wanted.samples.size;
    const struct cuda_pairs pairs = {
        .rows = 1,
        .left_rows = {.n = {1, 1, 1}},
        .right_rows = {.n = {1, 1, 1}},
        .terms = 1,
        .left_count = left,
        .right_count = (int64_t)spectrum_count(x),
        .first = block + (product->lags ? left : 0), // a mirrored template lies `left` blocks on
        .count = (int64_t)count,
        .per_thread =
            (int64_t)cuda_blocks_per_thread((size_t)(params->points * params->planes), 1, count),
        .left = product->left,
        .right = state->blocks,
        .out = product->sums,
    };
    const struct cuda_sink sink = {.y = product->y,
                                   .rows = 1,
                                   .length = size,
                                   .stride = 1,
                                   .end = size,
                                   .channels = 1,
                                   .complex_samples = state->plan.shape.complex_signal};
    const ptrdiff_t position = block * (ptrdiff_t)x->block - product->wanted.samples.first;
    const enum partita_status status = CU(&state->plan, cuda_launch_pairs(params, &pairs));
    if (status != PARTITA_OK) return status;
    return cuda_blocks_back(&state->plan, &state->fft, &sink, product->sums, position, count);
}

// Outputs that no block reaches are zero.
static enum partita_status clear_rest(const struct product *product)
{
    const struct spectrum_wanted *wanted = &product->wanted;
    const ptrdiff_t block = (ptrdiff_t)product->x->block;
    if (wanted->blocks.first * block <= wanted->samples.first &&
        range_end(wanted->blocks) * block >= range_end(wanted->samples))
        return PARTITA_OK;
    return CU(&cuda_spectrum_state(product->x)->plan,
              cudaMemsetAsync(product->y, 0, wanted->samples.size * product->x->sample_bytes,
                              cuda_thread()->stream));
}

// In the workspace: the template's spectra mirrored, for lags; sums; cuFFT's work area.
static enum partita_status queue_product(void *context, const struct operands *operands,
                                         void *workspace)
{
    struct product *product = context;
    const struct cuda_spectrum *state = cuda_spectrum_state(product->x),
                               *template = cuda_spectrum_state(product->h);
    const size_t left = spectrum_count(product->h);
    const struct spectrum_wanted *wanted = &product->wanted;
    struct arena arena = {.base = workspace};
    product->y = operands->to;
    product->left = product->lags
                        ? arena_take(&arena, cuda_blocks_spectrum_spectra_bytes(&state->fft, left))
                        : template->blocks;
    product->sums =
        arena_take(&arena, cuda_blocks_spectrum_spectra_bytes(&state->fft, product->at_once));
    void *area = arena_take(&arena, cuda_fft_work_bytes(&state->fft));
    enum partita_status status = cuda_fft_begin(&state->plan, &state->fft, area);
    if (status == PARTITA_OK) status = clear_rest(product);
    if (status == PARTITA_OK && product->lags)
        status = CU(&state->plan, cuda_launch_mirrored(&state->fft.params, product->left,
                                                       template->blocks, (int64_t)left));
    for (size_t at = 0; at < wanted->blocks.size && status == PARTITA_OK; at += product->at_once)
        status = multiply_blocks(product, wanted->blocks.first + (ptrdiff_t)at,
                                 size_min(product->at_once, wanted->blocks.size - at));
    cuda_fft_end(&state->fft);
    return status;
}

static enum partita_status cuda_spectrum_multiply(enum partita_op op, void *y,
                                                  const struct partita_spectrum *x,
                                                  const struct partita_spectrum *h,
                                                  const struct range *range)
{
    const struct cuda_spectrum *state = cuda_spectrum_state(x);
    struct product product = {.x = x,
                              .h = h,
                              .lags = op == PARTITA_CORRELATE,
                              .wanted = spectrum_wanted(op, x, h, range)};
    product.at_once = choose_blocks(x, &product.wanted);
    const size_t mirrored =
        product.lags ? mem_round(cuda_blocks_spectrum_spectra_bytes(&state->fft, spectrum_count(h)))
                     : 0;
    const size_t sums = mem_round(cuda_blocks_spectrum_spectra_bytes(&state->fft, product.at_once)),
                 area = cuda_fft_work_bytes(&state->fft);
    const struct operands operands = {.to = y};
    const struct cuda_call call = {
        .plan = &state->plan,
        .sizes = {.to = range->size * x->sample_bytes,
                  .workspace = size_add(size_add(mirrored, sums), mem_round(area))},
        .queue = queue_product,
        .context = &product};
    // A device that was lost to h is lost.
    enum partita_status status = cuda_device_status(&cuda_spectrum_state(h)->plan);
    if (status != PARTITA_OK) return status;
    struct cuda_scope scope;
    status = cuda_enter(&state->plan, &scope);
    if (status == PARTITA_OK) status = cuda_call_run(&call, NULL, &operands, NULL);
    cuda_leave(&scope);
    return status;
}

const struct spectrum_backend cuda_spectra = {.create = cuda_spectrum_create,
                                              .destroy = cuda_spectrum_destroy,
                                              .meet = cuda_spectrum_meet,
                                              .multiply = cuda_spectrum_multiply};
