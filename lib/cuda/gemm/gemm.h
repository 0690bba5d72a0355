// SPDX-License-Identifier: MIT
// What cuda/gemm decides for a direction of a layer, and the matrices that follow from it.
#ifndef PARTITA_CUDA_GEMM_H
#define PARTITA_CUDA_GEMM_H

#include "core/engine.h"
#include "cuda/kernels/product.h"
#include "kernels.h"

// Both variants have the same bits. In place: samples and outputs of a pass without gaps are
// operands of the product of forward and backward data as they are, if the arrays are aligned to
// CUDA_PRODUCT_ALIGN bytes.
enum cuda_gemm_variant { CUDA_GEMM_PANELS, CUDA_GEMM_IN_PLACE, CUDA_GEMM_VARIANTS };

struct cuda_gemm_choice { // what an estimate decides
    int variant;
    int64_t batch;  // positions at once
    int64_t chunks; // of the terms of the sums
    enum cuda_arithmetic arithmetic;
    double tf32_rate; // of the device
};

struct cuda_gemm_layout { // plan->state
    struct cuda_gemm_choice choice;
    const struct shape *shape;
    enum partita_direction direction;
    size_t passes;
    bool covers;              // the passes write the whole result
    int64_t terms, positions; // of the largest pass
    int64_t pitch;            // of lines of positions
    // Bytes of the workspace, in this order: panel of samples; panel of gy, backward weight; sums.
    size_t panel_bytes, other_bytes, sum_bytes;
};

// Fills *ret with what a choice makes of a problem.
void cuda_gemm_lay_out(const struct shape *shape, enum partita_direction direction,
                       const struct cuda_gemm_choice *choice, struct cuda_gemm_layout *ret);
size_t cuda_gemm_workspace(const struct cuda_gemm_layout *layout);

bool cuda_gemm_is_in_place(const struct cuda_gemm_layout *layout);

// Pass i, without positions; backward weight has that of forward.
struct cuda_gemm cuda_gemm_pass(const struct cuda_gemm_layout *layout, size_t i);
int64_t cuda_gemm_terms(const struct cuda_pass *pass);
int64_t cuda_gemm_positions(const struct cuda_pass *pass); // of all items

// The products of n positions with operands in panels.
struct cuda_product cuda_gemm_product(const struct cuda_gemm_layout *layout,
                                      const struct cuda_pass *pass, int64_t n);
// The same with samples in place, n whole items; outputs too if `to`. One product is either an item
// of all groups, or a group of all items: *ret_launches of them, whose operands A, B and C are the
// elements `ret_step` apart.
struct cuda_product cuda_gemm_product_in_place(const struct cuda_gemm_layout *layout,
                                               const struct cuda_pass *pass, int64_t n, bool to,
                                               int64_t *ret_launches, int64_t ret_step[3]);

// Packed taps of a pass, in scalars.
size_t cuda_gemm_taps_size(const struct cuda_gemm_layout *layout, const struct cuda_pass *pass);

// struct engine's function.
void cuda_gemm_estimate(const struct request *request, struct estimate *ret);

#endif
