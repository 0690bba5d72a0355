// SPDX-License-Identifier: MIT
// Picks the provider of transforms. Which providers exist is decided when the library is built
// (-Dfft=...); PARTITA_FFT=native|fftw, read once a process, prefers one of them in tests.
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

// Index of the provider with this name; 0, the first one, for another name or NULL.
static int provider_named(const char *name)
{
    for (int i = 0; name && i < N_PROVIDERS; i++)
        if (!strcmp(name, providers[i]->name)) return i;
    return 0;
}

// The first provider that serves the size, from the preferred one on. `name`: prefers that one.
static const struct fft_provider *provider_for(size_t n, const char *name)
{
    static _Atomic int known = -1;
    if (known < 0) known = provider_named(getenv("PARTITA_FFT"));
    const int first = name ? provider_named(name) : known;
    for (int i = 0; i < N_PROVIDERS; i++) {
        const struct fft_provider *provider = providers[(first + i) % N_PROVIDERS];
        if (provider->serves(n)) return provider;
    }
    return NULL;
}

size_t fft_good_size(size_t n)
{
    // Multiples of 16 that are 4, 5 or 6 times a power of two: three sizes an octave; other factors
    // gain nothing on the cost of rounding up.
    enum { MAX_QUARTER = 1 << 26 };
    size_t quarter = 4;
    if (n > 4 * MAX_QUARTER) quarter = MAX_QUARTER;
    else if (n >= 16) quarter = (size_t)1 << (61 - __builtin_clzll(n));
    for (; quarter <= MAX_QUARTER; quarter *= 2)
        for (size_t size = 4 * quarter; size <= 6 * quarter; size += quarter)
            if (size >= n && size % 16 == 0 && provider_for(size, NULL)) return size;
    return 0;
}

bool fft_interpolates(size_t n)
{
    size_t power = 1;
    while (power < n) power *= 2;
    return provider_for(n, NULL) == provider_for(power, NULL);
}

enum partita_status fft_create(const struct fft_request *request,
                               const struct partita_allocator *allocator, struct fft **ret)
{
    const struct fft_provider *provider = provider_for(request->n, request->provider);
    if (!provider) return PARTITA_ERR_UNSUPPORTED;
    const enum partita_status status = provider->create(request, allocator, ret);
    if (status != PARTITA_OK) return status;
    assert((*ret)->sample_steps <= (*ret)->steps);
    assert(((*ret)->steps - (*ret)->sample_steps) % (*ret)->subtransforms == 0);
    (*ret)->spectrum_bytes = (*ret)->lines * SPECTRUM_LINE_BYTES;
    return status;
}

void fft_destroy(struct fft *fft)
{
    if (!fft) return;
    const struct partita_allocator allocator = fft->allocator;
    if (fft->provider->destroy) fft->provider->destroy(fft);
    mem_release(&allocator, fft);
}

const char *fft_provider(const struct fft *fft)
{
    return fft->provider->name;
}

void fft_forward(const struct fft *fft, void *spectrum, const void *x, void *scratch)
{
    fft_forward_steps(fft, spectrum, x, scratch, (struct fft_steps){0, fft->steps});
}

void fft_inverse(const struct fft *fft, void *x, void *spectrum, void *scratch)
{
    fft_inverse_steps(fft, x, spectrum, scratch, (struct fft_steps){0, fft->steps}, FFT_WHOLE);
}

static size_t half_bytes(const struct fft *fft)
{
    return fft->n / 2 * (fft->f64 ? 8 : 4) * (fft->complex ? 2 : 1);
}

void fft_forward_half(const struct fft *fft, void *spectrum, const void *x, void *whole,
                      void *scratch)
{
    const struct fft_target target = {spectrum, spectrum, SPECTRUM_LINE_BYTES};
    fft_forward_half_apart(fft, &target, x, whole, scratch);
}

void fft_forward_half_apart(const struct fft *fft, const struct fft_target *target, const void *x,
                            void *whole, void *scratch)
{
    if (!fft->halves) {
        if (x != whole) memcpy(whole, x, half_bytes(fft));
        memset((char *)whole + half_bytes(fft), 0, half_bytes(fft));
        x = whole;
    }
    fft->provider->forward(fft, target, x, scratch, (struct fft_steps){0, fft->steps}, fft->halves);
}

void fft_inverse_half(const struct fft *fft, void *x, void *spectrum, void *whole, void *scratch)
{
    void *to = fft->halves ? x : whole;
    fft_inverse_steps(fft, to, spectrum, scratch, (struct fft_steps){0, fft->steps},
                      fft->halves ? FFT_LOWER : FFT_WHOLE);
    if (x != to) memcpy(x, to, half_bytes(fft));
}

void fft_forward_steps(const struct fft *fft, void *spectrum, const void *x, void *scratch,
                       struct fft_steps steps)
{
    const struct fft_target target = {spectrum, spectrum, SPECTRUM_LINE_BYTES};
    fft_forward_apart(fft, &target, x, scratch, steps);
}

void fft_forward_apart(const struct fft *fft, const struct fft_target *target, const void *x,
                       void *scratch, struct fft_steps steps)
{
    assert(steps.first <= steps.end && steps.end <= fft->steps);
    assert(target->stride >= SPECTRUM_LINE_BYTES && (uintptr_t)target->to % MEM_ALIGN == 0);
    fft->provider->forward(fft, target, x, scratch, steps, false);
}

void fft_inverse_steps(const struct fft *fft, void *x, void *spectrum, void *scratch,
                       struct fft_steps steps, enum fft_part part)
{
    assert(steps.first <= steps.end && steps.end <= fft->steps);
    assert((uintptr_t)spectrum % MEM_ALIGN == 0);
    fft->provider->inverse(fft, x, spectrum, scratch, steps, part);
}

void fft_add_lanes(bool f64, void *y_, const void *x_, double even, double odd)
{
    if (f64) {
        double *y = y_;
        const double *x = x_;
        for (size_t i = 0; i < SPECTRUM_LANES_BYTES / sizeof *y; i += 2) {
            y[i] += even * x[i];
            y[i + 1] += odd * x[i + 1];
        }
    } else {
        float *y = y_;
        const float *x = x_, signs[] = {(float)even, (float)odd};
        for (size_t i = 0; i < SPECTRUM_LANES_BYTES / sizeof *y; i += 2) {
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
    typedef uint64_t __attribute__((may_alias)) word;
    enum { WORDS = SPECTRUM_LANES_BYTES / sizeof(word) };
    const uint64_t signs = f64 ? (uint64_t)1 << 63 : 0x8000000080000000; // of one or two scalars
    word *imaginary = (word *)x + WORDS;
    for (size_t line = 0; line < count; line++, imaginary += 2 * WORDS)
        for (size_t i = 0; i < WORDS; i++) imaginary[i] ^= signs;
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
