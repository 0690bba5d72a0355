// SPDX-License-Identifier: MIT
// Transforms of the device (cuda/device/fft.h): products of spectra are cyclic or negacyclic
// convolutions. This is all that their interface promises.
#include "cuda/device/fft.h"
#include "cuda/kernels/lags.h"
#include "cuda/kernels/pass.h"
#include "cuda/kernels/sums.h"
#include "cuda/module.h"

#include <math.h>

#include "device/arrays.h"
#include "support/test.h"

enum { MAX_SAMPLES = 2 * CUDA_FFT_MAX_F32, TAPS = 9, LINES = 3 };

static struct partita_plan plan_on_device(bool f64, bool complex_signal)
{
    char text[160];
    struct partita_plan plan = {.shape = {.f64 = f64, .complex_signal = complex_signal}};
    assert_int_equal(cuda_open(0, text, sizeof text, &plan.device), PARTITA_OK);
    return plan;
}

static double read_real(const void *array, size_t i, bool f64)
{
    return f64 ? ((const double *)array)[i] : ((const float *)array)[i];
}

static void write_real(void *array, size_t i, bool f64, double value)
{
    if (f64) ((double *)array)[i] = value;
    else ((float *)array)[i] = (float)value;
}

static double complex read_sample(const void *array, size_t i, bool f64, bool pair)
{
    return pair ? read_real(array, 2 * i, f64) + _Complex_I * read_real(array, 2 * i + 1, f64)
                : read_real(array, i, f64);
}

// LINES lines convolved with taps of as many lines.
struct fft_case {
    size_t points;
    bool negacyclic, f64;
};

static size_t samples_of(const struct fft_case *c)
{
    return c->negacyclic ? 2 * c->points : c->points;
}

// Compares a line of y with the convolution of a's and b's.
static void check_line(const struct fft_case *c, const void *a, const void *b, const void *y,
                       size_t line)
{
    const size_t n = samples_of(c);
    const bool pair = !c->negacyclic;
    double error = 0, norm = 0;
    for (size_t i = 0; i < n; i++) {
        double complex sum = 0;
        for (size_t t = 0; t < TAPS; t++) {
            const double complex x = read_sample(a, line * n + (i + n - t) % n, c->f64, pair);
            sum +=
                (c->negacyclic && i < t ? -x : x) * read_sample(b, line * TAPS + t, c->f64, pair);
        }
        const double complex off = read_sample(y, line * n + i, c->f64, pair) - sum;
        error += creal(off * conj(off)), norm += creal(sum * conj(sum));
    }
    // Relative L2 error of transforms.
    const double unit = c->f64 ? 0x1p-53 : 0x1p-24;
    assert_true(sqrt(error / norm) <= 3 * unit * sqrt(log2((double)n)));
}

static void multiply(void *a, const void *b, size_t n, bool f64)
{
    for (size_t i = 0; i < n; i++) {
        const double complex product = read_sample(a, i, f64, true) * read_sample(b, i, f64, true);
        write_real(a, 2 * i, f64, creal(product));
        write_real(a, 2 * i + 1, f64, cimag(product));
    }
}

// Transforms of windows within thread blocks.
static void *spectra_of(const struct cuda_fft *fft, const struct cuda_windows *windows,
                        const void *samples, size_t scalars)
{
    const size_t scalar = fft->params.f64 ? 8 : 4,
                 bytes = LINES * (size_t)fft->params.points * 2 * scalar;
    void *x = device_copy(samples, scalars * scalar, 0), *spectra = device_copy(NULL, bytes, 0),
         *ret = malloc(bytes);
    struct cuda_fft_params params = fft->params;
    params.planes = 1;
    assert_int_equal(cuda_launch_windows(&params, spectra, windows, LINES, x), cudaSuccess);
    assert_int_equal(cudaMemcpy(ret, spectra, bytes, cudaMemcpyDefault), cudaSuccess);
    cudaFree(spectra);
    cudaFree(x);
    return ret;
}

