// SPDX-License-Identifier: MIT
// The combined filter of a morph. It has the paths that any of the filters has, and of each path
// the partitions from the first to the last that any of them has.
#include <assert.h>
#include <string.h>

#include "base/sizes.h"
#include "morph.h"

enum {
    MORPH_ROUNDS = 16, // slices of a segment at most
    HEAD_TAPS = 32,    // of a slice of the head
};

static const struct partitioned_filter *filter_at(const struct morph *morph, size_t k)
{
    return morph->filters[k]->state;
}

static size_t path_count(const struct partita_plan *plan, const struct morph *morph)
{
    return morph->first_path[plan->shape.out_channels];
}

struct morph_slice morph_slice_at(const struct partita_plan *plan, size_t i, size_t index)
{
    const struct partition_layout *layout = &partitioned_of(plan)->layout;
    size_t bounds[SECTIONS + 1];
    if (i == layout->n_segments) {
        const size_t first = size_min(index * HEAD_TAPS, layout->head);
        return (struct morph_slice){.first = first,
                                    .count = size_min(HEAD_TAPS, layout->head - first)};
    }
    partition_sections(&layout->segment[i], bounds);
    for (size_t s = 0; s < SECTIONS; s++) {
        const size_t count = bounds[s + 1] - bounds[s];
        const size_t slices = s == SECTION_BATCH ? MORPH_ROUNDS - SECTION_BATCH : 1;
        const size_t each = ceil_div(count, slices), first = index * each;
        if (first < count)
            return (struct morph_slice){s, bounds[s] + first, size_min(each, count - first)};
        index -= count ? ceil_div(count, each) : 0;
    }
    return (struct morph_slice){.count = 0};
}

// Lists the paths of all filters, with the longest of their heads.
static void list_paths(const struct partita_plan *plan, struct morph *morph)
{
    size_t n = 0;
    for (size_t out = 0; out < plan->shape.out_channels; out++) {
        const size_t first = morph->first_path[out] = n;
        for (size_t k = 0; k < morph->n; k++) {
            const struct path_view *view = &filter_at(morph, k)->view;
            for (size_t p = view->first_path[out]; p < view->first_path[out + 1]; p++) {
                size_t to = first;
                while (to < n && morph->heads[to].channel != view->heads[p].channel) to++;
                if (to == n) {
                    morph->heads[n].channel = view->heads[p].channel;
                    for (size_t other = 0; other < morph->n; other++)
                        morph->sources[n * morph->n + other] = NO_PATH;
                    n++;
                }
                morph->sources[to * morph->n + k] = p;
                morph->heads[to].n = size_max(morph->heads[to].n, view->heads[p].n);
            }
        }
    }
    morph->first_path[plan->shape.out_channels] = n;
}

// A filter's part of a path's section; NULL: it has none.
static const struct path_section *source_of(const struct morph *morph, size_t path, size_t k,
                                            size_t i, size_t section)
{
    const size_t source = morph->sources[path * morph->n + k];
    if (source == NO_PATH) return NULL;
    const struct path_section *from = &filter_at(morph, k)->paths[source].segment[i][section];
    return from->count ? from : NULL;
}

// The partitions from the first to the last that any filter has of a path's section.
static void find_range(const struct morph *morph, size_t path, size_t i, size_t section)
{
    struct path_section *to = &morph->made.paths[path].segment[i][section];
    for (size_t k = 0; k < morph->n; k++) {
        const struct path_section *from = source_of(morph, path, k, i, section);
        if (!from) continue;
        const size_t first = to->count ? size_min(to->first, from->first) : from->first;
        const size_t end = size_max(to->first + to->count, from->first + from->count);
        to->first = (uint32_t)first, to->count = (uint32_t)(end - first);
    }
}

