// SPDX-License-Identifier: MIT
// Matrix products by tensor cores; product.cu calls these for arithmetics that need them.
#ifndef PARTITA_CUDA_TENSOR_H
#define PARTITA_CUDA_TENSOR_H

#include "product.h"

#ifdef __cplusplus
extern "C" {
#endif

// As cuda_product_slots and cuda_launch_product.
double cuda_tensor_slots(const struct cuda_product *product, int processors);
cudaError_t cuda_launch_tensor_product(const struct cuda_product *product, int processors, void *c,
                                       const void *a, const void *b);

#ifdef __cplusplus
}
#endif

#endif
