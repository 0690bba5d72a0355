// SPDX-License-Identifier: MIT
// Filters of cuda/partitioned: each path's taps are split into the head, which stays on the host,
// and the partitions of every segment, which the device transforms. Partitions and paths of zeros
// are left out, paths with the same taps stored once, and paths of another filter shared with it.
#include <assert.h>
#include <string.h>

#include "base/sizes.h"
#include "geometry/samples.h"
#include "partitioned.h"

// Taps are brought to the device in batches of whole paths of at most so many bytes, unless one
// path has more.
static const size_t max_batch_bytes = (size_t)256 << 20;

// Where a new path is in the memory of the filter's own paths.
struct path_offsets {
    int64_t column[CUDA_MAX_SEGMENTS], head;
};

struct filter_build {
    struct path_build paths;
    const struct cuda_partitioned_filter *base; // NULL: none
    struct cuda_path *entries;                  // as the sources
    struct path_offsets *offsets;
    struct cuda_path_memory *made; // of the given paths; NULL: there are none
    size_t n_given;
    struct path_offsets used; // by all of them
    char *heads;              // [used.head]
    // A batch of given paths, and their taps as signals are.
    size_t batch, max_batch;
    struct cuda_path *batch_paths; // [max_batch]
    char *batch_samples;           // [max_batch][span]
    void *staged;                  // both on the device
};

static const struct cuda_partition_layout *layout_of(const struct filter_build *build)
{
    return &cuda_partitioned_of(build->paths.plan)->layout;
}

static size_t first_tap(const struct filter_build *build, int i)
{
    return cuda_partitioned_of(build->paths.plan)->split.segment[i].first;
}

// Finds the partitions of a given path that are not zero.
static void measure_given_path(struct filter_build *build, size_t p)
{
    struct cuda_path *path = &build->entries[p];
    struct path_offsets *used = &build->used;
    build->offsets[p] = *used;
    for (int i = 0; i < layout_of(build)->n_segments; i++) {
        const struct cuda_segment *segment = &layout_of(build)->segment[i];
        const struct path_range range = path_build_range(
            &build->paths, first_tap(build, i), (size_t)segment->hop, (size_t)segment->partitions);
        path->segment[i].first = (int)range.first;
        path->segment[i].count = (int)(range.end - range.first);
        used->column[i] += path->segment[i].count;
    }
    used->head += path->head_taps;
    build->n_given++;
}

// The parts of the paths. Those that are taken over keep their memory.
static void measure_cuda_paths(struct filter_build *build)
{
    const size_t head = cuda_partitioned_of(build->paths.plan)->split.head;
    for (size_t p = 0; path_build_next(&build->paths, &p); p++) {
        const struct path_source *source = &build->paths.sources[p];
        build->entries[p] =
            source->given ? (struct cuda_path){0} : build->base->paths[source->taken];
        path_build_head(&build->paths, p, head);
        build->entries[p].head_taps = (int)build->paths.head_taps[p];
        if (source->given) measure_given_path(build, p);
    }
}

// All that measuring needs.
static void layout_filter_build(struct filter_build *build, size_t n_paths, struct arena *arena)
{
    const size_t max = path_build_max(&build->paths, n_paths);
    path_build_layout(&build->paths, n_paths, arena);
    build->entries = arena_take(arena, size_mul(max, sizeof *build->entries));
    build->offsets = arena_take(arena, size_mul(max, sizeof *build->offsets));
}

static size_t path_bytes(const struct filter_build *build)
{
    const struct shape *shape = &build->paths.plan->shape;
    return size_mul(shape->axis[0].span, shape->sample_bytes);
}

// Further memory for bringing the given paths to the device.
static void layout_batch(struct filter_build *build, struct arena *arena)
{
    const size_t bytes = build->paths.plan->shape.tap_bytes;
    const size_t fit = max_batch_bytes / path_bytes(build);
    build->max_batch = size_min(build->n_given, fit ? fit : 1);
    build->batch_paths = arena_take(arena, size_mul(build->max_batch, sizeof *build->batch_paths));
    build->batch_samples = arena_take(arena, size_mul(build->max_batch, path_bytes(build)));
    build->heads = arena_take(arena, size_mul((size_t)build->used.head, bytes));
}

// The host's part of a filter, filled unless the arena only counts.
static struct cuda_partitioned_filter *layout_cuda_filter(struct filter_build *build,
                                                          struct arena *arena)
{
    const size_t n = build->paths.n;
    struct cuda_partitioned_filter *state = arena_take(arena, sizeof *state);
    struct cuda_path *paths = arena_take(arena, size_mul(n, sizeof *paths));
    struct cuda_path_memory **sources = arena_take(arena, size_mul(n, sizeof *sources));
    const struct path_view view = path_build_view(&build->paths, arena);
    if (!state) return NULL;
    *state = (struct cuda_partitioned_filter){.view = view, .paths = paths, .sources = sources};
    return state;
}

