// SPDX-License-Identifier: MIT
// Filters of cuda/partitioned: each cell's taps cut into the head, which stays with the host, and
// the partitions of every level, transformed by the device; partitions and cells of zeros are left
// out, cells with the same taps stored once.
#include <string.h>

#include "geometry/samples.h"
#include "partitioned.h"
#include "stream/paths.h"

struct build {
    const struct partita_plan *plan;
    const struct cuda_cut *cut;
    const struct cuda_partitioned_filter *base; // NULL: none
    struct path_source *sources;
    size_t n_sources, n_fresh; // fresh: to be transformed
    struct cuda_cell *cells;   // as the sources
    size_t *head_taps;         // likewise
    struct cuda_cell *fresh;   // [n_fresh]
    char *row, *causal;        // [kernel], [span] taps
    char *samples;             // [n_fresh][span], of the signal's type
    int *first_cell;           // [out_channels + 1], as the device has it
    void *staged;              // of the device: fresh cells, then their samples
    int64_t line[CUDA_LEVELS];
};

static size_t level_offset(const struct cuda_cut *cut, int i)
{
    return cut->head + (size_t)cut->partitions.level[i].start * (size_t)cut->partitions.tick;
}

static size_t bin_bytes(const struct partita_plan *plan)
{
    return 2 * plan->shape.scalar_bytes;
}

// Finds a fresh cell's partitions that are not zero.
static void find_ranges(const struct build *build, struct cuda_cell *cell)
{
    const struct shape *shape = &build->plan->shape;
    for (int i = 0; i < build->cut->partitions.n_levels; i++) {
        const struct cuda_level *level = &build->cut->partitions.level[i];
        const size_t hop = (size_t)level->hop, span = shape->axis[0].span;
        int first = level->parts, end = 0;
        for (int p = 0; p < level->parts; p++) {
            const size_t at = level_offset(build->cut, i) + (size_t)p * hop;
            if (at >= span) break;
            const size_t n = span - at < hop ? span - at : hop;
            if (taps_are_zero(build->plan, build->causal + at * shape->tap_bytes, n)) continue;
            if (p < first) first = p;
            end = p + 1;
        }
        cell->level[i].first = end ? first : 0;
        cell->level[i].count = end ? end - first : 0;
    }
}

// A source's cell, with its places in the lines of spectra; fresh ones leave their samples for the
// device.
static void measure_cell(struct build *build, size_t c)
{
    const struct shape *shape = &build->plan->shape;
    const struct path_source *source = &build->sources[c];
    struct cuda_cell *cell = &build->cells[c];
    if (source->fresh) {
        const bool widen = shape->complex_signal && !shape->complex_taps;
        const size_t span = shape->axis[0].span;
        *cell = (struct cuda_cell){.in = 0};
        path_causal_taps(shape, source->fresh, build->row, build->causal);
        find_ranges(build, cell);
        samples_copy(build->samples + build->n_fresh * span * shape->sample_bytes, widen ? 2 : 1,
                     build->causal, 1, span, shape->tap_bytes);
        size_t *taps = &build->head_taps[c];
        *taps = build->cut->head;
        while (*taps &&
               taps_are_zero(build->plan, build->causal + (*taps - 1) * shape->tap_bytes, 1))
            --*taps;
    } else {
        *cell = build->base->cells[source->kept];
        build->head_taps[c] = build->base->head_taps[source->kept];
    }
    for (int i = 0; i < build->cut->partitions.n_levels; i++) {
        cell->level[i].base = build->line[i];
        build->line[i] += cell->level[i].count;
    }
    if (source->fresh) build->fresh[build->n_fresh++] = *cell;
}

static void measure_cells(struct build *build)
{
    for (size_t c = 0; c < build->n_sources; c++) {
        const struct path_source *source = &build->sources[c];
        if (source->twin == c) measure_cell(build, c);
        else {
            build->cells[c] = build->cells[source->twin];
            build->head_taps[c] = build->head_taps[source->twin];
        }
        build->cells[c].in = (int)source->in;
    }
}

// All that building needs besides the filter itself; counted, then cut.
static void cut_temporary(struct build *build, size_t most, size_t most_fresh, struct arena *arena)
{
    const struct shape *shape = &build->plan->shape;
    build->sources = arena_take(arena, size_mul(most, sizeof *build->sources));
    build->cells = arena_take(arena, size_mul(most, sizeof *build->cells));
    build->head_taps = arena_take(arena, size_mul(most, sizeof *build->head_taps));
    build->fresh = arena_take(arena, size_mul(most_fresh, sizeof *build->fresh));
    build->first_cell =
        arena_take(arena, size_mul(shape->out_channels + 1, sizeof *build->first_cell));
    build->row = arena_take(arena, shape->axis[0].kernel * shape->tap_bytes);
    build->causal = arena_take(arena, shape->axis[0].span * shape->tap_bytes);
    build->samples =
        arena_take(arena, size_mul(most_fresh, size_mul(shape->axis[0].span, shape->sample_bytes)));
}

