// SPDX-License-Identifier: MIT
// cuda/tiles and, by names of their own, each of the ways it chooses from.
#ifndef PARTITA_CUDA_TILES_H
#define PARTITA_CUDA_TILES_H

#include "cuda/kernels/fft.h"
#include "cut.h"

extern const struct engine cuda_tiles, cuda_tiles_complex, cuda_tiles_gauss, cuda_tiles_fused_kind,
    cuda_tiles_whole;

// What a plan holds.
struct tiles_plan {
    struct cuda_tiles_cut cut;
    void *tables;        // in the device's memory
    struct cuda_fft fft; // CUDA_TILES_WHOLE
};

// What one call has of CUDA_TILES_WHOLE: units of tiles, and cuFFT.
struct tiles_call {
    const struct partita_plan *plan;
    struct cuda_fft_lease *lease;
    void *z;
};

// Spectra of samples or taps, all units of a part; and the way back, with bias and activation.
enum partita_status cuda_units_forward(const struct tiles_call *of,
                                       const struct cuda_tiles_part *part, enum cuda_units_of what,
                                       void *spectra, const void *from);
enum partita_status cuda_units_inverse(const struct tiles_call *of,
                                       const struct cuda_tiles_part *part, enum cuda_units_of what,
                                       void *to, const void *spectra, const void *bias);

// Spectra and bias in the device's memory.
struct tiles_filter {
    void *spectra, *bias; // bias NULL: none
};

// struct engine's run and, where `saved` is not NULL, run_saved.
enum partita_status cuda_tiles_run(const struct partita_plan *plan,
                                   const struct partita_filter *filter, void *saved,
                                   const struct operands *operands, void *workspace);

// Fills everything of an estimate for the best tiles of a kind, or applicable = false with a
// reason.
void cuda_tiles_estimate(const struct request *request, enum cuda_tiles_kind kind,
                         struct estimate *ret);

#endif
