// SPDX-License-Identifier: MIT
// What one slice of work does.
#include "work.h"
#include "kernels/kernels.h"
#include "stream/stream.h"

#include <string.h>

enum { TILES_AHEAD = 32 }; // 4 KiB: some hundred products

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

static size_t place_of(const struct slice *at)
{
    return place_in_bundle(level_of(at), state_of(at)->progress->block);
}

static char *spectrum_of(const struct slice *at)
{
    return state_of(at)->spectrum + at->chain * work_of(at)->pitch * TILE_BYTES;
}

// Tile 0 of a slot of the chain's input.
static char *slot_at(const struct slice *at, size_t slot)
{
    const size_t tiles = at->chain * work_of(at)->pitch * level_row(level_of(at)) + slot;
    return state_of(at)->slots + tiles * TILE_BYTES;
}

// Transforms a part of an input's current window into the slot of the oldest spectrum, unless that
// is silence.
static void transform_slice(const struct slice *at)
{
    const struct level *level = level_of(at);
    const struct work *work = work_of(at);
    const struct level_state *state = state_of(at);
    if (state->quiet[at->chain] > 0) return;
    const size_t ring = plan_of(at)->ring;
    const struct history *history =
        &((const struct partitioned_stream *)at->stream->state)->history;
    // The window's first frame; before the stream's begin the ring holds zeros.
    const uint64_t first = (state->progress->block + 1) * level->hop + 2 * ring - level->n;
    fft_forward_apart(work->fft, slot_at(at, state->progress->block % level_slots(level)),
                      level_row(level) * TILE_BYTES, spectrum_of(at),
                      history_at(history, &at->stream->plan->shape, at->chain, first % ring),
                      state->scratch + at->chain * fft_scratch_bytes(work->fft),
                      slice_of(&work->transform, at->number));
}

// Silence instead, and the copy of the slot that has one.
static void store_slice(const struct slice *at)
{
    const struct level *level = level_of(at);
    const size_t slots = level_slots(level), row = level_row(level),
                 quiet = state_of(at)->quiet[at->chain];
    const struct fft_steps tiles =
        slice_of(&work_of(at)->store, at->number - work_of(at)->transform.slices);
    if (quiet > slots) return; // this slot holds silence already
    const size_t slot = state_of(at)->progress->block % slots;
    char *own = slot_at(at, slot), *copy = slot_at(at, slot + slots);
    for (size_t tile = tiles.first; tile < tiles.end; tile++) {
        if (quiet) memset(own + tile * row * TILE_BYTES, 0, TILE_BYTES);
        if (slot + slots < row)
            memcpy(copy + tile * row * TILE_BYTES, own + tile * row * TILE_BYTES, TILE_BYTES);
    }
}

// Points the products of one section of an output.
static size_t point_output(const struct partita_stream *stream, size_t i, size_t section,
                           struct hearing *hearing, size_t out)
{
    const struct partitioned *partitioned = stream->plan->state;
    const struct partitioned_filter *cells = hearing->filter->state;
    const struct level *level = &partitioned->layout.level[i];
    const struct level_state *state = &((const struct partitioned_stream *)stream->state)->level[i];
    const size_t row = level_row(level), input = partitioned->work[i].pitch * row * TILE_BYTES;
    struct cmac_line *lines = hearing->section[section].lines + cells->first_cell[out];
    size_t n = 0;
    for (size_t c = cells->first_cell[out]; c < cells->first_cell[out + 1]; c++) {
        const struct cell *cell = &cells->cells[c];
        const struct cell_section *own = &cell->level[i][section];
        if (own->count == 0 || state->quiet[cell->in] >= level_slots(level)) continue;
        lines[n++] = (struct cmac_line){.x = state->slots + cell->in * input,
                                        .h = own->spectra,
                                        .first = own->first,
                                        .count = own->count,
                                        .x_tile = row,
                                        .h_tile = own->stride};
    }
    return hearing->section[section].n_lines[out] = n;
}

void work_point(const struct partita_stream *stream, size_t i, size_t which,
                const struct partita_filter *filter)
{
    struct hearing *hearing =
        &((struct partitioned_stream *)stream->state)->level[i].hearing[which];
    hearing->filter = filter;
    for (size_t out = 0; out < stream->plan->shape.out_channels; out++) {
        size_t n = 0;
        for (size_t s = 0; s < SECTIONS; s++) n += point_output(stream, i, s, hearing, out);
        hearing->any[out] = n > 0;
    }
}

