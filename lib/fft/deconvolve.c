// SPDX-License-Identifier: MIT
// Deconvolution by division of spectra: bin by bin H = R conj(S) q / (q^2 + t^2) / p, where q is
// |S|^2 over its largest value p. The bins are those of the provider, which are values of the same
// polynomial (fft.h).
#include "deconvolve.h"

#include <string.h>

#include "base/scalar.h"
#include "base/sizes.h"
#include "fft.h"
#include "kernels/kernels.h"

enum { LANES = SPECTRUM_LANES_BYTES / sizeof(double) };

static const double THRESHOLD = 1e-6; // t, -60 dB of power

struct division {
    struct partita_allocator allocator;
    struct fft *fft;
    double *samples;
    double *signal, *recording; // spectra
    void *scratch;
};

static void division_close(struct division *d)
{
    mem_release(&d->allocator, d->scratch);
    mem_release(&d->allocator, d->recording);
    mem_release(&d->allocator, d->signal);
    mem_release(&d->allocator, d->samples);
    fft_destroy(d->fft);
}

static enum partita_status division_open(struct division *d, size_t n)
{
    const struct fft_request request = {.n = n, .f64 = true, .isa = cpu_detect()};
    const enum partita_status status = fft_create(&request, &d->allocator, &d->fft);
    if (status) return status;
    d->samples = mem_allocate(&d->allocator, size_mul(n, sizeof *d->samples));
    // Zeroed, since a provider may leave lanes of the last line as they are.
    d->signal = mem_allocate(&d->allocator, d->fft->spectrum_bytes);
    d->recording = mem_allocate(&d->allocator, d->fft->spectrum_bytes);
    d->scratch = mem_reserve(&d->allocator, d->fft->scratch_bytes);
    return d->samples && d->signal && d->recording && d->scratch ? PARTITA_OK : PARTITA_ERR_NOMEM;
}

// spectrum = transform of x[n] times the scale, and zeros.
static void transform(const struct division *d, double *spectrum, const double *x, size_t n,
                      double scale)
{
    for (size_t i = 0; i < n; i++) d->samples[i] = x[i] * scale;
    memset(d->samples + n, 0, (d->fft->n - n) * sizeof *x);
    fft_forward(d->fft, spectrum, d->samples, d->scratch);
}

// The real and imaginary lanes of a line.
struct line {
    double re[LANES], im[LANES];
};

static double largest_power(const struct line *s, size_t lines)
{
    double largest = 0;
    for (size_t i = 0; i < lines; i++)
        for (int k = 0; k < LANES; k++) {
            const double power = s[i].re[k] * s[i].re[k] + s[i].im[k] * s[i].im[k];
            largest = power > largest ? power : largest;
        }
    return largest;
}

static void divide_lines(struct line *r, const struct line *s, size_t lines, double largest)
{
    for (size_t i = 0; i < lines; i++)
        for (int k = 0; k < LANES; k++) {
            const double sr = s[i].re[k], si = s[i].im[k], rr = r[i].re[k], ri = r[i].im[k];
            const double q = (sr * sr + si * si) / largest;
            const double factor = q / (q * q + THRESHOLD * THRESHOLD) / largest;
            r[i].re[k] = (rr * sr + ri * si) * factor;
            r[i].im[k] = (ri * sr - rr * si) * factor;
        }
}

// gain: of the results.
static void divide(const struct division *d, double *h, size_t n, double gain)
{
    const double largest = largest_power((const struct line *)d->signal, d->fft->lines);
    memset(h, 0, n * sizeof *h);
    if (largest == 0) return;
    divide_lines((struct line *)d->recording, (const struct line *)d->signal, d->fft->lines,
                 largest);
    fft_inverse(d->fft, d->samples, d->recording, d->scratch);
    for (size_t i = 0; i < n; i++) h[i] = d->samples[i] / d->fft->gain * gain;
}

enum partita_status fft_deconvolve(double *h, const double *recording, size_t n,
                                   const double *signal, size_t m,
                                   const struct partita_allocator *allocator)
{
    struct division d = {.allocator = *allocator};
    // Lags down to -(m - 1), before which there is nothing, do not wrap around to the results.
    const enum partita_status status = division_open(&d, fft_good_size(size_add(n, m)));
    if (status == PARTITA_OK) {
        const double signal_scale = scale_to_one(signal, m);
        const double recording_scale = scale_to_one(recording, n);
        transform(&d, d.signal, signal, m, signal_scale);
        transform(&d, d.recording, recording, n, recording_scale);
        divide(&d, h, n, signal_scale / recording_scale);
    }
    division_close(&d);
    return status;
}
