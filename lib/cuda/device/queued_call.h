// SPDX-License-Identifier: MIT
// Calls on a queue of the caller's: its arrays are used in place, work is queued and the call
// returns. Nothing is allocated or waited for, so that the queue may be recorded in a graph.
#ifndef PARTITA_CUDA_QUEUED_CALL_H
#define PARTITA_CUDA_QUEUED_CALL_H

#include "device.h"

// Loads all that a call of the plan's direction launches: its kernels, or with operands that take
// `cached` spectra those; and cuFFT's.
enum partita_status cuda_load(const struct partita_plan *plan, bool cached);

// The same once for a plan of the caller's, in all directions that are planned, and for the
// gradient of the bias.
enum partita_status cuda_prepare(const struct partita_plan *plan);

// Bounded problems and updates of a filter, after cuda_enter_queue. Prepares the direction if that
// has not been done. Errors: PARTITA_ERR_ARG for an array that is not in the device's memory or not
// aligned to a sample; PARTITA_ERR_STATE if the queue is recorded before the direction was
// prepared. The log line says which.
enum partita_status cuda_queued_run(const struct partita_plan *plan,
                                    const struct partita_filter *filter,
                                    const struct operands *operands, void *workspace);
enum partita_status cuda_queued_update(struct partita_filter *filter,
                                       const struct operands *operands, void *workspace);

#endif
