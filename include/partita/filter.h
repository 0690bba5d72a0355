// SPDX-License-Identifier: MIT
// Taps prepared for one plan: checked, reversed, transformed. A filter is immutable; any thread may
// create it, and threads may share it.
#ifndef PARTITA_FILTER_H
#define PARTITA_FILTER_H

#include <partita/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

// Prepares taps for a plan.
// Shapes:  taps [out_channels][in_channels/groups][kernel], contiguous, of the problem's taps type;
//          copied.
// Errors:  PARTITA_ERR_ARG for NULL; PARTITA_ERR_NOMEM.
// Memory:  for each planned direction that reads taps (options.directions): the taps; or one
//          spectrum per path (input channel to output channel) of the transform size that
//          partita_plan_explain prints; or with the partitioned engines about twice the taps. The
//          plan must outlive the filter.
// Threads: any; several filters of one plan may be created at once. Not real-time safe.
PARTITA_API enum partita_status partita_filter_create(const struct partita_plan *plan,
                                                      const void *taps,
                                                      struct partita_filter **ret_filter);

// One path of a sparse matrix filter: what input channel `in` contributes to output channel `out`.
// It is the row w[out][in of the group][kernel] of a dense filter that is zero except for
// taps[0 .. length-1] at w[delay .. delay+length-1].
struct partita_cell {
    size_t out, in;   // channels, both counted over all groups; they must belong to one group
    size_t delay;     // zeros before the taps
    size_t length;    // taps; delay + length <= the problem's kernel
    const void *taps; // of the problem's taps type; copied
};

// Prepares a sparse filter for a problem of one axis. Paths that are not listed are zero. In
// cpu/partitioned and cuda/partitioned they cost nothing, and cells with equal taps and delay share
// their spectra.
// Ranges:  n_cells >= 0; no two cells have the same out and in.
// Errors:  PARTITA_ERR_ARG for NULL, a problem of several axes or a cell out of range (the plan's
//          log names it); PARTITA_ERR_NOMEM.
// Memory, Threads: as partita_filter_create.
PARTITA_API enum partita_status partita_filter_create_cells(const struct partita_plan *plan,
                                                            const struct partita_cell *cells,
                                                            size_t n_cells,
                                                            struct partita_filter **ret_filter);

// Prepares a filter that equals `base` except for the given cells, which replace those of base
// (length 0 removes one). The spectra of other cells are copied, not computed again; base may be
// destroyed before the new filter.
// Errors:  as partita_filter_create_cells; PARTITA_ERR_UNSUPPORTED with engines other than
//          cpu/partitioned and cuda/partitioned.
// Memory, Threads: as partita_filter_create_cells.
PARTITA_API enum partita_status partita_filter_edit(const struct partita_filter *base,
                                                    const struct partita_cell *cells,
                                                    size_t n_cells,
                                                    struct partita_filter **ret_filter);

// Releases a filter. NULL is allowed. Threads: any; no stream or call may still use the filter.
PARTITA_API void partita_filter_destroy(struct partita_filter *filter);

#ifdef __cplusplus
}
#endif

#endif
