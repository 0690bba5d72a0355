// SPDX-License-Identifier: MIT
// Filters of cuda/partitioned: each path's taps are split into the head, which stays on the host,
// and the partitions of every segment, which the device transforms. Partitions and paths of zeros
// are left out, paths with the same taps stored once.
#include <assert.h>
#include <string.h>

#include "base/sizes.h"
#include "geometry/samples.h"
#include "partitioned.h"

struct filter_build {
    struct path_build paths;
    const struct cuda_partitioned_filter *base; // NULL: none
    struct cuda_path *own;                      // as the sources
    struct cuda_path *given;                    // [n_given] those to be transformed,
    char *samples;                              // [n_given][span] and their taps, as signals are
    size_t n_given;
    int64_t columns[CUDA_MAX_SEGMENTS], head_taps; // in all
    char *heads;                                   // [head_taps]
};

static const struct cuda_partition_layout *layout_of(const struct filter_build *build)
{
    return &cuda_partitioned_of(build->paths.plan)->layout;
}

static size_t first_tap(const struct filter_build *build, int i)
{
    const struct cuda_partitioned_choice *choice = &cuda_partitioned_of(build->paths.plan)->choice;
    return choice->head + (size_t)layout_of(build)->segment[i].start * choice->quantum;
}

// Finds the partitions of a given path that are not zero, and leaves its taps for the device.
static void measure_given_path(struct filter_build *build, struct cuda_path *path)
{
    const struct shape *shape = &build->paths.plan->shape;
    const bool widen = shape->complex_signal && !shape->complex_taps;
    const size_t span = shape->axis[0].span;
    for (int i = 0; i < layout_of(build)->n_segments; i++) {
        const struct cuda_segment *segment = &layout_of(build)->segment[i];
        const struct path_range range = path_build_range(
            &build->paths, first_tap(build, i), (size_t)segment->hop, (size_t)segment->partitions);
        path->segment[i].first = (int)range.first;
        path->segment[i].count = (int)(range.end - range.first);
    }
    char *samples = build->samples + build->n_given * span * shape->sample_bytes;
    if (widen) memset(samples, 0, span * shape->sample_bytes); // the imaginary parts
    samples_copy(samples, widen ? 2 : 1, build->paths.causal, 1, span, shape->tap_bytes);
}

// What the paths consist of, and the columns of their spectra.
static void measure_cuda_paths(struct filter_build *build)
{
    const size_t head = cuda_partitioned_of(build->paths.plan)->choice.head;
    for (size_t p = 0; path_build_next(&build->paths, &p); p++) {
        const struct path_source *source = &build->paths.sources[p];
        struct cuda_path *path = &build->own[p];
        *path = source->given ? (struct cuda_path){0} : build->base->paths[source->taken];
        path_build_head(&build->paths, p, head);
        path->head_taps = (int)build->paths.head_taps[p];
        path->head_from = build->head_taps;
        build->head_taps += path->head_taps;
        if (source->given) measure_given_path(build, path);
        for (int i = 0; i < layout_of(build)->n_segments; i++) {
            path->segment[i].column = build->columns[i];
            build->columns[i] += path->segment[i].count;
        }
        if (source->given) build->given[build->n_given++] = *path;
    }
    for (size_t p = 0; p < build->paths.n; p++) {
        build->own[p] = build->own[build->paths.sources[p].twin];
        build->own[p].in = (int)build->paths.sources[p].in;
    }
}

// All that building needs besides the filter itself.
static void layout_filter_build(struct filter_build *build, size_t n_paths, struct arena *arena)
{
    const struct shape *shape = &build->paths.plan->shape;
    const size_t max = path_build_max(&build->paths, n_paths);
    path_build_layout(&build->paths, n_paths, arena);
    build->own = arena_take(arena, size_mul(max, sizeof *build->own));
    build->given = arena_take(arena, size_mul(n_paths, sizeof *build->given));
    build->heads = arena_take(
        arena, size_mul(max, size_mul(cuda_partitioned_of(build->paths.plan)->choice.head,
                                      shape->tap_bytes)));
    build->samples =
        arena_take(arena, size_mul(n_paths, size_mul(shape->axis[0].span, shape->sample_bytes)));
}

