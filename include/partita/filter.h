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
// Memory:  for each planned direction that reads taps (options.directions): the taps, or one spectrum a cell of the
//          transform size that partita_plan_explain prints, or with cpu/partitioned about twice the taps; the plan must
//          outlive the filter.
// Threads: any; several filters of one plan may be made at once. Not real-time safe.
PARTITA_API enum partita_status partita_filter_create(const struct partita_plan *plan, const void *taps,
                                                      struct partita_filter **ret_filter);

// One cell of a sparse matrix filter: what input channel `in` contributes to output channel `out`. It is the row
// w[out][in of the group][kernel] of a dense filter, zero but for taps[0 .. length-1] at w[delay .. delay+length-1].
struct partita_cell {
    size_t out, in;   // channels, both counted over all groups; they must be of one group
    size_t delay;     // zeros before the taps
    size_t length;    // taps; delay + length <= the problem's kernel
    const void *taps; // of the problem's taps type; copied
};

// Prepares a sparse filter: cells that are not named are silent and cost nothing in cpu/partitioned.
// Ranges:  n_cells >= 0; no two cells of one out and in. Cells of equal taps and delay share their spectra there.
// Errors:  PARTITA_ERR_ARG for NULL or a cell out of range (the plan's log names it); PARTITA_ERR_NOMEM.
// Memory, Threads: as partita_filter_create.
PARTITA_API enum partita_status partita_filter_create_cells(const struct partita_plan *plan,
                                                            const struct partita_cell *cells, size_t n_cells,
                                                            struct partita_filter **ret_filter);

// Prepares a filter that is `base` but for the cells given, which replace base's (length 0 silences one). Spectra of
// other cells are copied, not computed again; base may be destroyed first.
// Errors, Memory, Threads: as partita_filter_create_cells. PARTITA_ERR_UNSUPPORTED on engines other than
// cpu/partitioned.
PARTITA_API enum partita_status partita_filter_edit(const struct partita_filter *base, const struct partita_cell *cells,
                                                    size_t n_cells, struct partita_filter **ret_filter);

// Releases a filter. NULL is allowed. Threads: no stream or call may still use it.
PARTITA_API void partita_filter_destroy(struct partita_filter *filter);

#ifdef __cplusplus
}
#endif

#endif
