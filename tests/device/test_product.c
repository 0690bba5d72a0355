// SPDX-License-Identifier: MIT
// The batched products of lib/cuda/kernels/product.h, which engines with tiles use: every element
// type, both layouts, all edges of the thread blocks' tiles, sums in chunks.
#include "support/test.h"

#include <math.h>

#include "cuda/kernels/product.h"
#include "cuda/kernels/thread.h"
#include "device/arrays.h"

static const struct {
    const char *name;
    enum partita_type type;
} elements[CUDA_ELEMENTS] = {
    {"f32", PARTITA_F32}, {"f64", PARTITA_F64}, {"cf32", PARTITA_CF32}, {"cf64", PARTITA_CF64}};

static const struct {
    int64_t batch, rows, columns, terms, chunks;
} sizes[] = {
    {1, 1, 1, 1, 1},      {2, 3, 5, 7, 1},    {3, 33, 17, 8, 1},    {1, 64, 64, 9, 1},
    {1, 130, 129, 19, 1}, {2, 31, 66, 70, 3}, {1, 128, 64, 256, 1}, {1, 9, 40, 257, 1},
    {1, 5, 6, 530, 1},    {1, 12, 7, 100, 4}, {1, 40, 33, 17, 5},   {2, 65, 31, 24, 2},
    {1, 4, 4, 1100, 2},
};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

// What launches do: product.cu is linked without the module.
const struct cuda_thread *cuda_thread(void)
{
    static const struct cuda_thread thread = {.stream = cudaStreamPerThread};
    return &thread;
}

static double complex get(enum cuda_element element, const void *array, int64_t i)
{
    switch (element) {
    case CUDA_F32:
        return ((const float *)array)[i];
    case CUDA_F64:
        return ((const double *)array)[i];
    case CUDA_CF32:
        return ((const float complex *)array)[i];
    default:
        return ((const double complex *)array)[i];
    }
}

// An operand: all bytes are 0xff, which is NaN, except its positions and terms.
static void *operand(struct random *random, enum cuda_element element,
                     const struct cuda_matrices *of, int64_t batch, int64_t positions,
                     int64_t terms)
{
    const size_t bytes = (size_t)cuda_element_bytes(element), n = (size_t)(batch * of->plane);
    const int64_t lines = of->terms_inner ? positions : terms,
                  length = of->terms_inner ? terms : positions;
    char *array = malloc(n * bytes);
    memset(array, 0xff, n * bytes);
    for (int64_t b = 0; b < batch; b++)
        for (int64_t i = 0; i < lines; i++)
            random_samples(random, elements[element].type,
                           array + (size_t)(b * of->plane + i * of->pitch) * bytes, (size_t)length);
    return array;
}

