// SPDX-License-Identifier: MIT
// Sizes, radices and tables of the native transform.
#include "native.h"

#include <string.h>

#include "base/scalar.h"
#include "roots.h"

// Every vector width, up to 16 lanes, and either sample type leaves whole leaves.
bool native_serves(size_t n)
{
    enum { UNIT = 2 * 4 * 16 };
    if (n % UNIT || n == 0) return false;
    while (n % 3 == 0) n /= 3;
    while (n % 5 == 0) n /= 5;
    return (n & (n - 1)) == 0;
}

// Radices from the whole down to the leaves: odd ones first, then as few as possible of 4 and 8;
// 1 where the whole is a leaf, for the samples must be read.
static void choose_radices(struct native *native)
{
    size_t nodes = native->length[0] / (4 * native->kernels->lanes);
    native->passes = 0;
    if (nodes == 1) native->radix[native->passes++] = 1;
    while (nodes % 3 == 0 || nodes % 5 == 0) {
        native->radix[native->passes] = nodes % 5 == 0 ? 5 : 3;
        nodes /= (size_t)native->radix[native->passes++];
    }
    for (int octaves = __builtin_ctzll(nodes); octaves > 0;) {
        int step = 2;
        if (octaves % 3 == 0 || octaves == 5 || octaves > 6) step = 3;
        else if (octaves == 1) step = 1;
        native->radix[native->passes++] = 1 << step;
        octaves -= step;
    }
    assert(native->passes <= MAX_PASSES);
    for (int pass = 0; pass < native->passes; pass++)
        native->length[pass + 1] = native->length[pass] / (size_t)native->radix[pass];
    assert(native->length[native->passes] == 4 * native->kernels->lanes);
}

// Small transforms have a twist for every leaf; in large ones groups of leaves share a table that
// fits into L1.
static void choose_group(struct native *native)
{
    const size_t leaf_bytes = 4 * vector_bytes(native);
    native->group = native->length[0] / (4 * native->kernels->lanes);
    native->grouped_from = 0;
    while (native->grouped_from < native->passes && native->group * leaf_bytes > TWIST_BYTES)
        native->group /= (size_t)native->radix[native->grouped_from++];
}

// How steps go: a small node is one; a larger one takes a step for each chunk of its pass and those
// of its children.
static void count_steps(struct native *native)
{
    native->steps[native->passes] = 1;
    for (int pass = native->passes; pass-- > 0;) {
        const size_t bytes = native->length[pass] * complex_bytes(native);
        const size_t vectors = native->length[pass + 1] / native->kernels->lanes;
        native->chunks[pass] = size_min(size_max(bytes / CHUNK_BYTES, 1), vectors);
        const size_t below = (size_t)native->radix[pass] * native->steps[pass + 1];
        native->steps[pass] = bytes <= STEP_BYTES ? 1 : native->chunks[pass] + below;
    }
}

// The factors of a radix for each node, from the nodes' phases.
static void fill_node_factors(const struct native *native, const struct roots *roots, void *table,
                              const double *phase, size_t nodes, int radix)
{
    size_t at = 0;
    for (size_t i = 0; i < nodes; i++)
        for (int p = 1; p < radix; p++, at += 2) {
            const struct root root = roots_at(roots, p * phase[i] / radix);
            scalar_put(native->fft.f64, table, at, root.re);
            scalar_put(native->fft.f64, table, at + 1, root.im);
        }
}

// Replaces the phases of all nodes of a pass by those of their children, in place, last to first.
static size_t split_phases(double *phase, size_t nodes, int radix)
{
    for (size_t i = nodes; i-- > 0;)
        for (int q = radix; q-- > 0;) phase[i * (size_t)radix + (size_t)q] = (phase[i] + q) / radix;
    return nodes * (size_t)radix;
}

// The twist of one vector: e^(-2 pi i phase j / lanes) for its lanes j, real parts first.
static void fill_twist(const struct native *native, const struct roots *roots, void *table,
                       double phase)
{
    const size_t lanes = native->kernels->lanes;
    for (size_t j = 0; j < lanes; j++) {
        const struct root root = roots_at(roots, phase * (double)j / (double)lanes);
        scalar_put(native->fft.f64, table, j, root.re);
        scalar_put(native->fft.f64, table, lanes + j, root.im);
    }
}

