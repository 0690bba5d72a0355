// SPDX-License-Identifier: MIT
// The transform made for convolution: no re-ordering, vectors all the way, nothing to plan. Samples
// are a polynomial modulo u^L - e^(-2 pi i phi), which every pass splits into smaller ones of the
// same kind (fft_kernels.h). Complex samples start with phi = 0, an ordinary DFT. Real samples
// x[2L] are taken as x[j] - i x[j + L] with phi = 1/4: products modulo u^L + i are convolutions
// that wrap negacyclically after 2L samples, and no bin needs its mirror image.
#include "native.h"

#include <string.h>

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
