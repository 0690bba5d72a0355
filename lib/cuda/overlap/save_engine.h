// SPDX-License-Identifier: MIT
#ifndef PARTITA_CUDA_OVERLAP_SAVE_H
#define PARTITA_CUDA_OVERLAP_SAVE_H

#include "core/engine.h"

extern const struct engine cuda_overlap_save, cuda_overlap_save_1_sum, cuda_overlap_save_2_sums;

#endif
