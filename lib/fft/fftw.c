// SPDX-License-Identifier: MIT
// Transforms by FFTW 3 (any size; the reference provider). The only file that includes fftw3.h.
// Real transforms keep their n/2 + 1 bins as they are, so every bin of a spectrum is an ordinary
// complex number.
#include <assert.h>
#include <fftw3.h>
#include <pthread.h>
#include <string.h>

#include "kernels/kernels.h"
#include "provider.h"

// FFTW's planner, its wisdom included, is one global object; only executing a plan is safe without
// this lock.
static pthread_mutex_t planner_lock = PTHREAD_MUTEX_INITIALIZER;

struct fftw {
    struct fft fft;
    const struct kernels *kernels;
    bool f64, complex;
    size_t bins;
    void *forward, *inverse; // fftw_plan or fftwf_plan
};

static bool fftw_serves(size_t n)
{
    return n >= 1;
}

static void fftw_plan_f64(struct fftw *fftw, int n, double *x, fftw_complex *bins, unsigned flags)
{
    if (fftw->complex) {
        fftw->forward = fftw_plan_dft_1d(n, (fftw_complex *)x, bins, FFTW_FORWARD, flags);
        fftw->inverse =
            fftw_plan_dft_1d(n, bins, (fftw_complex *)x, FFTW_BACKWARD, flags | FFTW_DESTROY_INPUT);
    } else {
        fftw->forward = fftw_plan_dft_r2c_1d(n, x, bins, flags);
        fftw->inverse = fftw_plan_dft_c2r_1d(n, bins, x, flags | FFTW_DESTROY_INPUT);
    }
}

static void fftw_plan_f32(struct fftw *fftw, int n, float *x, fftwf_complex *bins, unsigned flags)
{
    if (fftw->complex) {
        fftw->forward = fftwf_plan_dft_1d(n, (fftwf_complex *)x, bins, FFTW_FORWARD, flags);
        fftw->inverse = fftwf_plan_dft_1d(n, bins, (fftwf_complex *)x, FFTW_BACKWARD,
                                          flags | FFTW_DESTROY_INPUT);
    } else {
        fftw->forward = fftwf_plan_dft_r2c_1d(n, x, bins, flags);
        fftw->inverse = fftwf_plan_dft_c2r_1d(n, bins, x, flags | FFTW_DESTROY_INPUT);
    }
}

// Plans both directions on throw-away arrays of the alignment that forward and inverse will use.
static enum partita_status plan_both(struct fftw *fftw, bool measure)
{
    const size_t scalar = fftw->f64 ? 8 : 4;
    const size_t x_bytes = mem_round(fftw->fft.n * scalar * (fftw->complex ? 2 : 1));
    char *memory = mem_allocate(&fftw->fft.allocator, x_bytes + fftw->bins * 2 * scalar);
    if (!memory) return PARTITA_ERR_NOMEM;
    const unsigned flags = measure ? FFTW_MEASURE : FFTW_ESTIMATE;
    const int n = (int)fftw->fft.n;
    pthread_mutex_lock(&planner_lock);
    if (fftw->f64)
        fftw_plan_f64(fftw, n, (double *)memory, (fftw_complex *)(memory + x_bytes), flags);
    else fftw_plan_f32(fftw, n, (float *)memory, (fftwf_complex *)(memory + x_bytes), flags);
    pthread_mutex_unlock(&planner_lock);
    mem_release(&fftw->fft.allocator, memory);
    return fftw->forward && fftw->inverse ? PARTITA_OK : PARTITA_ERR_NOMEM;
}

static void fftw_destroy(struct fft *fft)
{
    struct fftw *fftw = (struct fftw *)fft;
    pthread_mutex_lock(&planner_lock);
    if (fftw->f64) {
        if (fftw->forward) fftw_destroy_plan(fftw->forward);
        if (fftw->inverse) fftw_destroy_plan(fftw->inverse);
    } else {
        if (fftw->forward) fftwf_destroy_plan(fftw->forward);
        if (fftw->inverse) fftwf_destroy_plan(fftw->inverse);
    }
    pthread_mutex_unlock(&planner_lock);
    const struct partita_allocator allocator = fft->allocator;
    mem_release(&allocator, fftw);
}

