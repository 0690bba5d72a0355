// SPDX-License-Identifier: MIT
// The transform made for convolution: no re-ordering, vectors all the way, nothing to plan. Samples
// are a polynomial modulo u^L - e^(-2 pi i phi), which every pass splits into smaller ones of the
// same kind (fft_kernels.h). Complex samples start with phi = 0, an ordinary DFT. Real samples
// x[2L] are taken as x[j] - i x[j + L] with phi = 1/4: products modulo u^L + i are convolutions
// that wrap negacyclically after 2L samples, and no bin needs its mirror image.
#include <math.h>
#include <string.h>

#include "kernels/fft_kernels.h"
#include "provider.h"

enum {
    MAX_PASSES = 16,
    TWIST_BYTES = 1 << 14, // of one group: stays in L1
    NEAR_BYTES = 1 << 17,  // a node this small is done pass by pass; larger ones child by child, so
                           // that these stay near
    STEP_BYTES = 1 << 12,  // a node this small is one step,
    PIECE_BYTES = 1 << 13, // and this much of a larger node's pass
};

struct native {
    struct fft fft;
    const struct fft_kernels *kernels;
    bool f64, complex;
    size_t length; // L
    int passes, radix[MAX_PASSES];
    size_t pieces[MAX_PASSES],
        steps[MAX_PASSES + 1]; // of a node that a pass splits: of this pass; with all below
    void *factors[MAX_PASSES]; // of each pass's nodes, in order
    void *leaf_factors;
    int grouped_from; // the leaves below one node of this pass are a group; pass 0: all are one
                      // group
    size_t group;     // leaves of a group
    void *twists;     // of the leaves of any group
    void *common;     // what each group's twists have in common, if there are several
};

static size_t complex_bytes(const struct native *native)
{
    return native->f64 ? 16 : 8;
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
        const int step = octaves % 3 == 0 || octaves == 5 || octaves > 6 ? 3 : octaves == 1 ? 1 : 2;
        native->radix[native->passes++] = 1 << step;
        octaves -= step;
    }
}

// Small transforms have a twist for every leaf; in large ones groups of leaves share a table that
// fits into L1.
static void choose_group(struct native *native)
{
    const size_t leaf_bytes = 4 * native->kernels->lanes * complex_bytes(native);
    native->group = native->length / (4 * native->kernels->lanes);
    native->grouped_from = 0;
    while (native->grouped_from < native->passes && native->group * leaf_bytes > TWIST_BYTES)
        native->group /= (size_t)native->radix[native->grouped_from++];
}

// All columns of a node that `pass` splits.
static struct fft_node whole(const struct native *native, int pass, size_t length)
{
    return (struct fft_node){length, 0, length / (size_t)native->radix[pass]};
}

// How steps go: a small node is one; a larger one takes a step for each piece of its pass and those
// of its children.
static void count_steps(struct native *native)
{
    size_t length = native->length;
    for (int pass = 0; pass < native->passes; length /= (size_t)native->radix[pass++]) {
        const size_t pieces = length * complex_bytes(native) / PIECE_BYTES;
        const size_t most = length / (size_t)native->radix[pass] / native->kernels->lanes;
        native->pieces[pass] = pieces < 1 ? 1 : pieces < most ? pieces : most;
    }
    native->steps[native->passes] = 1;
    for (int pass = native->passes; pass-- > 0;) {
        length *= (size_t)native->radix[pass];
        const size_t below = (size_t)native->radix[pass] * native->steps[pass + 1];
        native->steps[pass] =
            length * complex_bytes(native) <= STEP_BYTES ? 1 : native->pieces[pass] + below;
    }
}

// Those of `steps` that lie in `count` steps from `from` on, counted from there.
static struct fft_steps clip(struct fft_steps steps, size_t from, size_t count)
{
    const size_t first = steps.first > from ? steps.first - from : 0;
    const size_t end = steps.end > from ? steps.end - from : 0;
    return (struct fft_steps){first < count ? first : count, end < count ? end : count};
}

