// SPDX-License-Identifier: MIT
// Filters of cpu/partitioned: each path's taps are cut into the head and the partitions of every
// segment, and these are transformed. Paths and partitions of zeros are left out; paths with the
// same taps are stored once.
#include <assert.h>
#include <string.h>

#include "base/sizes.h"
#include "geometry/samples.h"
#include "kernels/kernels.h"
#include "partitioned.h"

struct build {
    const struct partita_plan *plan;
    const struct partitioned_filter *base; // NULL: none
    struct path_source *sources;
    size_t n_sources;
    struct path *paths;                                // as the sources
    char *row, *causal, *samples, *spectrum, *scratch; // [kernel], [span], [largest n], ...
    struct arena arena;                                // of the filter
};

static size_t segment_count(const struct build *build)
{
    return partitioned_of(build->plan)->layout.n_segments;
}

// The taps that one partition holds; n may be 0 behind the filter's end.
static const char *partition_taps(const struct build *build,
                                  const struct partition_segment *segment, size_t p, size_t *ret_n)
{
    const struct shape *shape = &build->plan->shape;
    const size_t taps = segment->multiple * segment->hop, first = segment->first + p * taps;
    const size_t span = shape->axis[0].span;
    *ret_n = first >= span ? 0 : size_min(span - first, taps);
    return build->causal + (*ret_n ? first : 0) * shape->tap_bytes;
}

// Which partitions of a segment are not zero, section by section.
static void find_ranges(const struct build *build, const struct partition_segment *segment,
                        struct path_section ret[SECTIONS])
{
    size_t bounds[SECTIONS + 1], first = segment->partitions, end = 0, n;
    partition_sections(segment, bounds);
    for (size_t p = 0; p < segment->partitions; p++) {
        const char *taps = partition_taps(build, segment, p, &n);
        if (taps_are_zero(build->plan, taps, n)) continue;
        if (p < first) first = p;
        end = p + 1;
    }
    for (size_t s = 0; s < SECTIONS; s++) {
        const size_t from = size_max(first, bounds[s]), to = size_min(end, bounds[s + 1]);
        ret[s] = (struct path_section){.first = from, .count = to > from ? to - from : 0};
    }
}

// Transforms partition `p` of the range into its column of the section's spectrum lines.
static void transform_partition(const struct build *build, size_t i, const struct path_section *own,
                                size_t p)
{
    const struct partition_segment *segment = &partitioned_of(build->plan)->layout.segment[i];
    const struct segment_work *work = &partitioned_of(build->plan)->work[i];
    const struct shape *shape = &build->plan->shape;
    const bool widen = shape->complex_signal && !shape->complex_taps;
    size_t n;
    const char *taps = partition_taps(build, segment, own->first + p, &n);
    assert(p < own->count && own->count <= own->stride);
    memset(build->samples, 0, segment->n * shape->sample_bytes);
    samples_copy(build->samples, widen ? 2 : 1, taps, 1, n, shape->tap_bytes);
    build->plan->kernels->scale(build->samples, build->samples, 1 / fft_gain(work->fft),
                                n * (shape->complex_signal ? 2 : 1));
    fft_forward(work->fft, build->spectrum, build->samples, build->scratch);
    char *spectra = own->spectra + p * SPECTRUM_LINE_BYTES;
    for (size_t line = 0; line < work->lines; line++)
        memcpy(spectra + line * own->stride * SPECTRUM_LINE_BYTES,
               build->spectrum + line * SPECTRUM_LINE_BYTES, SPECTRUM_LINE_BYTES);
}

// Takes a section's spectra over from another filter.
static void copy_spectra(const struct build *build, size_t i, const struct path_section *own,
                         const struct path_section *old)
{
    assert(own->count == old->count);
    for (size_t line = 0; line < partitioned_of(build->plan)->work[i].lines; line++)
        memcpy(own->spectra + line * own->stride * SPECTRUM_LINE_BYTES,
               old->spectra + line * old->stride * SPECTRUM_LINE_BYTES,
               own->count * SPECTRUM_LINE_BYTES);
}

// What a path consists of: taps of its head, and partitions of each segment.
static void measure_path(struct build *build, const struct path_source *source, struct path *path)
{
    const struct partition_layout *layout = &partitioned_of(build->plan)->layout;
    const size_t bytes = build->plan->shape.tap_bytes;
    if (!source->fresh) {
        *path = build->base->paths[source->kept];
        return;
    }
    *path = (struct path){.head_taps = layout->head};
    path_causal_taps(&build->plan->shape, source->fresh, build->row, build->causal);
    while (path->head_taps &&
           taps_are_zero(build->plan, build->causal + (path->head_taps - 1) * bytes, 1))
        path->head_taps--;
    for (size_t i = 0; i < layout->n_segments; i++)
        find_ranges(build, &layout->segment[i], path->segment[i]);
}

static void fill_path(struct build *build, const struct path_source *source,
                      const struct path *path, char *head)
{
    const struct path *kept = source->fresh ? NULL : &build->base->paths[source->kept];
    if (!kept) path_causal_taps(&build->plan->shape, source->fresh, build->row, build->causal);
    memcpy(head, kept ? kept->head : build->causal, path->head_taps * build->plan->shape.tap_bytes);
    for (size_t i = 0; i < segment_count(build); i++)
        for (size_t s = 0; s < SECTIONS; s++) {
            const struct path_section *own = &path->segment[i][s];
            if (kept) copy_spectra(build, i, own, &kept->segment[i][s]);
            else
                for (size_t p = 0; p < own->count; p++) transform_partition(build, i, own, p);
        }
}