// The result, in memory that was 0xee.
static void *run(const struct cuda_product *product, int processors, const void *a, const void *b,
                 size_t bytes)
{
    const int64_t size = cuda_element_bytes(product->element);
    void *result = malloc(bytes);
    memset(result, 0xee, bytes);
    void *c = device_copy(result, bytes, 0),
         *on[2] = {device_copy(a, (size_t)(product->batch * product->a.plane * size), 0),
                   device_copy(b, (size_t)(product->batch * product->b.plane * size), 0)};
    assert_int_equal(cuda_launch_product(product, processors, c, on[0], on[1]), cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
    assert_int_equal(cudaMemcpy(result, c, bytes, cudaMemcpyDefault), cudaSuccess);
    cudaFree(c);
    cudaFree(on[0]);
    cudaFree(on[1]);
    return result;
}

static int64_t at(const struct cuda_matrices *of, int64_t matrix, int64_t position, int64_t term)
{
    return matrix * of->plane +
           (of->terms_inner ? position * of->pitch + term : term * of->pitch + position);
}

// Squares of the errors and of the sums of one chunk.
static void compare(const struct cuda_product *product, int64_t chunk, const void *a, const void *b,
                    const void *c, double *error, double *norm)
{
    const enum cuda_element element = product->element;
    for (int64_t m = 0; m < product->batch; m++)
        for (int64_t r = 0; r < product->rows; r++)
            for (int64_t k = 0; k < product->columns; k++) {
                long double re = 0, im = 0;
                for (int64_t t = cuda_product_chunk_begin(product, chunk);
                     t < cuda_product_chunk_begin(product, chunk + 1); t++) {
                    const double complex x = get(element, a, at(&product->a, m, r, t));
                    const double complex y = get(element, b, at(&product->b, m, k, t));
                    re += (long double)creal(x) * creal(y) - (long double)cimag(x) * cimag(y);
                    im += (long double)creal(x) * cimag(y) + (long double)cimag(x) * creal(y);
                }
                const double complex sum = get(element, c,
                                               chunk * product->chunk_plane + m * product->c.plane +
                                                   r * product->c.pitch + k);
                const double real = (double)(creal(sum) - re),
                             imaginary = (double)(cimag(sum) - im);
                *error += real * real + imaginary * imaginary;
                *norm += (double)(re * re + im * im);
            }
}

static struct cuda_product product_of(enum cuda_element element, bool inner, size_t i)
{
    struct cuda_product product = {.element = element,
                                   .batch = sizes[i].batch,
                                   .rows = sizes[i].rows,
                                   .columns = sizes[i].columns,
                                   .terms = sizes[i].terms,
                                   .chunks = sizes[i].chunks};
    struct cuda_matrices *operands[2] = {&product.a, &product.b};
    const int64_t positions[2] = {product.rows, product.columns};
    for (int o = 0; o < 2; o++) {
        const int64_t pitch = cuda_product_pitch(element, inner ? product.terms : positions[o]);
        *operands[o] =
            (struct cuda_matrices){pitch, pitch * (inner ? positions[o] : product.terms), inner};
    }
    product.c.pitch = cuda_product_pitch(element, product.columns);
    product.c.plane = product.c.pitch * product.rows;
    product.chunk_plane = product.c.plane * product.batch;
    return product;
}

// Sums are within the gate of direct sums (4 u sqrt(terms), with two products a term for complex
// numbers), with the same bits for any number of processors, that is, for any tiles. Nothing after
// the last row is written (the stand-in's guards).
static void sums(void **state)
{
    const enum cuda_element element = *(const enum cuda_element *)*state;
    struct random random = random_start(elements[element].name);
    for (size_t i = 0; i < 2 * N_SIZES; i++) {
        const struct cuda_product product = product_of(element, i % 2, i / 2);
        const size_t bytes =
            (size_t)(product.chunks * product.chunk_plane * cuda_element_bytes(element));
        void *a = operand(&random, element, &product.a, product.batch, product.rows, product.terms);
        void *b =
            operand(&random, element, &product.b, product.batch, product.columns, product.terms);
        void *c = run(&product, 1, a, b, bytes), *other = run(&product, 1000, a, b, bytes);
        double error = 0, norm = 0;
        for (int64_t chunk = 0; chunk < product.chunks; chunk++)
            compare(&product, chunk, a, b, c, &error, &norm);
        const double gate = gate_direct(elements[element].type, (size_t)product.terms * 2);
        const size_t n = (size_t)(product.rows * product.columns * product.batch);
        if (!(sqrt(error / norm) <= gate_for_outputs(gate, n)))
            fail_msg("case %zu: error %.2e, gate %.2e", i, sqrt(error / norm), gate);
        for (int64_t row = 0; row < product.chunks * product.batch * product.rows; row++) {
            const size_t first = (size_t)(row * product.c.pitch * cuda_element_bytes(element));
            assert_memory_equal((char *)c + first, (char *)other + first,
                                (size_t)(product.columns * cuda_element_bytes(element)));
        }
        free(a);
        free(b);
        free(c);
        free(other);
    }
}

// Chunks are multiples of steps, cover all terms, and may be empty at the end.
static void chunks(void **state)
{
    (void)state;
    for (int64_t terms = 1; terms < 100; terms++)
        for (int64_t n = 1; n < 20; n++) {
            const struct cuda_product product = {.terms = terms, .chunks = n};
            assert_true(cuda_product_chunk_begin(&product, 0) == 0);
            assert_true(cuda_product_chunk_begin(&product, n) == terms);
            for (int64_t chunk = 0; chunk < n; chunk++)
                assert_true(cuda_product_chunk_begin(&product, chunk) <=
                            cuda_product_chunk_begin(&product, chunk + 1));
        }
}

int main(void)
{
    static const enum cuda_element each[CUDA_ELEMENTS] = {CUDA_F32, CUDA_F64, CUDA_CF32, CUDA_CF64};
    struct CMUnitTest tests[CUDA_ELEMENTS + 1];
    for (int i = 0; i < CUDA_ELEMENTS; i++)
        tests[i] = named_test(sums, &each[i], "products/%s", elements[i].name);
    tests[CUDA_ELEMENTS] = named_test(chunks, NULL, "products/chunks");
    return run_all(tests);
}
