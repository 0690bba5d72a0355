// SPDX-License-Identifier: MIT
// The transform made for convolution: no re-ordering, vectors all the way, nothing to plan. Samples
// are a polynomial modulo u^L - e^(-2 pi i phi), which every pass splits into smaller ones of the
// same kind (fft_kernels.h). Complex samples start with phi = 0, an ordinary DFT. Real samples
// x[2L] are taken as x[j] - i x[j + L] with phi = 1/4: products modulo u^L + i are convolutions
// that wrap negacyclically after 2L samples, and no bin needs its mirror image.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "kernels/fft_kernels.h"
#include "provider.h"

enum {
    MAX_PASSES = 16,
    TWIST_BYTES = 1 << 14, // of one group: stays in L1
    // A node this small is done pass by pass; larger ones child by child, so that these stay near.
    NEAR_BYTES = 1 << 17,
    STEP_BYTES = 1 << 12,  // a node this small is one step,
    CHUNK_BYTES = 1 << 13, // and this much of a larger node's pass
};

struct native {
    struct fft fft;
    const struct fft_kernels *kernels;
    bool f64, complex;
    size_t length; // L
    int passes, radix[MAX_PASSES];
    size_t chunks[MAX_PASSES];    // columns of a pass over one node are split into so many steps
    size_t steps[MAX_PASSES + 1]; // of a node that a pass splits, with all below it
    void *factors[MAX_PASSES];    // of each pass's nodes, in order
    void *leaf_factors;
    int grouped_from; // leaves below one node of this pass are a group; pass 0: all are one group
    size_t group;     // leaves of a group
    void *twists;     // of the leaves of any group
    void *common;     // what each group's twists have in common, if there are several
};

static size_t complex_bytes(const struct native *native)
{
    return native->f64 ? 16 : 8;
}

static size_t vector_bytes(const struct native *native)
{
    return native->kernels->lanes * complex_bytes(native);
}

// Every vector width, up to 16 lanes, and either sample type leaves whole leaves.
static bool native_serves(size_t n)
{
    enum { UNIT = 2 * 4 * 16 };
    if (n % UNIT) return false;
    const size_t odd = n >> __builtin_ctzll(n);
    return odd == 1 || odd == 3 || odd == 5;
}

