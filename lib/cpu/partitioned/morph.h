// SPDX-License-Identifier: MIT
// A stream whose filter is a weighted sum of filters with weights that move: the combined filter,
// whose spectra are summed again slice by slice, and the fade of each slice's change.
//
// The partitions of a segment are divided into slices, and so are the taps of the head. A block of
// a segment changes the weights of one slice at most: of the next one whose weights are not those
// that are asked for. Its products are those of the former spectra. While the spectra of the slice
// are summed again, some lines at a time, the products with their change are summed apart:
//
//      y = IFFT(sum of X_p H_p)  +  ramp from 0 to 1 * IFFT(sum over the slice of X_p change_p)
//
// So the weights of a partition are linear in time over a block or rest, and the output is exactly
// that of these weights. Sums of later blocks of a batch that were begun with the former spectra
// get the products with the change, too.
#ifndef PARTITA_PARTITIONED_MORPH_H
#define PARTITA_PARTITIONED_MORPH_H

#include "morph_loops.h"
#include "partitioned.h"
#include "stream/swap_queue.h"

#define NO_PATH SIZE_MAX

// Partitions of a section of a segment, or taps of the head, whose weights move together.
struct morph_slice {
    size_t section, first, count; // count 0: there is no such slice
};

// The state of a segment's slices, or of the head's. In the region.
struct morph_cycle {
    size_t next;    // the slice that is asked first
    size_t slice;   // that the current block changes
    bool moving[2]; // whether a block with an even or odd number changes one
};

struct morph_part {
    size_t n_slices;
    struct morph_cycle *cycle;
    double *weights; // [n_slices][n] at the end of the current block; in the region
    // Of a slice. A segment: [product chains][partitions][MORPH_LINES] lines, without content
    // between tasks. The head: [paths][HEAD_TAPS], in the region.
    char *changes;
    size_t chain_bytes; // of a chain's changes
};

// The weights that are asked for move linearly. In the region.
struct morph_request {
    double from[MORPH_TERMS], to[MORPH_TERMS];
    double now[MORPH_TERMS];  // at the start of the current quantum
    uint64_t quantum, frames; // in which they begin to move; that this takes
};

struct morph {
    const struct morph_loops *loops;
    size_t n; // filters
    const struct partita_filter *filters[MORPH_TERMS];
    struct partita_filter combined;
    struct partitioned_filter made; // its state, with the paths that any filter has
    size_t *first_path;             // the combined filter's view
    struct history_taps *heads;
    size_t *sources; // [paths][n] index of the path in each filter, or NO_PATH
    void *memory;    // of spectra, taps and all that follows
    char *samples;   // of a quantum of one channel
    struct morph_part part[PARTITION_MAX_SEGMENTS + 1]; // of the segments, then of the head
    struct morph_request *request;
    struct region region;
    struct swap_queue queue; // of posted weights, which are in `posted`
    double posted[3][MORPH_TERMS];
};

// The combined filter and the slices of its plan, summed with the weights (morph_filter.c). Errors:
// PARTITA_ERR_NOMEM. morph_close releases it, whatever was returned.
enum partita_status morph_create(const struct partita_plan *plan,
                                 const struct partita_filter *const *filters, size_t n,
                                 const double *weights, struct morph **ret_morph);

// Slice number `index` of segment i, or of the head if i is the number of segments.
struct morph_slice morph_slice_at(const struct partita_plan *plan, size_t i, size_t index);

// Gives all slices these weights; sums the combined filter with the weights that they have, which
// leaves changes and cycles without content.
void morph_set_weights(struct morph *morph, const double *weights);
void morph_sum_all(const struct partita_plan *plan, struct morph *morph);

// Sums a path's partitions of a slice of segment i that are not zero, for at most MORPH_LINES
// lines. Returns the products with the change, for the sums' first line: count 0 if there are none.
enum { MORPH_LINES = 16 };
struct cmac_path morph_sum_lines(const struct partita_plan *plan, const struct morph *morph,
                                 size_t i, size_t path, struct fft_steps lines, char *changes);

// Sums the taps of the head's slice and writes their change.
void morph_sum_head(const struct partita_plan *plan, const struct morph *morph);

// The change of the head's slice of a path, as taps; the frames by which it is delayed.
size_t morph_head_change(const struct partita_plan *plan, const struct morph *morph, size_t path,
                         struct history_taps *ret_taps);

// Makes a stream that was just opened one that morphs. Errors: PARTITA_ERR_NOMEM.
enum partita_status morph_open(struct partita_stream *stream,
                               const struct partita_filter *const *filters, size_t n,
                               const double *weights);

// Whether streams of a plan can morph.
bool morph_is_served(const struct partita_plan *plan);

// The stream's morph; NULL: it has none, or another engine.
struct morph *morph_of(const struct partita_stream *stream);

// Passes weights from any thread, one at a time.
void morph_post(struct morph *morph, const double *weights, size_t frames);

// Maximum number of frames by which the weight of a tap is behind the weights that are asked for.
size_t morph_lag(const struct partita_stream *stream, size_t tap);

// At the start of each quantum: takes posted weights, and changes a slice of the head.
void morph_begin_quantum(struct partita_stream *stream);

// At the start of a segment's block: chooses the slice that it changes. False: there is none.
bool morph_begin_block(struct partita_stream *stream, size_t i, uint64_t block);

// Changes the block's slice for some lines of a share whose batch began `age` blocks before, of all
// paths of an output. `sums` are the output's in that share: that of the change, then those of the
// blocks after the current one in the batch.
void morph_change_lines(const struct task *at, size_t out, size_t age, char *const *sums,
                        struct fft_steps lines);

// Adds the faded changes of an output to n frames of it: those of the finished blocks of all
// segments, and that of the head.
void morph_fade(const struct partita_stream *stream, size_t channel, char *y, size_t n);

// For the engine's table, of streams that morph and of others (morph_state.c). The state of a
// stream that morphs is the stream's region, then the morph's; others need no copies.
void morph_close(struct partita_stream *stream);
void morph_reset(struct partita_stream *stream);
struct region morph_region(struct partita_stream *stream);
void morph_copy_out(struct partita_stream *stream, void *to);
void morph_copy_in(struct partita_stream *stream, const void *from);

#endif
