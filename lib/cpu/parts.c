// SPDX-License-Identifier: MIT
#include "parts.h"

#include <string.h>

enum {
    PIECE_BYTES = PARTS_TILE * 2 * SPECTRUM_BLOCK_BYTES,
    // Products summed in a row before they are rounded into a sum of sums: two short walks of rounding errors instead
    // of a long one.
    MOST_TERMS = 64,
};

struct parts_kit parts_kit(const struct fft *fft, const struct kernels *kernels, size_t sample_bytes)
{
    const size_t blocks = fft_blocks(fft);
    return (struct parts_kit){.fft = fft,
                              .kernels = kernels,
                              .sample_bytes = sample_bytes,
                              .block = fft_size(fft) / 2,
                              .blocks = blocks,
                              .tiles = (blocks + PARTS_TILE - 1) / PARTS_TILE};
}

size_t parts_bytes(size_t blocks, size_t count)
{
    return size_mul(size_mul((blocks + PARTS_TILE - 1) / PARTS_TILE, PIECE_BYTES), count);
}

// Blocks of a tile: the last one may be short.
static size_t tile_width(const struct parts_kit *kit, size_t tile)
{
    const size_t left = kit->blocks - tile * PARTS_TILE;
    return left < PARTS_TILE ? left : PARTS_TILE;
}

static char *piece(const struct parts *parts, size_t tile, size_t index)
{
    return parts->tiles + (tile * parts->count + index) * PIECE_BYTES;
}

struct parts_work parts_work_cut(const struct parts_kit *kit, struct arena *arena)
{
    struct parts_work work;
    work.samples = arena_take(arena, fft_size(kit->fft) * kit->sample_bytes);
    work.spectrum = arena_take(arena, fft_spectrum_bytes(kit->fft));
    work.scratch = arena_take(arena, fft_scratch_bytes(kit->fft));
    return work;
}

void parts_forward(const struct parts_kit *kit, const struct parts *parts, size_t index, struct parts_work *work)
{
    memset(work->samples + kit->block * kit->sample_bytes, 0, kit->block * kit->sample_bytes);
    fft_forward(kit->fft, work->spectrum, work->samples, work->scratch);
    for (size_t tile = 0; tile < kit->tiles; tile++)
        memcpy(piece(parts, tile, index), work->spectrum + tile * PIECE_BYTES,
               tile_width(kit, tile) * 2 * SPECTRUM_BLOCK_BYTES);
}

void parts_inverse(const struct parts_kit *kit, const struct parts *parts, size_t index, struct parts_work *work)
{
    for (size_t tile = 0; tile < kit->tiles; tile++)
        memcpy(work->spectrum + tile * PIECE_BYTES, piece(parts, tile, index),
               tile_width(kit, tile) * 2 * SPECTRUM_BLOCK_BYTES);
    fft_inverse(kit->fft, work->samples, work->spectrum, work->scratch);
    const size_t scalar = kit->kernels->f64 ? 8 : 4;
    kit->kernels->scale(work->samples, work->samples, 1 / fft_gain(kit->fft), kit->block * kit->sample_bytes / scalar);
}

struct shift {
    const struct parts *parts;
    size_t from, count;
};

static void shift_tile(void *context, size_t tile, int worker)
{
    (void)worker;
    const struct shift *shift = context;
    memmove(piece(shift->parts, tile, 0), piece(shift->parts, tile, shift->from), shift->count * PIECE_BYTES);
}

void parts_shift(const struct parts_kit *kit, const struct parts *parts, size_t from, size_t count, int threads)
{
    struct shift shift = {parts, from, count};
    if (from && count) thread_loop(threads, kit->tiles, shift_tile, &shift);
}

size_t parts_sum_bytes(size_t left_count)
{
    return size_mul(size_add(left_count, 1), PIECE_BYTES);
}

size_t parts_slot(const struct pairs *pairs, size_t i)
{
    return pairs->lags ? i : i + 1;
}

// A tile of left's spectra as the sums walk through it: last to first, or for lags conjugated.
static void arrange(const struct pairs *pairs, size_t tile, char *work)
{
    const struct parts *left = &pairs->left;
    const size_t width = tile_width(pairs->kit, tile);
    for (size_t i = 0; i < left->count; i++) {
        char *to = work + i * PIECE_BYTES;
        memcpy(to, piece(left, tile, pairs->lags ? i : left->count - 1 - i), width * 2 * SPECTRUM_BLOCK_BYTES);
        if (pairs->lags) fft_conjugate(pairs->kit->kernels->f64, to, width);
    }
}

// A tile of output block q.
static void sum_block(const struct pairs *pairs, size_t tile, ptrdiff_t q, char *y, char *work)
{
    const struct kernels *kernels = pairs->kit->kernels;
    const size_t width = tile_width(pairs->kit, tile), n_left = pairs->left.count;
    // Right's block j meets the arranged left's spectrum j + shift.
    const ptrdiff_t shift = pairs->lags ? -q : (ptrdiff_t)n_left - 1 - q;
    ptrdiff_t j = pairs->right_first, end = j + (ptrdiff_t)pairs->right_count;
    if (j < -shift) j = -shift;
    if (end > (ptrdiff_t)n_left - shift) end = (ptrdiff_t)n_left - shift;
    char *spare = work + n_left * PIECE_BYTES;
    bool add = pairs->add;
    if (!add && j >= end) memset(y, 0, width * 2 * SPECTRUM_BLOCK_BYTES);
    for (size_t terms; j < end; j += (ptrdiff_t)terms, add = true) {
        terms = end - j < MOST_TERMS ? (size_t)(end - j) : MOST_TERMS;
        kernels->cmac(add ? spare : y, piece(&pairs->right, tile, (size_t)(j - pairs->right_first)), PARTS_TILE,
                      work + (size_t)(j + shift) * PIECE_BYTES, PARTS_TILE, terms, width);
        if (add) kernels->add(y, spare, width * 2 * SPECTRUM_BLOCK_BYTES / (kernels->f64 ? 8 : 4));
    }
}

// One task: a tile of all output blocks. A sum S_q reaches from the start of block q to the end of block q + 1; what it
// has in there is moved to the start and joins S_(q+1). For lags S_t reaches back into block t - 1.
static void sum_tile(void *context, size_t tile, int worker)
{
    const struct pairs *pairs = context;
    const struct parts *out = &pairs->out;
    char *work = pairs->work + (size_t)worker * parts_sum_bytes(pairs->left.count);
    const ptrdiff_t first = pairs->lags ? pairs->first : pairs->first - 1;
    arrange(pairs, tile, work);
    for (size_t i = 0; i <= pairs->count; i++) sum_block(pairs, tile, first + (ptrdiff_t)i, piece(out, tile, i), work);
    for (size_t i = 0; pairs->gather && i < pairs->count; i++) {
        const size_t to = pairs->lags ? i : pairs->count - i, from = pairs->lags ? i + 1 : to - 1;
        fft_add_turned(pairs->kit->fft, piece(out, tile, to), piece(out, tile, from), tile * PARTS_TILE,
                       tile_width(pairs->kit, tile), !pairs->lags);
    }
}

void parts_sum(struct pairs *pairs, int threads)
{
    thread_loop(threads, pairs->kit->tiles, sum_tile, pairs);
}