// Radices from the whole down to the leaves: the odd one first, then as few as possible of 4 and 8;
// 1 where the whole is a leaf, for the samples must be read.
static void choose_radices(struct native *native)
{
    size_t nodes = native->length / (4 * native->kernels->lanes);
    native->passes = 0;
    if (nodes == 1) native->radix[native->passes++] = 1;
    if (nodes % 3 == 0 || nodes % 5 == 0) {
        native->radix[native->passes] = nodes % 3 == 0 ? 3 : 5;
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
}

// Small transforms have a twist for every leaf; in large ones groups of leaves share a table that
// fits into L1.
static void choose_group(struct native *native)
{
    const size_t leaf_bytes = 4 * vector_bytes(native);
    native->group = native->length / (4 * native->kernels->lanes);
    native->grouped_from = 0;
    while (native->grouped_from < native->passes && native->group * leaf_bytes > TWIST_BYTES)
        native->group /= (size_t)native->radix[native->grouped_from++];
}

// How steps go: a small node is one; a larger one takes a step for each chunk of its pass and those
// of its children.
static void count_steps(struct native *native)
{
    size_t length = native->length;
    for (int pass = 0; pass < native->passes; length /= (size_t)native->radix[pass++]) {
        const size_t wanted = size_max(length * complex_bytes(native) / CHUNK_BYTES, 1);
        const size_t vectors = length / (size_t)native->radix[pass] / native->kernels->lanes;
        native->chunks[pass] = size_min(wanted, vectors);
    }
    native->steps[native->passes] = 1;
    for (int pass = native->passes; pass-- > 0;) {
        length *= (size_t)native->radix[pass];
        const size_t below = (size_t)native->radix[pass] * native->steps[pass + 1];
        native->steps[pass] =
            length * complex_bytes(native) <= STEP_BYTES ? 1 : native->chunks[pass] + below;
    }
    assert(length == native->length);
}

// Those of `steps` that lie in `count` steps from `from` on, counted from there.
static struct fft_steps clip(struct fft_steps steps, size_t from, size_t count)
{
    const size_t first = steps.first > from ? steps.first - from : 0;
    const size_t end = steps.end > from ? steps.end - from : 0;
    return (struct fft_steps){size_min(first, count), size_min(end, count)};
}

// The first child that has a step from `step` on; a child has `below`, the first one's begin after
// `before`.
static size_t child_at(size_t step, size_t before, size_t below)
{
    return step > before ? (step - before) / below : 0;
}

// Scalar i, and complex number i, of a table.
static void put_real(const struct native *native, void *table, size_t i, double value)
{
    if (native->f64) ((double *)table)[i] = value;
    else ((float *)table)[i] = (float)value;
}

static void put_complex(const struct native *native, void *table, size_t i, double re, double im)
{
    put_real(native, table, 2 * i, re);
    put_real(native, table, 2 * i + 1, im);
}

static void fill_node_factors(const struct native *native, void *table, const double *phase,
                              size_t nodes, int radix)
{
    size_t at = 0;
    for (size_t i = 0; i < nodes; i++)
        for (int p = 1; p < radix; p++) {
            const double angle = -2 * M_PI * p * phase[i] / radix;
            put_complex(native, table, at++, cos(angle), sin(angle));
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
static void fill_twist(const struct native *native, void *table, double phase)
{
    const size_t lanes = native->kernels->lanes;
    for (size_t j = 0; j < lanes; j++) {
        const double angle = -2 * M_PI * phase * (double)j / (double)lanes;
        put_real(native, table, j, cos(angle));
        put_real(native, table, lanes + j, sin(angle));
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
    assert(nodes * 4 * native->kernels->lanes == native->length && nodes % native->group == 0);
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

// The phase of leaf hi * group + lo is phase(hi) / group, common to a group, plus what lo would
// have below phase 0.
static void fill_tables(struct native *native, double *phase)
{
    const double start = native->complex ? 0 : 0.25;
    for (int i = 0; i < native->passes; i++) {
        const size_t nodes = fill_phases(native, phase, 0, i, start);
        fill_node_factors(native, native->factors[i], phase, nodes, native->radix[i]);
    }
    const size_t leaves = fill_phases(native, phase, 0, native->passes, start);
    fill_node_factors(native, native->leaf_factors, phase, leaves, 4);
    const size_t groups = fill_phases(native, phase, 0, native->grouped_from, start);
    for (size_t i = 0; i < groups; i++)
        fill_twist(native, (char *)native->common + i * vector_bytes(native),
                   phase[i] / (4 * (double)native->group));
    fill_phases(native, phase, native->grouped_from, native->passes, groups > 1 ? 0 : start);
    for (size_t i = 0; i < native->group * 4; i++)
        fill_twist(native, (char *)native->twists + i * vector_bytes(native),
                   (phase[i / 4] + (double)(i % 4)) / 4);
}

static void native_destroy(struct fft *fft)
{
    const struct partita_allocator allocator = fft->allocator;
    mem_release(&allocator, fft);
}

static enum partita_status native_create(const struct fft_request *request,
                                         const struct partita_allocator *allocator,
                                         struct fft **ret)
{
    const size_t scalar = request->f64 ? 8 : 4, lanes = SPECTRUM_LANES_BYTES / scalar;
    const size_t length = request->complex ? request->n : request->n / 2;
    struct native native = {
        .fft = {.provider = &fft_native,
                .allocator = *allocator,
                .n = request->n,
                .gain = (double)length,
                .lines = length / lanes},
        .kernels = kernels_select(request->level, request->f64)->fft,
        .f64 = request->f64,
        .complex = request->complex,
        .length = length,
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

// A transform under way: samples on one side, spectrum on the other.
struct native_job {
    const struct native *native;
    const struct fft_target *target; // forward alone
    const void *x;                   // forward: samples read
    void *y;                         // inverse: samples written
    enum fft_samples samples;
    bool upper;
};

// A node of the passes before `pass`, with all that is below it.
struct subtree {
    int pass;
    size_t index, length;
    char *data;
};

static size_t radix_of(const struct native *native, struct subtree at)
{
    assert(at.pass < native->passes);
    return (size_t)native->radix[at.pass];
}

static struct subtree child(const struct native *native, struct subtree at, size_t q)
{
    const size_t radix = radix_of(native, at), length = at.length / radix;
    return (struct subtree){at.pass + 1, at.index * radix + q, length,
                            at.data + q * length * complex_bytes(native)};
}

// The columns of a node that some chunks of its pass cover.
static struct fft_node columns(const struct native *native, struct subtree at,
                               struct fft_steps chunks)
{
    const size_t lanes = native->kernels->lanes, radix = radix_of(native, at);
    const size_t vectors = at.length / radix / lanes, count = native->chunks[at.pass];
    assert(chunks.first <= chunks.end && chunks.end <= count);
    return (struct fft_node){.length = at.length,
                             .first = vectors * chunks.first / count * lanes,
                             .end = vectors * chunks.end / count * lanes,
                             .radix = (int)radix,
                             .factors = (char *)native->factors[at.pass] +
                                        at.index * (radix - 1) * complex_bytes(native)};
}

static struct fft_node all_columns(const struct native *native, struct subtree at)
{
    return columns(native, at, (struct fft_steps){0, native->chunks[at.pass]});
}

// Leaves first .. first+count-1, forward to the target, or inverse if there is none.
static void run_leaves(const struct native *native, const struct fft_target *target, char *data,
                       size_t first, size_t count)
{
    const size_t leaf_bytes = 4 * vector_bytes(native), group = native->group;
    for (size_t n; count; first += n, count -= n, data += n * leaf_bytes) {
        const size_t from = first % group;
        n = size_min(count, group - from);
        struct fft_leaves leaves = {.count = n,
                                    .factors = (char *)native->leaf_factors +
                                               first * 3 * complex_bytes(native),
                                    .twists = (char *)native->twists + from * leaf_bytes};
        if (native->grouped_from > 0)
            leaves.common = (char *)native->common + first / group * vector_bytes(native);
        if (!target) {
            native->kernels->leaves_inverse(data, leaves);
            continue;
        }
        const size_t line = first * leaf_bytes / SPECTRUM_LINE_BYTES;
        native->kernels->leaves((char *)target->to + line * target->stride, target->stride, data,
                                leaves);
    }
}

static bool is_near(const struct native *native, struct subtree at)
{
    return at.pass == native->passes || at.length * complex_bytes(native) <= NEAR_BYTES;
}

// What is left of the transform of one node.
static void forward_node(const struct native_job *job, struct subtree at)
{
    const struct native *native = job->native;
    if (is_near(native, at)) {
        size_t nodes = 1;
        for (; at.pass < native->passes; at = child(native, at, 0)) {
            native->kernels->pass(at.data, all_columns(native, at), nodes);
            nodes *= radix_of(native, at);
        }
        run_leaves(native, job->target, at.data, at.index, nodes);
        return;
    }
    native->kernels->pass(at.data, all_columns(native, at), 1);
    for (size_t q = 0; q < radix_of(native, at); q++) forward_node(job, child(native, at, q));
}

// The given steps of a node's transform. The first pass of all reads the samples.
static void forward_steps(const struct native_job *job, struct subtree at, struct fft_steps steps)
{
    const struct native *native = job->native;
    if (steps.first == steps.end) return;
    if (at.pass && steps.end - steps.first == native->steps[at.pass]) {
        forward_node(job, at);
        return;
    }
    const size_t chunks = native->chunks[at.pass], below = native->steps[at.pass + 1];
    const struct fft_node own = columns(native, at, clip(steps, 0, chunks));
    if (own.first < own.end && at.pass) native->kernels->pass(at.data, own, 1);
    else if (own.first < own.end) native->kernels->read(at.data, job->x, own, job->samples);
    for (size_t q = child_at(steps.first, chunks, below);
         q < radix_of(native, at) && chunks + q * below < steps.end; q++)
        forward_steps(job, child(native, at, q), clip(steps, chunks + q * below, below));
}

// Everything below one node, so that the node is whole again when it returns.
static void inverse_node(const struct native *native, struct subtree at)
{
    if (is_near(native, at)) {
        struct subtree below[MAX_PASSES + 1] = {at};
        size_t nodes = 1;
        int depth = 0;
        for (; below[depth].pass < native->passes; depth++) {
            nodes *= radix_of(native, below[depth]);
            below[depth + 1] = child(native, below[depth], 0);
        }
        run_leaves(native, NULL, at.data, below[depth].index, nodes);
        while (depth-- > 0) {
            nodes /= radix_of(native, below[depth]);
            native->kernels->pass_inverse(at.data, all_columns(native, below[depth]), nodes);
        }
        return;
    }
    for (size_t q = 0; q < radix_of(native, at); q++) inverse_node(native, child(native, at, q));
    native->kernels->pass_inverse(at.data, all_columns(native, at), 1);
}

// The given steps of a node's inverse transform. The last pass of all writes the samples.
static void inverse_steps(const struct native_job *job, struct subtree at, struct fft_steps steps)
{
    const struct native *native = job->native;
    if (steps.first == steps.end) return;
    if (at.pass && steps.end - steps.first == native->steps[at.pass]) {
        inverse_node(native, at);
        return;
    }
    const size_t radix = radix_of(native, at);
    const size_t chunks = native->chunks[at.pass], below = native->steps[at.pass + 1];
    for (size_t q = child_at(steps.first, 0, below); q < radix && q * below < steps.end; q++)
        inverse_steps(job, child(native, at, q), clip(steps, q * below, below));
    const struct fft_node own = columns(native, at, clip(steps, radix * below, chunks));
    if (own.first < own.end && at.pass) native->kernels->pass_inverse(at.data, own, 1);
    else if (own.first < own.end)
        native->kernels->write(job->y, at.data, own, job->samples, job->upper);
}

static struct subtree whole(const struct native *native, void *data)
{
    return (struct subtree){.length = native->length, .data = data};
}

// Steps of the whole, as the passes count them: a transform of one step is not split.
static struct fft_steps native_steps(const struct native *native, struct fft_steps steps)
{
    assert(steps.first <= steps.end && steps.end <= native->fft.steps);
    if (native->fft.steps == 1)
        steps.end = native->chunks[0] + (size_t)native->radix[0] * native->steps[1];
    return steps;
}

static void native_forward(const struct fft *fft, const struct fft_target *target, const void *x,
                           void *scratch, struct fft_steps steps)
{
    (void)scratch;
    const struct native *native = (const struct native *)fft;
    const struct native_job job = {.native = native,
                                   .target = target,
                                   .x = x,
                                   .samples = native->complex ? FFT_COMPLEX : FFT_REAL};
    forward_steps(&job, whole(native, target->work), native_steps(native, steps));
}

static void native_forward_half(const struct fft *fft, void *spectrum, const void *x)
{
    const struct native *native = (const struct native *)fft;
    const struct fft_target target = {spectrum, spectrum, SPECTRUM_LINE_BYTES};
    const struct native_job job = {
        .native = native, .target = &target, .x = x, .samples = FFT_REAL_HALF};
    forward_steps(&job, whole(native, spectrum),
                  native_steps(native, (struct fft_steps){0, fft->steps}));
}

static void native_inverse(const struct fft *fft, void *x, void *spectrum, void *scratch,
                           struct fft_steps steps, bool upper)
{
    (void)scratch;
    const struct native *native = (const struct native *)fft;
    const struct native_job job = {.native = native,
                                   .y = x,
                                   .samples = native->complex ? FFT_COMPLEX : FFT_REAL,
                                   .upper = upper};
    inverse_steps(&job, whole(native, spectrum), native_steps(native, steps));
}

static void native_inverse_half(const struct fft *fft, void *x, void *spectrum)
{
    const struct native *native = (const struct native *)fft;
    const struct native_job job = {.native = native, .y = x, .samples = FFT_REAL_HALF};
    inverse_steps(&job, whole(native, spectrum),
                  native_steps(native, (struct fft_steps){0, fft->steps}));
}

// Real samples: u^(n/2) is -i in every bin, for that is the modulus.
static void add_rotated_f32(float *y, const float *x, size_t count, float sign)
{
    enum { LANES = SPECTRUM_LANES_BYTES / sizeof(float) };
    for (size_t b = 0; b < count; b++, y += 2 * LANES, x += 2 * LANES)
        for (size_t k = 0; k < LANES; k++) {
            y[k] += sign * x[LANES + k];
            y[LANES + k] -= sign * x[k];
        }
}

static void add_rotated_f64(double *y, const double *x, size_t count, double sign)
{
    enum { LANES = SPECTRUM_LANES_BYTES / sizeof(double) };
    for (size_t b = 0; b < count; b++, y += 2 * LANES, x += 2 * LANES)
        for (size_t k = 0; k < LANES; k++) {
            y[k] += sign * x[LANES + k];
            y[LANES + k] -= sign * x[k];
        }
}

// Complex samples: 1 and -1 alternate over the nodes of a pass of even radix. Child p of
// node q of an odd pass has phase (q + 3 p) / (3 r), and similarly with 5: q + p tells odd from
// even.
static bool is_odd_node(const struct native *native, size_t line)
{
    const size_t radix = (size_t)native->radix[0];
    if (radix % 2 == 0) return line / (native->fft.lines / radix) % 2;
    const size_t next = (size_t)native->radix[1], node = line / (native->fft.lines / radix / next);
    return (node / next + node % next) % 2;
}

static void native_add_rotated(const struct fft *fft, void *y_, const void *x_, size_t first,
                               size_t count, bool back)
{
    const struct native *native = (const struct native *)fft;
    char *y = y_;
    const char *x = x_;
    if (!native->complex && native->f64) add_rotated_f64(y_, x_, count, back ? -1 : 1);
    else if (!native->complex) add_rotated_f32(y_, x_, count, back ? -1 : 1);
    else
        for (size_t b = 0; b < count; b++, y += SPECTRUM_LINE_BYTES, x += SPECTRUM_LINE_BYTES) {
            const double sign = is_odd_node(native, first + b) ? -1 : 1;
            fft_add_signed(native->f64, y, x, 1, sign, sign);
        }
}

const struct fft_provider fft_native = {
    .name = "native",
    .serves = native_serves,
    .create = native_create,
    .destroy = native_destroy,
    .forward = native_forward,
    .inverse = native_inverse,
    .forward_half = native_forward_half,
    .inverse_half = native_inverse_half,
    .add_rotated = native_add_rotated,
};