// The memory of the given paths, whose places are written to `own` unless the arena only counts.
static void layout_given(struct filter_build *build, char **ret_heads, struct arena *arena)
{
    const struct shape *shape = &build->paths.plan->shape;
    const struct cuda_partition_layout *layout = layout_of(build);
    const struct path_offsets *used = &build->used;
    const size_t bins = (size_t)1 << layout->log2_share, lines = bins / CUDA_I16_BINS;
    size_t shares = 0, first[CUDA_MAX_SEGMENTS];
    for (int i = 0; i < layout->n_segments; i++) {
        first[i] = shares;
        shares =
            size_add(shares, size_mul((size_t)used->column[i], (size_t)layout->segment[i].quanta));
    }
    const size_t bin_bytes = layout->i16 ? 2 * sizeof(int16_t) : 2 * shape->scalar_bytes;
    void *const spectra = arena_take(arena, size_mul(shares, bins * bin_bytes));
    float *const scales =
        arena_take(arena, layout->i16 ? size_mul(shares, lines * sizeof *scales) : 0);
    *ret_heads = arena_take(arena, size_mul((size_t)used->head, shape->tap_bytes));
    for (size_t p = 0; arena->base && p < build->paths.n; p++) {
        const struct path_source *source = &build->paths.sources[p];
        if (source->twin != p || !source->given) continue;
        struct cuda_path *path = &build->entries[p];
        path->head = *ret_heads + (size_t)build->offsets[p].head * shape->tap_bytes;
        path->spectra = spectra;
        path->scales = scales;
        for (int i = 0; i < layout->n_segments; i++) {
            assert(used->column[i] <= INT32_MAX && shares <= UINT32_MAX);
            path->segment[i].columns = (int)used->column[i];
            path->segment[i].at = (uint32_t)(first[i] + (size_t)build->offsets[p].column[i]);
        }
    }
}

// Copies the visited path's taps to the batch.
static void add_to_batch(struct filter_build *build, size_t p)
{
    const struct shape *shape = &build->paths.plan->shape;
    const bool widen = shape->complex_signal && !shape->complex_taps;
    const size_t bytes = path_bytes(build);
    char *samples = build->batch_samples + build->batch * bytes;
    if (widen) memset(samples, 0, bytes); // the imaginary parts
    samples_copy(samples, widen ? 2 : 1, build->paths.causal, 1, shape->axis[0].span,
                 shape->tap_bytes);
    memcpy(build->heads + (size_t)build->offsets[p].head * shape->tap_bytes, build->paths.causal,
           (size_t)build->entries[p].head_taps * shape->tap_bytes);
    build->batch_paths[build->batch++] = build->entries[p];
}

// Transforms the batch, and waits, as it is filled again.
static enum partita_status transform_batch(struct filter_build *build)
{
    const struct partita_plan *plan = build->paths.plan;
    const size_t n = build->batch, list_bytes = build->max_batch * sizeof *build->batch_paths;
    char *taps = (char *)build->staged + mem_round(list_bytes);
    build->batch = 0;
    enum partita_status status =
        cuda_copy(plan, build->staged, build->batch_paths, n * sizeof *build->batch_paths);
    if (status == PARTITA_OK)
        status = cuda_copy(plan, taps, build->batch_samples, n * path_bytes(build));
    for (int i = 0; i < layout_of(build)->n_segments && status == PARTITA_OK; i++) {
        const struct cuda_partition_taps job = {
            .segment = i,
            .n = (int64_t)n,
            .span = (int64_t)plan->shape.axis[0].span,
            .first = (int64_t)first_tap(build, i),
            .paths = build->staged,
            .taps = taps,
        };
        status = CU(plan, cuda_partitioned_launch_taps(layout_of(build), &job));
    }
    const enum partita_status waited = cuda_wait(plan);
    return status == PARTITA_OK ? waited : status;
}

static enum partita_status transform_given(struct filter_build *build, char *heads)
{
    const struct partita_plan *plan = build->paths.plan;
    const size_t list_bytes = mem_round(build->max_batch * sizeof *build->batch_paths);
    enum partita_status status = cuda_allocate(
        plan, size_add(list_bytes, build->max_batch * path_bytes(build)), &build->staged);
    for (size_t p = 0; status == PARTITA_OK && path_build_next(&build->paths, &p); p++) {
        if (!build->paths.sources[p].given) continue;
        add_to_batch(build, p);
        if (build->batch == build->max_batch) status = transform_batch(build);
    }
    if (status == PARTITA_OK && build->batch) status = transform_batch(build);
    if (status == PARTITA_OK && build->used.head)
        status =
            cuda_copy(plan, heads, build->heads, (size_t)build->used.head * plan->shape.tap_bytes);
    cuda_release(plan, build->staged);
    const enum partita_status waited = cuda_wait(plan);
    return status == PARTITA_OK ? waited : status;
}

