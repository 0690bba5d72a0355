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
                      slice_of(&work->transform, at->number));
}

// Stores a part of an input's new spectrum in the slot of the oldest one.
static void store_slice(const struct slice *at)
{
    const struct work *work = work_of(at);
    const struct level_state *state = state_of(at);
    const size_t slots = level_slots(level_of(at)), quiet = state->quiet[at->chain];
    const struct fft_steps tiles = slice_of(&work->store, at->number - work->transform.slices);
    if (quiet > slots) return; // this slot holds silence already
    char *slot = state->slots + (at->chain * work->tiles * slots + state->progress->block % slots) * TILE_BYTES;
    for (size_t tile = tiles.first; tile < tiles.end; tile++) {
        if (quiet) memset(slot + tile * slots * TILE_BYTES, 0, TILE_BYTES);
        else memcpy(slot + tile * slots * TILE_BYTES, spectrum_of(at) + tile * TILE_BYTES, TILE_BYTES);
    }
}

static struct cmac_line *lines_of(const struct slice *at)
{
    return state_of(at)->lines + at->chain * CELL_LINES * at->stream->plan->shape.group_in;
}

// The lines of a cell's partitions first .. end-1: their spectra against those of the blocks that they meet, the newest
// block with the nearest partition; a new line where the ring of slots wraps, for this block or for the next one. Of
// that one partition 0 meets nothing yet: silence.
static size_t point_lines(const struct slice *at, const struct cell *cell, size_t first, size_t end,
                          struct cmac_line *lines)
{
    const struct level *level = level_of(at);
    const struct partitioned_stream *stream = at->stream->state;
    const struct cell_level *own = &cell->level[at->i];
    const size_t slots = level_slots(level), newest = state_of(at)->progress->block % slots;
    const char *x = state_of(at)->slots + cell->in * work_of(at)->tiles * slots * TILE_BYTES;
    size_t n = 0, terms;
    for (size_t p = first; p < end; p += terms) {
        const size_t back = p * level->multiple; // blocks
        const size_t slot = newest >= back ? newest - back : newest + slots - back;
        const size_t next = slot + 1 < slots ? slot + 1 : 0;
        terms = p == 0 ? 1 : 1 + (slot < next ? slot : next) / level->multiple;
        if (terms > end - p) terms = end - p;
        lines[n++] = (struct cmac_line){.x = x + slot * TILE_BYTES,
                                        .h = own->spectra + (p - own->first) * TILE_BYTES,
                                        .x_next = p == 0 ? stream->silence : x + next * TILE_BYTES,
                                        .still = p == 0,
                                        .x_step = -(ptrdiff_t)level->multiple,
                                        .x_tile = slots,
                                        .h_tile = own->stride,
                                        .terms = terms};
    }
    return n;
}

// Those of the partitions whose turn it is with the current block.
static size_t point_cell(const struct slice *at, const struct cell *cell, struct cmac_line *lines)
{
    const struct level *level = level_of(at);
    const struct cell_level *own = &cell->level[at->i];
    const size_t first = own->first, end = own->first + own->count, split = level_split(level);
    if (!level->paired) return point_lines(at, cell, first, end, lines);
    if (place_in_pair(level, state_of(at)->progress->block) == 0)
        return point_lines(at, cell, first, end < split ? end : split, lines);
    const size_t n = first == 0 && end > 0 ? point_lines(at, cell, 0, 1, lines) : 0;
    return n + point_lines(at, cell, first > split ? first : split, end, lines + n);
}

// All lines of an output, cells that hear nothing but silence left out.
static void point_output(const struct slice *at, const struct partita_filter *filter)
{
    const struct partitioned_filter *cells = filter->state;
    struct level_state *state = state_of(at);
    size_t n = 0;
    for (size_t c = cells->first_cell[at->chain]; c < cells->first_cell[at->chain + 1]; c++)
        if (state->quiet[cells->cells[c].in] < level_slots(level_of(at)))
            n += point_cell(at, &cells->cells[c], lines_of(at) + n);
    state->n_lines[at->chain] = n;
}