// The first child that has a step from `step` on; a child has `below`, the first one's begin after
// `before`.
static size_t child_at(size_t step, size_t before, size_t below)
{
    return step > before ? (step - before) / below : 0;
}

// The columns that some pieces of a node's pass cover.
static struct fft_node columns(const struct native *native, int pass, size_t length,
                               struct fft_steps pieces)
{
    const size_t lanes = native->kernels->lanes,
                 vectors = length / (size_t)native->radix[pass] / lanes;
    const size_t count = native->pieces[pass];
    return (struct fft_node){length, vectors * pieces.first / count * lanes,
                             vectors * pieces.end / count * lanes};
}

// Complex number i of a table.
static void put_complex(const struct native *native, void *table, size_t i, double re, double im)
{
    if (native->f64) {
        ((double *)table)[2 * i] = re;
        ((double *)table)[2 * i + 1] = im;
    } else {
        ((float *)table)[2 * i] = (float)re;
        ((float *)table)[2 * i + 1] = (float)im;
    }
}

static void fill_factors(const struct native *native, void *table, const double *phase,
                         size_t nodes, int radix)
{
    size_t at = 0;
    for (size_t i = 0; i < nodes; i++)
        for (int p = 1; p < radix; p++) {
            const double angle = -2 * M_PI * p * phase[i] / radix;
            put_complex(native, table, at++, cos(angle), sin(angle));
        }
}

// Turns the phases of all nodes of a pass into those of their children, in place, last to first.
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
        const double angle = -2 * M_PI * phase * (double)j / (double)lanes, re = cos(angle),
                     im = sin(angle);
        if (native->f64) {
            ((double *)table)[j] = re;
            ((double *)table)[lanes + j] = im;
        } else {
            ((float *)table)[j] = (float)re;
            ((float *)table)[lanes + j] = (float)im;
        }
    }
}

static size_t vector_bytes(const struct native *native)
{
    return native->kernels->lanes * complex_bytes(native);
}

// Cuts all tables out of the arena; the phases of the leaves, the most there are of any pass, come
// last.
static double *cut_tables(struct native *native, struct arena *arena)
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
        fill_factors(native, native->factors[i], phase, nodes, native->radix[i]);
    }
    const size_t leaves = fill_phases(native, phase, 0, native->passes, start);
    fill_factors(native, native->leaf_factors, phase, leaves, 4);
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
                .blocks = length / lanes},
        .kernels = kernels_select(request->level, request->f64)->fft,
        .f64 = request->f64,
        .complex = request->complex,
        .length = length,
    };
    choose_radices(&native);
    choose_group(&native);
    count_steps(&native);
    native.fft.steps = native.steps[0];
    native.fft.sample_steps = native.steps[0] > 1 ? native.pieces[0] : 1;
    native.fft.subtransforms = native.steps[0] > 1 ? (size_t)native.radix[0] : 1;
    struct arena arena = {0};
    arena_take(&arena, sizeof native);
    cut_tables(&native, &arena);
    arena.base = mem_allocate(allocator, arena.used);
    if (!arena.base) return PARTITA_ERR_NOMEM;
    arena.used = 0;
    struct native *placed = arena_take(&arena, sizeof native);
    fill_tables(&native, cut_tables(&native, &arena));
    *placed = native;
    *ret = &placed->fft;
    return PARTITA_OK;
}

static char *factors_at(const struct native *native, int pass, size_t node)
{
    return (char *)native->factors[pass] +
           node * (size_t)(native->radix[pass] - 1) * complex_bytes(native);
}

// Leaves first .. first+count-1, on to the target, or back if there is none.
static void leaves(const struct native *native, const struct fft_target *target, char *data,
                   size_t first, size_t count)
{
    const size_t leaf_bytes = 4 * native->kernels->lanes * complex_bytes(native),
                 group = native->group;
    const bool grouped = native->grouped_from > 0;
    for (size_t n; count; first += n, count -= n, data += n * leaf_bytes) {
        const size_t from = first % group;
        n = count < group - from ? count : group - from;
        const char *factors = (char *)native->leaf_factors + first * 3 * complex_bytes(native);
        const char *twists = (char *)native->twists + from * leaf_bytes;
        const char *common =
            grouped ? (char *)native->common + first / group * vector_bytes(native) : NULL;
        if (!target) {
            native->kernels->leaves_inverse(data, n, factors, twists, common);
            continue;
        }
        const size_t block = first * leaf_bytes / (SPECTRUM_LINE_BYTES);
        native->kernels->leaves((char *)target->to + block * target->stride, target->stride, data,
                                n, factors, twists, common);
    }
}