static void release_path_memory(const struct partita_plan *plan, struct cuda_path_memory *memory)
{
    if (atomic_fetch_sub(&memory->users, 1) > 1) return;
    plan->device->release(plan, memory->memory);
    mem_release(&plan->allocator, memory);
}

// The device's memory of the given paths, complete when the call returns. The build is its first
// user.
static enum partita_status make_given(struct filter_build *build)
{
    const struct partita_plan *plan = build->paths.plan;
    struct arena device = {0}, batch = {0};
    char *heads;
    if (!build->n_given) return PARTITA_OK;
    build->made = mem_allocate(&plan->allocator, sizeof *build->made);
    if (!build->made) return PARTITA_ERR_NOMEM;
    atomic_init(&build->made->users, 1);
    build->made->memory = NULL;
    layout_given(build, &heads, &device);
    layout_batch(build, &batch);
    if (!arena_reserve(&batch, &plan->allocator)) return PARTITA_ERR_NOMEM;
    layout_batch(build, &batch);
    enum partita_status status = cuda_allocate(plan, device.used, &build->made->memory);
    if (status == PARTITA_OK) {
        device = (struct arena){.base = build->made->memory, .size = device.used};
        layout_given(build, &heads, &device);
        assert(device.used == device.size);
        status = transform_given(build, heads);
    }
    mem_release(&plan->allocator, batch.base);
    return status;
}

// Paths with the places of all spectra, which this filter uses from now on.
static void fill_paths(const struct filter_build *build, struct cuda_partitioned_filter *state)
{
    for (size_t p = 0; p < build->paths.n; p++) {
        const struct path_source *source = &build->paths.sources[p],
                                 *twin = &build->paths.sources[source->twin];
        state->paths[p] = build->entries[source->twin];
        state->paths[p].in = (int)source->in;
        state->sources[p] = twin->given ? build->made : build->base->sources[twin->taken];
        atomic_fetch_add(&state->sources[p]->users, 1);
    }
    state->n_paths = build->paths.n;
}

// The device's list of paths, complete when the call returns.
static enum partita_status upload_paths(const struct partita_plan *plan,
                                        struct cuda_partitioned_filter *state)
{
    const size_t index = (plan->shape.out_channels + 1) * sizeof *state->view.first_path;
    const size_t bytes = state->n_paths * sizeof *state->paths;
    enum partita_status status = cuda_allocate(plan, mem_round(index) + bytes, &state->memory);
    if (status != PARTITA_OK) return status;
    state->device.first_path = state->memory;
    state->device.paths = (struct cuda_path *)((char *)state->memory + mem_round(index));
    status = cuda_copy(plan, state->device.first_path, state->view.first_path, index);
    if (status == PARTITA_OK && bytes)
        status = cuda_copy(plan, state->device.paths, state->paths, bytes);
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
    struct arena temporary = {0}, memory = {0};
    layout_filter_build(&build, n_paths, &temporary);
    if (!arena_reserve(&temporary, &plan->allocator)) return PARTITA_ERR_NOMEM;
    layout_filter_build(&build, n_paths, &temporary);
    assert(temporary.used == temporary.size);
    path_build_list(&build.paths, paths, n_paths);
    measure_cuda_paths(&build);
    assert(build.n_given <= n_paths);
    struct cuda_scope scope;
    enum partita_status status = cuda_enter(plan, &scope);
    if (status == PARTITA_OK) status = make_given(&build);
    layout_cuda_filter(&build, &memory);
    if (status == PARTITA_OK && !arena_reserve(&memory, &plan->allocator))
        status = PARTITA_ERR_NOMEM;
    if (status == PARTITA_OK) {
        struct cuda_partitioned_filter *state = filter->state = layout_cuda_filter(&build, &memory);
        assert(memory.used == memory.size);
        fill_paths(&build, state);
        status = upload_paths(plan, state);
    }
    if (build.made) release_path_memory(plan, build.made);
    cuda_leave(&scope);
    mem_release(&plan->allocator, temporary.base);
    return status;
}

void cuda_partitioned_filter_destroy(struct partita_filter *filter)
{
    const struct partita_plan *plan = filter->plan;
    struct cuda_partitioned_filter *state = filter->state;
    if (!state) return;
    for (size_t p = 0; p < state->n_paths; p++) release_path_memory(plan, state->sources[p]);
    plan->device->release(plan, state->memory);
    mem_release(&plan->allocator, state);
}
