// SPDX-License-Identifier: MIT
// Filters of cpu/partitioned: each path's taps are split into the head and the partitions of every
// segment, and these are transformed. Paths and partitions of zeros are left out; paths with the
// same taps are stored once.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "geometry/samples.h"
#include "kernels/kernels.h"
#include "partitioned.h"

struct build {
    struct path_build paths;
    const struct partitioned_filter *base; // NULL: none
    struct path *made;                     // as the sources
    char *samples, *spectrum, *scratch;    // [largest n], ...
    struct arena arena;                    // of the filter
};

// Which partitions of a segment are not zero, section by section.
static void find_ranges(const struct build *build, const struct partition_segment *segment,
                        struct path_section ret[SECTIONS])
{
    size_t bounds[SECTIONS + 1];
    partition_sections(segment, bounds);
    const struct path_range range = path_build_range(
        &build->paths, segment->first, segment->multiple * segment->hop, segment->partitions);
    for (size_t s = 0; s < SECTIONS; s++) {
        const size_t from = size_max(range.first, bounds[s]);
        const size_t to = size_min(range.end, bounds[s + 1]);
        assert(to <= UINT32_MAX);
        ret[s] = (struct path_section){.first = (uint32_t)from,
                                       .count = to > from ? (uint32_t)(to - from) : 0};
    }
}

// Rounds a line of a spectrum to 16 bits, as cmac_partitions reads it, and returns its scale. A
// line with values that are not finite has the scale NaN. The smallest scale is a normal number.
static float round_line(const struct kernels *kernels, uint32_t *words, const float *line)
{
    enum { LANES = SPECTRUM_LANES_BYTES / sizeof *line };
    const uint32_t bits = (uint32_t)kernels->peak(line, 2 * LANES);
    float peak;
    memcpy(&peak, &bits, sizeof peak);
    memset(words, 0, SPECTRUM_I16_BYTES);
    if (!isfinite(peak)) return (float)NAN;
    const float step = fmaxf(peak / 32767, 0x1p-110f);
    for (size_t k = 0; k < LANES; k++) {
        const float re = line[k] / step, im = line[LANES + k] / step;
        words[k] = (uint16_t)(int)(re + copysignf(0.5f, re)) |
                   (uint32_t)(int)(im + copysignf(0.5f, im)) << 16;
    }
    return step * 0x1p-16f;
}

// Rounds a whole spectrum into column p of a section.
static void round_spectrum(const struct build *build, const struct path_section *to, size_t p,
                           size_t lines)
{
    for (size_t line = 0; line < lines; line++) {
        const size_t at = line * to->stride + p;
        to->scales[at] = round_line(build->paths.plan->kernels,
                                    (uint32_t *)(to->spectra + at * SPECTRUM_I16_BYTES),
                                    (const float *)(build->spectrum + line * SPECTRUM_LINE_BYTES));
    }
}

// Transforms partition `p` of the range into its column of the section's spectrum lines.
static void transform_partition(const struct build *build, size_t i, const struct path_section *to,
                                size_t p)
{
    const struct partition_segment *segment = &partitioned_of(build->paths.plan)->layout.segment[i];
    const struct segment_work *work = &partitioned_of(build->paths.plan)->work[i];
    const struct shape *shape = &build->paths.plan->shape;
    const bool widen = shape->complex_signal && !shape->complex_taps;
    const size_t span = shape->axis[0].span, capacity = segment->multiple * segment->hop;
    const size_t first = size_min(segment->first + (to->first + p) * capacity, span);
    const size_t n = size_min(span - first, capacity); // 0 behind the filter's end
    const char *taps = build->paths.causal + first * shape->tap_bytes;
    assert(p < to->count && to->count <= to->stride);
    memset(build->samples, 0, segment->n * shape->sample_bytes);
    samples_copy(build->samples, widen ? 2 : 1, taps, 1, n, shape->tap_bytes);
    build->paths.plan->kernels->scale(build->samples, build->samples, 1 / work->fft->gain,
                                      n * (shape->complex_signal ? 2 : 1));
    const struct fft_target target = {
        .to = segment->i16 ? build->spectrum : to->spectra + p * SPECTRUM_LINE_BYTES,
        .work = build->spectrum,
        .stride = segment->i16 ? SPECTRUM_LINE_BYTES : to->stride * SPECTRUM_LINE_BYTES};
    fft_forward_apart(work->fft, &target, build->samples, build->scratch,
                      (struct fft_steps){0, work->fft->steps});
    if (segment->i16) round_spectrum(build, to, p, work->lines);
}

// Takes a section's spectra over from another filter.
static void copy_spectra(const struct build *build, size_t i, const struct path_section *to,
                         const struct path_section *old)
{
    const struct partitioned *partitioned = partitioned_of(build->paths.plan);
    const size_t bytes = filter_line_bytes(&partitioned->layout.segment[i]);
    assert(to->count == old->count);
    for (size_t line = 0; line < partitioned->work[i].lines; line++) {
        memcpy(to->spectra + line * to->stride * bytes, old->spectra + line * old->stride * bytes,
               to->count * bytes);
        if (to->scales)
            memcpy(to->scales + line * to->stride, old->scales + line * old->stride,
                   to->count * sizeof *to->scales);
    }
}

