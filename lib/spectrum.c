// SPDX-License-Identifier: MIT
// Spectra as objects: what cpu/blocks keeps of its operands, for callers who use them again (parts.h).
#include <partita/spectrum.h>

#include <string.h>

#include "cpu/parts.h"
#include "cpu/samples.h"
#include "log.h"
#include "sizes.h"
#include "slice.h"

enum {
    USUAL_BLOCK = 1 << 16,
    MOST_BLOCKS = 512, // of a block size that the caller left open
    LARGEST_BLOCK = 1 << 27,
    LEAST_RUN = 8, // output blocks at once
};

struct partita_spectrum {
    enum partita_type type;
    size_t n;
    struct fft *fft;
    struct parts_kit kit;
    struct parts parts;
    int threads;
    struct partita_allocator allocator;
};

static size_t scalar_bytes(enum partita_type type)
{
    return type == PARTITA_F64 || type == PARTITA_CF64 ? 8 : 4;
}

static size_t choose_block(size_t n, size_t block)
{
    if (!block) {
        block = n < USUAL_BLOCK ? n : USUAL_BLOCK;
        if (n / MOST_BLOCKS > block) block = n / MOST_BLOCKS < LARGEST_BLOCK ? n / MOST_BLOCKS : LARGEST_BLOCK;
    }
    return fft_good_size(2 * block) / 2;
}

// Threads share what is cut for each of them from one piece of memory.
static size_t work_bytes(const struct parts_kit *kit)
{
    struct arena arena = {0};
    parts_work_cut(kit, &arena);
    return arena.used;
}

struct transform {
    const struct partita_spectrum *spectrum;
    const char *x;
    char *work;
};

// One task: one block.
static void transform_block(void *context, size_t task, int worker)
{
    const struct transform *call = context;
    const struct parts_kit *kit = &call->spectrum->kit;
    struct arena arena = {.base = call->work + (size_t)worker * work_bytes(kit)};
    struct parts_work work = parts_work_cut(kit, &arena);
    samples_window(work.samples, call->x, call->spectrum->n, (ptrdiff_t)(task * kit->block), 1, kit->block,
                   kit->sample_bytes);
    parts_forward(kit, &call->spectrum->parts, task, &work);
}

static enum partita_status transform_all(struct partita_spectrum *spectrum, const void *x)
{
    const struct parts_kit *kit = &spectrum->kit;
    const size_t count = (spectrum->n - 1) / kit->block + 1;
    struct transform call = {spectrum, x, NULL};
    spectrum->parts = (struct parts){mem_reserve(&spectrum->allocator, parts_bytes(kit->tiles, count)), count};
    call.work = mem_reserve(&spectrum->allocator, size_mul((size_t)spectrum->threads, work_bytes(kit)));
    const bool complete = spectrum->parts.tiles && call.work;
    if (complete) {
        thread_loop(spectrum->threads, count, transform_block, &call);
        parts_margins(kit, &spectrum->parts, count, spectrum->threads);
    }
    mem_release(&spectrum->allocator, call.work);
    return complete ? PARTITA_OK : PARTITA_ERR_NOMEM;
}

