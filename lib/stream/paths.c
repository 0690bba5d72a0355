// SPDX-License-Identifier: MIT
#include "paths.h"

#include <assert.h>
#include <string.h>

#include "base/sizes.h"
#include "geometry/samples.h"
#include "kernels/kernels.h"

static bool taps_are_zero(const struct partita_plan *plan, const char *taps, size_t n)
{
    return n == 0 || plan->kernels->peak(taps, n * (plan->shape.complex_taps ? 2 : 1)) == 0;
}

size_t path_build_max(const struct path_build *build, size_t n_paths)
{
    const size_t *first = build->base.first_path;
    return size_add(n_paths, first ? first[build->plan->shape.out_channels] : 0);
}

void path_build_layout(struct path_build *build, size_t n_paths, struct arena *arena)
{
    const struct shape *shape = &build->plan->shape;
    const size_t max = path_build_max(build, n_paths);
    build->sources = arena_take(arena, size_mul(max, sizeof *build->sources));
    build->head_taps = arena_take(arena, size_mul(max, sizeof *build->head_taps));
    build->row = arena_take(arena, shape->axis[0].kernel * shape->tap_bytes);
    build->causal = arena_take(arena, shape->axis[0].span * shape->tap_bytes);
}

static bool paths_equal(const struct path_build *build, const struct path_source *a,
                        const struct path_source *b)
{
    if (!a->given || !b->given) {
        const struct history_taps *heads = build->base.heads;
        return !a->given && !b->given && heads[a->taken].taps == heads[b->taken].taps;
    }
    return a->given->delay == b->given->delay && a->given->length == b->given->length &&
           !memcmp(a->given->taps, b->given->taps, a->given->length * build->plan->shape.tap_bytes);
}

static bool is_given(const struct partita_path *paths, size_t n, size_t out, size_t in)
{
    for (size_t i = 0; i < n; i++)
        if (paths[i].out == out && paths[i].in == in) return true;
    return false;
}

static void list_output(struct path_build *build, const struct partita_path *paths, size_t n_paths,
                        size_t out)
{
    const struct path_view *base = &build->base;
    for (size_t i = 0; i < n_paths; i++)
        if (paths[i].out == out && !taps_are_zero(build->plan, paths[i].taps, paths[i].length))
            build->sources[build->n++] =
                (struct path_source){.out = out, .in = paths[i].in, .given = &paths[i]};
    if (!base->first_path) return;
    for (size_t i = base->first_path[out]; i < base->first_path[out + 1]; i++) {
        const size_t in = base->heads[i].channel;
        if (!is_given(paths, n_paths, out, in))
            build->sources[build->n++] = (struct path_source){.out = out, .in = in, .taken = i};
    }
}

void path_build_list(struct path_build *build, const struct partita_path *paths, size_t n_paths)
{
    for (size_t out = 0; out < build->plan->shape.out_channels; out++)
        list_output(build, paths, n_paths, out);
    assert(build->n <= path_build_max(build, n_paths));
    for (size_t i = 0; i < build->n; i++) {
        size_t twin = 0;
        while (twin < i && !paths_equal(build, &build->sources[twin], &build->sources[i])) twin++;
        build->sources[i].twin = twin;
    }
}

bool path_build_next(struct path_build *build, size_t *p)
{
    const struct shape *shape = &build->plan->shape;
    while (*p < build->n && build->sources[*p].twin != *p) ++*p;
    if (*p == build->n) return false;
    const struct partita_path *path = build->sources[*p].given;
    if (!path) return true;
    assert(path->delay + path->length <= shape->axis[0].kernel);
    memset(build->row, 0, shape->axis[0].kernel * shape->tap_bytes);
    memset(build->causal, 0, shape->axis[0].span * shape->tap_bytes);
    memcpy(build->row + path->delay * shape->tap_bytes, path->taps,
           path->length * shape->tap_bytes);
    causal_taps(shape, build->causal, build->row);
    return true;
}

void path_build_head(struct path_build *build, size_t p, size_t max)
{
    const struct path_source *source = &build->sources[p];
    const size_t bytes = build->plan->shape.tap_bytes;
    assert(max <= build->plan->shape.axis[0].span);
    size_t *taps = &build->head_taps[p];
    *taps = source->given ? max : build->base.heads[source->taken].n;
    if (!source->given) return;
    while (*taps && taps_are_zero(build->plan, build->causal + (*taps - 1) * bytes, 1)) --*taps;
}

struct path_range path_build_range(const struct path_build *build, size_t from, size_t taps,
                                   size_t partitions)
{
    const struct shape *shape = &build->plan->shape;
    const size_t span = shape->axis[0].span;
    struct path_range range = {0, 0};
    assert(taps > 0);
    for (size_t p = 0; p < partitions && from < span; p++, from += taps) {
        const size_t n = size_min(span - from, taps);
        if (taps_are_zero(build->plan, build->causal + from * shape->tap_bytes, n)) continue;
        if (!range.end) range.first = p;
        range.end = p + 1;
    }
    return range;
}

struct path_view path_build_view(struct path_build *build, struct arena *arena)
{
    const struct shape *shape = &build->plan->shape;
    size_t *first_path = arena_take(arena, (shape->out_channels + 1) * sizeof *first_path);
    struct history_taps *heads = arena_take(arena, size_mul(build->n, sizeof *heads));
    for (size_t p = 0; p < build->n; p++) {
        const struct path_source *source = &build->sources[p];
        const size_t bytes = build->head_taps[source->twin] * shape->tap_bytes;
        // A byte at least: the address tells paths apart.
        char *taps = source->twin == p ? arena_take(arena, bytes + 1) : NULL;
        if (!first_path) continue;
        if (source->twin != p) heads[p] = heads[source->twin];
        else {
            path_build_next(build, &p);
            memcpy(taps, source->given ? build->causal : build->base.heads[source->taken].taps,
                   bytes);
            heads[p] = (struct history_taps){.taps = taps, .n = build->head_taps[p]};
        }
        heads[p].channel = source->in;
    }
    for (size_t out = 0, p = 0; first_path && out <= shape->out_channels; out++) {
        while (p < build->n && build->sources[p].out < out) p++;
        first_path[out] = p;
    }
    assert(!first_path || first_path[shape->out_channels] == build->n);
    return (struct path_view){first_path, heads};
}

enum partita_status paths_create_dense(struct partita_filter *filter, const void *taps)
{
    const struct partita_plan *plan = filter->plan;
    const struct shape *shape = &plan->shape;
    const size_t n = shape_path_count(shape), length = shape->axis[0].kernel;
    struct partita_path *paths = mem_allocate(&plan->allocator, size_mul(n, sizeof *paths));
    if (!paths) return PARTITA_ERR_NOMEM;
    for (size_t i = 0; i < n; i++) {
        const size_t out = i / shape->group_in, group = out / shape->group_out;
        paths[i] =
            (struct partita_path){.out = out,
                                  .in = group * shape->group_in + i % shape->group_in,
                                  .length = length,
                                  .taps = (const char *)taps + i * length * shape->tap_bytes};
    }
    const enum partita_status status = plan->engine->filter.create_paths(filter, paths, n, NULL);
    mem_release(&plan->allocator, paths);
    return status;
}
