// SPDX-License-Identifier: MIT
// The transform made for convolution: no re-ordering, vectors all the way, nothing to plan. Samples
// are a polynomial modulo u^L - e^(-2 pi i phi), which every pass splits into smaller ones of the
// same kind (fft_kernels.h). Complex samples start with phi = 0, an ordinary DFT. Real samples
// x[2L] are taken as x[j] - i x[j + L] with phi = 1/4: products modulo u^L + i are convolutions
// that wrap negacyclically after 2L samples, and no bin needs its mirror image.
#include "native.h"

#include <string.h>

// A transform under way: samples on one side, spectrum on the other.
struct native_job {
    const struct native *native;
    const struct fft_target *target; // NULL: an inverse transform
    const void *x;                   // forward: samples read
    void *y;                         // inverse: samples written
    enum fft_samples samples;
    bool upper;
};

// A node that a pass splits, or a leaf after the last one, with all that is below it.
struct subtree {
    int pass;
    size_t index;
    char *data;
};

static size_t radix_of(const struct native *native, const struct subtree *at)
{
    assert(at->pass < native->passes);
    return (size_t)native->radix[at->pass];
}

static struct subtree child(const struct native *native, const struct subtree *at, size_t q)
{
    return (struct subtree){at->pass + 1, at->index * radix_of(native, at) + q,
                            at->data + q * native->length[at->pass + 1] * complex_bytes(native)};
}

static struct fft_node all_columns(const struct native *native, const struct subtree *at)
{
    const size_t radix = radix_of(native, at);
    return (struct fft_node){.length = native->length[at->pass],
                             .end = native->length[at->pass + 1],
                             .radix = (int)radix,
                             .factors = (char *)native->factors[at->pass] +
                                        at->index * (radix - 1) * complex_bytes(native)};
}

// The columns of a node that some chunks of its pass cover.
static struct fft_node columns(const struct native *native, const struct subtree *at,
                               struct fft_steps chunks)
{
    const size_t lanes = native->kernels->lanes, count = native->chunks[at->pass];
    assert(chunks.first <= chunks.end && chunks.end <= count);
    struct fft_node node = all_columns(native, at);
    const size_t vectors = node.end / lanes;
    node.first = vectors * chunks.first / count * lanes;
    node.end = vectors * chunks.end / count * lanes;
    return node;
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
            native->kernels->leaves_inverse(data, &leaves);
            continue;
        }
        const size_t line = first * leaf_bytes / SPECTRUM_LINE_BYTES;
        native->kernels->leaves((char *)target->to + line * target->stride, target->stride, data,
                                &leaves);
    }
}

// A pass over the same columns of `nodes` nodes. Forward, the first pass of all reads the samples;
// inverse, the last one writes them.
static void run_pass(const struct native_job *job, const struct subtree *at,
                     const struct fft_node *node, size_t nodes)
{
    const struct fft_kernels *kernels = job->native->kernels;
    if (at->pass > 0) kernels->pass(at->data, node, nodes, !job->target);
    else if (job->target) kernels->read(at->data, job->x, node, job->samples);
    else kernels->write(job->y, at->data, node, job->samples, job->upper);
}

// The transforms of `nodes` nodes that follow each other, pass by pass if they are near; else there
// is one. A node's pass comes before those of its children, or inverse after them.
static void run_nodes(const struct native_job *job, const struct subtree *first, size_t nodes)
{
    const struct native *native = job->native;
    if (first->pass == native->passes) {
        run_leaves(native, job->target, first->data, first->index, nodes);
        return;
    }
    const struct fft_node node = all_columns(native, first);
    const bool near = native->length[first->pass] * complex_bytes(native) <= NEAR_BYTES;
    const size_t radix = radix_of(native, first), children = near ? 1 : radix;
    if (job->target) run_pass(job, first, &node, nodes);
    for (size_t q = 0; q < children; q++) {
        const struct subtree below = child(native, first, q);
        run_nodes(job, &below, nodes * radix / children);
    }
    if (!job->target) run_pass(job, first, &node, nodes);
}

