// SPDX-License-Identifier: MIT
#include "samples.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"

// Samples as opaque words. Those of 8 bytes may be pairs of floats, aligned as these, so they go
// through memcpy.
typedef uint16_t word2 __attribute__((may_alias));
typedef uint32_t word4 __attribute__((may_alias));
typedef struct __attribute__((may_alias)) {
    uint64_t half[2];
} word16;

void samples_copy(void *y, size_t y_stride, const void *x, size_t x_stride, size_t n, size_t bytes)
{
    assert(bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16);
    if (y_stride == 1 && x_stride == 1) {
        memmove(y, x, n * bytes);
    } else if (bytes == 2) {
        for (size_t i = 0; i < n; i++)
            ((word2 *)y)[i * y_stride] = ((const word2 *)x)[i * x_stride];
    } else if (bytes == 4 && y_stride == 1 && x_stride == 2) {
        // Interleaved stereo: a stride that the compiler knows becomes shuffles.
        for (size_t i = 0; i < n; i++) ((word4 *)y)[i] = ((const word4 *)x)[2 * i];
    } else if (bytes == 4) {
#pragma GCC unroll 4
        for (size_t i = 0; i < n; i++)
            ((word4 *)y)[i * y_stride] = ((const word4 *)x)[i * x_stride];
    } else if (bytes == 8) {
        for (size_t i = 0; i < n; i++)
            memcpy((char *)y + 8 * i * y_stride, (const char *)x + 8 * i * x_stride, 8);
    } else {
        for (size_t i = 0; i < n; i++)
            ((word16 *)y)[i * y_stride] = ((const word16 *)x)[i * x_stride];
    }
}

struct inside samples_inside(size_t size, ptrdiff_t first, size_t stride, size_t n)
{
    const struct windows samples = {first, stride, 1};
    const struct range inside = windows_outputs(&samples, (struct range){0, size});
    const struct range ret = range_within(inside, 0, (ptrdiff_t)n);
    return (struct inside){(size_t)ret.first, ret.size};
}

void samples_window(void *y, const void *x, size_t size, ptrdiff_t first, size_t stride, size_t n,
                    size_t bytes)
{
    const struct inside in = samples_inside(size, first, stride, n);
    memset(y, 0, in.begin * bytes);
    if (in.count)
        samples_copy((char *)y + in.begin * bytes, 1,
                     (const char *)x + (size_t)(first + (ptrdiff_t)(in.begin * stride)) * bytes,
                     stride, in.count, bytes);
    memset((char *)y + (in.begin + in.count) * bytes, 0, (n - in.begin - in.count) * bytes);
}

const void *samples_at(void *y, const void *x, size_t size, ptrdiff_t first, size_t n, size_t bytes)
{
    if (first >= 0 && (size_t)first + n <= size) return (const char *)x + (size_t)first * bytes;
    samples_window(y, x, size, first, 1, n, bytes);
    return y;
}

static void samples_conjugate(void *g, size_t n, bool f64)
{
    for (size_t i = 0; i < n; i++) {
        if (f64) ((double *)g)[2 * i + 1] = -((double *)g)[2 * i + 1];
        else ((float *)g)[2 * i + 1] = -((float *)g)[2 * i + 1];
    }
}

// Neighbours, the other way round: steps the compiler knows become shuffles.
static void reverse_words(void *y, const void *x, size_t n, size_t bytes)
{
    if (bytes == 4)
        for (size_t i = 0; i < n; i++) ((word4 *)y)[i] = ((const word4 *)x)[n - 1 - i];
    else
        for (size_t i = 0; i < n; i++)
            memcpy((char *)y + 8 * i, (const char *)x + 8 * (n - 1 - i), 8);
}

void samples_reverse(void *y, size_t y_stride, const void *x, size_t x_stride, size_t n,
                     size_t bytes)
{
    if (y_stride == 1 && x_stride == 1 && bytes < 16) {
        reverse_words(y, x, n, bytes);
        return;
    }
    char *to = y;
    const char *from = (const char *)x + (n - 1) * x_stride * bytes;
    for (size_t i = 0; i < n; i++, to += y_stride * bytes, from -= x_stride * bytes)
        memcpy(to, from, bytes);
}

