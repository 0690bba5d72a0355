// SPDX-License-Identifier: MIT
// Segments of a signal filtered in parallel, one thread per segment; results are returned in the
// order of submission. Without workers a segment is filtered when it is submitted, with the plan's
// threads.
#ifndef PARTITA_APPS_SEGMENTS_H
#define PARTITA_APPS_SEGMENTS_H

#include <partita/partita.h>
#include <pthread.h>
#include <stdbool.h>

enum { SEGMENTS_MAX_WORKERS = 32 };

struct segment;

struct segments {
    const struct partita_plan *plan;
    const struct partita_filter *filter;
    size_t x_bytes, y_bytes; // of one segment's inputs and results
    size_t n_kept;           // how many segments' results stay valid after they were taken
    size_t max_workers;      // at most SEGMENTS_MAX_WORKERS, 0 for none
    // Private:
    struct segment *ring;
    void *inputs[SEGMENTS_MAX_WORKERS + 2]; // of the segments in flight, n_inputs at most
    void *workspaces[SEGMENTS_MAX_WORKERS]; // one per worker, or one
    size_t n_ring, n_inputs, n_workers, n_working;
    uint64_t submitted, started, taken; // numbers of segments; submitted - taken are in flight
    bool stopped;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_t workers[SEGMENTS_MAX_WORKERS];
};

// The fields above must be set. False if memory or threads are lacking. segments_close waits for
// the segments in flight, and accepts a zeroed struct.
bool segments_open(struct segments *segments);
void segments_close(struct segments *segments);

// The input buffer of the next segment, which the caller fills. NULL: all are in flight, take one
// first. A buffer stays unchanged until it is reused, so that the next segment's history can be
// copied from it.
void *segments_next_input(const struct segments *segments);
void segments_submit(struct segments *segments);

// Waits for the oldest segment in flight and returns its results. They stay valid while n_kept more
// are taken, until segments_next_input is called after that. At least one segment must be in
// flight.
enum partita_status segments_take(struct segments *segments, void **ret_y);

size_t segments_in_flight(const struct segments *segments);

#endif
