// SPDX-License-Identifier: MIT
// Transforms from samples to spectra whose products are convolutions. The order
// and meaning of bins are private to the provider; multiplying two spectra of one transform bin by
// bin and going back gives the convolution of their samples, of which only what does not wrap
// around the end is defined: a provider may wrap cyclically or negacyclically.
//
// A spectrum is a sequence of lines: SPECTRUM_LANES_BYTES of real lanes, then as many imaginary
// ones (kernels.h).
#ifndef PARTITA_FFT_H
#define PARTITA_FFT_H

#include "base/cpu.h"
#include "base/mem.h"

struct fft;

struct fft_request {
    size_t n;          // samples; fft_good_size says which are served
    bool f64, complex; // type of a sample; complex samples are interleaved
    bool measure;      // let the provider time variants now
    enum cpu_isa level;
};

// Smallest size >= n that is served well, for either type of sample; 0 if there is none in range.
size_t fft_good_size(size_t n);

// Errors: PARTITA_ERR_NOMEM; PARTITA_ERR_UNSUPPORTED for a size that fft_good_size would not
// return.
enum partita_status fft_create(const struct fft_request *request,
                               const struct partita_allocator *allocator, struct fft **ret);
void fft_destroy(struct fft *fft);

// Name of the provider, for explain: "fftw", "native".
const char *fft_provider(const struct fft *fft);

size_t fft_size(const struct fft *fft);           // n
size_t fft_lines(const struct fft *fft);          // lines of one spectrum
size_t fft_spectrum_bytes(const struct fft *fft); // fft_lines * SPECTRUM_LINE_BYTES
double fft_gain(const struct fft *fft);           // of a forward and an inverse transform together
size_t fft_scratch_bytes(const struct fft *fft);  // what a forward or inverse call needs

// spectrum = transform of x[n]. x aligned to its scalar, kept. Real-time safe; any number of
// threads, own scratch each.
void fft_forward(const struct fft *fft, void *spectrum, const void *x, void *scratch);

// x[n] = fft_gain times the samples of the spectrum, which is destroyed. x aligned to its scalar.
void fft_inverse(const struct fft *fft, void *x, void *spectrum, void *scratch);

// The same of x[n/2], behind which there are n/2 zeros; and back to x[n/2], the first half of the
// samples, which alone is written. `whole` holds n samples, for providers that want all of them.
void fft_forward_half(const struct fft *fft, void *spectrum, const void *x, void *whole,
                      void *scratch);
void fft_inverse_half(const struct fft *fft, void *x, void *spectrum, void *whole, void *scratch);

// A transform in steps, for callers who must not take long: run steps 0 .. fft_steps-1 in order,
// with the same arguments each time, to the same bits as the whole. x and spectrum must stay as
// they are in between.
struct fft_steps {
    size_t first, end;
};

// Steps, of about the same work each (1 if the provider cannot stop midway), and those that touch
// the samples: the first ones forward, the last ones inverse.
size_t fft_steps(const struct fft *fft);
size_t fft_sample_steps(const struct fft *fft);

// The other steps belong to this many independent parts of the spectrum of equal length, one after
// the other. Steps of different parts may run at once, and so may those that touch the samples.
size_t fft_subtransforms(const struct fft *fft);
void fft_forward_steps(const struct fft *fft, void *spectrum, const void *x, void *scratch,
                       struct fft_steps steps);

// The same, but the spectrum's lines come to lie `stride` bytes apart, from `to` on, the same bits
// as at once. They may be written in any step. work holds fft_spectrum_bytes, which must stay as
// they are between the steps.
void fft_forward_apart(const struct fft *fft, void *to, size_t stride, void *work, const void *x,
                       void *scratch, struct fft_steps steps);

// `upper`: samples before the middle of x are not needed and may be left unwritten. The bits are
// those of all steps at once with the same `upper`.
void fft_inverse_steps(const struct fft *fft, void *x, void *spectrum, void *scratch,
                       struct fft_steps steps, bool upper);

// y += x u^(n/2), or with `back` x u^(-n/2): the spectrum of x's samples moved by half the
// transform, towards the end or the start; what passes the end comes back as the provider wraps. Of
// x's lines first .. first+count-1, y and x pointing at the first of these, 64-byte aligned. Bin
// by bin a factor of modulus 1 that costs no multiplication.
void fft_add_rotated(const struct fft *fft, void *y, const void *x, size_t first, size_t count,
                     bool back);

// Conjugates `count` lines: of real samples the spectrum of x[0], x[-1], .. as the provider wraps.
void fft_conjugate(bool f64, void *x, size_t count);

// FFTW's accumulated wisdom as text, for the wisdom file; fft_wisdom_import returns false if FFTW
// refuses the text. Export returns a string for free(), or NULL.
char *fft_wisdom_export(bool f64);
bool fft_wisdom_import(bool f64, const char *text);

#endif