// The combined taps and spectra, the slices' changes and weights, and all that is in the region.
static void layout_memory(const struct partita_plan *plan, struct morph *morph, struct arena *arena)
{
    const struct partitioned *partitioned = partitioned_of(plan);
    const size_t n = partitioned->layout.n_segments, paths = path_count(plan, morph);
    for (size_t p = 0; p < paths; p++)
        morph->heads[p].taps = arena_take(arena, morph->heads[p].n * plan->shape.tap_bytes);
    partitioned_layout_spectra(&(struct path_columns){plan, paths, morph->made.paths, NULL}, arena);
    for (size_t i = 0; i <= n; i++) {
        struct morph_part *part = &morph->part[i];
        size_t largest = 0, count;
        for (part->n_slices = 0; (count = morph_slice_at(plan, i, part->n_slices).count) > 0;
             part->n_slices++)
            largest = size_max(largest, count);
        if (i == n) break;
        part->chain_bytes = largest * MORPH_LINES * SPECTRUM_LINE_BYTES;
        part->changes = arena_take(arena, partitioned->work[i].stage[STAGE_PRODUCTS].chains *
                                              part->chain_bytes);
    }
    morph->samples = arena_take(arena, partitioned->layout.quantum * plan->shape.sample_bytes);
    const size_t begin = arena->used;
    morph->request = arena_take(arena, sizeof *morph->request);
    for (size_t i = 0; i <= n; i++) {
        struct morph_part *part = &morph->part[i];
        part->cycle = arena_take(arena, sizeof *part->cycle);
        part->weights = arena_take(arena, part->n_slices * morph->n * sizeof *part->weights);
    }
    morph->part[n].changes = arena_take(arena, size_mul(paths, HEAD_TAPS * plan->shape.tap_bytes));
    morph->region = (struct region){morph->request, arena->used - begin};
}

// The lists, with room for as many paths as there can be.
static struct morph *layout_path_lists(const struct partita_plan *plan, size_t n, size_t paths,
                                       struct arena *arena)
{
    struct morph *morph = arena_take(arena, sizeof *morph);
    size_t *first_path = arena_take(arena, (plan->shape.out_channels + 1) * sizeof *first_path);
    struct history_taps *heads = arena_take(arena, size_mul(paths, sizeof *heads));
    size_t *sources = arena_take(arena, size_mul(paths, n * sizeof *sources));
    struct path *made = arena_take(arena, size_mul(paths, sizeof *made));
    if (!morph) return NULL;
    morph->n = n, morph->first_path = first_path, morph->heads = heads, morph->sources = sources;
    morph->made = (struct partitioned_filter){{first_path, heads}, made};
    return morph;
}

enum partita_status morph_create(const struct partita_plan *plan,
                                 const struct partita_filter *const *filters, size_t n,
                                 const double *weights, struct morph **ret_morph)
{
    struct arena lists = {0}, arena = {0};
    size_t paths = 0;
    for (size_t k = 0; k < n; k++)
        paths += partitioned_paths(filters[k]).first_path[plan->shape.out_channels];
    layout_path_lists(plan, n, paths, &lists);
    if (!arena_allocate(&lists, &plan->allocator)) return PARTITA_ERR_NOMEM;
    struct morph *morph = *ret_morph = layout_path_lists(plan, n, paths, &lists);
    morph->loops = morph_loops_of(plan->isa, plan->shape.f64);
    memcpy(morph->filters, filters, n * sizeof *filters);
    list_paths(plan, morph);
    for (size_t p = 0; p < path_count(plan, morph); p++)
        for (size_t i = 0; i < partitioned_of(plan)->layout.n_segments; i++)
            for (size_t s = 0; s < SECTIONS; s++) find_range(morph, p, i, s);
    layout_memory(plan, morph, &arena);
    if (!arena_allocate(&arena, &plan->allocator)) return PARTITA_ERR_NOMEM;
    morph->memory = arena.base;
    layout_memory(plan, morph, &arena);
    assert(arena.used == arena.size);
    morph->combined = (struct partita_filter){.plan = plan, .state = &morph->made};
    swap_queue_open(&morph->queue);
    morph_set_weights(morph, weights);
    morph_sum_all(plan, morph);
    return PARTITA_OK;
}

void morph_set_weights(struct morph *morph, const double *weights)
{
    const size_t bytes = morph->n * sizeof *weights;
    memcpy(morph->request->from, weights, bytes);
    memcpy(morph->request->to, weights, bytes);
    memcpy(morph->request->now, weights, bytes);
    for (size_t i = 0; i <= PARTITION_MAX_SEGMENTS; i++)
        for (size_t s = 0; s < morph->part[i].n_slices; s++)
            memcpy(morph->part[i].weights + s * morph->n, weights, bytes);
}