// The host's part of a filter, filled unless the arena only counts.
static struct cuda_partitioned_filter *layout_cuda_filter(struct filter_build *build,
                                                          struct arena *arena)
{
    struct cuda_partitioned_filter *state = arena_take(arena, sizeof *state);
    struct cuda_path *paths = arena_take(arena, size_mul(build->paths.n, sizeof *paths));
    const struct path_view view = path_build_view(&build->paths, arena);
    if (!state) return NULL;
    memcpy(paths, build->own, build->paths.n * sizeof *paths);
    *state = (struct cuda_partitioned_filter){.view = view, .paths = paths};
    return state;
}

// The device's memory of a filter.
static void layout_filter_memory(const struct filter_build *build, struct cuda_paths *device,
                                 struct arena *arena)
{
    const struct shape *shape = &build->paths.plan->shape;
    device->first_path = arena_take(arena, (shape->out_channels + 1) * sizeof *device->first_path);
    device->paths = arena_take(arena, size_mul(build->paths.n, sizeof *device->paths));
    device->heads = arena_take(arena, size_mul((size_t)build->head_taps, shape->tap_bytes));
    for (int i = 0; i < layout_of(build)->n_segments; i++) {
        const size_t spectrum =
            (size_t)layout_of(build)->segment[i].points * 2 * shape->scalar_bytes;
        device->spectra[i] = arena_take(arena, size_mul((size_t)build->columns[i], spectrum));
        device->columns[i] = build->columns[i];
    }
}

// Queues the transforms of the given paths, whose taps go through memory that is released when the
// work is done.
static enum partita_status transform_given(const struct filter_build *build,
                                           const struct cuda_partitioned_filter *state,
                                           void **ret_staged)
{
    const struct partita_plan *plan = build->paths.plan;
    const size_t span = plan->shape.axis[0].span, bytes = build->n_given * sizeof *build->given;
    const size_t samples = size_mul(build->n_given, span * plan->shape.sample_bytes);
    if (!build->n_given) return PARTITA_OK;
    enum partita_status status =
        cuda_allocate(plan, size_add(mem_round(bytes), samples), ret_staged);
    if (status != PARTITA_OK) return status;
    char *taps = (char *)*ret_staged + mem_round(bytes);
    status = cuda_copy(plan, *ret_staged, build->given, bytes);
    if (status == PARTITA_OK) status = cuda_copy(plan, taps, build->samples, samples);
    for (int i = 0; i < layout_of(build)->n_segments && status == PARTITA_OK; i++) {
        const struct cuda_partition_taps job = {
            .segment = i,
            .n = (int64_t)build->n_given,
            .span = (int64_t)span,
            .first = (int64_t)first_tap(build, i),
            .paths = *ret_staged,
            .taps = taps,
            .spectra = state->device.spectra[i],
            .columns = build->columns[i],
        };
        status = CU(plan, cuda_partitioned_launch_taps(layout_of(build), &job));
    }
    return status;
}

// Rows of spectra, each a pitch after the one before.
struct spectrum_rows {
    char *first;
    size_t pitch;
};

// Those of a range of a filter's spectra of segment i.
static struct spectrum_rows rows_of(const struct cuda_paths *device, int i, int64_t column,
                                    size_t share)
{
    assert(column <= device->columns[i]);
    return (struct spectrum_rows){(char *)device->spectra[i] + (size_t)column * share,
                                  (size_t)device->columns[i] * share};
}

// Queues a copy of the first `bytes` bytes of rows.
static enum partita_status copy_rows(const struct partita_plan *plan, struct spectrum_rows to,
                                     struct spectrum_rows from, size_t bytes, size_t rows)
{
    enum partita_status status = PARTITA_OK;
    assert(bytes <= to.pitch && bytes <= from.pitch);
    if (to.pitch <= INT32_MAX && from.pitch <= INT32_MAX) // what a call takes: cudaDevAttrMaxPitch
        return CU(plan, cudaMemcpy2DAsync(to.first, to.pitch, from.first, from.pitch, bytes, rows,
                                          cudaMemcpyDefault, cuda_thread()->stream));
    for (size_t i = 0; i < rows && status == PARTITA_OK; i++)
        status = cuda_copy(plan, to.first + i * to.pitch, from.first + i * from.pitch, bytes);
    return status;
}

