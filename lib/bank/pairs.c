// SPDX-License-Identifier: MIT
// Sums of pairs. A block of samples is transformed twice: alone and reversed, so that products are
// correlations, and with the max_lag samples before and after it. When the spectra of GROUP blocks
// are there, the kernel of partitioned filters sums their products, line by line, for up to QUAD
// pairs at a time that follow each other in the list; then these are added to the sums of all
// blocks, so that rounding errors are those of GROUP and of n / GROUP additions.
#include <assert.h>
#include <partita/pairs.h>
#include <string.h>

#include "api/sized.h"
#include "base/thread.h"
#include "core/arguments.h"
#include "fft/fft.h"
#include "geometry/samples.h"
#include "kernels/kernels.h"

enum { GROUP = 16, QUAD = CMAC_SUMS, LINE = SPECTRUM_LINE_BYTES };
enum { MAX_SIGNALS = 1 << 20, MAX_LAG = 1 << 24, MIN_LENGTH = 512 };

struct partita_pairs {
    struct partita_pairs_options options;
    const struct kernels *kernels;
    struct fft *fft;
    size_t bytes, block, blocks; // of a sample; samples of a block; blocks whose spectra are there
    size_t pitch;                // lines of first and of second for one of the transform
    size_t *list;                // [n_pairs][2]
    char *first;                 // of blocks alone, [lines][pitch / GROUP][GROUP]
    char *second;  // of longer ones, [lines][pitch / GROUP / QUAD][GROUP, backwards][QUAD]
    char *sums;    // [lines][n_pairs]
    char *workers; // of a spectrum, N samples, and the transform's scratch
    size_t worker_bytes;
    // Of a call: a part of a window, where the block begins in it; results.
    const char *x;
    size_t step, before, n_frames, after, at;
    char *y;
    double scale;
};

static bool pairs_options_check(struct partita_pairs_options *options)
{
    const struct partita_log *log = &options->log;
    if (!options->type) options->type = PARTITA_F32;
    if (options->type != PARTITA_F32 && options->type != PARTITA_F64)
        return log_line(log, "type = %d: must be f32 or f64", (int)options->type);
    if (options->signals < 1 || options->signals > MAX_SIGNALS)
        return log_line(log, "signals = %zu: must be from 1 to %d", options->signals, MAX_SIGNALS);
    if (options->max_lag > MAX_LAG || options->block > MAX_LAG)
        return log_line(log, "max_lag = %zu, block = %zu: must be at most %d", options->max_lag,
                        options->block, MAX_LAG);
    if (options->threads < 0 || !options->allocator.allocate != !options->allocator.release)
        return log_line(log, "threads = %d: 0 or more; allocator: both or none", options->threads);
    if (options->n_pairs && !options->pairs) return log_line(log, "pairs is NULL");
    for (size_t i = 0; i < 2 * options->n_pairs; i++)
        if (options->pairs[i] >= options->signals)
            return log_line(log, "pairs[%zu][%zu] = %zu: must be below signals = %zu", i / 2, i % 2,
                            options->pairs[i], options->signals);
    options->threads = options->threads ? thread_bound(options->threads) : thread_default();
    return true;
}

enum partita_status partita_pairs_create_sized(const struct partita_pairs_options *options,
                                               size_t options_bytes,
                                               struct partita_pairs **ret_pairs)
{
    const struct partita_log log = log_given(options);
    struct partita_pairs made = {0}, *pairs = NULL;
    struct partita_pairs_options *known = &made.options;
    struct arena arena = {0};
    if (!arguments_given(log, options, ret_pairs)) return PARTITA_ERR_ARG;
    if (!sized_read(known, sizeof *known, options, options_bytes, &log, "options"))
        return PARTITA_ERR_UNSUPPORTED;
    known->log = log;
    if (!pairs_options_check(known)) return PARTITA_ERR_ARG;

    const size_t around = 2 * known->max_lag, block = known->block;
    const size_t n = fft_good_size(around + (block ? block : 2 * around + MIN_LENGTH));
    struct fft_request request = {n, .f64 = known->type == PARTITA_F64, .isa = cpu_detect()};
    const enum partita_status status = fft_create(&request, &known->allocator, &made.fft);
    if (status != PARTITA_OK) return status;
    const size_t spectrum = made.fft->spectrum_bytes;
    made.kernels = kernels_select(request.isa, request.f64);
    made.bytes = partita_type_size(known->type);
    made.block = block ? block : n - around;
    made.pitch = size_round_up(known->signals, QUAD) * GROUP;
    made.worker_bytes = spectrum + mem_round(n * made.bytes) + mem_round(made.fft->scratch_bytes);
    for (int pass = 0; pass < 2; pass++) {
        pairs = arena_take(&arena, sizeof *pairs);
        made.list = arena_take(&arena, size_mul(known->n_pairs, 2 * sizeof *made.list));
        made.first = arena_take(&arena, size_mul(made.pitch, spectrum));
        made.second = arena_take(&arena, size_mul(made.pitch, spectrum));
        made.sums = arena_take(&arena, size_mul(known->n_pairs, spectrum));
        made.workers = arena_take(&arena, size_mul((size_t)known->threads, made.worker_bytes));
        if (pass == 0 && !arena_allocate(&arena, &known->allocator)) // zeroed: spectra have gaps
            return fft_destroy(made.fft), PARTITA_ERR_NOMEM;
    }
    if (known->n_pairs) memcpy(made.list, known->pairs, known->n_pairs * 2 * sizeof *made.list);
    *pairs = made;
    *ret_pairs = pairs;
    return PARTITA_OK;
}

void partita_pairs_destroy(struct partita_pairs *pairs)
{
    if (!pairs) return;
    fft_destroy(pairs->fft);
    mem_release(&pairs->options.allocator, pairs);
}

