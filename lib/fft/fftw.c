// SPDX-License-Identifier: MIT
// Transforms by FFTW 3 (any size; the reference provider). The only file that includes fftw3.h.
// Real transforms keep their n/2 + 1 bins as they are, so every bin of a spectrum is an ordinary
// complex number. FFTW's planner, its wisdom included, is one global object; only executing a plan
// is safe without LOCK_FFTW.
#include <assert.h>
#include <fftw3.h>
#include <string.h>

#include "base/sizes.h"
#include "base/thread.h"
#include "kernels/kernels.h"
#include "provider.h"

struct fftw {
    struct fft fft;
    const struct kernels *kernels;
    size_t bins;
    void *forward, *inverse; // fftw_plan or fftwf_plan
};

static bool fftw_serves(size_t n)
{
    return n >= 1;
}

#define FFTW_PLANS(type, prefix)                                                                   \
    static void fftw_plan_##type(struct fftw *fftw, void *x, void *bins, unsigned flags)           \
    {                                                                                              \
        const int n = (int)fftw->fft.n;                                                            \
        const unsigned back = flags | FFTW_DESTROY_INPUT;                                          \
        if (fftw->fft.complex) {                                                                   \
            fftw->forward = prefix##_plan_dft_1d(n, x, bins, FFTW_FORWARD, flags);                 \
            fftw->inverse = prefix##_plan_dft_1d(n, bins, x, FFTW_BACKWARD, back);                 \
        } else {                                                                                   \
            fftw->forward = prefix##_plan_dft_r2c_1d(n, x, bins, flags);                           \
            fftw->inverse = prefix##_plan_dft_c2r_1d(n, bins, x, back);                            \
        }                                                                                          \
    }
FFTW_PLANS(f32, fftwf)
FFTW_PLANS(f64, fftw)

static size_t samples_bytes(const struct fftw *fftw)
{
    return fftw->fft.n * (fftw->fft.f64 ? 8 : 4) * (fftw->fft.complex ? 2 : 1);
}

static size_t bins_bytes(const struct fftw *fftw)
{
    return fftw->bins * (fftw->fft.f64 ? 16 : 8);
}

// Plans both directions on throw-away arrays of the alignment that forward and inverse will use.
static enum partita_status plan_both(struct fftw *fftw, bool measure)
{
    char *x = mem_allocate(&fftw->fft.allocator, fftw->fft.scratch_bytes);
    if (!x) return PARTITA_ERR_NOMEM;
    char *bins = x + mem_round(samples_bytes(fftw));
    const unsigned flags = measure ? FFTW_MEASURE : FFTW_ESTIMATE;
    thread_lock(LOCK_FFTW);
    if (fftw->fft.f64) fftw_plan_f64(fftw, x, bins, flags);
    else fftw_plan_f32(fftw, x, bins, flags);
    thread_unlock(LOCK_FFTW);
    mem_release(&fftw->fft.allocator, x);
    return fftw->forward && fftw->inverse ? PARTITA_OK : PARTITA_ERR_NOMEM;
}

static void fftw_destroy(struct fft *fft)
{
    struct fftw *fftw = (struct fftw *)fft;
    void *const plans[] = {fftw->forward, fftw->inverse};
    thread_lock(LOCK_FFTW);
    for (int i = 0; i < 2; i++)
        if (plans[i] && fft->f64) fftw_destroy_plan(plans[i]);
        else if (plans[i]) fftwf_destroy_plan(plans[i]);
    thread_unlock(LOCK_FFTW);
}