// Queues copies of the spectra of a path that is taken over from the base.
static enum partita_status copy_taken(const struct filter_build *build,
                                      const struct cuda_paths *device, size_t p)
{
    const struct cuda_partition_layout *layout = layout_of(build);
    const struct cuda_path *own = &build->own[p];
    const struct cuda_path *old = &build->base->paths[build->paths.sources[p].taken];
    const size_t share = 2 * build->paths.plan->shape.scalar_bytes << layout->log2_share;
    enum partita_status status = PARTITA_OK;
    for (int i = 0; i < layout->n_segments && status == PARTITA_OK; i++) {
        const struct cuda_path_range *range = &own->segment[i];
        assert(range->count == old->segment[i].count);
        assert(range->column + range->count <= device->columns[i]);
        if (range->count)
            status = copy_rows(build->paths.plan, rows_of(device, i, range->column, share),
                               rows_of(&build->base->device, i, old->segment[i].column, share),
                               (size_t)range->count * share, (size_t)layout->segment[i].quanta);
    }
    return status;
}

// Queues a copy of all heads; twins have the same.
static enum partita_status copy_heads(const struct filter_build *build,
                                      const struct cuda_partitioned_filter *state)
{
    const struct partita_plan *plan = build->paths.plan;
    const size_t bytes = plan->shape.tap_bytes;
    for (size_t p = 0; p < build->paths.n; p++)
        if (build->paths.sources[p].twin == p)
            memcpy(build->heads + (size_t)build->own[p].head_from * bytes,
                   state->view.heads[p].taps, (size_t)build->own[p].head_taps * bytes);
    if (!build->head_taps) return PARTITA_OK;
    return cuda_copy(plan, state->device.heads, build->heads, (size_t)build->head_taps * bytes);
}

// The device's part of a filter, complete when the call returns.
static enum partita_status fill_device(struct filter_build *build,
                                       struct cuda_partitioned_filter *state)
{
    const struct partita_plan *plan = build->paths.plan;
    const size_t outputs = plan->shape.out_channels;
    struct arena arena = {0};
    void *staged = NULL;
    layout_filter_memory(build, &state->device, &arena);
    enum partita_status status = cuda_allocate(plan, arena.used, &state->memory);
    if (status != PARTITA_OK) return status;
    arena = (struct arena){.base = state->memory, .size = arena.used};
    layout_filter_memory(build, &state->device, &arena);
    assert(arena.used == arena.size);
    status = cuda_copy(plan, state->device.first_path, state->view.first_path,
                       (outputs + 1) * sizeof *state->view.first_path);
    if (status == PARTITA_OK && build->paths.n)
        status = cuda_copy(plan, state->device.paths, state->paths,
                           build->paths.n * sizeof *state->paths);
    if (status == PARTITA_OK) status = copy_heads(build, state);
    if (status == PARTITA_OK) status = transform_given(build, state, &staged);
    for (size_t p = 0; p < build->paths.n && status == PARTITA_OK; p++)
        if (!build->paths.sources[p].given && build->paths.sources[p].twin == p)
            status = copy_taken(build, &state->device, p);
    cuda_release(plan, staged);
    const enum partita_status waited = cuda_wait(plan);
    return status == PARTITA_OK ? waited : status;
}

struct path_view cuda_partitioned_paths(const struct partita_filter *filter)
{
    const struct cuda_partitioned_filter *state = filter ? filter->state : NULL;
    return state ? state->view : (struct path_view){0};
}

enum partita_status cuda_partitioned_filter_create(struct partita_filter *filter,
                                                   const struct partita_path *paths, size_t n_paths,
                                                   const struct partita_filter *base)
{
    const struct partita_plan *plan = filter->plan;
    struct filter_build build = {.paths = {.plan = plan, .base = cuda_partitioned_paths(base)},
                                 .base = base ? base->state : NULL};
    struct arena temporary = {0}, own = {0};
    layout_filter_build(&build, n_paths, &temporary);
    if (!arena_reserve(&temporary, &plan->allocator)) return PARTITA_ERR_NOMEM;
    layout_filter_build(&build, n_paths, &temporary);
    assert(temporary.used == temporary.size);
    path_build_list(&build.paths, paths, n_paths);
    measure_cuda_paths(&build);
    assert(build.n_given <= n_paths);
    layout_cuda_filter(&build, &own);
    enum partita_status status = PARTITA_ERR_NOMEM;
    if (arena_reserve(&own, &plan->allocator)) {
        struct cuda_partitioned_filter *state = layout_cuda_filter(&build, &own);
        assert(own.used == own.size);
        filter->state = state;
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
    cuda_release(plan, state->memory);
    mem_release(&plan->allocator, state);
}
