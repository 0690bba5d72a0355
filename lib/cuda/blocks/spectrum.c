// SPDX-License-Identifier: MIT
// Spectra as objects: blocks as cuda/blocks has parts, products by its kernels. Correlation is
// convolution with the template's blocks mirrored (spectra.h).
#include "core/spectrum.h"

#include "cuda/device/call.h"
#include "cuda/device/cufft.h"
#include "parts.h"

enum {
    LEAST_RUN = 8, // blocks of a result at once: as many as a thread sums together (pairs.cu),
    RUN_BYTES = 32 << 20,  // and of sums about as much as stays in a second cache
    MOST_BLOCKS = 1 << 29, // of a spectrum: kernels count them in int
};

struct kept {
    struct partita_plan plan; // of no engine: what calls, memory and transforms know a device by
    struct cuda_parts own;    // unless it uses another's
    const struct cuda_parts *parts; // NULL: not yet prepared
    void *blocks;                   // [blocks][planes][points], in the device's memory
};

static struct kept *kept_of(const struct partita_spectrum *spectrum)
{
    return spectrum->state;
}

static size_t bytes_of(const struct cuda_parts *parts, size_t blocks)
{
    const struct cuda_fft *fft = &parts->fft;
    return cuda_parts_bytes(blocks, (size_t)parts->planes, fft->points, cuda_fft_batch(fft),
                            fft->f64);
}

// Points of a transform, which are the samples of a block; 0 if there is none as long as the caller
// wants.
static size_t choose_points(const struct partita_spectrum *spectrum, size_t block)
{
    const size_t most =
        cufft_open() ? (size_t)CUDA_FFT_LONGEST : cuda_fft_most(spectrum->scalar_bytes == 8);
    const size_t wished = spectrum_wished(spectrum->n, block), points = cuda_fft_size(wished);
    if (points && points <= most) return points;
    if (!block) return most;
    log_line(&spectrum->log,
             "partita_spectrum_create: blocks of %zu on %s, where %zu%s are the most", wished,
             spectrum->device->name, most, cufft_open() ? "" : " without cuFFT");
    return 0;
}

static enum partita_status transform(const struct partita_spectrum *spectrum, const void *x)
{
    const struct kept *kept = kept_of(spectrum);
    const struct partita_plan *plan = &kept->plan;
    const struct operands operands = {.to = kept->blocks, .from = {x}};
    const struct cuda_sizes sizes = {.to = spectrum->bytes,
                                     .from = {spectrum->n * spectrum->sample_bytes},
                                     .workspace = cuda_fft_area(&kept->parts->fft),
                                     .alignment = spectrum->sample_bytes};
    const struct cuda_windows windows = {.size = (int64_t)spectrum->n,
                                         .step = 1,
                                         .windows = (int64_t)spectrum_count(spectrum),
                                         .hop = (int64_t)spectrum->block,
                                         .length = (int64_t)spectrum->block,
                                         .rows = 1,
                                         .columns = 1,
                                         .pitch = 1,
                                         .complex_samples = plan->shape.complex_signal,
                                         .scale = 1};
    struct cuda_call call;
    struct cuda_transforms transforms = {0};
    enum partita_status status = cuda_call_begin(plan, &operands, &sizes, NULL, &call);
    if (status == PARTITA_OK)
        status = cuda_transforms_begin(plan, kept->parts, call.workspace, &transforms);
    if (status == PARTITA_OK)
        status = cuda_transforms_forward(&transforms, call.to, &windows, 1, call.from[0]);
    return cuda_call_end(&call, cuda_transforms_end(&transforms, status));
}

static enum partita_status prepare(struct partita_spectrum *spectrum, size_t points)
{
    struct kept *kept = kept_of(spectrum);
    const bool f64 = spectrum->scalar_bytes == 8;
    enum partita_status status = cuda_enter(&kept->plan);
    kept->parts = spectrum->shared_with ? kept_of(spectrum->shared_with)->parts : &kept->own;
    if (status != PARTITA_OK || spectrum->shared_with) return status;
    const size_t transforms = cuda_parts_transforms(points, f64, spectrum_count(spectrum));
    return cuda_parts_create(&kept->plan, points, transforms, true, &kept->own);
}

