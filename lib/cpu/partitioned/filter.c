// SPDX-License-Identifier: MIT
// Filters of cpu/partitioned: each cell's taps cut into the head and the partitions of every level,
// these transformed, cells and partitions of zeros left out, cells with the same taps stored once.
#include <string.h>

#include "geometry/samples.h"
#include "kernels/kernels.h"
#include "partitioned.h"
#include "stream/paths.h"

struct build {
    const struct partita_plan *plan;
    const struct partitioned_filter *base; // NULL: none
    struct path_source *sources;
    size_t n_sources;
    struct cell *cells;                                // as the sources
    char *row, *causal, *samples, *spectrum, *scratch; // [kernel], [span], [largest n], ...
    struct arena arena;                                // of the filter
};

// The taps that one partition holds; n may be 0 behind the filter's end.
static const char *partition_taps(const struct build *build, const struct level *level, size_t p,
                                  size_t *ret_n)
{
    const struct shape *shape = &build->plan->shape;
    const size_t taps = level->multiple * level->hop, first = level->first + p * taps,
                 span = shape->axis[0].span;
    *ret_n = first >= span ? 0 : span - first < taps ? span - first : taps;
    return build->causal + (*ret_n ? first : 0) * shape->tap_bytes;
}

// Which partitions of a level are not zero, section by section.
static void find_ranges(const struct build *build, const struct level *level,
                        struct cell_section ret[SECTIONS])
{
    size_t bounds[SECTIONS + 1], first = level->parts, end = 0, n;
    level_sections(level, bounds);
    for (size_t p = 0; p < level->parts; p++) {
        const char *taps = partition_taps(build, level, p, &n);
        if (taps_are_zero(build->plan, taps, n)) continue;
        if (p < first) first = p;
        end = p + 1;
    }
    for (size_t s = 0; s < SECTIONS; s++) {
        const size_t from = first > bounds[s] ? first : bounds[s],
                     to = end < bounds[s + 1] ? end : bounds[s + 1];
        ret[s] = (struct cell_section){.first = from, .count = to > from ? to - from : 0};
    }
}

// Transforms partition `p` of the range into its place among the tiles.
static void transform_partition(const struct build *build, size_t i, const struct cell_section *own,
                                size_t p)
{
    const struct partitioned *partitioned = build->plan->state;
    const struct level *level = &partitioned->layout.level[i];
    const struct work *work = &partitioned->work[i];
    const struct shape *shape = &build->plan->shape;
    const bool widen = shape->complex_signal && !shape->complex_taps;
    size_t n;
    const char *taps = partition_taps(build, level, own->first + p, &n);
    memset(build->samples, 0, level->n * shape->sample_bytes);
    samples_copy(build->samples, widen ? 2 : 1, taps, 1, n, shape->tap_bytes);
    build->plan->kernels->scale(build->samples, build->samples, 1 / fft_gain(work->fft),
                                n * (shape->complex_signal ? 2 : 1));
    fft_forward(work->fft, build->spectrum, build->samples, build->scratch);
    char *spectra = own->spectra + p * TILE_BYTES;
    for (size_t tile = 0; tile < work->tiles; tile++)
        memcpy(spectra + tile * own->stride * TILE_BYTES, build->spectrum + tile * TILE_BYTES,
               TILE_BYTES);
}

// Takes a section's spectra over from another filter.
static void copy_spectra(const struct build *build, size_t i, const struct cell_section *own,
                         const struct cell_section *old)
{
    const struct work *work = &((const struct partitioned *)build->plan->state)->work[i];
    for (size_t tile = 0; tile < work->tiles; tile++)
        memcpy(own->spectra + tile * own->stride * TILE_BYTES,
               old->spectra + tile * old->stride * TILE_BYTES, own->count * TILE_BYTES);
}

// What a cell consists of: taps of its head, and partitions of each level.
static void measure_cell(struct build *build, const struct path_source *source, struct cell *cell)
{
    const struct layout *layout = &((const struct partitioned *)build->plan->state)->layout;
    const size_t bytes = build->plan->shape.tap_bytes;
    *cell =
        source->fresh ? (struct cell){.head_taps = layout->head} : build->base->cells[source->kept];
    if (!source->fresh) return;
    path_causal_taps(&build->plan->shape, source->fresh, build->row, build->causal);
    while (cell->head_taps &&
           taps_are_zero(build->plan, build->causal + (cell->head_taps - 1) * bytes, 1))
        cell->head_taps--;
    for (size_t i = 0; i < layout->n_levels; i++)
        find_ranges(build, &layout->level[i], cell->level[i]);
}

static void fill_cell(struct build *build, const struct path_source *source,
                      const struct cell *cell, char *head)
{
    const struct layout *layout = &((const struct partitioned *)build->plan->state)->layout;
    const struct cell *kept = source->fresh ? NULL : &build->base->cells[source->kept];
    if (!kept) path_causal_taps(&build->plan->shape, source->fresh, build->row, build->causal);
    memcpy(head, kept ? kept->head : build->causal, cell->head_taps * build->plan->shape.tap_bytes);
    for (size_t i = 0; i < layout->n_levels * SECTIONS; i++) {
        const size_t level = i / SECTIONS, s = i % SECTIONS;
        const struct cell_section *own = &cell->level[level][s];
        if (kept) copy_spectra(build, level, own, &kept->level[level][s]);
        else
            for (size_t p = 0; p < own->count; p++) transform_partition(build, level, own, p);
    }
}

