// SPDX-License-Identifier: MIT
#include "parts.h"
#include "kernels/kernels.h"

#include <string.h>

enum {
    // Products summed in a row before they are rounded into a sum of sums: two short walks of
    // rounding errors instead of a long one.
    MOST_TERMS = 64,
    TASK_TILES = 16,      // at most, of all operands of a task, which
    TASK_BYTES = 1 << 18, // should lie in a core's cache
};

struct parts_kit parts_kit(const struct fft *fft, const struct kernels *kernels,
                           size_t sample_bytes)
{
    return (struct parts_kit){.fft = fft,
                              .kernels = kernels,
                              .sample_bytes = sample_bytes,
                              .block = fft_size(fft) / 2,
                              .tiles = fft_lines(fft)};
}

// From one tile to the next, in tiles: odd, so that a spectrum's tiles do not meet in the same sets
// of the cache.
static size_t pitch(size_t count)
{
    return size_add(count, PARTS_MARGIN) | 1;
}

size_t parts_bytes(size_t tiles, size_t count)
{
    return size_mul(SPECTRUM_LINE_BYTES, size_add(size_mul(tiles, pitch(count)), 2 * PARTS_MARGIN));
}

// Places before spectrum 0 have negative indices; they are the last ones of the tile before.
static char *place(const struct parts *parts, size_t tile, ptrdiff_t index)
{
    return parts->tiles +
           (tile * pitch(parts->count) + (size_t)(PARTS_MARGIN + index)) * SPECTRUM_LINE_BYTES;
}

struct parts_work parts_work_cut(const struct parts_kit *kit, struct arena *arena)
{
    struct parts_work work;
    work.samples = arena_take(arena, fft_size(kit->fft) * kit->sample_bytes);
    work.spectrum = arena_take(arena, fft_spectrum_bytes(kit->fft));
    work.scratch = arena_take(arena, fft_scratch_bytes(kit->fft));
    return work;
}

void parts_forward(const struct parts_kit *kit, const struct parts *parts, size_t index,
                   struct parts_work *work)
{
    const struct fft_steps all = {0, fft_steps(kit->fft)};
    memset(work->samples + kit->block * kit->sample_bytes, 0, kit->block * kit->sample_bytes);
    fft_forward_apart(kit->fft, place(parts, 0, (ptrdiff_t)index), pitch(parts->count) * SPECTRUM_LINE_BYTES,
                      work->spectrum, work->samples, work->scratch, all);
}

void parts_inverse(const struct parts_kit *kit, void *spectrum, struct parts_work *work)
{
    fft_inverse(kit->fft, work->samples, spectrum, work->scratch);
    const size_t scalar = kit->kernels->f64 ? 8 : 4;
    kit->kernels->scale(work->samples, work->samples, 1 / fft_gain(kit->fft),
                        kit->block * kit->sample_bytes / scalar);
}

struct margins {
    const struct parts *parts;
    size_t used;
};

static void clear_margins(void *context, size_t tile, int worker)
{
    (void)worker;
    const struct margins *margins = context;
    const struct parts *parts = margins->parts;
    if (tile == 0) memset(place(parts, 0, -PARTS_MARGIN), 0, PARTS_MARGIN * SPECTRUM_LINE_BYTES);
    memset(place(parts, tile, (ptrdiff_t)margins->used), 0, PARTS_MARGIN * SPECTRUM_LINE_BYTES);
    memset(place(parts, tile + 1, -PARTS_MARGIN), 0, PARTS_MARGIN * SPECTRUM_LINE_BYTES);
}

void parts_margins(const struct parts_kit *kit, const struct parts *parts, size_t used, int threads)
{
    struct margins margins = {parts, used};
    thread_loop(threads, kit->tiles, clear_margins, &margins);
}

struct shift {
    const struct parts *parts;
    size_t from, count;
};

static void shift_tile(void *context, size_t tile, int worker)
{
    (void)worker;
    const struct shift *shift = context;
    memmove(place(shift->parts, tile, 0), place(shift->parts, tile, (ptrdiff_t)shift->from),
            shift->count * SPECTRUM_LINE_BYTES);
}

void parts_shift(const struct parts_kit *kit, const struct parts *parts, size_t from, size_t count,
                 int threads)
{
    struct shift shift = {parts, from, count};
    if (from && count) thread_loop(threads, kit->tiles, shift_tile, &shift);
}

size_t parts_sum_bytes(size_t left_count)
{
    return size_mul(size_add(left_count, CMAC_SUMS), TASK_TILES * SPECTRUM_LINE_BYTES);
}

// Tiles of a task: what they hold of all operands stays near.
static size_t task_tiles(const struct pairs *pairs)
{
    const size_t tile = (pairs->left.count + pairs->right_count + pairs->count + 1) * SPECTRUM_LINE_BYTES;
    const size_t tiles = TASK_BYTES / tile;
    return tiles < 1 ? 1 : tiles < TASK_TILES ? tiles : TASK_TILES;
}

static char *spectrum(const struct pairs *pairs, size_t i)
{
    return pairs->out + i * fft_spectrum_bytes(pairs->kit->fft);
}

char *parts_out(const struct pairs *pairs, size_t i)
{
    return spectrum(pairs, pairs->lags ? i : i + 1);
}

// Some tiles of all outputs: a task.
struct task {
    const struct pairs *pairs;
    size_t first, tiles;
    struct cmac_path left; // its tiles of the left operand
    char *spare;           // [CMAC_SUMS][tiles]
};

