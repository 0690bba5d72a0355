// SPDX-License-Identifier: MIT
// cuda/overlap-add and, by names of their own, its schedules of steps.
#ifndef PARTITA_CUDA_OVERLAP_ADD_H
#define PARTITA_CUDA_OVERLAP_ADD_H

#include "core/engine.h"

extern const struct engine cuda_overlap_add, cuda_overlap_add_2_steps, cuda_overlap_add_3_steps;

#endif