static struct cuda_partitioned_filter *cut_filter(const struct build *build, struct arena *arena)
{
    struct cuda_partitioned_filter *state = arena_take(arena, sizeof *state);
    size_t *first_cell =
        arena_take(arena, (build->plan->shape.out_channels + 1) * sizeof *first_cell);
    struct cuda_cell *cells = arena_take(arena, size_mul(build->n_sources, sizeof *cells));
    char **heads = arena_take(arena, size_mul(build->n_sources, sizeof *heads));
    size_t *head_taps = arena_take(arena, size_mul(build->n_sources, sizeof *head_taps));
    for (size_t c = 0; c < build->n_sources; c++) {
        const size_t twin = build->sources[c].twin;
        // A byte at least: the place tells cells apart.
        char *head = twin == c
                         ? arena_take(arena, build->head_taps[c] * build->plan->shape.tap_bytes + 1)
                         : NULL;
        if (heads) heads[c] = twin == c ? head : heads[twin];
    }
    if (state)
        *state = (struct cuda_partitioned_filter){
            .first_cell = first_cell, .cells = cells, .heads = heads, .head_taps = head_taps};
    return state;
}

// The host's part of a filter.
static void fill_filter(struct build *build, struct cuda_partitioned_filter *state)
{
    const struct shape *shape = &build->plan->shape;
    memcpy(state->cells, build->cells, build->n_sources * sizeof *state->cells);
    memcpy(state->head_taps, build->head_taps, build->n_sources * sizeof *state->head_taps);
    for (size_t out = 0, c = 0; out <= shape->out_channels; out++) {
        while (c < build->n_sources && build->sources[c].out < out) c++;
        state->first_cell[out] = c;
        build->first_cell[out] = (int)c;
    }
    for (size_t c = 0; c < build->n_sources; c++) {
        const struct path_source *source = &build->sources[c];
        if (source->twin != c) continue;
        const char *head = source->fresh ? build->causal : build->base->heads[source->kept];
        if (source->fresh) path_causal_taps(shape, source->fresh, build->row, build->causal);
        memcpy(state->heads[c], head, build->head_taps[c] * shape->tap_bytes);
    }
}

// The device's memory of a filter.
static void cut_device(const struct build *build, struct cuda_cells *device, struct arena *arena)
{
    const struct cuda_partitions *partitions = &build->cut->partitions;
    device->first_cell =
        arena_take(arena, (build->plan->shape.out_channels + 1) * sizeof *device->first_cell);
    device->cells = arena_take(arena, build->n_sources * sizeof *device->cells);
    for (int i = 0; i < partitions->n_levels; i++) {
        const size_t line = (size_t)build->line[i], bins = (size_t)partitions->level[i].points;
        device->spectra[i] = arena_take(arena, size_mul(line, bins * bin_bytes(build->plan)));
        device->line[i] = build->line[i];
    }
}

static enum partita_status transform_fresh(struct build *build,
                                           const struct cuda_partitioned_filter *state)
{
    const struct partita_plan *plan = build->plan;
    const size_t span = plan->shape.axis[0].span,
                 cells = mem_round(build->n_fresh * sizeof *build->fresh);
    const size_t samples = size_mul(build->n_fresh, span * plan->shape.sample_bytes);
    if (!build->n_fresh) return PARTITA_OK;
    enum partita_status status = cuda_allocate(plan, size_add(cells, samples), &build->staged);
    if (status == PARTITA_OK)
        status =
            cuda_copy(plan, build->staged, build->fresh, build->n_fresh * sizeof *build->fresh);
    if (status == PARTITA_OK)
        status = cuda_copy(plan, (char *)build->staged + cells, build->samples, samples);
    for (int i = 0; i < build->cut->partitions.n_levels && status == PARTITA_OK; i++) {
        const struct cuda_taps taps = {
            .level = i,
            .n = (int64_t)build->n_fresh,
            .span = (int64_t)span,
            .offset = (int64_t)level_offset(build->cut, i),
            .cells = build->staged,
            .taps = (const char *)build->staged + cells,
            .spectra = (void *)(uintptr_t)state->device.spectra[i],
            .line = build->line[i],
        };
        status = CU(plan, cuda_launch_taps(&build->cut->partitions, &taps, cudaStreamPerThread));
    }
    return status;
}

// Queues a copy of rows of `bytes` bytes, each a pitch after the one before.
static enum partita_status copy_rows(const struct partita_plan *plan, char *to, size_t to_pitch,
                                     const char *from, size_t from_pitch, size_t bytes, size_t rows)
{
    enum partita_status status = PARTITA_OK;
    if (to_pitch <= INT32_MAX && from_pitch <= INT32_MAX) // what a call takes: cudaDevAttrMaxPitch
        return CU(plan, cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, bytes, rows,
                                          cudaMemcpyDefault, cudaStreamPerThread));
    for (size_t i = 0; i < rows && status == PARTITA_OK; i++)
        status = cuda_copy(plan, to + i * to_pitch, from + i * from_pitch, bytes);
    return status;
}

