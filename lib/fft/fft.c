// SPDX-License-Identifier: MIT
// Picks the provider of transforms. Which providers exist is decided when the library is built
// (-Dfft=...); PARTITA_FFT=native|fftw prefers one of them in tests and benches.
#include "fft.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "provider.h"

static const struct fft_provider *const providers[] = {
#ifdef HAVE_NATIVE_FFT
    &fft_native,
#endif
#ifdef HAVE_FFTW
    &fft_fftw,
#endif
};
enum { N_PROVIDERS = sizeof providers / sizeof *providers };

static const struct fft_provider *provider_for(size_t n)
{
    const char *wanted = getenv("PARTITA_FFT");
    const struct fft_provider *found = NULL;
    for (int i = 0; i < N_PROVIDERS; i++) {
        if (!providers[i]->serves(n)) continue;
        if (wanted && !strcmp(wanted, providers[i]->name)) return providers[i];
        if (!found) found = providers[i];
    }
    return found;
}

size_t fft_good_size(size_t n)
{
    enum { MAX_SIZE = 1 << 28 };
    size_t best = 0;
    // 2^a, 3*2^a and 5*2^a: three sizes an octave; other factors gain nothing on the cost of
    // rounding up.
    static const size_t odd[] = {1, 3, 5};
    for (int i = 0; i < 3; i++) {
        size_t size = odd[i] * 16;
        while (size < MAX_SIZE && (size < n || !provider_for(size))) size *= 2;
        if (size >= n && provider_for(size) && (!best || size < best)) best = size;
    }
    return best;
}

enum partita_status fft_create(const struct fft_request *request,
                               const struct partita_allocator *allocator, struct fft **ret)
{
    if (fft_good_size(request->n) != request->n) return PARTITA_ERR_UNSUPPORTED;
    const struct fft_provider *provider = provider_for(request->n);
    const enum partita_status status = provider->create(request, allocator, ret);
    if (status != PARTITA_OK) return status;
    assert((*ret)->sample_steps <= (*ret)->steps);
    assert(((*ret)->steps - (*ret)->sample_steps) % (*ret)->subtransforms == 0);
    (*ret)->sample_bytes = (size_t)(request->f64 ? 8 : 4) * (request->complex ? 2 : 1);
    (*ret)->halves = provider->forward_half && !request->complex;
    return status;
}

void fft_destroy(struct fft *fft)
{
    if (fft) fft->provider->destroy(fft);
}

const char *fft_provider(const struct fft *fft)
{
    return fft->provider->name;
}

size_t fft_size(const struct fft *fft)
{
    return fft->n;
}

size_t fft_lines(const struct fft *fft)
{
    return fft->lines;
}

size_t fft_spectrum_bytes(const struct fft *fft)
{
    return fft->lines * SPECTRUM_LINE_BYTES;
}

double fft_gain(const struct fft *fft)
{
    return fft->gain;
}

size_t fft_scratch_bytes(const struct fft *fft)
{
    return fft->scratch_bytes;
}

void fft_forward(const struct fft *fft, void *spectrum, const void *x, void *scratch)
{
    fft_forward_steps(fft, spectrum, x, scratch, (struct fft_steps){0, fft->steps});
}

void fft_inverse(const struct fft *fft, void *x, void *spectrum, void *scratch)
{
    fft_inverse_steps(fft, x, spectrum, scratch, (struct fft_steps){0, fft->steps}, false);
}

static size_t half_bytes(const struct fft *fft)
{
    return fft->n / 2 * fft->sample_bytes;
}

void fft_forward_half(const struct fft *fft, void *spectrum, const void *x, void *whole,
                      void *scratch)
{
    if (fft->halves) {
        fft->provider->forward_half(fft, spectrum, x);
        return;
    }
    if (x != whole) memcpy(whole, x, half_bytes(fft));
    memset((char *)whole + half_bytes(fft), 0, half_bytes(fft));
    fft_forward(fft, spectrum, whole, scratch);
}