// The given steps of a node's transform.
static void run_steps(const struct native_job *job, const struct subtree *at,
                      struct fft_steps steps)
{
    const struct native *native = job->native;
    assert(steps.first <= steps.end && steps.end <= native->steps[at->pass]);
    if (steps.first == steps.end) return;
    if (steps.end - steps.first == native->steps[at->pass]) {
        run_nodes(job, at, 1);
        return;
    }
    const size_t radix = radix_of(native, at), chunks = native->chunks[at->pass];
    const size_t step = native->steps[at->pass + 1]; // steps of a child
    const size_t before = job->target ? chunks : 0, after = job->target ? 0 : radix * step;
    const struct fft_node node = columns(native, at, fft_steps_within(steps, after, chunks));
    if (job->target && node.first < node.end) run_pass(job, at, &node, 1);
    const size_t skipped = steps.first > before ? (steps.first - before) / step : 0; // children
    for (size_t q = skipped; q < radix && before + q * step < steps.end; q++) {
        const struct subtree below = child(native, at, q);
        run_steps(job, &below, fft_steps_within(steps, before + q * step, step));
    }
    if (!job->target && node.first < node.end) run_pass(job, at, &node, 1);
}

static enum fft_samples samples_of(const struct fft *fft, bool half)
{
    assert(!half || fft->halves);
    if (half) return FFT_REAL_HALF;
    return fft->complex ? FFT_COMPLEX : FFT_REAL;
}

static void native_forward(const struct fft *fft, const struct fft_target *target, const void *x,
                           void *scratch, struct fft_steps steps, bool half)
{
    (void)scratch;
    const struct native_job job = {.native = (const struct native *)fft,
                                   .target = target,
                                   .x = x,
                                   .samples = samples_of(fft, half)};
    run_steps(&job, &(struct subtree){.data = target->work}, steps);
}

static void native_inverse(const struct fft *fft, void *x, void *spectrum, void *scratch,
                           struct fft_steps steps, enum fft_part part)
{
    (void)scratch;
    const struct native_job job = {.native = (const struct native *)fft,
                                   .y = x,
                                   .samples = samples_of(fft, part == FFT_LOWER),
                                   .upper = part == FFT_UPPER};
    run_steps(&job, &(struct subtree){.data = spectrum}, steps);
}

// Complex samples: 1 and -1 alternate over the children of a node of even radix, from that of the
// node on: the sum of the numbers of children, down to the first even radix, tells odd from even.
static bool is_odd_node(const struct native *native, size_t line)
{
    size_t lines = native->fft.lines, sum = 0;
    for (size_t pass = 0, radix = 1; radix % 2; pass++, sum += line / lines % radix)
        lines /= radix = (size_t)native->radix[pass];
    return sum % 2;
}

// Of real samples u^(n/2) is -i in every bin, for that is the modulus.
static void native_add_rotated(const struct fft *fft, void *y, const void *x, size_t first,
                               size_t count, bool back)
{
    const struct native *native = (const struct native *)fft;
    for (size_t line = 0; line < count; line++) {
        char *re = (char *)y + line * SPECTRUM_LINE_BYTES, *im = re + SPECTRUM_LANES_BYTES;
        const char *x_re = (const char *)x + line * SPECTRUM_LINE_BYTES;
        const char *x_im = x_re + SPECTRUM_LANES_BYTES;
        double sign = back ? -1 : 1;
        if (fft->complex) sign = is_odd_node(native, first + line) ? -1 : 1;
        fft_add_lanes(fft->f64, re, fft->complex ? x_re : x_im, sign, sign);
        if (!fft->complex) sign = -sign;
        fft_add_lanes(fft->f64, im, fft->complex ? x_im : x_re, sign, sign);
    }
}

const struct fft_provider fft_native = {
    .name = "native",
    .serves = native_serves,
    .create = native_create,
    .forward = native_forward,
    .inverse = native_inverse,
    .add_rotated = native_add_rotated,
};
