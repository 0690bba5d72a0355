// SPDX-License-Identifier: MIT
// Layers: bounded problems of rank 1 to 3 with real types, forward (partita_forward, in plan.h) and
// backward.
//
//   struct partita_problem conv = {.op = PARTITA_CORRELATE, .rank = 2, .batch = 16,
//                                  .in_channels = 64, .out_channels = 128, .kernel = {5, 5},
//                                  .size = {56, 56}, .pad_begin = {2, 2}, .pad_end = {2, 2}};
//   partita_plan_create(&conv, NULL, &plan);               // forward and both gradients
//   partita_filter_create_biased(plan, w, bias, &filter);  // w[128][64][5][5], bias[128]
//   partita_forward(plan, filter, y, x, NULL);             // y[16][128][56][56], x[16][64][56][56]
//   partita_backward_data(plan, filter, gx, gy, NULL);
//   partita_backward_weight(plan, gw, x, gy, NULL);
//   partita_backward_bias(plan, gb, gy);
//
// Arrays are plain and contiguous: [batch][channels][size...], the last axis fastest. gy is the
// gradient with respect to the sum, before problem.activation: with PARTITA_RELU the caller first
// sets gy to 0 where y is 0.
//
// Accuracy: in engines that transform (all except direct and gemm, and depthwise with small
// kernels) a rounding error is relative to the largest values that share a transform, not to each
// result. A result that is exactly 0, because products cancel or there are none, may come out as
// noise; in f32 this is some 1e-6 of the largest results. options.engine = "cpu/direct" or
// "cpu/gemm" computes each result as a sum of its own. options.error_budget bounds the error of all
// results together (relative L2).
#ifndef PARTITA_LAYER_H
#define PARTITA_LAYER_H

#include <partita/filter.h>