static enum partita_status fftw_create(const struct fft_request *request,
                                       const struct partita_allocator *allocator, struct fft **ret)
{
    if (request->n > INT32_MAX) return PARTITA_ERR_UNSUPPORTED;
    struct fftw *fftw = mem_allocate(allocator, sizeof *fftw);
    if (!fftw) return PARTITA_ERR_NOMEM;
    const size_t n = request->n, scalar = request->f64 ? 8 : 4,
                 lanes = SPECTRUM_LANES_BYTES / scalar;
    const size_t bins = request->complex ? n : n / 2 + 1, x_reals = request->complex ? 2 * n : n;
    *fftw = (struct fftw){
        .fft = {.provider = &fft_fftw,
                .allocator = *allocator,
                .n = n,
                .gain = (double)n,
                .steps = 1,
                .sample_steps = 1,
                .subtransforms = 1,
                .lines = (bins + lanes - 1) / lanes,
                .scratch_bytes = mem_round(x_reals * scalar) + mem_round(bins * 2 * scalar)},
        .kernels = kernels_select(request->level, request->f64),
        .f64 = request->f64,
        .complex = request->complex,
        .bins = bins,
    };
    const enum partita_status status = plan_both(fftw, request->measure);
    if (status != PARTITA_OK) {
        fftw_destroy(&fftw->fft);
        return status;
    }
    *ret = &fftw->fft;
    return PARTITA_OK;
}

static size_t samples_bytes(const struct fftw *fftw)
{
    return fftw->fft.n * (fftw->f64 ? 8 : 4) * (fftw->complex ? 2 : 1);
}

static bool aligned(const void *pointer)
{
    return (uintptr_t)pointer % MEM_ALIGN == 0;
}

static void fftw_forward(const struct fft *fft, const struct fft_target *target, const void *x,
                         void *scratch, struct fft_steps steps)
{
    assert(steps.first == 0 && steps.end == 1); // the one there is
    (void)steps;
    const struct fftw *fftw = (const struct fftw *)fft;
    void *samples = scratch, *bins = (char *)scratch + mem_round(samples_bytes(fftw));
    // FFTW's types are not const, but these plans keep their input.
    if (aligned(x)) samples = (void *)(uintptr_t)x;
    else memcpy(samples, x, samples_bytes(fftw));
    if (fftw->f64 && fftw->complex) fftw_execute_dft(fftw->forward, samples, bins);
    else if (fftw->f64) fftw_execute_dft_r2c(fftw->forward, samples, bins);
    else if (fftw->complex) fftwf_execute_dft(fftw->forward, samples, bins);
    else fftwf_execute_dft_r2c(fftw->forward, samples, bins);
    fftw->kernels->split(target->work, bins, fftw->bins);
    if (target->to == target->work) return;
    for (size_t line = 0; line < fft->lines; line++)
        memcpy((char *)target->to + line * target->stride,
               (char *)target->work + line * SPECTRUM_LINE_BYTES, SPECTRUM_LINE_BYTES);
}

static void fftw_inverse(const struct fft *fft, void *x, void *spectrum, void *scratch,
                         struct fft_steps steps, bool upper)
{
    (void)steps;
    (void)upper;
    const struct fftw *fftw = (const struct fftw *)fft;
    void *samples = aligned(x) ? x : scratch,
         *bins = (char *)scratch + mem_round(samples_bytes(fftw));
    fftw->kernels->join(bins, spectrum, fftw->bins);
    if (fftw->f64 && fftw->complex) fftw_execute_dft(fftw->inverse, bins, samples);
    else if (fftw->f64) fftw_execute_dft_c2r(fftw->inverse, bins, samples);
    else if (fftw->complex) fftwf_execute_dft(fftw->inverse, bins, samples);
    else fftwf_execute_dft_c2r(fftw->inverse, bins, samples);
    if (samples != x) memcpy(x, samples, samples_bytes(fftw));
}

// Bin k's factor is (-1)^k; the first bin of a line is even.
static void fftw_add_rotated(const struct fft *fft, void *y, const void *x, size_t first,
                             size_t count, bool back)
{
    (void)first;
    (void)back;
    fft_add_signed(((const struct fftw *)fft)->f64, y, x, count, 1, -1);
}

static char *fftw_wisdom_export(bool f64)
{
    pthread_mutex_lock(&planner_lock);
    char *text = f64 ? fftw_export_wisdom_to_string() : fftwf_export_wisdom_to_string();
    pthread_mutex_unlock(&planner_lock);
    return text;
}

static bool fftw_wisdom_import(bool f64, const char *text)
{
    pthread_mutex_lock(&planner_lock);
    const int taken =
        f64 ? fftw_import_wisdom_from_string(text) : fftwf_import_wisdom_from_string(text);
    pthread_mutex_unlock(&planner_lock);
    return taken != 0;
}

const struct fft_provider fft_fftw = {
    .name = "fftw",
    .serves = fftw_serves,
    .create = fftw_create,
    .destroy = fftw_destroy,
    .forward = fftw_forward,
    .inverse = fftw_inverse,
    .wisdom_export = fftw_wisdom_export,
    .wisdom_import = fftw_wisdom_import,
    .add_rotated = fftw_add_rotated,
};