void fft_inverse_half(const struct fft *fft, void *x, void *spectrum, void *whole, void *scratch)
{
    if (fft->halves) {
        fft->provider->inverse_half(fft, x, spectrum);
        return;
    }
    fft_inverse(fft, whole, spectrum, scratch);
    if (x != whole) memcpy(x, whole, half_bytes(fft));
}

size_t fft_steps(const struct fft *fft)
{
    return fft->steps;
}

size_t fft_sample_steps(const struct fft *fft)
{
    return fft->sample_steps;
}

size_t fft_subtransforms(const struct fft *fft)
{
    return fft->subtransforms;
}

void fft_forward_steps(const struct fft *fft, void *spectrum, const void *x, void *scratch,
                       struct fft_steps steps)
{
    fft_forward_apart(fft, spectrum, SPECTRUM_LINE_BYTES, spectrum, x, scratch, steps);
}

void fft_forward_apart(const struct fft *fft, void *to, size_t stride, void *work, const void *x,
                       void *scratch, struct fft_steps steps)
{
    assert(steps.first <= steps.end && steps.end <= fft->steps);
    assert(stride >= SPECTRUM_LINE_BYTES && (uintptr_t)to % MEM_ALIGN == 0);
    const struct fft_target target = {.to = to, .work = work, .stride = stride};
    fft->provider->forward(fft, &target, x, scratch, steps);
}

void fft_inverse_steps(const struct fft *fft, void *x, void *spectrum, void *scratch,
                       struct fft_steps steps, bool upper)
{
    assert(steps.first <= steps.end && steps.end <= fft->steps);
    assert((uintptr_t)spectrum % MEM_ALIGN == 0);
    fft->provider->inverse(fft, x, spectrum, scratch, steps, upper);
}

void fft_add_signed(bool f64, void *y_, const void *x_, size_t count, double even, double odd)
{
    if (f64) {
        double *y = y_;
        const double *x = x_;
        for (size_t i = 0; i < count * SPECTRUM_LINE_BYTES / sizeof *y; i += 2) {
            y[i] += even * x[i];
            y[i + 1] += odd * x[i + 1];
        }
    } else {
        float *y = y_;
        const float *x = x_, signs[] = {(float)even, (float)odd};
        for (size_t i = 0; i < count * SPECTRUM_LINE_BYTES / sizeof *y; i += 2) {
            y[i] += signs[0] * x[i];
            y[i + 1] += signs[1] * x[i + 1];
        }
    }
}

void fft_add_rotated(const struct fft *fft, void *y, const void *x, size_t first, size_t count,
                     bool back)
{
    assert(first + count <= fft->lines);
    fft->provider->add_rotated(fft, y, x, first, count, back);
}

void fft_conjugate(bool f64, void *x, size_t count)
{
    enum {
        LANES32 = SPECTRUM_LANES_BYTES / sizeof(float),
        LANES64 = SPECTRUM_LANES_BYTES / sizeof(double)
    };
    for (size_t b = 0; b < count; b++) {
        if (f64)
            for (size_t i = 0; i < LANES64; i++) {
                double *at = (double *)x + (2 * b + 1) * LANES64 + i;
                *at = -*at;
            }
        else
            for (size_t i = 0; i < LANES32; i++) {
                float *at = (float *)x + (2 * b + 1) * LANES32 + i;
                *at = -*at;
            }
    }
}

char *fft_wisdom_export(bool f64)
{
    for (int i = 0; i < N_PROVIDERS; i++)
        if (providers[i]->wisdom_export) return providers[i]->wisdom_export(f64);
    return NULL;
}

bool fft_wisdom_import(bool f64, const char *text)
{
    for (int i = 0; i < N_PROVIDERS; i++)
        if (providers[i]->wisdom_import) return providers[i]->wisdom_import(f64, text);
    return true;
}