struct cmac_path morph_sum_lines(const struct partita_plan *plan, const struct morph *morph,
                                 size_t i, size_t path, struct fft_steps lines, char *changes)
{
    const struct morph_part *part = &morph->part[i];
    const struct morph_slice slice = morph_slice_at(plan, i, part->cycle->slice);
    const double *weights = part->weights + part->cycle->slice * morph->n;
    const struct path_section *to = &morph->made.paths[path].segment[i][slice.section];
    const size_t first = size_max(slice.first, to->first);
    const size_t end = size_min(slice.first + slice.count, to->first + to->count);
    assert(lines.end - lines.first <= MORPH_LINES);
    for (size_t p = first; p < end; p++) {
        const size_t column = lines.first * to->stride + p - to->first;
        struct morph_operands operands = {.y = to->spectra + column * SPECTRUM_LINE_BYTES,
                                          .y_pitch = to->stride,
                                          .change = changes + (p - first) * SPECTRUM_LINE_BYTES,
                                          .change_pitch = end - first};
        for (size_t k = 0; k < morph->n; k++) {
            const struct path_section *from = source_of(morph, path, k, i, slice.section);
            if (!from || p < from->first || p >= from->first + from->count) continue;
            const size_t at = lines.first * from->stride + p - from->first;
            operands.term[operands.n_terms++] = (struct morph_term){
                from->spectra + at * SPECTRUM_LINE_BYTES, from->stride, weights[k]};
        }
        morph->loops->sum(&operands, lines.end - lines.first);
    }
    return (struct cmac_path){.h = changes,
                              .first = first,
                              .count = end > first ? end - first : 0,
                              .h_pitch = end > first ? end - first : 0};
}

size_t morph_head_change(const struct partita_plan *plan, const struct morph *morph, size_t path,
                         struct history_taps *ret_taps)
{
    const size_t n = partitioned_of(plan)->layout.n_segments;
    const struct morph_part *part = &morph->part[n];
    const struct morph_slice slice = morph_slice_at(plan, n, part->cycle->slice);
    const struct history_taps *head = &morph->heads[path];
    const size_t end = size_min(slice.first + slice.count, head->n);
    *ret_taps = (struct history_taps){
        .channel = head->channel,
        .taps = part->changes + path * HEAD_TAPS * plan->shape.tap_bytes,
        .n = end > slice.first ? end - slice.first : 0,
    };
    return slice.first;
}

// y += weight * x, through the memory at `scaled`.
static void add_scaled(const struct kernels *kernels, char *y, const char *x, double weight,
                       char *scaled, size_t reals)
{
    kernels->scale(scaled, x, weight, reals);
    kernels->add(y, scaled, reals);
}

void morph_sum_head(const struct partita_plan *plan, const struct morph *morph)
{
    const struct morph_part *part = &morph->part[partitioned_of(plan)->layout.n_segments];
    const size_t reals = plan->shape.complex_taps ? 2 : 1, bytes = plan->shape.tap_bytes;
    const double *weights = part->weights + part->cycle->slice * morph->n;
    _Alignas(MEM_ALIGN) char sum[HEAD_TAPS * 16], scaled[HEAD_TAPS * 16];
    struct history_taps change;
    for (size_t p = 0; p < path_count(plan, morph); p++) {
        const size_t first = morph_head_change(plan, morph, p, &change);
        char *taps = (char *)(uintptr_t)morph->heads[p].taps + first * bytes;
        char *to = (char *)(uintptr_t)change.taps;
        memset(sum, 0, sizeof sum);
        for (size_t k = 0; k < morph->n; k++) {
            const size_t source = morph->sources[p * morph->n + k];
            if (source == NO_PATH) continue;
            const struct history_taps *from = &filter_at(morph, k)->view.heads[source];
            if (from->n <= first) continue;
            add_scaled(plan->kernels, sum, from->taps + first * bytes, weights[k], scaled,
                       size_min(change.n, from->n - first) * reals);
        }
        memcpy(to, sum, change.n * bytes);
        add_scaled(plan->kernels, to, taps, -1, scaled, change.n * reals);
        memcpy(taps, sum, change.n * bytes);
    }
}

void morph_sum_all(const struct partita_plan *plan, struct morph *morph)
{
    const size_t n = partitioned_of(plan)->layout.n_segments;
    for (size_t i = 0; i <= n; i++) {
        struct morph_part *part = &morph->part[i];
        const size_t all = i < n ? partitioned_of(plan)->work[i].lines : 0;
        for (part->cycle->slice = 0; part->cycle->slice < part->n_slices; part->cycle->slice++) {
            for (size_t p = 0; p < path_count(plan, morph); p++)
                for (size_t line = 0; line < all; line += MORPH_LINES)
                    morph_sum_lines(plan, morph, i, p,
                                    (struct fft_steps){line, size_min(line + MORPH_LINES, all)},
                                    part->changes);
            if (i == n) morph_sum_head(plan, morph);
        }
    }
}