// What is left of the transform of one node, from `pass` on.
static void forward_node(const struct native *native, const struct fft_target *target, int pass,
                         size_t node, size_t length, char *data)
{
    const struct fft_kernels *kernels = native->kernels;
    if (pass == native->passes || length * complex_bytes(native) <= NEAR_BYTES) {
        size_t nodes = 1;
        for (; pass < native->passes; pass++) {
            kernels->pass(data, whole(native, pass, length), nodes, native->radix[pass],
                          factors_at(native, pass, node));
            nodes *= (size_t)native->radix[pass], node *= (size_t)native->radix[pass];
            length /= (size_t)native->radix[pass];
        }
        leaves(native, target, data, node, nodes);
        return;
    }
    const size_t radix = (size_t)native->radix[pass], part = length / radix;
    kernels->pass(data, whole(native, pass, length), 1, (int)radix, factors_at(native, pass, node));
    for (size_t q = 0; q < radix; q++)
        forward_node(native, target, pass + 1, node * radix + q, part,
                     data + q * part * complex_bytes(native));
}

// The given steps of a node's transform.
static void forward_steps(const struct native *native, const struct fft_target *target, int pass,
                          size_t node, size_t length, char *data, struct fft_steps steps)
{
    if (steps.first == steps.end) return;
    if (steps.end - steps.first == native->steps[pass]) {
        forward_node(native, target, pass, node, length, data);
        return;
    }
    const size_t radix = (size_t)native->radix[pass], part = length / radix;
    const size_t pieces = native->pieces[pass], below = native->steps[pass + 1];
    const struct fft_node own = columns(native, pass, length, clip(steps, 0, pieces));
    if (own.first < own.end)
        native->kernels->pass(data, own, 1, (int)radix, factors_at(native, pass, node));
    for (size_t q = child_at(steps.first, pieces, below);
         q < radix && pieces + q * below < steps.end; q++)
        forward_steps(native, target, pass + 1, node * radix + q, part,
                      data + q * part * complex_bytes(native),
                      clip(steps, pieces + q * below, below));
}

static void forward_from(const struct native *native, const struct fft_target *target,
                         const void *x, fft_read_fn *read, struct fft_steps steps)
{
    const struct fft *fft = &native->fft;
    const size_t radix = (size_t)native->radix[0], part = native->length / radix;
    const size_t pieces = native->pieces[0], below = native->steps[1];
    if (fft->steps == 1) steps.end = pieces + radix * below;
    const struct fft_node own = columns(native, 0, native->length, clip(steps, 0, pieces));
    if (own.first < own.end) read(target->work, x, own, (int)radix, native->factors[0]);
    for (size_t q = child_at(steps.first, pieces, below);
         q < radix && pieces + q * below < steps.end; q++)
        forward_steps(native, target, 1, q, part,
                      (char *)target->work + q * part * complex_bytes(native),
                      clip(steps, pieces + q * below, below));
}

static void native_forward(const struct fft *fft, const struct fft_target *target, const void *x,
                           void *scratch, struct fft_steps steps)
{
    (void)scratch;
    const struct native *native = (const struct native *)fft;
    forward_from(native, target, x,
                 native->complex ? native->kernels->read_complex : native->kernels->read_real,
                 steps);
}

static void native_forward_half(const struct fft *fft, void *spectrum, const void *x)
{
    const struct native *native = (const struct native *)fft;
    const struct fft_target target = {spectrum, spectrum, SPECTRUM_LINE_BYTES};
    forward_from(native, &target, x, native->kernels->read_half, (struct fft_steps){0, fft->steps});
}