enum partita_status partita_spectrum_create(enum partita_type type, const void *x, size_t n, size_t block,
                                            const struct partita_options *options,
                                            struct partita_spectrum **ret_spectrum)
{
    static const struct partita_options defaults;
    const size_t sample = partita_type_size(type);
    if (!options) options = &defaults;
    if (!x || !ret_spectrum || sample < sizeof(float) || !n || n > PTRDIFF_MAX / 8 / sample ||
        (uintptr_t)x % scalar_bytes(type) || block > LARGEST_BLOCK || options->threads < 0 ||
        !options->allocator.allocate != !options->allocator.release) {
        log_line(&options->log, "partita_spectrum_create: %s of %zu samples in blocks of %zu", partita_type_name(type),
                 n, block);
        return PARTITA_ERR_ARG;
    }
    const struct fft_request transform = {.n = 2 * choose_block(n, block),
                                          .f64 = scalar_bytes(type) == 8,
                                          .complex = sample > scalar_bytes(type),
                                          .level = cpu_detect()};
    struct partita_spectrum *spectrum = mem_allocate(&options->allocator, sizeof *spectrum);
    if (!spectrum) return PARTITA_ERR_NOMEM;
    spectrum->type = type;
    spectrum->n = n;
    spectrum->threads = options->threads ? options->threads : cpu_count();
    spectrum->allocator = options->allocator;
    enum partita_status status = fft_create(&transform, &spectrum->allocator, &spectrum->fft);
    if (status == PARTITA_OK) {
        spectrum->kit = parts_kit(spectrum->fft, kernels_select(transform.level, transform.f64), sample);
        status = transform_all(spectrum, x);
    }
    if (status == PARTITA_OK) *ret_spectrum = spectrum;
    else partita_spectrum_destroy(spectrum);
    return status;
}

void partita_spectrum_destroy(struct partita_spectrum *spectrum)
{
    if (!spectrum) return;
    const struct partita_allocator allocator = spectrum->allocator;
    fft_destroy(spectrum->fft);
    mem_release(&allocator, spectrum->parts.tiles);
    mem_release(&allocator, spectrum);
}

size_t partita_spectrum_size(const struct partita_spectrum *spectrum)
{
    return spectrum ? spectrum->n : 0;
}

size_t partita_spectrum_block(const struct partita_spectrum *spectrum)
{
    return spectrum ? spectrum->kit.block : 0;
}

size_t partita_spectrum_bytes(const struct partita_spectrum *spectrum)
{
    return spectrum ? parts_bytes(spectrum->kit.tiles, spectrum->parts.count) : 0;
}

// One call: the result's samples first .. first + size - 1 on the grid of its blocks.
struct product {
    const struct partita_spectrum *x;
    struct pairs pairs;
    char *work, *y;
    ptrdiff_t first;
    size_t size;
};

// One task: one output block, the part of it that is wanted.
static void finish_block(void *context, size_t task, int worker)
{
    const struct product *call = context;
    const struct parts_kit *kit = &call->x->kit;
    const ptrdiff_t begin = (call->pairs.first + (ptrdiff_t)task) * (ptrdiff_t)kit->block;
    const ptrdiff_t end = begin + (ptrdiff_t)kit->block, wanted = call->first + (ptrdiff_t)call->size;
    const ptrdiff_t from = begin > call->first ? begin : call->first, to = end < wanted ? end : wanted;
    struct arena arena = {.base = call->work + (size_t)worker * work_bytes(kit)};
    struct parts_work work = parts_work_cut(kit, &arena);
    parts_inverse(kit, parts_out(&call->pairs, task), &work);
    memcpy(call->y + (size_t)(from - call->first) * kit->sample_bytes,
           work.samples + (size_t)(from - begin) * kit->sample_bytes, (size_t)(to - from) * kit->sample_bytes);
}

static void run_product(struct product *call, size_t run)
{
    const struct parts_kit *kit = &call->x->kit;
    // Blocks that anything falls into: sums reach one block on, or with lags one block back.
    const ptrdiff_t low = call->pairs.lags ? -(ptrdiff_t)call->pairs.left.count : 0;
    const ptrdiff_t high =
        (ptrdiff_t)call->pairs.right.count + (call->pairs.lags ? 0 : (ptrdiff_t)call->pairs.left.count);
    ptrdiff_t block = floor_div(call->first, kit->block);
    ptrdiff_t end = floor_div(call->first + (ptrdiff_t)call->size - 1, kit->block) + 1;
    if (block < low) block = low;
    if (end > high) end = high;
    memset(call->y, 0, call->size * kit->sample_bytes);
    for (; block < end; block += (ptrdiff_t)call->pairs.count) {
        call->pairs.first = block;
        call->pairs.count = (size_t)(end - block) < run ? (size_t)(end - block) : run;
        parts_sum(&call->pairs, call->x->threads);
        thread_loop(call->x->threads, call->pairs.count, finish_block, call);
    }
}

