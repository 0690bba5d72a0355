// SPDX-License-Identifier: MIT
// Spectra as objects on the CPU: what cpu/blocks keeps of its operands, for callers who use them
// again (parts.h).
#include <string.h>

#include "base/sizes.h"
#include "core/spectrum.h"
#include "geometry/samples.h"
#include "parts.h"

enum { LEAST_RUN = 8 }; // output blocks at once

struct kept {
    struct fft *fft; // that of spectrum->shared_with, if there is one
    struct parts_kit kit;
    struct parts parts;
};

static struct kept *kept_of(const struct partita_spectrum *spectrum)
{
    return spectrum->state;
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
    const struct kept *kept = kept_of(call->spectrum);
    const struct parts_kit *kit = &kept->kit;
    struct arena arena = {.base = call->work + (size_t)worker * work_bytes(kit)};
    struct parts_work work = parts_work_cut(kit, &arena);
    samples_window(work.samples, call->x, call->spectrum->n, (ptrdiff_t)(task * kit->block), 1,
                   kit->block, kit->sample_bytes);
    parts_forward(kit, &kept->parts, task, &work);
}

static enum partita_status transform_all(const struct partita_spectrum *spectrum, const void *x)
{
    struct kept *kept = kept_of(spectrum);
    const struct parts_kit *kit = &kept->kit;
    const size_t count = ceil_div(spectrum->n, kit->block);
    struct transform call = {spectrum, x, NULL};
    kept->parts =
        (struct parts){mem_reserve(&spectrum->allocator, parts_bytes(kit->tiles, count)), count};
    call.work =
        mem_reserve(&spectrum->allocator, size_mul((size_t)spectrum->threads, work_bytes(kit)));
    const bool complete = kept->parts.tiles && call.work;
    if (complete) {
        thread_loop(spectrum->threads, count, transform_block, &call);
        parts_margins(kit, &kept->parts, count, spectrum->threads);
    }
    mem_release(&spectrum->allocator, call.work);
    return complete ? PARTITA_OK : PARTITA_ERR_NOMEM;
}

static enum partita_status create(struct partita_spectrum *spectrum, const void *x, size_t block)
{
    const size_t half = fft_good_size(2 * spectrum_wished(spectrum->n, block)) / 2;
    const struct fft_request transform = {.n = 2 * half,
                                          .f64 = spectrum->scalar_bytes == 8,
                                          .complex =
                                              spectrum->sample_bytes > spectrum->scalar_bytes,
                                          .level = cpu_detect()};
    struct kept *kept = mem_allocate(&spectrum->allocator, sizeof *kept);
    spectrum->state = kept;
    if (!kept) return PARTITA_ERR_NOMEM;
    if (!spectrum->threads) spectrum->threads = cpu_count();
    enum partita_status status = PARTITA_OK;
    if (spectrum->shared_with) kept->fft = kept_of(spectrum->shared_with)->fft;
    else status = fft_create(&transform, &spectrum->allocator, &kept->fft);
    if (status != PARTITA_OK) return status;
    kept->kit = parts_kit(kept->fft, kernels_select(transform.level, transform.f64),
                          spectrum->sample_bytes);
    status = transform_all(spectrum, x);
    spectrum->block = kept->kit.block;
    spectrum->bytes = parts_bytes(kept->kit.tiles, kept->parts.count);
    return status;
}

static void destroy(struct partita_spectrum *spectrum)
{
    struct kept *kept = kept_of(spectrum);
    if (!kept) return;
    if (!spectrum->shared_with) fft_destroy(kept->fft);
    mem_release(&spectrum->allocator, kept->parts.tiles);
    mem_release(&spectrum->allocator, kept);
}

static bool meet(const struct partita_spectrum *x, const struct partita_spectrum *h)
{
    return kept_of(x)->kit.kernels == kept_of(h)->kit.kernels &&
           fft_provider(kept_of(x)->fft) == fft_provider(kept_of(h)->fft);
}

struct product {
    const struct parts_kit *kit;
    struct spectrum_wanted wanted;
    struct pairs pairs;
    char *work, *y;
};

// One task: one output block, the part of it that is wanted.
static void finish_block(void *context, size_t task, int worker)
{
    const struct product *call = context;
    const struct parts_kit *kit = call->kit;
    const ptrdiff_t begin = (call->pairs.first + (ptrdiff_t)task) * (ptrdiff_t)kit->block;
    const ptrdiff_t end = begin + (ptrdiff_t)kit->block, first = call->wanted.first;
    const ptrdiff_t behind = first + (ptrdiff_t)call->wanted.size;
    const ptrdiff_t from = begin > first ? begin : first, to = end < behind ? end : behind;
    struct arena arena = {.base = call->work + (size_t)worker * work_bytes(kit)};
    struct parts_work work = parts_work_cut(kit, &arena);
    parts_inverse(kit, parts_out(&call->pairs, task), &work);
    memcpy(call->y + (size_t)(from - first) * kit->sample_bytes,
           work.samples + (size_t)(from - begin) * kit->sample_bytes,
           (size_t)(to - from) * kit->sample_bytes);
}

static void run_product(struct product *call, size_t run, int threads)
{
    const struct spectrum_wanted *wanted = &call->wanted;
    memset(call->y, 0, wanted->size * call->kit->sample_bytes);
    for (ptrdiff_t block = wanted->block; block < wanted->end;
         block += (ptrdiff_t)call->pairs.count) {
        call->pairs.first = block;
        call->pairs.count = size_min((size_t)(wanted->end - block), run);
        parts_sum(&call->pairs, threads);
        thread_loop(threads, call->pairs.count, finish_block, call);
    }
}

static enum partita_status multiply(enum partita_op op, void *y, const struct partita_spectrum *x,
                                    const struct partita_spectrum *h, const struct range *range)
{
    const struct kept *kept = kept_of(x);
    const struct parts_kit *kit = &kept->kit;
    const size_t left = kept_of(h)->parts.count, twice = 2 * left,
                 blocks = range->size / kit->block + 2;
    const size_t run = size_min(blocks, twice > LEAST_RUN ? twice : LEAST_RUN),
                 threads = (size_t)x->threads;
    struct product call = {.kit = kit,
                           .y = y,
                           .wanted = spectrum_wanted(op, x, h, range),
                           .pairs = {.kit = kit,
                                     .left = kept_of(h)->parts,
                                     .right = kept->parts,
                                     .right_count = kept->parts.count,
                                     .lags = op == PARTITA_CORRELATE,
                                     .gather = true}};
    struct arena arena = {0};
    for (int pass = 0; pass < 2; pass++) {
        call.pairs.out = arena_take(&arena, size_mul(fft_spectrum_bytes(kept->fft), run + 1));
        call.pairs.work = arena_take(&arena, size_mul(threads, parts_sum_bytes(left)));
        call.work = arena_take(&arena, size_mul(threads, work_bytes(kit)));
        if (pass == 1) break;
        arena.base = mem_reserve(&x->allocator, arena.used);
        if (!arena.base) return PARTITA_ERR_NOMEM;
        arena.used = 0;
    }
    run_product(&call, run, x->threads);
    mem_release(&x->allocator, arena.base);
    return PARTITA_OK;
}

const struct spectrum_backend cpu_spectra = {
    .create = create, .destroy = destroy, .meet = meet, .multiply = multiply};