// Takes the spectra of a cell over from the other filter.
static enum partita_status copy_kept(const struct build *build,
                                     const struct cuda_partitioned_filter *state, size_t c)
{
    const struct cuda_partitions *partitions = &build->cut->partitions;
    const struct cuda_cell *to = &build->cells[c],
                           *from = &build->base->cells[build->sources[c].kept];
    const size_t piece = bin_bytes(build->plan) << partitions->log2_share;
    enum partita_status status = PARTITA_OK;
    for (int i = 0; i < partitions->n_levels && status == PARTITA_OK; i++) {
        if (!to->level[i].count) continue;
        char *own = (char *)(uintptr_t)state->device.spectra[i] + (size_t)to->level[i].base * piece;
        const char *old =
            (const char *)build->base->device.spectra[i] + (size_t)from->level[i].base * piece;
        status = copy_rows(build->plan, own, (size_t)build->line[i] * piece, old,
                           (size_t)build->base->device.line[i] * piece,
                           (size_t)to->level[i].count * piece, (size_t)partitions->level[i].ticks);
    }
    return status;
}

// The device's part of a filter, complete when the call returns.
static enum partita_status fill_device(struct build *build, struct cuda_partitioned_filter *state)
{
    const struct partita_plan *plan = build->plan;
    const size_t outputs = plan->shape.out_channels;
    struct arena arena = {0};
    cut_device(build, &state->device, &arena);
    enum partita_status status = cuda_enter(plan);
    if (status == PARTITA_OK) status = cuda_allocate(plan, arena.used, &state->memory);
    if (status != PARTITA_OK) return status;
    arena = (struct arena){.base = state->memory};
    cut_device(build, &state->device, &arena);
    status = cuda_copy(plan, (void *)(uintptr_t)state->device.first_cell, build->first_cell,
                       (outputs + 1) * sizeof *build->first_cell);
    if (status == PARTITA_OK && build->n_sources)
        status = cuda_copy(plan, (void *)(uintptr_t)state->device.cells, build->cells,
                           build->n_sources * sizeof *build->cells);
    if (status == PARTITA_OK) status = transform_fresh(build, state);
    for (size_t c = 0; c < build->n_sources && status == PARTITA_OK; c++)
        if (!build->sources[c].fresh && build->sources[c].twin == c)
            status = copy_kept(build, state, c);
    cuda_release(plan, build->staged);
    const enum partita_status waited = cuda_wait(plan);
    return status == PARTITA_OK ? waited : status;
}

static size_t input_of(const void *filter, size_t cell)
{
    return (size_t)((const struct cuda_partitioned_filter *)filter)->cells[cell].in;
}

static const void *contents_of(const void *filter, size_t cell)
{
    return ((const struct cuda_partitioned_filter *)filter)->heads[cell];
}

struct path_view cuda_partitioned_cells(const struct partita_filter *filter)
{
    const struct cuda_partitioned_filter *state = filter ? filter->state : NULL;
    return (struct path_view){state, state ? state->first_cell : NULL, input_of, contents_of};
}

enum partita_status cuda_partitioned_filter_create(struct partita_filter *filter,
                                                   const struct partita_cell *cells, size_t n_cells,
                                                   const struct partita_filter *base)
{
    const struct partita_plan *plan = filter->plan;
    const struct cuda_partitioned_filter *old = base ? base->state : NULL;
    const struct path_view kept = cuda_partitioned_cells(base);
    const size_t most = size_add(n_cells, old ? old->first_cell[plan->shape.out_channels] : 0);
    struct build build = {
        .plan = plan, .cut = &((const struct cuda_partitioned *)plan->state)->cut, .base = old};
    struct arena temporary = {0}, own = {0};
    cut_temporary(&build, most, n_cells, &temporary);
    temporary.base = mem_allocate(&plan->allocator, temporary.used);
    if (!temporary.base) return PARTITA_ERR_NOMEM;
    temporary.used = 0;
    cut_temporary(&build, most, n_cells, &temporary);
    build.n_sources = paths_list(plan, cells, n_cells, &kept, build.sources);
    measure_cells(&build);
    cut_filter(&build, &own);
    own.base = mem_reserve(&plan->allocator, own.used);
    enum partita_status status = own.base ? PARTITA_OK : PARTITA_ERR_NOMEM;
    if (status == PARTITA_OK) {
        own.used = 0;
        struct cuda_partitioned_filter *state = cut_filter(&build, &own);
        filter->state = state;
        fill_filter(&build, state);
        status = fill_device(&build, state);
    }
    mem_release(&plan->allocator, temporary.base);
    return status;
}

void cuda_partitioned_filter_destroy(struct partita_filter *filter)
{
    const struct partita_plan *plan = filter->plan;
    struct cuda_partitioned_filter *state = filter->state;
    if (!state) return;
    CU(plan, cudaSetDevice(cuda_device_of(plan)->index));
    cuda_release(plan, state->memory);
    mem_release(&plan->allocator, state);
}
