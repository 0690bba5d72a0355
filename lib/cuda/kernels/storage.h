// SPDX-License-Identifier: MIT
// How samples and taps are stored in arrays of the caller, in C and CUDA. Sums of what is stored in
// two bytes are f32.
#ifndef PARTITA_CUDA_STORAGE_H
#define PARTITA_CUDA_STORAGE_H

enum cuda_storage { CUDA_STORED_F32, CUDA_STORED_F64, CUDA_STORED_F16, CUDA_STORED_BF16 };

#endif
