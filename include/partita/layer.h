// SPDX-License-Identifier: MIT
// Layers: bounded problems of rank 1 to 3 with real types, run forward (partita_forward, in plan.h) and backward.
//
//   struct partita_problem conv = {.op = PARTITA_CORRELATE, .rank = 2, .batch = 16, .in_channels = 64,
//                                  .out_channels = 128, .kernel = {5, 5}, .size = {56, 56},
//                                  .pad_begin = {2, 2}, .pad_end = {2, 2}};
//   partita_plan_create(&conv, NULL, &plan);                 // forward and both gradients, each by its own engine
//   partita_filter_create_biased(plan, w, bias, &filter);    // w[128][64][5][5], packed for forward and backward
//   partita_forward(plan, filter, y, x, NULL);               // y[16][128][56][56], x[16][64][56][56]
//   partita_backward_data(plan, filter, gx, gy, NULL);
//   partita_backward_weight(plan, gw, x, gy, NULL);
//   partita_backward_bias(plan, gb, gy);
//
// Arrays are plain and contiguous: [batch][channels][size...], the last axis fastest. gy is the gradient with respect
// to the sum, before problem.activation: with PARTITA_RELU the caller first sets it to 0 where y is 0.
//
// Accuracy: of engines that transform (all but direct and gemm, and depthwise with small kernels) rounding errors are
// as large as what meets in a transform makes them, not as each result would. What is 0 exactly, because products
// cancel or none is left, may come out as noise, in f32 of some 1e-6 of the largest results. options.engine =
// "cpu/direct" or "cpu/gemm" sums each result by itself, and options.error_budget bounds the error of all results
// together (relative L2).
#ifndef PARTITA_LAYER_H
#define PARTITA_LAYER_H

#include <partita/filter.h>