void causal_part(const struct shape *shape, void *g, const void *taps, size_t first, size_t n)
{
    const struct axis *axis = &shape->axis[0];
    const size_t bytes = shape->tap_bytes, step = axis->dilation,
                 count = axis->span > first ? axis->span - first : 0;
    const size_t end = first + (n < count ? n : count),
                 from = (first + step - 1) / step; // taps `from` .. of this part
    const size_t inside = end > from * step ? (end - from * step - 1) / step + 1 : 0;
    if (step > 1 || inside < n) memset(g, 0, n * bytes);
    if (!inside) return;
    char *at = (char *)g + (from * step - first) * bytes;
    assert(from + inside <= axis->kernel);
    if (shape->flip) {
        samples_copy(at, step, (const char *)taps + from * bytes, 1, inside, bytes);
    } else {
        const char *first_read = (const char *)taps + (axis->kernel - from - inside) * bytes;
        samples_reverse(at, step, first_read, 1, inside, bytes);
        if (shape->complex_taps) samples_conjugate(g, n, shape->f64);
    }
}

void samples_prefetch(const void *at, size_t step, size_t n, bool write)
{
    const char *line = at;
    if (step <= MEM_ALIGN) return;
    for (size_t i = 0; i < n && write; i++) __builtin_prefetch(line + i * step, 1, 3);
    for (size_t i = 0; i < n && !write; i++) __builtin_prefetch(line + i * step, 0, 3);
}

enum {
    SQUARE = 16, // channels, at the least, that are transposed together
    PART = 128,  // adjacent samples of two bytes that are converted together
    NARROW = 8,  // a step, at the most, of which all samples are read
};

static void move_row(convert_fn *convert, const struct sample_rows *row, char *array, bool store)
{
    uint16_t gathered[PART];
    if (row->step == 1) convert(store ? array : row->rows, store ? row->rows : array, row->n);
    for (size_t i = 0, n; row->step != 1 && i < row->n; i += n) {
        n = size_min(PART, row->n - i);
        char *at = array + i * row->step * sizeof *gathered, *wide = row->rows + i * sizeof(float);
        if (!store) samples_copy(gathered, 1, at, row->step, n, sizeof *gathered);
        convert(store ? (void *)gathered : wide, store ? wide : (void *)gathered, n);
        if (store) samples_copy(at, row->step, gathered, 1, n, sizeof *gathered);
    }
}

// At most SQUARE samples of at most PART channels, or 2 * PART of NARROW.
static void move_part(convert_fn *convert, transpose_fn *transpose, const struct sample_rows *part,
                      char *array, bool store)
{
    const size_t n = part->n, channels = part->channels;
    const size_t width = part->step <= NARROW && !store ? part->step : channels;
    const size_t runs = part->step == width ? 1 : n; // of adjacent samples
    float square[SQUARE * PART];
    if (store) transpose(square, channels, part->rows, part->stride, channels, n);
    for (size_t i = 0; i < runs; i++) {
        void *half = array + i * part->step * sizeof(uint16_t), *wide = square + i * channels;
        convert(store ? half : wide, store ? wide : half, (n / runs - 1) * width + channels);
    }
    if (!store) transpose(part->rows, part->stride, square, width, n, channels);
}

void samples_convert(const struct kernels *kernels, enum partita_type type,
                     const struct sample_rows *rows, const void *array, bool store)
{
    const size_t n = rows->n, channels = rows->channels;
    const enum half half = type == PARTITA_F16 ? HALF_F16 : HALF_BF16;
    const bool two_bytes = type == PARTITA_F16 || type == PARTITA_BF16;
    convert_fn *convert = store ? kernels->narrow[half] : kernels->widen[half];
    char *at = (char *)array;
    if (two_bytes && channels == 1) move_row(convert, rows, at, store);
    else if (two_bytes)
        for (size_t i = 0, count = channels > NARROW ? SQUARE : 2 * PART; i < n; i += count)
            for (size_t c = 0; c < channels; c += PART) {
                struct sample_rows part = *rows;
                part.rows += (c * rows->stride + i) * sizeof(float);
                part.channels = size_min(PART, channels - c), part.n = size_min(count, n - i);
                char *first = at + (i * rows->step + c) * sizeof(uint16_t);
                move_part(convert, kernels->transpose, &part, first, store);
            }
    else if (store) kernels->transpose(at, rows->step, rows->rows, rows->stride, channels, n);
    else if (channels == 1 && rows->step == 1) memcpy(rows->rows, at, n * partita_type_size(type));
    else kernels->transpose(rows->rows, rows->stride, at, rows->step, n, channels);
}
