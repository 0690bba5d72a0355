// SPDX-License-Identifier: MIT
// The batched products of lib/cuda/kernels/product.h, which engines with tiles use: every element
// type, both layouts, all edges of the thread blocks' tiles, sums in chunks.
#include "support/test.h"

#include <float.h>
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
static const struct way {
    const char *name;
    enum cuda_element element;
    enum cuda_arithmetic arithmetic;
} ways[] = {
    {"f32", CUDA_F32, CUDA_MULTIPLY_ADD},       {"f64", CUDA_F64, CUDA_MULTIPLY_ADD},
    {"cf32", CUDA_CF32, CUDA_MULTIPLY_ADD},     {"cf64", CUDA_CF64, CUDA_MULTIPLY_ADD},
    {"f32-three", CUDA_F32, CUDA_TF32_THREE},   {"f32-one", CUDA_F32, CUDA_TF32_ONE},
    {"cf32-three", CUDA_CF32, CUDA_TF32_THREE}, {"cf32-one", CUDA_CF32, CUDA_TF32_ONE},
};
enum { N_WAYS = sizeof ways / sizeof *ways, FIRST_TENSOR = 4 };

enum { N_SIZES = sizeof sizes / sizeof *sizes };

// What launches do: product.cu is linked without the module.
const struct cuda_thread *cuda_thread(void)
{
    static const struct cuda_thread thread = {.stream = cudaStreamPerThread};
    return &thread;
}

// The pitch of a line of n elements, in elements.
static int64_t pitch_of(enum cuda_element element, int64_t n)
{
    const int64_t vector = CUDA_PRODUCT_ALIGN / cuda_element_bytes(element);
    return (n + vector - 1) / vector * vector;
}

