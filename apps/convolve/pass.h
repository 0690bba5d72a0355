// SPDX-License-Identifier: MIT
// One pass of a signal from a reader through a runner to a writer, in bounded memory.
#ifndef PARTITA_APPS_PASS_H
#define PARTITA_APPS_PASS_H

#include "base/interleave.h"
#include "cli/range.h"
#include "correlate/peaks.h"
#include "correlate/window_norm.h"
#include "io/audio.h"
#include "io/samples/tuner.h"
#include "pass_stats.h"
#include "pass_threads.h"
#include "runner.h"
#include "shard.h"

// Of results that are rows of channels. buffer: for interleaved frames; NULL: results are those.
struct pass_rows {
    struct channel_rows shape;
    size_t n; // frames in buffer
    void *buffer;
};

struct pass {
    const struct settings *settings;
    struct audio_reader *reader;
    struct audio_writer *writer; // NULL: the result is not written
    struct runner *runner;
    const struct taps *taps;
    const struct tuner *tuner; // NULL: none
    enum partita_type type;
    struct range range; // of the full result, of taps without lead
    struct shard *shard;
    struct pass_stats *stats;
    struct peaks *peaks; // finds peaks in the result; NULL: none are wanted
    bool measure;        // peak and RMS are wanted
    uint64_t first, end; // results to write and to measure; the others are for their peaks
    uint64_t done;       // of these, by a pass that began too late for the peaks (peaks_lost)
    size_t chunk;        // set by pass_run: frames per call, at most
    // Private:
    void *x, *y;                      // buffers, without threads
    struct frame_queue input, output; // of the threads that read and write
    uint64_t wanted;                  // frames to read; SIZE_UNKNOWN: up to the end
    size_t n_kept; // maximum number of results in the runner's memory that wait or are being
                   // written, of whose buffers only NULL matters; 0: results are in the queue's
                   // buffers. NULL: writing failed, which pass_output_end reports
    struct pass_rows rows;
    struct window_norm *norm; // NULL: not normalised
    void *preloaded;          // frames that pass_preload read
    size_t n_preloaded, preloaded_at;
    int64_t counted_begin, counted_end; // input frames whose replaced samples are counted
    int64_t consumed;                   // input frames skipped or filtered
    int64_t origin;      // input frame at which the runner starts; if negative, with silence
    int64_t skip, count; // results to drop, then to write; count -1: not known yet
    int64_t written;
    bool shows_progress;
    double started, reported;
};

// Reads up to n frames before the pass, to find out whether the input has that many; *ret_n: how
// many it has. Needs reader, taps, type and settings.
bool pass_preload(struct pass *pass, size_t n, size_t *ret_n, struct fault *fault);

// False, with a fault, if the range needs captures of a recording that differ in frequency. Needs
// reader, taps, range and settings.
bool pass_check_captures(const struct pass *pass, struct fault *fault);

// Whether nothing needs interleaved results before they are written. Needs settings and measure.
bool pass_takes_rows(const struct pass *pass);

// Runs the pass. The writer stays open.
bool pass_run(struct pass *pass, struct fault *fault);

// Frees the buffers.
void pass_release(struct pass *pass);

#endif