static void within_a_block(void **state)
{
    const struct fft_case *c = *state;
    const size_t n = samples_of(c), per = c->negacyclic ? 1 : 2, scalar = c->f64 ? 8 : 4;
    const enum partita_type type = c->negacyclic ? c->f64 ? PARTITA_F64 : PARTITA_F32
                                   : c->f64      ? PARTITA_CF64
                                                 : PARTITA_CF32;
    static double a[LINES * MAX_SAMPLES * 2], b[LINES * TAPS * 2], y[LINES * MAX_SAMPLES * 2];
    struct random random = random_start("device-fft");
    struct partita_plan plan = plan_on_device(c->f64, !c->negacyclic);
    struct cuda_fft fft;
    random_samples(&random, type, a, LINES * n);
    random_samples(&random, type, b, LINES * TAPS);
    assert_int_equal(cuda_fft_create(&plan, c->points, 1, false, &fft), PARTITA_OK);
    assert_true(fft.params.in_block);
    const struct cuda_windows of_a = {.size = (int64_t)n,
                                      .step = 1,
                                      .count = 1,
                                      .length = (int64_t)n,
                                      .outer = 1,
                                      .inner = 1,
                                      .pitch = 1,
                                      .complex_samples = !c->negacyclic,
                                      .scale = 1};
    struct cuda_windows of_b = of_a;
    of_b.size = TAPS;
    void *spectra = spectra_of(&fft, &of_a, a, LINES * n * per),
         *taps = spectra_of(&fft, &of_b, b, LINES * TAPS * per);
    multiply(spectra, taps, LINES * c->points, c->f64);
    void *products = device_copy(spectra, LINES * c->points * 2 * scalar, 0);
    void *to = device_copy(NULL, LINES * n * per * scalar, 0);
    const struct cuda_fft_params *params = &fft.params;
    const struct cuda_lags whole = {
        .form = params->form, .chunk = (int64_t)n, .chunks = 1, .tasks = LINES};
    const struct cuda_sink sink = {.y = to,
                                   .rows = LINES,
                                   .length = (int64_t)n,
                                   .stride = 1,
                                   .end = (int64_t)n,
                                   .channels = 1,
                                   .complex_samples = !c->negacyclic};
    assert_int_equal(cuda_launch_lags_results(&whole, &sink, c->f64, products), cudaSuccess);
    assert_int_equal(cudaMemcpy(y, to, LINES * n * per * scalar, cudaMemcpyDefault), cudaSuccess);
    for (size_t line = 0; line < LINES; line++) check_line(c, a, b, y, line);
    cudaFree(to);
    cudaFree(products);
    cuda_fft_destroy(&plan, &fft);
    free(spectra);
    free(taps);
    plan.device->close(plan.device);
}

// Batches of cuFFT's complex transforms, forward and inverse.
static void by_cufft(void **state)
{
    const struct fft_case *c = *state;
    const size_t points = 2 * cuda_fft_max(c->f64), scalar = c->f64 ? 8 : 4,
                 bytes = LINES * points * 2 * scalar;
    struct random random = random_start("cufft");
    struct partita_plan plan = plan_on_device(c->f64, true);
    struct cuda_fft fft;
    void *a = malloc(bytes), *y = malloc(bytes);
    random_samples(&random, c->f64 ? PARTITA_CF64 : PARTITA_CF32, a, LINES * points);
    assert_int_equal(cuda_fft_create(&plan, points, LINES, false, &fft), PARTITA_OK);
    assert_false(fft.params.in_block);
    void *area = device_copy(NULL, cuda_fft_work_bytes(&fft), 0),
         *spectra = device_copy(a, bytes, 0);
    assert_int_equal(cuda_fft_begin(&plan, &fft, area), PARTITA_OK);
    assert_int_equal(cuda_fft_long(&plan, &fft, spectra, LINES, false), PARTITA_OK);
    assert_int_equal(cuda_fft_long(&plan, &fft, spectra, LINES, true), PARTITA_OK);
    cuda_fft_end(&fft);
    assert_int_equal(cudaMemcpy(y, spectra, bytes, cudaMemcpyDefault), cudaSuccess);
    const double unit = c->f64 ? 0x1p-53 : 0x1p-24;
    for (size_t i = 0; i < 2 * LINES * points; i++)
        assert_true(fabs(read_real(y, i, c->f64) / (double)points - read_real(a, i, c->f64)) <
                    3 * unit * log2((double)points));
    cudaFree(spectra);
    cudaFree(area);
    cuda_fft_destroy(&plan, &fft);
    free(a);
    free(y);
    plan.device->close(plan.device);
}

// A launch of more thread blocks than a grid may have is refused, not truncated to 32 bits.
static void too_many_blocks(void **state)
{
    const int64_t n = (((int64_t)1 << 32) + 1) * CUDA_PASS_THREADS;
    (void)state;
    assert_int_equal(cuda_launch_add_sums(false, NULL, NULL, n, 2), cudaErrorInvalidConfiguration);
}

int main(void)
{
    static struct fft_case cases[64];
    static struct CMUnitTest tests[64];
    size_t n = 0;
    for (int f64 = 0; f64 < 2; f64++)
        for (int negacyclic = 0; negacyclic < 2; negacyclic++)
            for (size_t points = CUDA_FFT_POINTS; points <= cuda_fft_max(f64); points *= 2, n++) {
                cases[n] = (struct fft_case){points, negacyclic, f64};
                tests[n] = named_test(within_a_block, &cases[n], "%s/%s-%zu", f64 ? "f64" : "f32",
                                      negacyclic ? "negacyclic" : "cyclic", points);
            }
    for (int f64 = 0; f64 < 2 && cuda_fft_has_long(); f64++, n++) {
        cases[n].f64 = f64;
        tests[n] = named_test(by_cufft, &cases[n], "%s/cufft", f64 ? "f64" : "f32");
    }
    tests[n++] = named_test(too_many_blocks, NULL, "too-many-blocks");
    return run_test_list(tests, n);
}
