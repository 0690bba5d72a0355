// SPDX-License-Identifier: MIT
// The oracle: the formula of partita/problem.h as plain loops over complex numbers in long double.
// It shares no code with the library, fills in its own defaults and has no blocks, transforms or
// threads.
#ifndef PARTITA_TEST_REFERENCE_H
#define PARTITA_TEST_REFERENCE_H

#include <complex.h>
#include <stdbool.h>
#include <stdint.h>

#include <partita/problem.h>

// Number of axes and type of the taps, with their defaults filled in.
int reference_rank(const struct partita_problem *problem);
enum partita_type reference_taps(const struct partita_problem *problem);

// Output samples along an axis of a valid bounded problem.
size_t reference_outputs(const struct partita_problem *problem, size_t axis);

// The sample of an axis of n samples that index i means; -1 outside if there are zeros or
// problem->boundary_value.
ptrdiff_t reference_inside(enum partita_boundary boundary, size_t n, ptrdiff_t i);

// y[batch][out_channels][outputs] of a bounded problem; x and w in the problem's own types and
// layouts.
void reference_forward(const struct partita_problem *problem, double complex *y, const void *x,
                       const void *w);

// The same for the first n_frames input frames of a stream: x [in_channels][n_frames], y
// [out_channels][outputs] with ceil(n_frames * up / stride) outputs, without any latency.
void reference_stream(const struct partita_problem *problem, size_t n_frames, double complex *y,
                      const void *x, const void *w);

// The same for the outputs at[n_at] only: y [out_channels][n_at].
void reference_stream_at(const struct partita_problem *problem, size_t n_frames, const size_t *at,
                         size_t n_at, double complex *y, const void *x, const void *w);

// Reads sample i of an array of the given type.
double complex reference_sample(enum partita_type type, const void *samples, size_t i);

// The formats of two bytes. half_is: whether a type is one. half_roundoff: half the distance from 1
// to the next number. half_bits: the nearest number, ties to even, beyond the largest infinity.
bool half_is(enum partita_type type);
double half_roundoff(enum partita_type type);
double half_value(enum partita_type type, uint16_t bits);
uint16_t half_bits(enum partita_type type, double value);

#endif
