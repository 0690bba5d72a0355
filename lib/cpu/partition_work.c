// SPDX-License-Identifier: MIT
// What one slice of work does.
#include "partition_work.h"

#include <string.h>

static const struct partitioned *plan_of(const struct slice *at)
{
    return at->stream->plan->state;
}

static const struct level *level_of(const struct slice *at)
{
    return &plan_of(at)->layout.level[at->i];
}

static const struct work *work_of(const struct slice *at)
{
    return &plan_of(at)->work[at->i];
}

static struct level_state *state_of(const struct slice *at)
{
    return &((struct partitioned_stream *)at->stream->state)->level[at->i];
}

// Part `number` of `count` about equal parts of `total`.
static struct fft_steps part_of(size_t total, size_t number, size_t count)
{
    return (struct fft_steps){total * number / count, total * (number + 1) / count};
}

static char *spectrum_of(const struct slice *at)
{
    return state_of(at)->spectrum + at->chain * work_of(at)->tiles * TILE_BYTES;
}

static char *scratch_of(const struct slice *at)
{
    return state_of(at)->scratch + at->chain * fft_scratch_bytes(work_of(at)->fft);
}

// Transforms a part of an input's current window, unless that is silence.
static void transform_slice(const struct slice *at)
{
    const struct level *level = level_of(at);
    const struct work *work = work_of(at);
    const struct level_state *state = state_of(at);
    if (state->quiet[at->chain] > 0) return;
    const size_t ring = plan_of(at)->ring;
    // The window's first frame; before the stream's begin the ring holds zeros.
    const uint64_t first = (state->progress->block + 1) * level->hop + 2 * ring - level->n;
    fft_forward_steps(work->fft, spectrum_of(at), ring_at(at->stream, at->chain, first % ring), scratch_of(at),
                      part_of(fft_steps(work->fft), at->number, work->transform_slices));
}

// Stores a part of an input's new spectrum in the slot of the oldest one.
static void store_slice(const struct slice *at)
{
    const struct work *work = work_of(at);
    const struct level_state *state = state_of(at);
    const size_t slots = level_slots(level_of(at)), quiet = state->quiet[at->chain];
    const struct fft_steps tiles = part_of(work->tiles, at->number - work->transform_slices, work->store_slices);
    if (quiet > slots) return; // this slot holds silence already
    char *slot = state->slots + (at->chain * work->tiles * slots + state->progress->block % slots) * TILE_BYTES;
    for (size_t tile = tiles.first; tile < tiles.end; tile++) {
        if (quiet) memset(slot + tile * slots * TILE_BYTES, 0, TILE_BYTES);
        else memcpy(slot + tile * slots * TILE_BYTES, spectrum_of(at) + tile * TILE_BYTES, TILE_BYTES);
    }
}

// The lines of one cell: its partitions' spectra against those of the blocks that they meet, the newest block with the
// nearest partition; two lines where the ring of slots wraps.
static size_t point_lines(const struct slice *at, const struct cell *cell, struct cmac_line *lines)
{
    const struct level *level = level_of(at);
    const struct level_state *state = state_of(at);
    const struct cell_level *own = &cell->level[at->i];
    const size_t slots = level_slots(level), newest = state->progress->block % slots;
    const char *x = state->slots + cell->in * work_of(at)->tiles * slots * TILE_BYTES;
    const size_t end = own->first + own->count, wrap = newest / level->multiple + 1; // first partition that wraps
    size_t n = 0;
    for (size_t p = own->first; p < end;) {
        const size_t stop = p < wrap && wrap < end ? wrap : end;
        const size_t slot = newest + (p < wrap ? 0 : slots) - p * level->multiple;
        lines[n++] = (struct cmac_line){.x = x + slot * TILE_BYTES,
                                        .h = own->spectra + (p - own->first) * TILE_BYTES,
                                        .x_step = -(ptrdiff_t)level->multiple,
                                        .x_tile = slots,
                                        .h_tile = own->count,
                                        .terms = stop - p};
        p = stop;
    }
    return n;
}

static struct cmac_line *lines_of(const struct slice *at)
{
    return state_of(at)->lines + at->chain * 2 * at->stream->plan->shape.group_in;
}

// All lines of an output, cells that hear nothing but silence left out.
static void point_output(const struct slice *at, const struct partita_filter *filter)
{
    const struct partitioned_filter *cells = filter->state;
    struct level_state *state = state_of(at);
    size_t n = 0;
    for (size_t c = cells->first_cell[at->chain]; c < cells->first_cell[at->chain + 1]; c++)
        if (state->quiet[cells->cells[c].in] < level_slots(level_of(at)))
            n += point_lines(at, &cells->cells[c], lines_of(at) + n);
    state->n_lines[at->chain] = n;
}

static char *outputs_of(const struct slice *at, size_t set)
{
    const struct level_state *state = state_of(at);
    const struct shape *shape = &at->stream->plan->shape;
    const size_t which = 2 * set + state->progress->block % 2;
    return state->out + (which * shape->out_channels + at->chain) * level_of(at)->n * shape->sample_bytes;
}

// Output chain: products into the sum, then its inverse transform. Nothing but silence gives silence without either.
static void output_slice(const struct slice *at)
{
    const struct level *level = level_of(at);
    const struct work *work = work_of(at);
    const struct level_state *state = state_of(at);
    const bool second = at->number >= work->output;
    const size_t number = at->number - (second ? work->output : 0);
    const size_t set = second ? 1 - state->progress->set : state->progress->set;
    if (number == 0) point_output(at, state->filters[second]);
    const size_t n_lines = state->n_lines[at->chain];
    char *sum = state->sum + at->chain * work->tiles * TILE_BYTES, *out = outputs_of(at, set);
    if (number < work->product_slices) {
        const struct fft_steps tiles = part_of(work->tiles, number, work->product_slices);
        if (n_lines) at->stream->plan->kernels->cmac_lines(sum, lines_of(at), n_lines, tiles.first, tiles.end);
        return;
    }
    const size_t place = number - work->product_slices, bytes = at->stream->plan->shape.sample_bytes;
    const struct fft_steps frames = part_of(level->hop, place, work->transform_slices);
    if (n_lines)
        fft_inverse_steps(work->fft, out, sum, scratch_of(at),
                          part_of(fft_steps(work->fft), place, work->transform_slices), true);
    else memset(out + (level->n - level->hop + frames.first) * bytes, 0, (frames.end - frames.first) * bytes);
}

void work_slice(const struct slice *at, bool forward)
{
    if (!forward) output_slice(at);
    else if (at->number < work_of(at)->transform_slices) transform_slice(at);
    else store_slice(at);
}

void work_point(const struct partita_stream *stream, size_t i, size_t output)
{
    const struct slice at = {stream, i, output, 0};
    point_output(&at, stream->filter);
}