// The parts of the paths: taps of their heads, and partitions of each segment.
static void measure_paths(struct build *build)
{
    const struct partition_layout *layout = &partitioned_of(build->paths.plan)->layout;
    for (size_t p = 0; path_build_next(&build->paths, &p); p++) {
        const struct path_source *source = &build->paths.sources[p];
        path_build_head(&build->paths, p, layout->head);
        if (!source->given) build->made[p] = build->base->paths[source->taken];
        for (size_t i = 0; source->given && i < layout->n_segments; i++)
            find_ranges(build, &layout->segment[i], build->made[p].segment[i]);
    }
}

static void fill_path(struct build *build, size_t p)
{
    const struct path_source *source = &build->paths.sources[p];
    const struct path *path = &build->made[p];
    for (size_t i = 0; i < partitioned_of(build->paths.plan)->layout.n_segments; i++)
        for (size_t s = 0; s < SECTIONS; s++) {
            const struct path_section *to = &path->segment[i][s];
            if (!source->given)
                copy_spectra(build, i, to, &build->base->paths[source->taken].segment[i][s]);
            for (size_t n = 0; source->given && n < to->count; n++)
                transform_partition(build, i, to, n);
        }
}

// The columns of the paths in the spectra of one section of a segment.
static void layout_spectra(const struct path_columns *columns, size_t i, size_t section,
                           struct arena *arena)
{
    const struct partitioned *partitioned = partitioned_of(columns->plan);
    const struct partition_segment *segment = &partitioned->layout.segment[i];
    const size_t lines = partitioned->work[i].lines, bytes = filter_line_bytes(segment);
    const struct path_source *sources = columns->sources;
    size_t stride = 0, before = 0;
    for (size_t p = 0; p < columns->n; p++)
        if (!sources || sources[p].twin == p) stride += columns->paths[p].segment[i][section].count;
    char *spectra = arena_take(arena, size_mul(stride, lines * bytes));
    float *scales = NULL;
    if (segment->i16) scales = arena_take(arena, size_mul(stride, lines * sizeof *scales));
    for (size_t p = 0; p < columns->n; p++) {
        if (sources && sources[p].twin != p) continue;
        struct path_section *to = &columns->paths[p].segment[i][section];
        to->stride = stride;
        to->spectra = spectra ? spectra + before * bytes : NULL;
        to->scales = scales ? scales + before : NULL;
        before += to->count;
    }
}

void partitioned_layout_spectra(const struct path_columns *columns, struct arena *arena)
{
    for (size_t i = 0; i < partitioned_of(columns->plan)->layout.n_segments; i++)
        for (size_t s = 0; s < SECTIONS; s++) layout_spectra(columns, i, s, arena);
}

struct path_view partitioned_paths(const struct partita_filter *filter)
{
    const struct partitioned_filter *state = filter ? filter->state : NULL;
    return state ? state->view : (struct path_view){0};
}

// All that building needs besides the filter itself.
static void layout_temporary(struct build *build, size_t n_paths, struct arena *arena)
{
    const struct partitioned *partitioned = partitioned_of(build->paths.plan);
    const struct shape *shape = &build->paths.plan->shape;
    size_t samples = 0, spectrum = 0, scratch = 0;
    for (size_t i = 0; i < partitioned->layout.n_segments; i++) {
        const struct segment_work *work = &partitioned->work[i];
        samples = size_max(samples, partitioned->layout.segment[i].n * shape->sample_bytes);
        spectrum = size_max(spectrum, work->fft->spectrum_bytes);
        scratch = size_max(scratch, work->fft->scratch_bytes);
    }
    path_build_layout(&build->paths, n_paths, arena);
    build->made =
        arena_take(arena, size_mul(path_build_max(&build->paths, n_paths), sizeof *build->made));
    build->samples = arena_take(arena, samples);
    build->spectrum = arena_take(arena, spectrum);
    build->scratch = arena_take(arena, scratch);
}

// The filter, filled unless the arena only counts.
static struct partitioned_filter *layout_filter(struct build *build)
{
    const size_t n = build->paths.n;
    struct partitioned_filter *state = arena_take(&build->arena, sizeof *state);
    struct path *paths = arena_take(&build->arena, size_mul(n, sizeof *paths));
    const struct path_view view = path_build_view(&build->paths, &build->arena);
    partitioned_layout_spectra(
        &(struct path_columns){build->paths.plan, n, build->made, build->paths.sources},
        &build->arena);
    if (!state) return NULL;
    for (size_t p = 0; path_build_next(&build->paths, &p); p++) fill_path(build, p);
    for (size_t p = 0; p < n; p++) paths[p] = build->made[build->paths.sources[p].twin];
    *state = (struct partitioned_filter){view, paths};
    return state;
}

enum partita_status partitioned_filter_create(struct partita_filter *filter,
                                              const struct partita_path *paths, size_t n_paths,
                                              const struct partita_filter *base)
{
    const struct partita_plan *plan = filter->plan;
    struct build build = {.paths = {.plan = plan, .base = partitioned_paths(base)},
                          .base = base ? base->state : NULL};
    struct arena temporary = {0};
    layout_temporary(&build, n_paths, &temporary);
    if (!arena_reserve(&temporary, &plan->allocator)) return PARTITA_ERR_NOMEM;
    layout_temporary(&build, n_paths, &temporary);
    path_build_list(&build.paths, paths, n_paths);
    measure_paths(&build);
    layout_filter(&build);
    if (arena_reserve(&build.arena, &plan->allocator)) {
        filter->state = layout_filter(&build);
        assert(build.arena.used == build.arena.size);
    }
    mem_release(&plan->allocator, temporary.base);
    return filter->state ? PARTITA_OK : PARTITA_ERR_NOMEM;
}
