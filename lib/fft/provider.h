// SPDX-License-Identifier: MIT
// What a transform provider implements behind fft.h. A provider's object starts with struct fft.
#ifndef PARTITA_FFT_PROVIDER_H
#define PARTITA_FFT_PROVIDER_H

#include "fft.h"

// Where a spectrum goes: its lines `stride` bytes apart. work: fft_spectrum_bytes for what is not
// finished; may be `to` if the lines lie side by side.
struct fft_target {
    void *to, *work;
    size_t stride;
};

struct fft_provider {
    const char *name;
    bool (*serves)(size_t n); // sizes that it does well
    enum partita_status (*create)(const struct fft_request *request,
                                  const struct partita_allocator *allocator, struct fft **ret);
    void (*destroy)(struct fft *fft);
    // Steps first .. end-1 of fft->steps.
    void (*forward)(const struct fft *fft, const struct fft_target *target, const void *x,
                    void *scratch, struct fft_steps steps);
    void (*inverse)(const struct fft *fft, void *x, void *spectrum, void *scratch,
                    struct fft_steps steps, bool upper);
    // All steps, of real samples; see fft_forward_half. NULL: cannot.
    void (*forward_half)(const struct fft *fft, void *spectrum, const void *x);
    void (*inverse_half)(const struct fft *fft, void *x, void *spectrum);
    // FFTW's wisdom, see fft.h; NULL: there is none.
    char *(*wisdom_export)(bool f64);
    bool (*wisdom_import)(bool f64, const char *text);
    void (*add_rotated)(const struct fft *fft, void *y, const void *x, size_t first, size_t count,
                        bool back);
};

struct fft {
    const struct fft_provider *provider;
    struct partita_allocator allocator;
    size_t n, lines, scratch_bytes;
    size_t steps;         // of about the same work each, into which a transform may be split
    size_t sample_steps;  // those that touch samples: the first ones forward, the last ones inverse
    size_t subtransforms; // see fft_subtransforms; with more than one, scratch is not used
    double gain;
    size_t sample_bytes;
    bool halves; // the provider has forward_half and inverse_half for these samples
};

// y += x with a sign for the even lanes and one for the odd ones of each of `count` lines.
void fft_add_signed(bool f64, void *y, const void *x, size_t count, double even, double odd);

#ifdef HAVE_FFTW
extern const struct fft_provider fft_fftw;
#endif
#ifdef HAVE_NATIVE_FFT
extern const struct fft_provider fft_native;
#endif

#endif