// The columns of the paths in the spectra of one section of a segment.
static void layout_spectra(struct build *build, size_t i, size_t section)
{
    const size_t lines = partitioned_of(build->plan)->work[i].lines;
    size_t stride = 0, before = 0;
    for (size_t p = 0; p < build->n_sources; p++)
        if (build->sources[p].twin == p) stride += build->paths[p].segment[i][section].count;
    char *spectra = arena_take(&build->arena, size_mul(stride, lines * SPECTRUM_LINE_BYTES));
    for (size_t p = 0; p < build->n_sources; p++) {
        if (build->sources[p].twin != p) continue;
        struct path_section *own = &build->paths[p].segment[i][section];
        own->stride = stride;
        own->spectra = spectra ? spectra + before * SPECTRUM_LINE_BYTES : NULL;
        before += own->count;
    }
}

// All paths: measured, laid out in the arena, and filled unless it only counts.
static void build_paths(struct build *build)
{
    for (size_t p = 0; p < build->n_sources; p++)
        if (build->sources[p].twin == p) measure_path(build, &build->sources[p], &build->paths[p]);
    for (size_t i = 0; i < segment_count(build); i++)
        for (size_t s = 0; s < SECTIONS; s++) layout_spectra(build, i, s);
    for (size_t p = 0; p < build->n_sources; p++) {
        struct path *path = &build->paths[p];
        const size_t twin = build->sources[p].twin;
        if (twin == p) {
            // A byte at least: the address tells paths apart.
            char *head =
                arena_take(&build->arena, path->head_taps * build->plan->shape.tap_bytes + 1);
            if (head) fill_path(build, &build->sources[p], path, head);
            path->head = head;
        } else {
            *path = build->paths[twin];
        }
        path->in = build->sources[p].in;
    }
}

static size_t path_input(const void *filter, size_t path)
{
    return ((const struct partitioned_filter *)filter)->paths[path].in;
}

static const void *path_contents(const void *filter, size_t path)
{
    return ((const struct partitioned_filter *)filter)->paths[path].head;
}

struct path_view partitioned_paths(const struct partita_filter *filter)
{
    const struct partitioned_filter *state = filter ? filter->state : NULL;
    return (struct path_view){state, state ? state->first_path : NULL, path_input, path_contents};
}

// All that building needs besides the filter itself.
static void layout_temporary(struct build *build, size_t max_sources, struct arena *arena)
{
    const struct partitioned *partitioned = partitioned_of(build->plan);
    const struct shape *shape = &build->plan->shape;
    size_t samples = 0, spectrum = 0, scratch = 0;
    for (size_t i = 0; i < partitioned->layout.n_segments; i++) {
        const struct segment_work *work = &partitioned->work[i];
        samples = size_max(samples, partitioned->layout.segment[i].n * shape->sample_bytes);
        spectrum = size_max(spectrum, fft_spectrum_bytes(work->fft));
        scratch = size_max(scratch, fft_scratch_bytes(work->fft));
    }
    build->sources = arena_take(arena, size_mul(max_sources, sizeof *build->sources));
    build->paths = arena_take(arena, size_mul(max_sources, sizeof *build->paths));
    build->row = arena_take(arena, shape->axis[0].kernel * shape->tap_bytes);
    build->causal = arena_take(arena, shape->axis[0].span * shape->tap_bytes);
    build->samples = arena_take(arena, samples);
    build->spectrum = arena_take(arena, spectrum);
    build->scratch = arena_take(arena, scratch);
}

static struct partitioned_filter *layout_filter(struct build *build)
{
    const size_t outputs = build->plan->shape.out_channels;
    struct partitioned_filter *state = arena_take(&build->arena, sizeof *state);
    size_t *first = arena_take(&build->arena, (outputs + 1) * sizeof *first);
    struct path *paths = arena_take(&build->arena, size_mul(build->n_sources, sizeof *paths));
    build_paths(build);
    if (!state) return NULL;
    for (size_t out = 0, p = 0; out <= outputs; out++) {
        while (p < build->n_sources && build->sources[p].out < out) p++;
        first[out] = p;
    }
    memcpy(paths, build->paths, build->n_sources * sizeof *paths);
    *state = (struct partitioned_filter){first, paths};
    return state;
}

enum partita_status partitioned_filter_create(struct partita_filter *filter,
                                              const struct partita_cell *cells, size_t n_cells,
                                              const struct partita_filter *base)
{
    const struct partita_plan *plan = filter->plan;
    const struct partitioned_filter *old = base ? base->state : NULL;
    const size_t most = size_add(n_cells, old ? old->first_path[plan->shape.out_channels] : 0);
    const struct path_view kept = partitioned_paths(base);
    struct build build = {.plan = plan, .base = old};
    struct arena temporary = {0};
    layout_temporary(&build, most, &temporary);
    if (!arena_reserve(&temporary, &plan->allocator)) return PARTITA_ERR_NOMEM;
    layout_temporary(&build, most, &temporary);
    build.n_sources = paths_list(plan, cells, n_cells, &kept, build.sources);
    assert(build.n_sources <= most);
    layout_filter(&build);
    if (arena_reserve(&build.arena, &plan->allocator)) {
        filter->state = layout_filter(&build);
        assert(build.arena.used == build.arena.size);
    }
    mem_release(&plan->allocator, temporary.base);
    return filter->state ? PARTITA_OK : PARTITA_ERR_NOMEM;
}
