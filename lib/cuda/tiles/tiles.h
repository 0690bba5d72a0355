// SPDX-License-Identifier: MIT
// cuda/tiles and, by names of their own, each of the ways it chooses from.
#ifndef PARTITA_CUDA_TILES_H
#define PARTITA_CUDA_TILES_H

#include "cut.h"

extern const struct engine cuda_tiles, cuda_tiles_complex, cuda_tiles_gauss, cuda_tiles_fused_kind;

// What a plan holds.
struct tiles_plan {
    struct cuda_tiles_cut cut;
    void *tables; // in the device's memory
};

// Spectra and bias in the device's memory.
struct tiles_filter {
    void *spectra, *bias; // bias NULL: none
};

enum partita_status cuda_tiles_run(const struct partita_plan *plan,
                                   const struct partita_filter *filter,
                                   const struct operands *operands, void *workspace);

// Fills everything of an estimate for the best tiles of a kind, or applicable = false with a
// reason.
void cuda_tiles_estimate(const struct request *request, enum cuda_tiles_kind kind,
                         struct estimate *ret);

#endif