#ifdef __cplusplus
extern "C" {
#endif

// Prepares taps together with a bias. partita_forward adds the bias to every output before the
// activation: y[n][k][p] += bias[k].
// Shapes:  taps as partita_filter_create; bias [out_channels] of the problem's type; both are
//          copied. NULL: no bias.
// Errors:  as partita_filter_create; PARTITA_ERR_UNSUPPORTED for a bias if the problem is a stream
//          or complex.
// Memory:  for forward and for backward data, if they are planned (options.directions): the taps or
//          their transforms, which with cpu/winograd take 4 to 16 times as much.
// Threads: any; several filters of one plan may be created at once. Not real-time safe.
PARTITA_API enum partita_status partita_filter_create_biased(const struct partita_plan *plan,
                                                             const void *taps, const void *bias,
                                                             struct partita_filter **ret_filter);

// The gradient with respect to the input: gx[n, c, i] = sum of w[k, c, r] gy[n, k, p] over all k, r
// and p with stride*p + dilation*r - pad_begin = i. This is the transpose of partita_forward
// without bias and activation.
// Shapes:  gx as x of partita_forward, gy as its y. All of gx is written: samples that no output
//          depends on become 0, except for rounding errors if the engine transforms tiles.
// Ranges:  gx and gy aligned to their scalar, not overlapping. workspace: at least
//          partita_plan_workspace(plan, PARTITA_BACKWARD_DATA) bytes, 64-byte aligned; NULL: the
//          call allocates it.
// Errors:  PARTITA_ERR_ARG for NULL, a misaligned pointer or a filter of another plan;
//          PARTITA_ERR_STATE if the plan is for a stream; PARTITA_ERR_UNSUPPORTED if this direction
//          is not planned; PARTITA_ERR_NOMEM only if workspace is NULL.
// Threads: as partita_forward; the result does not depend on the number of threads.
// Source:  Dumoulin & Visin, A guide to convolution arithmetic for deep learning (2016), section 4.
PARTITA_API enum partita_status partita_backward_data(const struct partita_plan *plan,
                                                      const struct partita_filter *filter, void *gx,
                                                      const void *gy, void *workspace);

// The gradient with respect to the taps, summed over the batch: gw[k, c, r] = sum over n, p of
// gy[n, k, p] x[n, c, stride*p + dilation*r - pad_begin], with x = 0 outside its size.
// Shapes:  gw [out_channels][in_channels/groups][kernel], as the taps of partita_filter_create; x,
//          gy as forward's x, y.
// Ranges, Errors, Threads: as partita_backward_data, with PARTITA_BACKWARD_WEIGHT. Sums are split
//          by shape and added in a fixed tree. An infinite or NaN sample of x may spread to taps
//          that it does not meet.
PARTITA_API enum partita_status partita_backward_weight(const struct partita_plan *plan, void *gw,
                                                        const void *x, const void *gy,
                                                        void *workspace);

// The gradient with respect to the bias: gb[k] = sum over n, p of gy[n, k, p].
// Shapes:  gb [out_channels], gy as forward's y.
// Errors:  PARTITA_ERR_ARG for NULL or a misaligned pointer; PARTITA_ERR_STATE if the plan is for a
//          stream; PARTITA_ERR_UNSUPPORTED for complex types and for f16 and bf16.
// Memory:  none.
// Threads: as partita_forward.
PARTITA_API enum partita_status partita_backward_bias(const struct partita_plan *plan, void *gb,
                                                      const void *gy);

// Bytes of workspace that one direction needs; 0 for streams and directions that are not planned.
// Threads: any.
PARTITA_API size_t partita_plan_workspace(const struct partita_plan *plan,
                                          enum partita_direction direction);

// Name of the engine of one direction; "" if it is not planned. The string lives as long as the
// plan.
// Threads: any.
PARTITA_API const char *partita_plan_engine_of(const struct partita_plan *plan,
                                               enum partita_direction direction);

// Cached spectra: transforms of the tiles of x that forward computes and backward weight would
// compute again. (A filter holds the transforms of the taps, for forward and for backward data.)
//
//   partita_saved_create(plan, &saved);                        // once
//   partita_forward_saved(plan, filter, saved, y, x, NULL);    // instead of partita_forward
//   partita_backward_weight_saved(plan, saved, gw, gy, NULL);  // does not read x again
struct partita_saved;

// Bytes that partita_saved_create allocates for the transforms of one x. 0 if there can be none:
// forward and backward weight must both be planned, with an engine that has such transforms
// (cpu/tiles, cuda/tiles).
// Threads: any.
PARTITA_API size_t partita_saved_bytes(const struct partita_plan *plan);

// Creates an object that holds the transforms of one x at a time. Backward weight then uses the
// tiles of forward, which may differ from those of partita_backward_weight.
// Errors:  PARTITA_ERR_ARG for NULL; PARTITA_ERR_UNSUPPORTED if partita_saved_bytes is 0;
//          PARTITA_ERR_NOMEM.
// Memory:  partita_saved_bytes and tables; the plan must outlive the object.
// Threads: any; one call at a time may use the object.
PARTITA_API enum partita_status partita_saved_create(const struct partita_plan *plan,
                                                     struct partita_saved **ret_saved);

// Releases the object. NULL is allowed. Threads: any; no call may still use it.
PARTITA_API void partita_saved_destroy(struct partita_saved *saved);

// As partita_forward, with the same bits; also keeps the transforms of x in `saved`.
// Shapes, Ranges, Errors: as partita_forward, workspace included; PARTITA_ERR_ARG also for an
//          object of another plan.
// Memory:  none, except for a workspace if it is NULL.
// Threads: as partita_forward; one call at a time may use the object.
PARTITA_API enum partita_status partita_forward_saved(const struct partita_plan *plan,
                                                      const struct partita_filter *filter,
                                                      struct partita_saved *saved, void *y,
                                                      const void *x, void *workspace);

// As partita_backward_weight with the x of the last partita_forward_saved. The sums are the same;
// unless both calls use the same tiles their order differs, and the results are equal within
// rounding errors.
// Shapes:  gw and gy as partita_backward_weight. workspace: partita_saved_workspace bytes, or NULL.
// Errors:  as partita_backward_weight; PARTITA_ERR_ARG for an object of another plan;
//          PARTITA_ERR_STATE before the first partita_forward_saved.
// Memory, Threads: as partita_forward_saved.
PARTITA_API enum partita_status partita_backward_weight_saved(const struct partita_plan *plan,
                                                              const struct partita_saved *saved,
                                                              void *gw, const void *gy,
                                                              void *workspace);

// Bytes of workspace that partita_backward_weight_saved needs; options.workspace_limit does not
// bound it.
// Threads: any.
PARTITA_API size_t partita_saved_workspace(const struct partita_saved *saved);

#ifdef __cplusplus
}
#endif

#endif