static enum partita_status create(struct partita_spectrum *spectrum, const void *x, size_t block)
{
    struct kept *kept = mem_allocate(&spectrum->allocator, sizeof *kept);
    spectrum->state = kept;
    if (!kept) return PARTITA_ERR_NOMEM;
    kept->plan = (struct partita_plan){
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
    if (spectrum_count(spectrum) > MOST_BLOCKS) {
        log_line(&spectrum->log,
                 "partita_spectrum_create: %zu samples in blocks of %zu are more than %d blocks",
                 spectrum->n, points, MOST_BLOCKS);
        return PARTITA_ERR_UNSUPPORTED;
    }
    enum partita_status status = prepare(spectrum, points);
    if (status != PARTITA_OK) return status;
    spectrum->bytes = bytes_of(kept->parts, spectrum_count(spectrum));
    status = cuda_allocate(&kept->plan, spectrum->bytes, &kept->blocks);
    return status == PARTITA_OK ? transform(spectrum, x) : status;
}

static void destroy(struct partita_spectrum *spectrum)
{
    struct kept *kept = kept_of(spectrum);
    if (!kept) return;
    const struct partita_plan *plan = &kept->plan;
    if (kept->parts) CU(plan, cudaSetDevice(cuda_device_of(plan)->index));
    cuda_release(plan, kept->blocks);
    cuda_parts_destroy(plan, &kept->own);
    if (!spectrum->shared_with) cuda_staging_close(plan);
    mem_release(&spectrum->allocator, kept);
}

static bool meet(const struct partita_spectrum *x, const struct partita_spectrum *h)
{
    return cuda_device_of(&kept_of(x)->plan)->index == cuda_device_of(&kept_of(h)->plan)->index;
}

// One call.
struct product {
    const struct partita_spectrum *x, *h;
    bool lags;
    struct spectrum_wanted wanted;
    size_t run; // blocks of the result at once
    struct cuda_call call;
    struct cuda_transforms transforms;
    void *left, *sums; // h's blocks as the sums take them; of results [run]
};

// Blocks that fit the limit, at least one, or where there is none the usual ones; the bits do not
// depend on it.
static size_t choose_run(const struct partita_spectrum *x, const struct spectrum_wanted *wanted)
{
    const struct cuda_parts *parts = kept_of(x)->parts;
    const size_t block =
        cuda_parts_bytes(1, (size_t)parts->planes, parts->fft.points, 1, parts->fft.f64);
    const size_t limit = x->workspace_limit, least = limit ? 1 : LEAST_RUN,
                 most = (limit ? limit : RUN_BYTES) / block;
    const size_t all = wanted->end > wanted->block ? (size_t)(wanted->end - wanted->block) : 1;
    return size_min(all, most > least ? most : least);
}

static enum partita_status run_blocks(const struct product *product, ptrdiff_t block, size_t count)
{
    const struct partita_spectrum *x = product->x;
    const struct kept *kept = kept_of(x);
    const struct cuda_kit *kit = &product->transforms.kit;
    const int64_t left = (int64_t)spectrum_count(product->h), size = (int64_t)product->wanted.size;
    const struct cuda_pairs pairs = {
        .lines = 1,
        .left_lines = {.n = {1, 1, 1}},
        .right_lines = {.n = {1, 1, 1}},
        .terms = 1,
        .left_count = left,
        .right_count = (int64_t)spectrum_count(x),
        .first = block + (product->lags ? left : 0), // a mirrored template lies `left` blocks on
        .count = (int64_t)count,
        .run = (int64_t)cuda_parts_of_thread((size_t)(kit->points * kit->planes), 1, count),
        .left = product->left,
        .right = kept->blocks,
        .out = product->sums,
    };
    const struct cuda_sink sink = {.y = product->call.to,
                                   .lines = 1,
                                   .length = size,
                                   .stride = 1,
                                   .end = size,
                                   .channels = 1,
                                   .complex = kept->plan.shape.complex_signal};
    const ptrdiff_t position = block * (ptrdiff_t)x->block - product->wanted.first;
    const enum partita_status status =
        CU(&kept->plan, cuda_launch_pairs(kit, &pairs, cudaStreamPerThread));
    if (status != PARTITA_OK) return status;
    return cuda_transforms_back(&product->transforms, &sink, product->sums, position, count);
}

// What no block reaches is zero.
static enum partita_status clear_rest(const struct product *product)
{
    const struct spectrum_wanted *wanted = &product->wanted;
    const ptrdiff_t block = (ptrdiff_t)product->x->block;
    if (wanted->block * block <= wanted->first &&
        wanted->end * block >= wanted->first + (ptrdiff_t)wanted->size)
        return PARTITA_OK;
    return CU(product->call.plan,
              cudaMemsetAsync(product->call.to, 0, product->call.to_bytes, cudaStreamPerThread));
}

// Spectra of the template as they are, or mirrored in the workspace; sums behind them, and what
// cuFFT works in.
static enum partita_status run_product(struct product *product)
{
    const struct kept *kept = kept_of(product->x), *of_left = kept_of(product->h);
    const size_t left = spectrum_count(product->h);
    const struct spectrum_wanted *wanted = &product->wanted;
    struct arena arena = {.base = product->call.workspace};
    product->left =
        product->lags ? arena_take(&arena, bytes_of(kept->parts, left)) : of_left->blocks;
    product->sums = arena_take(&arena, bytes_of(kept->parts, product->run));
    void *area = arena_take(&arena, cuda_fft_area(&kept->parts->fft));
    enum partita_status status =
        cuda_transforms_begin(&kept->plan, kept->parts, area, &product->transforms);
    if (status == PARTITA_OK) status = clear_rest(product);
    if (status == PARTITA_OK && product->lags)
        status = CU(&kept->plan,
                    cuda_launch_mirrored(&product->transforms.kit, product->left, of_left->blocks,
                                         (int64_t)left, cudaStreamPerThread));
    for (ptrdiff_t at = wanted->block; at < wanted->end && status == PARTITA_OK;
         at += (ptrdiff_t)product->run)
        status = run_blocks(product, at, size_min(product->run, (size_t)(wanted->end - at)));
    return cuda_transforms_end(&product->transforms, status);
}

static enum partita_status multiply(enum partita_op op, void *y, const struct partita_spectrum *x,
                                    const struct partita_spectrum *h, const struct range *range)
{
    const struct kept *kept = kept_of(x);
    struct product product = {.x = x,
                              .h = h,
                              .lags = op == PARTITA_CORRELATE,
                              .wanted = spectrum_wanted(op, x, h, range)};
    product.run = choose_run(x, &product.wanted);
    const size_t mirrored = product.lags ? mem_round(bytes_of(kept->parts, spectrum_count(h))) : 0;
    const size_t sums = mem_round(bytes_of(kept->parts, product.run)),
                 area = cuda_fft_area(&kept->parts->fft);
    const struct operands operands = {.to = y};
    const struct cuda_sizes sizes = {.to = range->size * x->sample_bytes,
                                     .workspace =
                                         size_add(size_add(mirrored, sums), mem_round(area))};
    enum partita_status status =
        cuda_enter(&kept_of(h)->plan); // a device that was lost to it is lost
    if (status != PARTITA_OK) return status;
    status = cuda_call_begin(&kept->plan, &operands, &sizes, NULL, &product.call);
    if (status == PARTITA_OK) status = run_product(&product);
    return cuda_call_end(&product.call, status);
}

const struct spectrum_backend cuda_spectra = {
    .create = create, .destroy = destroy, .meet = meet, .multiply = multiply};