// Left's tiles as the sums walk through them while they go down on the right: for lags conjugated
// and last to first.
static struct cmac_path left_line(const struct pairs *pairs, size_t first, size_t tiles, char *work)
{
    const struct parts *left = &pairs->left;
    if (!pairs->lags)
        return (struct cmac_path){.h = place(left, first, 0), .h_pitch = pitch(left->count)};
    for (size_t tile = 0; tile < tiles; tile++)
        for (size_t i = 0; i < left->count; i++) {
            char *to = work + (tile * left->count + left->count - 1 - i) * SPECTRUM_LINE_BYTES;
            memcpy(to, place(left, first + tile, (ptrdiff_t)i), SPECTRUM_LINE_BYTES);
            fft_conjugate(pairs->kit->kernels->f64, to, 1);
        }
    return (struct cmac_path){.h = work, .h_pitch = left->count};
}

// Left's places from .. end-1 in `sums` sums; place i of the first one meets right's spectrum `top`
// - i.
static void add_terms(const struct task *task, ptrdiff_t top, size_t sums, ptrdiff_t from,
                      ptrdiff_t end, void *const *y)
{
    const struct parts *right = &task->pairs->right;
    const struct cmac_terms terms = {.slots = pitch(right->count),
                                     .newest = (size_t)(PARTS_MARGIN + top - from),
                                     .multiple = 1,
                                     .sums = sums,
                                     .fresh = {true, true, true, true}};
    struct cmac_path line = task->left;
    line.x = place(right, task->first, -PARTS_MARGIN);
    line.x_pitch = terms.slots;
    line.h = (const char *)line.h + (size_t)from * SPECTRUM_LINE_BYTES;
    line.count = (size_t)(end - from);
    task->pairs->kit->kernels->cmac_partitions(y, &terms, &line, 1, 0, task->tiles);
}

// The task's tiles of output blocks q .. q+sums-1, the first being spectrum i of the outputs.
static void sum_blocks(const struct task *task, ptrdiff_t q, size_t i, size_t sums)
{
    const struct pairs *pairs = task->pairs;
    const struct kernels *kernels = pairs->kit->kernels;
    const ptrdiff_t n_left = (ptrdiff_t)pairs->left.count, n_right = (ptrdiff_t)pairs->right_count;
    const ptrdiff_t top = q - pairs->right_first + (pairs->lags ? n_left - 1 : 0);
    // What any of the sums meets; what only some of them do meets zeros in the others.
    const ptrdiff_t from = top < n_right ? 0 : top - n_right + 1;
    const ptrdiff_t end = top + (ptrdiff_t)sums < n_left ? top + (ptrdiff_t)sums : n_left;
    void *y[CMAC_SUMS], *spare[CMAC_SUMS];
    for (size_t k = 0; k < sums; k++) {
        y[k] = spectrum(pairs, i + k) + task->first * SPECTRUM_LINE_BYTES;
        spare[k] = task->spare + k * task->tiles * SPECTRUM_LINE_BYTES;
        if (!pairs->add && from >= end) memset(y[k], 0, task->tiles * SPECTRUM_LINE_BYTES);
    }
    // Segments begin where they do for every output: its bits must not depend on what is summed
    // beside it.
    bool fresh = !pairs->add;
    for (ptrdiff_t at = from, next; at < end; at = next, fresh = false) {
        next = (at / MOST_TERMS + 1) * MOST_TERMS;
        if (next > end) next = end;
        add_terms(task, top, sums, at, next, fresh ? y : spare);
        for (size_t k = 0; !fresh && k < sums; k++)
            kernels->add(y[k], spare[k], task->tiles * SPECTRUM_LINE_BYTES / (kernels->f64 ? 8 : 4));
    }
}

// One task. A sum S_q reaches from the start of block q to the end of block q + 1; what it has in
// there is moved to the start and joins S_(q+1). For lags S_t reaches back into block t - 1.
static void sum_tiles(void *context, size_t index, int worker)
{
    const struct pairs *pairs = context;
    const size_t most = task_tiles(pairs), first = index * most, left = pairs->kit->tiles - first;
    const size_t tiles = left < most ? left : most;
    const ptrdiff_t q = pairs->lags ? pairs->first : pairs->first - 1;
    char *work = pairs->work + (size_t)worker * parts_sum_bytes(pairs->left.count);
    const struct task task = {pairs, first, tiles, left_line(pairs, first, tiles, work),
                              work + pairs->left.count * TASK_TILES * SPECTRUM_LINE_BYTES};
    for (size_t i = 0, sums; i <= pairs->count; i += sums) {
        const size_t rest = pairs->count + 1 - i;
        sums = rest >= 4 ? 4 : rest >= 2 ? 2 : 1;
        sum_blocks(&task, q + (ptrdiff_t)i, i, sums);
    }
    for (size_t i = 0; pairs->gather && i < pairs->count; i++) {
        const size_t to = pairs->lags ? i : pairs->count - i, from = pairs->lags ? i + 1 : to - 1;
        fft_add_rotated(pairs->kit->fft, spectrum(pairs, to) + first * SPECTRUM_LINE_BYTES,
                        spectrum(pairs, from) + first * SPECTRUM_LINE_BYTES, first, tiles, !pairs->lags);
    }
}

void parts_sum(struct pairs *pairs, int threads)
{
    const size_t most = task_tiles(pairs);
    thread_loop(threads, (pairs->kit->tiles + most - 1) / most, sum_tiles, pairs);
}
