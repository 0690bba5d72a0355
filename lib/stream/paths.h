// SPDX-License-Identifier: MIT
// Filters of partitions as paths, one for each pair of an output and an input that has taps. Taps
// come from the caller or are copied from another filter. Paths that are all zero are omitted;
// paths with the same taps are stored once. The first taps of a path, its head, are summed
// directly.
#ifndef PARTITA_PATHS_H
#define PARTITA_PATHS_H

#include "core/plan.h"
#include "history.h"

// The paths of a filter, sorted by output. Paths with the same taps have the same heads[].taps.
struct path_view {
    const size_t *first_path;         // [out_channels + 1]; NULL: there is no filter
    const struct history_taps *heads; // [paths]
};

// A path to be made.
struct path_source {
    size_t out, in;
    const struct partita_path *given; // taps of the caller; NULL: copied from the base,
    size_t taken;                     // from its path of this index
    size_t twin; // earlier source with the same contents; itself if there is none
};

// The working data for creating a filter. Set `plan` and `base`, call path_build_layout, then
// path_build_list.
struct path_build {
    const struct partita_plan *plan;
    struct path_view base;       // paths that are not given are copied from it
    struct path_source *sources; // [n], sorted by output
    size_t *head_taps;           // [n]
    size_t n;
    char *row, *causal; // [kernel] scratch; [span] taps of the path that is visited
};

// Maximum number of sources.
size_t path_build_max(const struct path_build *build, size_t n_paths);
void path_build_layout(struct path_build *build, size_t n_paths, struct arena *arena);
void path_build_list(struct path_build *build, const struct partita_path *paths, size_t n_paths);

// Visits the sources that are not twins of earlier ones: sets *p to the first such source from *p
// on. If its taps are given, they are then in build->causal. False: there is no further source.
bool path_build_next(struct path_build *build, size_t *p);

// For the visited path: path_build_head counts the taps of its head, at most `max`.
// path_build_range finds its partitions that are not zero, first .. end-1; partitions have `taps`
// taps each, from tap `from` on.
void path_build_head(struct path_build *build, size_t p, size_t max);
struct path_range {
    size_t first, end;
};
struct path_range path_build_range(const struct path_build *build, size_t from, size_t taps,
                                   size_t partitions);

// Lays out the filter's own index of paths and their heads, and fills them unless the arena only
// counts.
struct path_view path_build_view(struct path_build *build, struct arena *arena);

// A filter.create for an engine's table: creates a dense filter by the engine's
// filter.create_paths.
enum partita_status paths_create_dense(struct partita_filter *filter, const void *taps);

#endif