// The cells' places in one line of spectra for a section of a level.
static void place_spectra(struct build *build, size_t i, size_t section)
{
    const struct work *work = &((const struct partitioned *)build->plan->state)->work[i];
    size_t stride = 0, before = 0;
    for (size_t c = 0; c < build->n_sources; c++)
        if (build->sources[c].twin == c) stride += build->cells[c].level[i][section].count;
    char *spectra = arena_take(&build->arena, size_mul(stride, work->tiles * TILE_BYTES));
    for (size_t c = 0; c < build->n_sources; c++) {
        if (build->sources[c].twin != c) continue;
        struct cell_section *own = &build->cells[c].level[i][section];
        own->stride = stride;
        own->spectra = spectra ? spectra + before * TILE_BYTES : NULL;
        before += own->count;
    }
}

// All cells: measured, given their places in the arena, and filled unless it only counts.
static void build_cells(struct build *build)
{
    for (size_t c = 0; c < build->n_sources; c++)
        if (build->sources[c].twin == c) measure_cell(build, &build->sources[c], &build->cells[c]);
    const struct layout *layout = &((const struct partitioned *)build->plan->state)->layout;
    for (size_t i = 0; i < layout->n_levels * SECTIONS; i++)
        place_spectra(build, i / SECTIONS, i % SECTIONS);
    for (size_t c = 0; c < build->n_sources; c++) {
        struct cell *cell = &build->cells[c];
        const size_t twin = build->sources[c].twin;
        if (twin == c) {
            // A byte at least: the place tells cells apart.
            char *head =
                arena_take(&build->arena, cell->head_taps * build->plan->shape.tap_bytes + 1);
            if (head) fill_cell(build, &build->sources[c], cell, head);
            cell->head = head;
        } else {
            *cell = build->cells[twin];
        }
        cell->in = build->sources[c].in;
    }
}

static size_t input_of(const void *filter, size_t cell)
{
    return ((const struct partitioned_filter *)filter)->cells[cell].in;
}

static const void *contents_of(const void *filter, size_t cell)
{
    return ((const struct partitioned_filter *)filter)->cells[cell].head;
}

struct path_view partitioned_cells(const struct partita_filter *filter)
{
    const struct partitioned_filter *state = filter ? filter->state : NULL;
    return (struct path_view){state, state ? state->first_cell : NULL, input_of, contents_of};
}

// All that building needs besides the filter itself; counted, then cut.
static void cut_temporary(struct build *build, size_t most_sources, struct arena *arena)
{
    const struct partitioned *partitioned = build->plan->state;
    const struct shape *shape = &build->plan->shape;
    size_t samples = 0, spectrum = 0, scratch = 0;
    for (size_t i = 0; i < partitioned->layout.n_levels; i++) {
        const struct work *work = &partitioned->work[i];
        const size_t n = partitioned->layout.level[i].n * shape->sample_bytes,
                     tiles = work->tiles * TILE_BYTES;
        if (n > samples) samples = n;
        if (tiles > spectrum) spectrum = tiles;
        if (fft_scratch_bytes(work->fft) > scratch) scratch = fft_scratch_bytes(work->fft);
    }
    build->sources = arena_take(arena, size_mul(most_sources, sizeof *build->sources));
    build->cells = arena_take(arena, size_mul(most_sources, sizeof *build->cells));
    build->row = arena_take(arena, shape->axis[0].kernel * shape->tap_bytes);
    build->causal = arena_take(arena, shape->axis[0].span * shape->tap_bytes);
    build->samples = arena_take(arena, samples);
    build->spectrum = arena_take(arena, spectrum);
    build->scratch = arena_take(arena, scratch);
}

static struct partitioned_filter *cut_filter(struct build *build)
{
    const size_t outputs = build->plan->shape.out_channels;
    struct partitioned_filter *state = arena_take(&build->arena, sizeof *state);
    size_t *first = arena_take(&build->arena, (outputs + 1) * sizeof *first);
    struct cell *cells = arena_take(&build->arena, size_mul(build->n_sources, sizeof *cells));
    build_cells(build);
    if (!state) return NULL;
    for (size_t out = 0, c = 0; out <= outputs; out++) {
        while (c < build->n_sources && build->sources[c].out < out) c++;
        first[out] = c;
    }
    memcpy(cells, build->cells, build->n_sources * sizeof *cells);
    *state = (struct partitioned_filter){first, cells};
    return state;
}

enum partita_status partitioned_filter_create(struct partita_filter *filter,
                                              const struct partita_cell *cells, size_t n_cells,
                                              const struct partita_filter *base)
{
    const struct partita_plan *plan = filter->plan;
    const struct partitioned_filter *old = base ? base->state : NULL;
    const size_t most = size_add(n_cells, old ? old->first_cell[plan->shape.out_channels] : 0);
    const struct path_view kept = partitioned_cells(base);
    struct build build = {.plan = plan, .base = old};
    struct arena temporary = {0};
    cut_temporary(&build, most, &temporary);
    temporary.base = mem_reserve(&plan->allocator, temporary.used);
    if (!temporary.base) return PARTITA_ERR_NOMEM;
    temporary.used = 0;
    cut_temporary(&build, most, &temporary);
    build.n_sources = paths_list(plan, cells, n_cells, &kept, build.sources);
    cut_filter(&build);
    build.arena.base = mem_reserve(&plan->allocator, build.arena.used);
    if (build.arena.base) {
        build.arena.used = 0;
        filter->state = cut_filter(&build);
    }
    mem_release(&plan->allocator, temporary.base);
    return filter->state ? PARTITA_OK : PARTITA_ERR_NOMEM;
}