static char *outputs_of(const struct slice *at, size_t set)
{
    const struct level_state *state = state_of(at);
    const struct shape *shape = &at->stream->plan->shape;
    const size_t which = 2 * set + state->progress->block % 2;
    return state->out + (which * shape->out_channels + at->chain) * level_of(at)->n * shape->sample_bytes;
}

// Where a block of either place in a pair leaves sums for the block after it.
static size_t leaving(const struct slice *at, size_t set, size_t place)
{
    return (2 * set + place) * at->stream->plan->shape.out_channels + at->chain;
}

// Products for some tiles, and what the block before has left.
static void product_slice(const struct slice *at, size_t set, struct fft_steps tiles)
{
    const struct level_state *state = state_of(at);
    const struct kernels *kernels = at->stream->plan->kernels;
    const size_t n_lines = state->n_lines[at->chain], bytes = work_of(at)->tiles * TILE_BYTES;
    const size_t place = place_in_pair(level_of(at), state->progress->block), before = leaving(at, set, 1 - place);
    char *sum = state->sum + at->chain * bytes;
    if (!level_of(at)->paired) {
        kernels->cmac_lines(sum, lines_of(at), n_lines, tiles.first, tiles.end);
        return;
    }
    kernels->cmac_pairs(sum, state->next + leaving(at, set, place) * bytes, lines_of(at), n_lines, tiles.first,
                        tiles.end);
    if (state->silent[before]) return;
    kernels->add(sum + tiles.first * TILE_BYTES, state->next + before * bytes + tiles.first * TILE_BYTES,
                 (tiles.end - tiles.first) * TILE_BYTES / at->stream->plan->shape.scalar_bytes);
}

// In place of a part of the inverse transform.
static void silence_outputs(const struct slice *at, char *out, size_t part)
{
    const struct level *level = level_of(at);
    const size_t bytes = at->stream->plan->shape.sample_bytes, parts = work_of(at)->transform.slices;
    const size_t first = level->hop * part / parts, end = level->hop * (part + 1) / parts;
    memset(out + (level->n - level->hop + first) * bytes, 0, (end - first) * bytes);
}

// Output chain: products into the sum, then its inverse transform.
static void output_slice(const struct slice *at)
{
    const struct level_state *state = state_of(at);
    const struct work *work = work_of(at);
    const size_t place = place_in_pair(level_of(at), state->progress->block);
    const bool second = at->number >= work->output[place];
    const size_t number = at->number - (second ? work->output[place] : 0);
    const size_t set = second ? 1 - state->progress->set : state->progress->set;
    if (number == 0) {
        point_output(at, state->filters[second]);
        state->silent[leaving(at, set, place)] = state->n_lines[at->chain] == 0;
    }
    const bool idle =
        state->n_lines[at->chain] == 0 && (!level_of(at)->paired || state->silent[leaving(at, set, 1 - place)]);
    const size_t part = number - work->product[place].slices;
    if (number < work->product[place].slices) {
        if (!idle) product_slice(at, set, slice_of(&work->product[place], number));
    } else if (idle) {
        silence_outputs(at, outputs_of(at, set), part);
    } else {
        fft_inverse_steps(work->fft, outputs_of(at, set), state->sum + at->chain * work->tiles * TILE_BYTES,
                          scratch_of(at), slice_of(&work->transform, part), true);
    }
}

void work_slice(const struct slice *at, bool forward)
{
    if (!forward) output_slice(at);
    else if (at->number < work_of(at)->transform.slices) transform_slice(at);
    else store_slice(at);
}

void work_point(const struct partita_stream *stream, size_t i, size_t output)
{
    const struct slice at = {stream, i, output, 0};
    point_output(&at, stream->filter);
}
