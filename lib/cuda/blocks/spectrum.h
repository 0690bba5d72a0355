// SPDX-License-Identifier: MIT
// Spectra as objects in the device's memory (decision 28).
#ifndef PARTITA_CUDA_SPECTRUM_H
#define PARTITA_CUDA_SPECTRUM_H

#include "core/spectrum.h"

extern const struct spectrum_backend cuda_spectra;

#endif
