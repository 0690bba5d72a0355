// SPDX-License-Identifier: MIT
// Which cells a filter of partitions is made of: those given and those taken over from another
// filter, by output channel, cells of the same contents found out.
#ifndef PARTITA_PATHS_H
#define PARTITA_PATHS_H

#include "core/plan.h"

// The cells that a filter has, sorted by output.
struct path_view {
    const void *filter;       // for the functions
    const size_t *first_path; // [out_channels + 1]; NULL: there is no filter
    size_t (*in)(const void *filter, size_t cell);
    const void *(*contents)(const void *filter, size_t cell); // equal for cells that share theirs
};

// A cell to be made.
struct path_source {
    size_t out, in;
    const struct partita_cell *fresh; // from the caller's taps; NULL: taken over,
    size_t kept;                      // this one of the base
    size_t twin; // earlier source with the same contents; itself if there is none
};

// Lists those given that are not zero, and those that base has besides; returns how many. There is
// room for all.
size_t paths_list(const struct partita_plan *plan, const struct partita_cell *cells, size_t n_cells,
                  const struct path_view *base, struct path_source *ret_sources);

bool taps_are_zero(const struct partita_plan *plan, const char *taps, size_t n);

// causal[span] of a caller's cell; row[kernel] is for work.
void path_causal_taps(const struct shape *shape, const struct partita_cell *cell, char *row,
                      char *causal);

// What a dense filter is made of: all cells, of taps in the caller's layout. n_cells of them.
static inline size_t dense_paths(const struct shape *shape)
{
    return shape->out_channels * shape->group_in;
}
void paths_of_dense(const struct shape *shape, const void *taps, struct partita_cell *ret_cells);

#endif