// Of the bits that say what the sums hold: those of a share's sums for `sums` blocks, the first one
// at a place.
static unsigned share_bits(const struct level *level, size_t share, size_t place, size_t sums)
{
    unsigned bits = 0;
    for (size_t k = 0; k < sums; k++)
        bits |= 1U << (share * MAX_BUNDLE + place_in_bundle(level, place + k));
    return bits;
}

// What the products with the block at a place fill, and what is taken with that block.
static unsigned filled_bits(const struct level *level, size_t place)
{
    unsigned bits = 0;
    for (size_t share = 0; share < level->bundle; share++) {
        struct turn turns[SECTIONS];
        const size_t n = level_turns(level, place_in_bundle(level, place - share), turns);
        for (size_t i = 0; i < n; i++) bits |= share_bits(level, share, place, turns[i].sums);
    }
    return bits;
}

static unsigned taken_bits(const struct level *level, size_t place)
{
    unsigned bits = 0;
    for (size_t share = 0; share < level->bundle; share++)
        bits |= share_bits(level, share, place, 1);
    return bits;
}

void work_prepare(const struct partita_stream *stream, size_t i)
{
    const struct level *level = &((const struct partitioned *)stream->plan->state)->layout.level[i];
    const struct level_state *state = &((const struct partitioned_stream *)stream->state)->level[i];
    const size_t outputs = stream->plan->shape.out_channels,
                 place = place_in_bundle(level, state->progress->block);
    const unsigned filled = filled_bits(level, place), taken = taken_bits(level, place);
    for (size_t which = 0; which < (state->progress->twice ? 2 : 1); which++)
        for (size_t out = 0; out < outputs; out++) {
            const size_t at =
                (which ? 1 - state->progress->set : state->progress->set) * outputs + out;
            state->held[at] = state->kept[at];
            state->kept[at] =
                (uint16_t)((state->held[at] | (state->hearing[which].any[out] ? filled : 0)) &
                           ~taken);
        }
}

// The set of sums and outputs of the block's first or second filter.
static size_t set_of(const struct slice *at, size_t which)
{
    const size_t set = state_of(at)->progress->set;
    return which ? 1 - set : set;
}

static char *sum_of(const struct slice *at, size_t which, size_t place, size_t out)
{
    const struct level *level = level_of(at);
    const size_t first = (set_of(at, which) * level->bundle + place_in_bundle(level, place));
    return state_of(at)->sum +
           (first * at->stream->plan->shape.out_channels + out) * work_of(at)->pitch * TILE_BYTES;
}

// One output's products for some tiles of a share by one of the filters.
static void add_products(const struct slice *at, size_t which, size_t out, size_t share,
                         struct fft_steps tiles)
{
    const struct level *level = level_of(at);
    const struct level_state *state = state_of(at);
    const struct hearing *hearing = &state->hearing[which];
    const size_t first =
        ((const struct partitioned_filter *)hearing->filter->state)->first_cell[out];
    const size_t slots = level_slots(level), place = place_of(at),
                 age = place_in_bundle(level, place - share);
    unsigned held = state->held[set_of(at, which) * at->stream->plan->shape.out_channels + out];
    void *y[CMAC_SUMS];
    for (size_t k = 0; k < level->bundle; k++) y[k] = sum_of(at, which, place + k, out);
    struct turn turns[SECTIONS];
    const size_t n = level_turns(level, age, turns);
    for (size_t i = 0; i < n; i++) {
        struct cmac_terms terms = {.slots = slots,
                                   .newest = state->progress->block % slots,
                                   .multiple = level->multiple,
                                   .sums = turns[i].sums,
                                   .ahead = level->far ? TILES_AHEAD : 0};
        for (size_t k = 0; k < turns[i].sums; k++)
            terms.fresh[k] = !(held & share_bits(level, share, place + k, 1));
        at->stream->plan->kernels->cmac_lines(
            y, &terms, hearing->section[turns[i].section].lines + first,
            hearing->section[turns[i].section].n_lines[out], tiles.first, tiles.end);
        held |= share_bits(level, share, place, turns[i].sums);
    }
}

