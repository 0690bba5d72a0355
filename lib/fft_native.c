// SPDX-License-Identifier: MIT
// The transform made for convolution: no re-ordering, vectors all the way, nothing to plan. Samples are a polynomial
// modulo u^L - e^(-2 pi i phi), which every pass splits into smaller ones of the same kind (fft_kernels.h). Complex
// samples start with phi = 0, an ordinary DFT. Real samples x[2L] are taken as x[j] - i x[j + L] with phi = 1/4:
// products modulo u^L + i are convolutions that wrap negacyclically after 2L samples, and no bin needs its mirror
// image.
#include <math.h>
#include <string.h>

#include "cpu/kernels/fft_kernels.h"
#include "fft_provider.h"

enum {
    MAX_PASSES = 16,
    NEAR_BYTES = 1 << 17, // a node this small is done pass by pass; larger ones child by child, so that these stay near
};

struct native {
    struct fft fft;
    const struct fft_kernels *kernels;
    bool f64, complex;
    size_t length; // L
    int passes, radix[MAX_PASSES];
    void *factors[MAX_PASSES]; // of each pass's nodes, in order
    void *leaf_factors, *twists;
};

static bool native_serves(size_t n)
{
    enum { SMALLEST = 512 }; // every vector width has at least one pass above its leaves, whatever the sample type
    if (n < SMALLEST) return false;
    while (n % 2 == 0) n /= 2;
    return n == 1 || n == 3 || n == 5;
}

