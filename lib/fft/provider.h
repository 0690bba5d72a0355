// SPDX-License-Identifier: MIT
// The functions of a provider of transforms behind fft.h. Its object starts with struct fft.
#ifndef PARTITA_FFT_PROVIDER_H
#define PARTITA_FFT_PROVIDER_H

#include "fft.h"

struct fft_provider {
    const char *name;
    bool (*serves)(size_t n); // sizes that it computes fast
    enum partita_status (*create)(const struct fft_request *request,
                                  const struct partita_allocator *allocator, struct fft **ret);
    void (*destroy)(struct fft *fft); // before the object is released; NULL: nothing to do
    // Steps first .. end-1 of fft->steps. half, with fft->halves: see fft_forward_half.
    void (*forward)(const struct fft *fft, const struct fft_target *target, const void *x,
                    void *scratch, struct fft_steps steps, bool half);
    void (*inverse)(const struct fft *fft, void *x, void *spectrum, void *scratch,
                    struct fft_steps steps, enum fft_part part);
    // FFTW's wisdom, see fft.h; NULL: there is none.
    char *(*wisdom_export)(bool f64);
    bool (*wisdom_import)(bool f64, const char *text);
    void (*add_rotated)(const struct fft *fft, void *y, const void *x, size_t first, size_t count,
                        bool back);
};

// Real or imaginary lanes of one line: y += x, with x times `even` in even lanes and `odd` in odd
// ones.
void fft_add_lanes(bool f64, void *y, const void *x, double even, double odd);

#ifdef HAVE_FFTW
extern const struct fft_provider fft_fftw;
#endif
#ifdef HAVE_NATIVE_FFT
extern const struct fft_provider fft_native;
#endif

#endif