static bool fit_together(const struct partita_spectrum *x, const struct partita_spectrum *h)
{
    return x->type == h->type && x->kit.block == h->kit.block && x->kit.kernels == h->kit.kernels &&
           fft_provider(x->fft) == fft_provider(h->fft);
}

static enum partita_status multiply(enum partita_op op, void *y, const struct partita_spectrum *x,
                                    const struct partita_spectrum *h, const struct partita_slice *slice)
{
    if (!y || !x || !h || (uintptr_t)y % scalar_bytes(x->type) || !fit_together(x, h)) return PARTITA_ERR_ARG;
    const struct range range = slice_resolve(op, x->n, h->n, slice);
    if (!range.size) return PARTITA_ERR_ARG;
    const bool lags = op == PARTITA_CORRELATE;
    const size_t twice = 2 * h->parts.count, blocks = range.size / x->kit.block + 2;
    const size_t wished = twice > LEAST_RUN ? twice : LEAST_RUN, run = blocks < wished ? blocks : wished;
    const size_t threads = (size_t)x->threads;
    struct product call = {.x = x,
                           .y = y,
                           .first = lags ? range.first - (ptrdiff_t)(h->n - 1) : range.first,
                           .size = range.size,
                           .pairs = {.kit = &x->kit,
                                     .left = h->parts,
                                     .right = x->parts,
                                     .right_count = x->parts.count,
                                     .lags = lags,
                                     .gather = true}};
    struct arena arena = {0};
    for (int pass = 0; pass < 2; pass++) {
        call.pairs.out = arena_take(&arena, size_mul(fft_spectrum_bytes(x->fft), run + 1));
        call.pairs.work = arena_take(&arena, size_mul(threads, parts_sum_bytes(h->parts.count)));
        call.work = arena_take(&arena, size_mul(threads, work_bytes(&x->kit)));
        if (pass == 1) break;
        arena.base = mem_reserve(&x->allocator, arena.used);
        if (!arena.base) return PARTITA_ERR_NOMEM;
        arena.used = 0;
    }
    run_product(&call, run);
    mem_release(&x->allocator, arena.base);
    return PARTITA_OK;
}

enum partita_status partita_spectrum_convolve(void *y, const struct partita_spectrum *x,
                                              const struct partita_spectrum *h, const struct partita_slice *slice)
{
    return multiply(PARTITA_CONVOLVE, y, x, h, slice);
}

enum partita_status partita_spectrum_correlate(void *y, const struct partita_spectrum *x,
                                               const struct partita_spectrum *h, const struct partita_slice *slice)
{
    return multiply(PARTITA_CORRELATE, y, x, h, slice);
}

static enum partita_status multiply_with(enum partita_op op, void *y, const struct partita_spectrum *x, const void *h,
                                         size_t m, const struct partita_slice *slice)
{
    struct partita_spectrum *spectrum = NULL;
    if (!y || !x || !h) return PARTITA_ERR_ARG;
    const struct partita_options options = {.threads = x->threads, .allocator = x->allocator};
    enum partita_status status = partita_spectrum_create(x->type, h, m, x->kit.block, &options, &spectrum);
    if (status == PARTITA_OK) status = multiply(op, y, x, spectrum, slice);
    partita_spectrum_destroy(spectrum);
    return status;
}

enum partita_status partita_spectrum_convolve_with(void *y, const struct partita_spectrum *x, const void *h, size_t m,
                                                   const struct partita_slice *slice)
{
    return multiply_with(PARTITA_CONVOLVE, y, x, h, m, slice);
}

enum partita_status partita_spectrum_correlate_with(void *y, const struct partita_spectrum *x, const void *h, size_t m,
                                                    const struct partita_slice *slice)
{
    return multiply_with(PARTITA_CORRELATE, y, x, h, m, slice);
}