// Everything below one node of pass `pass`, so that the node is whole again when it returns.
static void inverse_node(const struct native *native, int pass, size_t node, size_t length,
                         char *data)
{
    const struct fft_kernels *kernels = native->kernels;
    if (pass == native->passes || length * complex_bytes(native) <= NEAR_BYTES) {
        size_t nodes = 1;
        int last = pass;
        for (; last < native->passes; last++) {
            nodes *= (size_t)native->radix[last], node *= (size_t)native->radix[last];
            length /= (size_t)native->radix[last];
        }
        leaves(native, NULL, data, node, nodes);
        while (last-- > pass) {
            nodes /= (size_t)native->radix[last], node /= (size_t)native->radix[last];
            length *= (size_t)native->radix[last];
            kernels->pass_inverse(data, whole(native, last, length), nodes, native->radix[last],
                                  factors_at(native, last, node));
        }
        return;
    }
    const size_t radix = (size_t)native->radix[pass], part = length / radix;
    for (size_t q = 0; q < radix; q++)
        inverse_node(native, pass + 1, node * radix + q, part,
                     data + q * part * complex_bytes(native));
    kernels->pass_inverse(data, whole(native, pass, length), 1, (int)radix,
                          factors_at(native, pass, node));
}

static void inverse_steps(const struct native *native, int pass, size_t node, size_t length,
                          char *data, struct fft_steps steps)
{
    if (steps.first == steps.end) return;
    if (steps.end - steps.first == native->steps[pass]) {
        inverse_node(native, pass, node, length, data);
        return;
    }
    const size_t radix = (size_t)native->radix[pass], part = length / radix;
    const size_t pieces = native->pieces[pass], below = native->steps[pass + 1];
    for (size_t q = child_at(steps.first, 0, below); q < radix && q * below < steps.end; q++)
        inverse_steps(native, pass + 1, node * radix + q, part,
                      data + q * part * complex_bytes(native), clip(steps, q * below, below));
    const struct fft_node own = columns(native, pass, length, clip(steps, radix * below, pieces));
    if (own.first < own.end)
        native->kernels->pass_inverse(data, own, 1, (int)radix, factors_at(native, pass, node));
}

static void native_inverse(const struct fft *fft, void *x, void *spectrum, void *scratch,
                           struct fft_steps steps, bool upper)
{
    (void)scratch;
    const struct native *native = (const struct native *)fft;
    const size_t radix = (size_t)native->radix[0], part = native->length / radix;
    const size_t pieces = native->pieces[0], below = native->steps[1];
    if (fft->steps == 1) steps.end = pieces + radix * below;
    fft_write_fn *write =
        native->complex ? native->kernels->write_complex : native->kernels->write_real;
    for (size_t q = child_at(steps.first, 0, below); q < radix && q * below < steps.end; q++)
        inverse_steps(native, 1, q, part, (char *)spectrum + q * part * complex_bytes(native),
                      clip(steps, q * below, below));
    const struct fft_node own =
        columns(native, 0, native->length, clip(steps, radix * below, pieces));
    if (own.first < own.end) write(x, spectrum, own, (int)radix, native->factors[0], upper);
}

static void native_inverse_half(const struct fft *fft, void *x, void *spectrum)
{
    const struct native *native = (const struct native *)fft;
    const size_t radix = (size_t)native->radix[0], part = native->length / radix;
    for (size_t q = 0; q < radix; q++)
        inverse_node(native, 1, q, part, (char *)spectrum + q * part * complex_bytes(native));
    native->kernels->write_half(x, spectrum, whole(native, 0, native->length), (int)radix,
                                native->factors[0]);
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

// Complex samples: 1 or -1 by turns in the nodes that an even number of parts leaves. Child p of
// node q of an odd pass has phase (q + 3 p) / (3 r), in a similar way with 5: q + p tells odd from
// even.
static bool is_odd_node(const struct native *native, size_t block)
{
    const size_t radix = (size_t)native->radix[0];
    if (radix % 2 == 0) return block / (native->fft.blocks / radix) % 2;
    const size_t next = (size_t)native->radix[1],
                 node = block / (native->fft.blocks / radix / next);
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
