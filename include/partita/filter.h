// SPDX-License-Identifier: MIT
// Taps made ready for one plan: checked, reversed, transformed. Immutable; build it on any thread, share it.
#ifndef PARTITA_FILTER_H
#define PARTITA_FILTER_H

#include <partita/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

// Prepares taps for a plan.
// Shapes:  taps [out_channels][in_channels/groups][kernel], contiguous, of the problem's taps type; copied.
// Errors:  PARTITA_ERR_ARG for NULL; PARTITA_ERR_NOMEM.
// Memory:  the taps, or one spectrum a cell of the transform size that partita_plan_explain prints; the plan must
//          outlive the filter.
// Threads: any; several filters of one plan may be made at once. Not real-time safe.
PARTITA_API enum partita_status partita_filter_create(const struct partita_plan *plan, const void *taps,
                                                      struct partita_filter **ret_filter);

// Releases a filter. NULL is allowed. Threads: no stream or call may still use it.
PARTITA_API void partita_filter_destroy(struct partita_filter *filter);

#ifdef __cplusplus
}
#endif

#endif
