// SPDX-License-Identifier: MIT
#ifndef PARTITA_CUDA_SEPARABLE_H
#define PARTITA_CUDA_SEPARABLE_H

#include "core/engine.h"

extern const struct engine cuda_separable;

#endif
