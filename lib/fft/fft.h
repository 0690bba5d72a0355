// SPDX-License-Identifier: MIT
// Transforms from samples to spectra whose products are convolutions. The order and meaning of bins
// are private to the provider. The inverse transform of the product, bin by bin, of two spectra of
// one transform is the convolution of their samples. Only samples that do not wrap around the end
// are defined: a provider may wrap cyclically or negacyclically. The transform of complex samples
// is a discrete Fourier transform: the sums over j of x[j] exp(-2 pi i j k / n), each k once, in an
// order of the provider.
//
// A spectrum is a sequence of lines: SPECTRUM_LANES_BYTES of real parts, then as many of imaginary
// parts (kernels.h).
#ifndef PARTITA_FFT_H
#define PARTITA_FFT_H

#include "base/cpu.h"
#include "base/mem.h"
#include "base/sizes.h"

// A transform, with the fields that its callers may read. A provider's object starts with it.
struct fft {
    const struct fft_provider *provider;
    struct partita_allocator allocator;
    size_t n;                     // samples
    size_t lines, spectrum_bytes; // of one spectrum
    size_t scratch_bytes;         // of a forward or inverse call
    double gain;                  // factor of a forward transform followed by an inverse one
    // A transform may be split into steps of about the same work each; 1 if the provider cannot.
    // sample_steps: those that access the samples, the first ones of a forward transform and the
    // last ones of an inverse one. The other steps belong to this many independent subtransforms:
    // parts of the spectrum of equal length, one after the other. Steps of different parts may run
    // at the same time, and so may the steps that access the samples. With more than one
    // subtransform scratch is not used.
    size_t steps, sample_steps, subtransforms;
    bool f64, complex; // type of a sample
    bool halves;       // the provider transforms halves by itself
};

struct fft_request {
    size_t n;          // samples, such as fft_good_size returns
    bool f64, complex; // type of a sample; complex samples are interleaved
    bool measure;      // the provider may time variants now
    enum cpu_isa isa;
    const char *provider; // "native" or "fftw" for benches [NULL: the process's choice]
};

// Smallest size >= n that a provider computes fast, for real and complex samples; 0 if there is
// none in range.
size_t fft_good_size(size_t n);

// Whether a good size has the provider of the next power of two. If not, its time may be several
// times as long as the powers of two around it suggest.
bool fft_interpolates(size_t n);

// Errors: PARTITA_ERR_NOMEM; PARTITA_ERR_UNSUPPORTED. FFTW serves any size, the native provider
// multiples of 128 without prime factors above 5.
enum partita_status fft_create(const struct fft_request *request,
                               const struct partita_allocator *allocator, struct fft **ret);
void fft_destroy(struct fft *fft);

// Name of the provider, for explain: "fftw", "native".
const char *fft_provider(const struct fft *fft);

// spectrum = transform of x[n]. x is aligned to its scalar and not changed. Real-time safe; any
// number of threads, each with its own scratch.
void fft_forward(const struct fft *fft, void *spectrum, const void *x, void *scratch);

// x[n] = gain times the samples of the spectrum, which is destroyed. x aligned to its scalar.
void fft_inverse(const struct fft *fft, void *x, void *spectrum, void *scratch);

// fft_forward_half: the transform of x[n/2] followed by n/2 zeros. fft_inverse_half: writes only
// x[n/2], the first half of the samples. `whole` has space for n samples, for providers that need
// all of them.
void fft_forward_half(const struct fft *fft, void *spectrum, const void *x, void *whole,
                      void *scratch);
void fft_inverse_half(const struct fft *fft, void *x, void *spectrum, void *whole, void *scratch);

// A transform in steps, for callers whose calls must be short: run all steps in order, with the
// same arguments each time. The result has the same bits as that of the whole transform. x and
// spectrum must not change in between.
struct fft_steps {
    size_t first, end;
};
void fft_forward_steps(const struct fft *fft, void *spectrum, const void *x, void *scratch,
                       struct fft_steps steps);

// The steps that lie in `count` steps from `from` on, counted from there.
static inline struct fft_steps fft_steps_within(struct fft_steps steps, size_t from, size_t count)
{
    const size_t first = size_max(steps.first, from) - from, end = size_max(steps.end, from) - from;
    return (struct fft_steps){size_min(first, count), size_min(end, count)};
}

// The destination of a spectrum: its lines are `stride` bytes apart and may be written in any step.
// work: spectrum_bytes for intermediate results, which must not change between the steps; may be
// `to` if the lines are adjacent.
struct fft_target {
    void *to, *work;
    size_t stride;
};

// The same bits, to lines that are apart.
void fft_forward_apart(const struct fft *fft, const struct fft_target *target, const void *x,
                       void *scratch, struct fft_steps steps);
void fft_forward_half_apart(const struct fft *fft, const struct fft_target *target, const void *x,
                            void *whole, void *scratch);

// The samples of an inverse transform that are wanted: all of them; those from the middle on, where
// the others may be left unwritten; or those before the middle, where x has no others, of providers
// with `halves`.
enum fft_part { FFT_WHOLE, FFT_UPPER, FFT_LOWER };

// The result has the same bits as all steps at once with the same part.
void fft_inverse_steps(const struct fft *fft, void *x, void *spectrum, void *scratch,
                       struct fft_steps steps, enum fft_part part);

// y += x u^(n/2), or with `back` x u^(-n/2): the spectrum of x's samples moved by half the
// transform, towards the end or the start; samples that pass the end wrap as the provider does.
// Processes lines first .. first+count-1 of x; y and x point to the first of these and are 64-byte
// aligned. The factor of each bin has modulus 1 and costs no multiplication.
void fft_add_rotated(const struct fft *fft, void *y, const void *x, size_t first, size_t count,
                     bool back);

// Conjugates `count` lines. For real samples this is the spectrum of x[0], x[-1], .., with wrapping
// as the provider does.
void fft_conjugate(bool f64, void *x, size_t count);

// FFTW's accumulated wisdom as text, for the wisdom file; fft_wisdom_import returns false if FFTW
// refuses the text. Export returns a string for free(), or NULL.
char *fft_wisdom_export(bool f64);
bool fft_wisdom_import(bool f64, const char *text);

#endif