// Radices from the whole down to the leaves: the odd one first, then as few as possible of 4 and 8.
static void choose_radices(struct native *native)
{
    size_t nodes = native->length / (4 * native->kernels->lanes);
    native->passes = 0;
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

static void fill_factors(const struct native *native, void *table, const double *phase, size_t nodes, int radix)
{
    for (size_t i = 0; i < nodes; i++)
        for (int p = 1; p < radix; p++) {
            const double angle = -2 * M_PI * phase[i] / radix * p;
            put_complex(native, table, i * (size_t)(radix - 1) + (size_t)p - 1, cos(angle), sin(angle));
        }
}

// Turns the phases of all nodes of a pass into those of their children, in place, last to first.
static size_t split_phases(double *phase, size_t nodes, int radix)
{
    for (size_t i = nodes; i-- > 0;)
        for (int q = radix; q-- > 0;) phase[i * (size_t)radix + (size_t)q] = (phase[i] + q) / radix;
    return nodes * (size_t)radix;
}

// e^(-2 pi i phase j / lanes) for the lanes j of one vector: every power a product of two of half its size.
static void fill_twist(const struct native *native, char *table, double phase)
{
    double re[16] = {1}, im[16] = {0};
    const size_t lanes = native->kernels->lanes;
    const double angle = -2 * M_PI * phase / (double)lanes;
    re[1] = cos(angle), im[1] = sin(angle);
    for (size_t j = 2; j < lanes; j++) {
        const size_t a = j / 2, b = j - a;
        re[j] = re[a] * re[b] - im[a] * im[b];
        im[j] = re[a] * im[b] + im[a] * re[b];
    }
    for (size_t j = 0; j < lanes; j++) {
        if (native->f64) {
            ((double *)table)[j] = re[j];
            ((double *)table)[lanes + j] = im[j];
        } else {
            ((float *)table)[j] = (float)re[j];
            ((float *)table)[lanes + j] = (float)im[j];
        }
    }
}

// Cuts all tables out of the arena; the phases of the leaves' vectors, the most there are, come last.
static double *cut_tables(struct native *native, struct arena *arena)
{
    const size_t complex_bytes = native->f64 ? 16 : 8, leaves = native->length / (4 * native->kernels->lanes);
    size_t nodes = 1;
    for (int i = 0; i < native->passes; i++) {
        native->factors[i] = arena_take(arena, nodes * (size_t)(native->radix[i] - 1) * complex_bytes);
        nodes *= (size_t)native->radix[i];
    }
    native->leaf_factors = arena_take(arena, leaves * 3 * complex_bytes);
    native->twists = arena_take(arena, native->length * complex_bytes);
    return arena_take(arena, leaves * 4 * sizeof(double));
}

static void fill_tables(struct native *native, double *phase)
{
    size_t nodes = 1;
    phase[0] = native->complex ? 0 : 0.25;
    for (int i = 0; i < native->passes; i++) {
        fill_factors(native, native->factors[i], phase, nodes, native->radix[i]);
        nodes = split_phases(phase, nodes, native->radix[i]);
    }
    fill_factors(native, native->leaf_factors, phase, nodes, 4);
    nodes = split_phases(phase, nodes, 4);
    const size_t vector_bytes = native->kernels->lanes * (native->f64 ? 16 : 8);
    for (size_t i = 0; i < nodes; i++) fill_twist(native, (char *)native->twists + i * vector_bytes, phase[i]);
}

static void native_destroy(struct fft *fft)
{
    const struct partita_allocator allocator = fft->allocator;
    mem_release(&allocator, fft);
}

static enum partita_status native_create(const struct fft_request *request, const struct partita_allocator *allocator,
                                         struct fft **ret)
{
    const size_t scalar = request->f64 ? 8 : 4, lanes = SPECTRUM_BLOCK_BYTES / scalar;
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

static size_t complex_bytes(const struct native *native)
{
    return native->f64 ? 16 : 8;
}

static char *factors_at(const struct native *native, int pass, size_t node)
{
    return (char *)native->factors[pass] + node * (size_t)(native->radix[pass] - 1) * complex_bytes(native);
}

static void leaves(const struct native *native, fft_leaves_fn *run, void *data, size_t first, size_t count)
{
    run(data, count, (char *)native->leaf_factors + first * 3 * complex_bytes(native),
        (char *)native->twists + first * 4 * native->kernels->lanes * complex_bytes(native));
}

// What is left of the transform of one node, from `pass` on.
static void forward_node(const struct native *native, int pass, size_t node, size_t length, char *data)
{
    const struct fft_kernels *kernels = native->kernels;
    if (pass == native->passes || length * complex_bytes(native) <= NEAR_BYTES) {
        size_t nodes = 1;
        for (; pass < native->passes; pass++) {
            kernels->pass(data, length, nodes, native->radix[pass], factors_at(native, pass, node));
            nodes *= (size_t)native->radix[pass], node *= (size_t)native->radix[pass];
            length /= (size_t)native->radix[pass];
        }
        leaves(native, kernels->leaves, data, node, nodes);
        return;
    }
    const size_t radix = (size_t)native->radix[pass], part = length / radix;
    kernels->pass(data, length, 1, (int)radix, factors_at(native, pass, node));
    for (size_t q = 0; q < radix; q++)
        forward_node(native, pass + 1, node * radix + q, part, data + q * part * complex_bytes(native));
}

static void native_forward(const struct fft *fft, void *spectrum, const void *x, void *scratch)
{
    (void)scratch;
    const struct native *native = (const struct native *)fft;
    const size_t radix = (size_t)native->radix[0], part = native->length / radix;
    fft_read_fn *read = native->complex ? native->kernels->read_complex : native->kernels->read_real;
    read(spectrum, x, native->length, (int)radix, native->factors[0]);
    for (size_t q = 0; q < radix; q++)
        forward_node(native, 1, q, part, (char *)spectrum + q * part * complex_bytes(native));
}

// Everything below one node of pass `pass`, so that the node is whole again when it returns.
static void inverse_node(const struct native *native, int pass, size_t node, size_t length, char *data)
{
    const struct fft_kernels *kernels = native->kernels;
    if (pass == native->passes || length * complex_bytes(native) <= NEAR_BYTES) {
        size_t nodes = 1;
        int last = pass;
        for (; last < native->passes; last++) {
            nodes *= (size_t)native->radix[last], node *= (size_t)native->radix[last];
            length /= (size_t)native->radix[last];
        }
        leaves(native, kernels->leaves_back, data, node, nodes);
        while (last-- > pass) {
            nodes /= (size_t)native->radix[last], node /= (size_t)native->radix[last];
            length *= (size_t)native->radix[last];
            kernels->pass_back(data, length, nodes, native->radix[last], factors_at(native, last, node));
        }
        return;
    }
    const size_t radix = (size_t)native->radix[pass], part = length / radix;
    for (size_t q = 0; q < radix; q++)
        inverse_node(native, pass + 1, node * radix + q, part, data + q * part * complex_bytes(native));
    kernels->pass_back(data, length, 1, (int)radix, factors_at(native, pass, node));
}

static void native_inverse(const struct fft *fft, void *x, void *spectrum, void *scratch)
{
    (void)scratch;
    const struct native *native = (const struct native *)fft;
    const size_t radix = (size_t)native->radix[0], part = native->length / radix;
    fft_write_fn *write = native->complex ? native->kernels->write_complex : native->kernels->write_real;
    for (size_t q = 0; q < radix; q++)
        inverse_node(native, 1, q, part, (char *)spectrum + q * part * complex_bytes(native));
    write(x, spectrum, native->length, (int)radix, native->factors[0]);
}

const struct fft_provider fft_native = {
    .name = "native",
    .serves = native_serves,
    .create = native_create,
    .destroy = native_destroy,
    .forward = native_forward,
    .inverse = native_inverse,
};