// Lays all tables out in the arena; the phases of the leaves, the most there are of any pass, come
// last and are returned.
static double *layout_tables(struct native *native, struct arena *arena)
{
    size_t nodes = 1;
    for (int i = 0; i < native->passes; i++) {
        native->factors[i] =
            arena_take(arena, nodes * (size_t)(native->radix[i] - 1) * complex_bytes(native));
        nodes *= (size_t)native->radix[i];
    }
    native->leaf_factors = arena_take(arena, nodes * 3 * complex_bytes(native));
    native->twists = arena_take(arena, native->group * 4 * vector_bytes(native));
    native->common = arena_take(arena, nodes / native->group * vector_bytes(native));
    assert(nodes * 4 * native->kernels->lanes == native->length[0] && nodes % native->group == 0);
    return arena_take(arena, nodes * sizeof(double));
}

// Phases of the nodes that the passes first .. end-1 lead to, from one node of phase `start`.
static size_t fill_phases(const struct native *native, double *phase, int first, int end,
                          double start)
{
    size_t nodes = 1;
    phase[0] = start;
    for (int i = first; i < end; i++) nodes = split_phases(phase, nodes, native->radix[i]);
    return nodes;
}

// The phase of leaf hi * group + lo is phase(hi) / group, common to a group, plus the phase that
// lo would have below phase 0.
static void fill_tables(struct native *native, double *phase)
{
    const double start = native->fft.complex ? 0 : 0.25;
    struct roots roots;
    roots_make(&roots);
    for (int i = 0; i < native->passes; i++) {
        const size_t nodes = fill_phases(native, phase, 0, i, start);
        fill_node_factors(native, &roots, native->factors[i], phase, nodes, native->radix[i]);
    }
    const size_t leaves = fill_phases(native, phase, 0, native->passes, start);
    fill_node_factors(native, &roots, native->leaf_factors, phase, leaves, 4);
    const size_t groups = fill_phases(native, phase, 0, native->grouped_from, start);
    for (size_t i = 0; i < groups; i++)
        fill_twist(native, &roots, (char *)native->common + i * vector_bytes(native),
                   phase[i] / (4 * (double)native->group));
    fill_phases(native, phase, native->grouped_from, native->passes, groups > 1 ? 0 : start);
    for (size_t i = 0; i < native->group * 4; i++)
        fill_twist(native, &roots, (char *)native->twists + i * vector_bytes(native),
                   (phase[i / 4] + (double)(i % 4)) / 4);
}

enum partita_status native_create(const struct fft_request *request,
                                  const struct partita_allocator *allocator, struct fft **ret)
{
    const size_t scalar = request->f64 ? 8 : 4, lanes = SPECTRUM_LANES_BYTES / scalar;
    const size_t length = request->complex ? request->n : request->n / 2;
    struct native native = {
        .fft = {.provider = &fft_native,
                .allocator = *allocator,
                .n = request->n,
                .f64 = request->f64,
                .complex = request->complex,
                .halves = !request->complex,
                .gain = (double)length,
                .lines = length / lanes},
        .kernels = kernels_select(request->isa, request->f64)->fft,
        .length = {length},
    };
    choose_radices(&native);
    choose_group(&native);
    count_steps(&native);
    native.fft.steps = native.steps[0];
    native.fft.sample_steps = native.steps[0] > 1 ? native.chunks[0] : 1;
    native.fft.subtransforms = native.steps[0] > 1 ? (size_t)native.radix[0] : 1;
    struct arena arena = {0};
    arena_take(&arena, sizeof native);
    layout_tables(&native, &arena);
    if (!arena_allocate(&arena, allocator)) return PARTITA_ERR_NOMEM;
    struct native *placed = arena_take(&arena, sizeof native);
    fill_tables(&native, layout_tables(&native, &arena));
    *placed = native;
    *ret = &placed->fft;
    return PARTITA_OK;
}