#ifdef __cplusplus
extern "C" {
#endif

// Prepares taps together with a bias that partita_forward adds to every output: y[n][k][p] += bias[k], before the
// activation.
// Shapes:  taps as partita_filter_create; bias [out_channels] of the problem's type; both are copied. NULL: no bias.
// Errors:  as partita_filter_create; PARTITA_ERR_UNSUPPORTED for a bias if the problem is a stream or complex.
// Memory:  for forward and for backward data, of those that were planned (options.directions): the taps, or their
//          transforms, with cpu/winograd 4 to 16 times as much.
// Threads: any; several filters of one plan may be made at once. Not real-time safe.
PARTITA_API enum partita_status partita_filter_create_biased(const struct partita_plan *plan, const void *taps,
                                                             const void *bias, struct partita_filter **ret_filter);

// The gradient with respect to the input: gx[n, c, i] = sum of w[k, c, r] gy[n, k, p] over all k, r and p with
// stride*p + dilation*r - pad_begin = i; the transpose of partita_forward (without bias and activation).
// Shapes:  gx as x of partita_forward, gy as its y. All of gx is written, also samples that no output saw: zeros,
//          but for rounding errors where the engine transforms tiles.
// Ranges:  gx and gy aligned to their scalar, not overlapping. workspace: at least
//          partita_plan_workspace(plan, PARTITA_BACKWARD_DATA) bytes, 64-byte aligned; NULL lets the call allocate it.
// Errors:  PARTITA_ERR_ARG for NULL, a misaligned pointer or a filter of another plan; PARTITA_ERR_STATE if the plan is
//          a stream's; PARTITA_ERR_UNSUPPORTED if this direction was not planned; PARTITA_ERR_NOMEM only where
//          workspace is NULL.
// Threads: as partita_forward; the result does not depend on the number of threads.
// Source:  Dumoulin & Visin, A guide to convolution arithmetic for deep learning (2016), section 4.
PARTITA_API enum partita_status partita_backward_data(const struct partita_plan *plan,
                                                      const struct partita_filter *filter, void *gx, const void *gy,
                                                      void *workspace);

// The gradient with respect to the taps, summed over the batch:
// gw[k, c, r] = sum over n, p of gy[n, k, p] x[n, c, stride*p + dilation*r - pad_begin], x being 0 outside.
// Shapes:  gw [out_channels][in_channels/groups][kernel], as the taps of partita_filter_create; x, gy as forward's.
// Ranges, Errors, Threads: as partita_backward_data, with PARTITA_BACKWARD_WEIGHT. Sums are cut by shape and added in a
//          fixed tree. An infinite or NaN sample of x may spread to taps that it does not meet.
PARTITA_API enum partita_status partita_backward_weight(const struct partita_plan *plan, void *gw, const void *x,
                                                        const void *gy, void *workspace);

// The gradient with respect to the bias: gb[k] = sum over n, p of gy[n, k, p].
// Shapes:  gb [out_channels], gy as forward's y.
// Errors:  PARTITA_ERR_ARG for NULL or a misaligned pointer; PARTITA_ERR_STATE if the plan is a stream's;
//          PARTITA_ERR_UNSUPPORTED for complex types and for f16 and bf16.
// Memory:  none. Threads: as partita_forward.
PARTITA_API enum partita_status partita_backward_bias(const struct partita_plan *plan, void *gb, const void *gy);

// Bytes of workspace that one direction needs; 0 for streams and directions that were not planned. Threads: any.
PARTITA_API size_t partita_plan_workspace(const struct partita_plan *plan, enum partita_direction direction);

// Name of the engine that runs a direction; "" if it was not planned. Lives as long as the plan. Threads: any.
PARTITA_API const char *partita_plan_engine_of(const struct partita_plan *plan, enum partita_direction direction);

// What a forward computed of x and backward weight would compute again: the transforms of its tiles. (Those of the taps
// are in the filter, for forward and for backward data.)
//
//   partita_saved_create(plan, &saved);                                       // once
//   partita_forward_saved(plan, filter, saved, y, x, NULL);                   // instead of partita_forward
//   partita_backward_weight_saved(plan, saved, gw, gy, NULL);                 // x is not read again
struct partita_saved;

// Bytes that partita_saved_create takes for the transforms of one x; 0 if it cannot: forward and backward weight must
// both be planned, by an engine that has transforms to save (cpu/tiles, cuda/tiles). Threads: any.
PARTITA_API size_t partita_saved_bytes(const struct partita_plan *plan);

// Makes room for the transforms of one x at a time. Backward weight is cut into the tiles of forward, which need not be
// those that partita_backward_weight works with.
// Errors:  PARTITA_ERR_ARG for NULL; PARTITA_ERR_UNSUPPORTED where partita_saved_bytes is 0; PARTITA_ERR_NOMEM.
// Memory:  partita_saved_bytes and tables; the plan must outlive it.
// Threads: any; one call at a time may use a saved object.
PARTITA_API enum partita_status partita_saved_create(const struct partita_plan *plan, struct partita_saved **ret_saved);

// Releases it. NULL is allowed. Threads: no call may still use it.
PARTITA_API void partita_saved_destroy(struct partita_saved *saved);

// partita_forward, to the same bits, that keeps the transforms of x.
// Shapes, Ranges, Errors: as partita_forward (workspace too); PARTITA_ERR_ARG also for a saved object of another plan.
// Memory:  none but a workspace that is NULL. Threads: as partita_forward; one call at a time may use a saved object.
PARTITA_API enum partita_status partita_forward_saved(const struct partita_plan *plan,
                                                      const struct partita_filter *filter, struct partita_saved *saved,
                                                      void *y, const void *x, void *workspace);

// partita_backward_weight of the x that the last partita_forward_saved had. The same sums in another order unless both
// work with the same tiles: equal within rounding errors.
// Shapes:  gw and gy as partita_backward_weight. workspace: partita_saved_workspace bytes, or NULL.
// Errors:  as partita_backward_weight; PARTITA_ERR_ARG for a saved object of another plan; PARTITA_ERR_STATE before the
//          first partita_forward_saved.
// Memory, Threads: as partita_forward_saved.
PARTITA_API enum partita_status partita_backward_weight_saved(const struct partita_plan *plan,
                                                              const struct partita_saved *saved, void *gw,
                                                              const void *gy, void *workspace);

// Bytes of workspace that partita_backward_weight_saved needs; options.workspace_limit does not bound it. Threads: any.
PARTITA_API size_t partita_saved_workspace(const struct partita_saved *saved);

#ifdef __cplusplus
}
#endif

#endif