// The first term of a chunk; all terms for chunk = chunks.
static int64_t chunk_begin(const struct cuda_product *product, int64_t chunk)
{
    enum { STEP = 8 }; // terms that the kernels take at once
    const int64_t terms = (product->terms + product->chunks - 1) / product->chunks;
    const int64_t begin = (terms + STEP - 1) / STEP * STEP * chunk;
    return begin < product->terms ? begin : product->terms;
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
                     const struct cuda_matrices *matrices, int64_t batch, int64_t positions,
                     int64_t terms)
{
    const size_t bytes = (size_t)cuda_element_bytes(element), n = (size_t)(batch * matrices->plane);
    const int64_t lines = matrices->terms_inner ? positions : terms,
                  length = matrices->terms_inner ? terms : positions;
    char *array = malloc(n * bytes);
    memset(array, 0xff, n * bytes);
    for (int64_t b = 0; b < batch; b++)
        for (int64_t i = 0; i < lines; i++)
            random_samples(random, elements[element].type,
                           array + (size_t)(b * matrices->plane + i * matrices->pitch) * bytes,
                           (size_t)length);
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

static int64_t at(const struct cuda_matrices *matrices, int64_t matrix, int64_t position,
                  int64_t term)
{
    return matrix * matrices->plane + (matrices->terms_inner ? position * matrices->pitch + term
                                                             : term * matrices->pitch + position);
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
                for (int64_t t = chunk_begin(product, chunk); t < chunk_begin(product, chunk + 1);
                     t++) {
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

static struct cuda_product product_of(const struct way *way, bool inner, size_t i)
{
    const enum cuda_element element = way->element;
    struct cuda_product product = {.element = element,
                                   .arithmetic = way->arithmetic,
                                   .tf32_rate = 4,
                                   .batch = sizes[i].batch,
                                   .rows = sizes[i].rows,
                                   .columns = sizes[i].columns,
                                   .terms = sizes[i].terms,
                                   .chunks = sizes[i].chunks};
    struct cuda_matrices *operands[2] = {&product.a, &product.b};
    const int64_t positions[2] = {product.rows, product.columns};
    for (int o = 0; o < 2; o++) {
        const int64_t pitch = pitch_of(element, inner ? product.terms : positions[o]);
        *operands[o] =
            (struct cuda_matrices){pitch, pitch * (inner ? positions[o] : product.terms), inner};
    }
    product.c.pitch = pitch_of(element, product.columns);
    product.c.plane = product.c.pitch * product.rows;
    product.chunk_plane = product.c.plane * product.batch;
    return product;
}

// Sums are within the gate of direct sums (4 u sqrt(terms), with two products a term for complex
// numbers) and what an arithmetic adds, four deviations of it, with the same bits for any number of
// processors, that is, for any tiles. Nothing after the last row is written (the stand-in's
// guards).
static void sums(void **state)
{
    const struct way *way = *state;
    const enum cuda_element element = way->element;
    struct random random = random_start(way->name);
    for (size_t i = 0; i < 2 * N_SIZES; i++) {
        const struct cuda_product product = product_of(way, i % 2, i / 2);
        const size_t bytes =
            (size_t)(product.chunks * product.chunk_plane * cuda_element_bytes(element));
        void *a = operand(&random, element, &product.a, product.batch, product.rows, product.terms);
        void *b =
            operand(&random, element, &product.b, product.batch, product.columns, product.terms);
        void *c = run(&product, 1, a, b, bytes), *other = run(&product, 1000, a, b, bytes);
        double error = 0, norm = 0;
        for (int64_t chunk = 0; chunk < product.chunks; chunk++)
            compare(&product, chunk, a, b, c, &error, &norm);
        const double gate = hypot(gate_direct(elements[element].type, (size_t)product.terms * 2),
                                  4 * cuda_product_error(way->arithmetic));
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

// Reals of operands of all magnitudes: 2^first to 2^last.
static void set_magnitudes(struct random *random, float *array, int64_t n, int first, int last)
{
    for (int64_t i = 0; i < n; i++) {
        const int shift = first + (int)random_below(random, (size_t)(last - first + 1));
        const float x = (float)(1 + (double)random_below(random, 1 << 23) / (1 << 23));
        array[i] = ldexpf(random_below(random, 2) ? -x : x, shift);
    }
}

// The bound of decision 43 for a real of C: sums of magnitudes of products and of factors.
static double bound_of(const struct way *way, int64_t terms, double products, double factors)
{
    const double complex_numbers = way->element == CUDA_CF32 ? 2 : 1;
    const double split = way->arithmetic == CUDA_TF32_THREE ? 0x1p-21 : 0x1.01p-10;
    const double truncated = complex_numbers * 2.1 * 0x1p-23;
    const double added = ((double)terms / 8 + (double)terms / CUDA_PRODUCT_SEGMENT + 2) * 0x1p-24;
    return (split + truncated + added) * products + 0x1p-126 * factors + 0x1p-140 * (double)terms;
}

static void check_bound(const struct way *way, const struct cuda_product *product, const float *a,
                        const float *b, const float *c)
{
    const int reals = way->element == CUDA_CF32 ? 2 : 1;
    for (int64_t i = 0; i < product->rows * product->columns * reals; i++) {
        const int64_t row = i / reals / product->columns, column = i / reals % product->columns;
        const bool imaginary = i % reals;
        double sum = 0, products = 0, factors = 0;
        for (int64_t t = 0; t < product->terms; t++)
            for (int part = 0; part < reals; part++) {
                const double x = a[at(&product->a, 0, row, t) * reals + part];
                const double y =
                    b[at(&product->b, 0, column, t) * reals + (part + imaginary) % 2 * (reals - 1)];
                sum += part && !imaginary ? -x * y : x * y;
                products += fabs(x * y);
                factors += fabs(x) + fabs(y);
            }
        const double got = c[(row * product->c.pitch + column) * reals + imaginary];
        const double bound = bound_of(way, product->terms, products, factors);
        if (!(fabs(got - sum) <= bound))
            fail_msg("%s, %g: error %.3e of products of %.3e, bound %.3e", way->name, sum,
                     fabs(got - sum), products, bound);
    }
}

// Every real of C is within the bound, whatever the magnitudes: tiny and subnormal numbers are
// parts of the operands as others are.
static void bounds(void **state)
{
    static const struct {
        int first[2], last[2];
    } magnitudes[] = {{{0, 0}, {0, 0}},         {{-20, -20}, {20, 20}},  {{30, 50}, {50, 70}},
                      {{-60, -60}, {-50, -50}}, {{-149, 0}, {-120, 30}}, {{120, -20}, {126, -10}}};
    static const size_t some[] = {0, 3, 4, 8, 12};
    const struct way *way = *state;
    struct random random = random_start(way->name);
    for (size_t m = 0; m < sizeof magnitudes / sizeof *magnitudes; m++)
        for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
            struct cuda_product product = product_of(way, i % 2, some[i]);
            product.chunks = product.batch = 1;
            const int64_t reals = way->element == CUDA_CF32 ? 2 : 1;
            float *operand[2];
            for (int o = 0; o < 2; o++) {
                const int64_t n = (o ? product.b.plane : product.a.plane) * reals;
                operand[o] = malloc((size_t)n * sizeof(float));
                set_magnitudes(&random, operand[o], n, magnitudes[m].first[o],
                               magnitudes[m].last[o]);
            }
            float *c = run(&product, 1, operand[0], operand[1],
                           (size_t)(product.c.plane * reals) * sizeof(float));
            check_bound(way, &product, operand[0], operand[1], c);
            free(operand[0]);
            free(operand[1]);
            free(c);
        }
}

// An element that is not finite makes the results of its row not finite, and changes no bit of the
// others; the largest finite number does not overflow.
static void nonfinite(void **state)
{
    static const float values[] = {INFINITY, -INFINITY, NAN, FLT_MAX};
    const struct way *way = *state;
    const struct cuda_product product = product_of(way, false, 3);
    const int64_t reals = way->element == CUDA_CF32 ? 2 : 1, bad = 37;
    const int64_t n = product.c.plane * reals;
    struct random random = random_start(way->name);
    float *operand[2];
    for (int o = 0; o < 2; o++) {
        const int64_t size = (o ? product.b.plane : product.a.plane) * reals;
        operand[o] = malloc((size_t)size * sizeof(float));
        set_magnitudes(&random, operand[o], size, -6, -4);
    }
    float *before = run(&product, 1, operand[0], operand[1], (size_t)n * sizeof(float));
    for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
        const bool finite = values[v] == FLT_MAX && way->arithmetic == CUDA_TF32_THREE;
        operand[0][at(&product.a, 0, bad, 5) * reals] = values[v];
        float *c = run(&product, 1, operand[0], operand[1], (size_t)n * sizeof(float));
        for (int64_t i = 0; i < n; i++)
            if (i / reals / product.c.pitch == bad) assert_true(finite == isfinite(c[i]));
            else assert_memory_equal(&c[i], &before[i], sizeof *c);
        free(c);
    }
    free(operand[0]);
    free(operand[1]);
    free(before);
}

// Tensor cores are chosen where they are faster and as exact as the caller needs, and for f32.
static void choice(void **state)
{
    (void)state;
    static const struct {
        enum cuda_element element;
        double rate, error;
        enum cuda_arithmetic expected;
    } cases[] = {
        {CUDA_F32, 0, 1, CUDA_MULTIPLY_ADD},    {CUDA_F32, 5, 0, CUDA_MULTIPLY_ADD},
        {CUDA_F32, 5, 1e-6, CUDA_TF32_THREE},   {CUDA_F32, 5, 1e-3, CUDA_TF32_ONE},
        {CUDA_F32, 1, 1e-6, CUDA_MULTIPLY_ADD}, {CUDA_CF32, 8, 1e-6, CUDA_TF32_THREE},
        {CUDA_CF32, 8, 1e-3, CUDA_TF32_ONE},    {CUDA_F64, 8, 1, CUDA_MULTIPLY_ADD},
        {CUDA_CF64, 8, 1, CUDA_MULTIPLY_ADD},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(cuda_product_arithmetic(cases[i].element, cases[i].rate, cases[i].error),
                         cases[i].expected);
}

int main(void)
{
    struct CMUnitTest tests[3 * N_WAYS + 2];
    size_t n = 0;
    for (size_t i = 0; i < N_WAYS; i++)
        tests[n++] = named_test(sums, &ways[i], "products/%s", ways[i].name);
    for (size_t i = FIRST_TENSOR; i < N_WAYS; i++) {
        tests[n++] = named_test(bounds, &ways[i], "products/bounds-%s", ways[i].name);
        tests[n++] = named_test(nonfinite, &ways[i], "products/nonfinite-%s", ways[i].name);
    }
    tests[n++] = named_test(choice, NULL, "products/choice");
    return run_test_list(tests, n);
}