static void multiply_line(void *context, size_t line, int worker)
{
    const struct partita_pairs *pairs = context;
    const size_t n_pairs = pairs->options.n_pairs, pitch = pairs->pitch;
    char part[QUAD][LINE] __attribute__((aligned(MEM_ALIGN)));
    void *const to[QUAD] = {part[0], part[1], part[2], part[3]};
    struct cmac_terms terms = {QUAD * GROUP, .multiple = QUAD, .overwrite = {1, 1, 1, 1}};
    struct cmac_path path = {.count = pairs->blocks};
    (void)worker;
    for (size_t p = 0, n; p < n_pairs; p += n) {
        const size_t *pair = pairs->list + 2 * p, first = pair[0], second = pair[1];
        const size_t max = size_min(n_pairs - p, QUAD - second % QUAD);
        for (n = 1; n < max && pair[2 * n] == first && pair[2 * n + 1] == second + n;) n++;
        if (n == 3) n = 2;
        terms.sums = n;
        terms.newest = QUAD * (GROUP - 1) + second % QUAD;
        path.x = pairs->second + (line * pitch + second / QUAD * QUAD * GROUP) * LINE;
        path.h = pairs->first + (line * pitch + first * GROUP) * LINE;
        pairs->kernels->cmac_partitions(to, &terms, &path, 1, 0, 1);
        pairs->kernels->add(pairs->sums + (line * n_pairs + p) * LINE, part,
                            n * LINE / pairs->bytes);
    }
}

static void multiply_group(struct partita_pairs *pairs)
{
    thread_loop(pairs->options.threads, pairs->fft->lines, multiply_line, pairs);
    pairs->blocks = 0;
}

static void transform_both(void *context, size_t signal, int worker)
{
    const struct partita_pairs *pairs = context;
    const struct fft *fft = pairs->fft;
    const struct fft_steps steps = {0, fft->steps};
    const size_t bytes = pairs->bytes, max_lag = pairs->options.max_lag, blocks = pairs->blocks;
    const size_t start = pairs->before + pairs->at, last = pairs->before + pairs->n_frames;
    const size_t count = size_min(pairs->block, last - start);
    const char *x = pairs->x + signal * pairs->step * bytes - pairs->before * bytes;
    char *work = pairs->workers + (size_t)worker * pairs->worker_bytes;
    char *samples = work + fft->spectrum_bytes, *scratch = samples + mem_round(fft->n * bytes);
    char *reversed = samples + (pairs->block - count) * bytes;
    struct fft_target target = {.work = work, .stride = pairs->pitch * LINE};
    assert(blocks < GROUP && fft->n >= pairs->block + 2 * max_lag);
    memset(samples, 0, fft->n * bytes);
    samples_reverse(reversed, 1, x + start * bytes, 1, count, bytes);
    target.to = pairs->first + (signal * GROUP + blocks) * LINE;
    fft_forward_apart(fft, &target, samples, scratch, steps);
    // Samples further on would change nothing but the bits of results.
    const size_t end = size_min(last + pairs->after, start + pairs->block + max_lag);
    x = samples_at(samples, x, end, (ptrdiff_t)(start - max_lag), fft->n, bytes);
    target.to = pairs->second +
                ((signal / QUAD * GROUP + GROUP - 1 - blocks) * QUAD + signal % QUAD) * LINE;
    fft_forward_apart(fft, &target, x, scratch, steps);
}

enum partita_status partita_pairs_add(struct partita_pairs *pairs, const void *x, size_t pitch,
                                      size_t before, size_t n_frames, size_t after)
{
    const struct partita_log log = pairs ? pairs->options.log : log_default();
    if (!arguments_given(log, pairs, x) || !arrays_usable(log, {"x", x, 0, pairs->bytes, false}))
        return PARTITA_ERR_ARG;
    pairs->x = x, pairs->step = pitch, pairs->before = before;
    pairs->n_frames = n_frames, pairs->after = after;
    for (pairs->at = 0; pairs->at < n_frames; pairs->at += pairs->block) {
        thread_loop(pairs->options.threads, pairs->options.signals, transform_both, pairs);
        if (++pairs->blocks == GROUP) multiply_group(pairs);
    }
    return PARTITA_OK;
}

static void read_pair(void *context, size_t pair, int worker)
{
    const struct partita_pairs *pairs = context;
    const struct fft *fft = pairs->fft;
    const size_t lags = 2 * pairs->options.max_lag + 1, bytes = pairs->bytes;
    char *spectrum = pairs->workers + (size_t)worker * pairs->worker_bytes;
    char *samples = spectrum + fft->spectrum_bytes, *scratch = samples + mem_round(fft->n * bytes);
    for (size_t line = 0; line < fft->lines; line++) {
        char *sums = pairs->sums + (line * pairs->options.n_pairs + pair) * LINE;
        memcpy(spectrum + line * LINE, sums, LINE);
        memset(sums, 0, LINE);
    }
    fft_inverse(fft, samples, spectrum, scratch);
    pairs->kernels->scale(pairs->y + pair * lags * bytes, samples + (pairs->block - 1) * bytes,
                          pairs->scale / fft->gain, lags);
}

enum partita_status partita_pairs_read(struct partita_pairs *pairs, void *y, double scale)
{
    const struct partita_log log = pairs ? pairs->options.log : log_default();
    if (!arguments_given(log, pairs, y) || !arrays_usable(log, {"y", y, 0, pairs->bytes, true}))
        return PARTITA_ERR_ARG;
    pairs->y = y, pairs->scale = scale;
    if (pairs->blocks) multiply_group(pairs);
    thread_loop(pairs->options.threads, pairs->options.n_pairs, read_pair, pairs);
    return PARTITA_OK;
}