static enum partita_status fftw_create(const struct fft_request *request,
                                       const struct partita_allocator *allocator, struct fft **ret)
{
    if (request->n > INT32_MAX) return PARTITA_ERR_UNSUPPORTED;
    struct fftw *fftw = mem_allocate(allocator, sizeof *fftw);
    if (!fftw) return PARTITA_ERR_NOMEM;
    *fftw = (struct fftw){
        .fft = {.provider = &fft_fftw,
                .allocator = *allocator,
                .n = request->n,
                .f64 = request->f64,
                .complex = request->complex,
                .gain = (double)request->n,
                .steps = 1,
                .sample_steps = 1,
                .subtransforms = 1},
        .kernels = kernels_select(request->isa, request->f64),
        .bins = request->complex ? request->n : request->n / 2 + 1,
    };
    fftw->fft.lines = ceil_div(bins_bytes(fftw), SPECTRUM_LINE_BYTES);
    fftw->fft.scratch_bytes = mem_round(samples_bytes(fftw)) + mem_round(bins_bytes(fftw));
    const enum partita_status status = plan_both(fftw, request->measure);
    if (status == PARTITA_OK) *ret = &fftw->fft;
    else fft_destroy(&fftw->fft);
    return status;
}

static bool aligned(const void *pointer)
{
    return (uintptr_t)pointer % MEM_ALIGN == 0;
}

static void fftw_forward(const struct fft *fft, const struct fft_target *target, const void *x,
                         void *scratch, struct fft_steps steps, bool half)
{
    assert(steps.first == 0 && steps.end == 1 && !half); // the one there is
    (void)steps;
    (void)half;
    const struct fftw *fftw = (const struct fftw *)fft;
    void *samples = scratch, *bins = (char *)scratch + mem_round(samples_bytes(fftw));
    // FFTW's types are not const, but these plans keep their input.
    if (aligned(x)) samples = (void *)(uintptr_t)x;
    else memcpy(samples, x, samples_bytes(fftw));
    if (fft->f64 && fft->complex) fftw_execute_dft(fftw->forward, samples, bins);
    else if (fft->f64) fftw_execute_dft_r2c(fftw->forward, samples, bins);
    else if (fft->complex) fftwf_execute_dft(fftw->forward, samples, bins);
    else fftwf_execute_dft_r2c(fftw->forward, samples, bins);
    fftw->kernels->split(target->work, bins, fftw->bins);
    if (target->to == target->work) return;
    for (size_t line = 0; line < fft->lines; line++)
        memcpy((char *)target->to + line * target->stride,
               (char *)target->work + line * SPECTRUM_LINE_BYTES, SPECTRUM_LINE_BYTES);
}

static void fftw_inverse(const struct fft *fft, void *x, void *spectrum, void *scratch,
                         struct fft_steps steps, enum fft_part part)
{
    (void)steps;
    (void)part;
    const struct fftw *fftw = (const struct fftw *)fft;
    void *samples = aligned(x) ? x : scratch,
         *bins = (char *)scratch + mem_round(samples_bytes(fftw));
    fftw->kernels->join(bins, spectrum, fftw->bins);
    if (fft->f64 && fft->complex) fftw_execute_dft(fftw->inverse, bins, samples);
    else if (fft->f64) fftw_execute_dft_c2r(fftw->inverse, bins, samples);
    else if (fft->complex) fftwf_execute_dft(fftw->inverse, bins, samples);
    else fftwf_execute_dft_c2r(fftw->inverse, bins, samples);
    if (samples != x) memcpy(x, samples, samples_bytes(fftw));
}

// Bin k's factor is (-1)^k; the first bin of a line is even.
static void fftw_add_rotated(const struct fft *fft, void *y, const void *x, size_t first,
                             size_t count, bool back)
{
    (void)first;
    (void)back;
    for (size_t at = 0; at < count * SPECTRUM_LINE_BYTES; at += SPECTRUM_LANES_BYTES)
        fft_add_lanes(fft->f64, (char *)y + at, (const char *)x + at, 1, -1);
}

static char *fftw_wisdom_export(bool f64)
{
    thread_lock(LOCK_FFTW);
    char *text = f64 ? fftw_export_wisdom_to_string() : fftwf_export_wisdom_to_string();
    thread_unlock(LOCK_FFTW);
    return text;
}

static bool fftw_wisdom_import(bool f64, const char *text)
{
    thread_lock(LOCK_FFTW);
    const int taken =
        f64 ? fftw_import_wisdom_from_string(text) : fftwf_import_wisdom_from_string(text);
    thread_unlock(LOCK_FFTW);
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