// Where an output hears nothing any more, its sum may be complete in some shares and not begun in
// others.
static void clear_sum(const struct slice *at, size_t which, size_t out, size_t share,
                      struct fft_steps tiles)
{
    const struct level *level = level_of(at);
    const size_t place = place_of(at);
    const unsigned held =
        state_of(at)->held[set_of(at, which) * at->stream->plan->shape.out_channels + out];
    if (!(held & taken_bits(level, place)) || held & share_bits(level, share, place, 1)) return;
    memset(sum_of(at, which, place, out) + tiles.first * TILE_BYTES, 0,
           (tiles.end - tiles.first) * TILE_BYTES);
}

// So many tiles at a time that what they need of the inputs stays in the cache for the next output.
static size_t tiles_at_once(const struct slice *at)
{
    enum { NEAR_BYTES = 1 << 16 };
    const size_t bytes =
        at->stream->plan->shape.in_channels * level_slots(level_of(at)) * TILE_BYTES;
    return bytes < NEAR_BYTES ? NEAR_BYTES / bytes : 1;
}

// Products of some tiles of a share for all outputs.
static void multiply_share(const struct slice *at, size_t share, struct fft_steps all)
{
    const struct level_state *state = state_of(at);
    const size_t filters = state->progress->twice ? 2 : 1,
                 outputs = at->stream->plan->shape.out_channels;
    const size_t step = filters * outputs > 1 ? tiles_at_once(at) : work_of(at)->tiles;
    for (struct fft_steps tiles = {.first = all.first}; tiles.first < all.end;
         tiles.first = tiles.end) {
        tiles.end = all.end - tiles.first < step ? all.end : tiles.first + step;
        for (size_t out = 0; out < outputs; out++)
            for (size_t which = 0; which < filters; which++)
                if (state->hearing[which].any[out]) add_products(at, which, out, share, tiles);
                else clear_sum(at, which, out, share, tiles);
    }
}

// Products of the same part of every share.
static void product_slice(const struct slice *at)
{
    const struct work *work = work_of(at);
    const size_t length = work->stage[STAGE_PRODUCTS].length;
    const struct fft_steps part = slice_of(&work->product, at->chain * length + at->number);
    for (size_t share = 0; share < level_of(at)->bundle; share++) {
        const size_t begin = share * work->product.units, end = begin + part.end;
        multiply_share(
            at, share,
            (struct fft_steps){begin + part.first, end < work->tiles ? end : work->tiles});
    }
}

static char *outputs_of(const struct slice *at, size_t which)
{
    const struct level_state *state = state_of(at);
    const struct shape *shape = &at->stream->plan->shape;
    const size_t first = 2 * set_of(at, which) + state->progress->block % 2;
    return state->out +
           (first * shape->out_channels + at->chain) * level_of(at)->n * shape->sample_bytes;
}

// In place of a part of the inverse transform.
static void silence_outputs(const struct slice *at, char *out)
{
    const struct level *level = level_of(at);
    const size_t bytes = at->stream->plan->shape.sample_bytes,
                 parts = work_of(at)->transform.slices;
    const size_t first = level->hop * at->number / parts,
                 end = level->hop * (at->number + 1) / parts;
    memset(out + (level->n - level->hop + first) * bytes, 0, (end - first) * bytes);
}

// A part of an output's inverse transforms, one for each filter.
static void inverse_slice(const struct slice *at)
{
    const struct level_state *state = state_of(at);
    const struct work *work = work_of(at);
    const size_t place = place_of(at), outputs = at->stream->plan->shape.out_channels;
    for (size_t which = 0; which < (state->progress->twice ? 2 : 1); which++) {
        const unsigned held = state->held[set_of(at, which) * outputs + at->chain];
        char *scratch =
            state->scratch + (which * outputs + at->chain) * fft_scratch_bytes(work->fft);
        if (!state->hearing[which].any[at->chain] && !(held & taken_bits(level_of(at), place)))
            silence_outputs(at, outputs_of(at, which));
        else
            fft_inverse_steps(work->fft, outputs_of(at, which), sum_of(at, which, place, at->chain),
                              scratch, slice_of(&work->transform, at->number), true);
    }
}

void work_slice(const struct slice *at)
{
    if (at->stage == STAGE_INVERSE) inverse_slice(at);
    else if (at->stage == STAGE_PRODUCTS) product_slice(at);
    else if (at->number < work_of(at)->transform.slices) transform_slice(at);
    else store_slice(at);
}
