// SPDX-License-Identifier: MIT
// A run that does part of a result (--range K/N), or that goes on where it was stopped (--resume).
// Both rest on one property of the runner's pieces: what a sample of the result is depends on where
// it lies and on nothing else.
//
// Of OUT, a share leaves OUT.range beside it, for `partita join`. A run with --resume writes to
// OUT.partial and notes in OUT.partial.range how far it is; both are gone when OUT is there. Notes
// are there before the first sample is, and OUT.partial is locked (flock) while a run is at it.
// Whatever run gives OUT new contents removes its OUT.range first.
#ifndef PARTITA_APPS_SHARE_H
#define PARTITA_APPS_SHARE_H

#include "cli/range.h"
#include "io/audio.h"
#include "record.h"
#include "taps.h"

struct share {
    const struct settings *settings;
    bool active;          // --range or --resume was given
    struct record record; // done counts what an earlier run has written
    uint64_t input_bytes;
    char *range;           // the record beside OUT, with --range
    char *partial, *notes; // with --resume; beside what OUT is a symbolic link to
    int lock;              // descriptor of `partial`; -1: not ours
    bool is_new;           // `partial` was not there before
    double noted;          // when notes were written last
};

// "K/N" of --range. False: a usage error.
bool share_parse(const char *text, uint64_t *ret_k, uint64_t *ret_n, struct fault *fault);

// Before anything is opened: says no if what this run will write is one of the inputs, or is no
// file where it must be.
bool share_begin(struct share *share, const struct settings *settings, const char *const *inputs,
                 int n_inputs, struct fault *fault);

// Narrows the range and the number of frames to what this run is to do, after looking for what an
// earlier one did. type: in which the result is computed. plan: how.
bool share_open(struct share *share, const struct audio_reader *in, const struct taps *taps,
                enum partita_type type, const struct partita_plan *plan, struct range *range,
                uint64_t *frames, struct fault *fault);

// Creates OUT, or opens what there is of it.
bool share_create(struct share *share, struct audio_writer **ret_writer,
                  const struct audio_info *info, struct fault *fault);

// Notes from time to time that `written` frames of this run have arrived on the disk.
bool share_note(struct share *share, struct audio_writer *writer, uint64_t written,
                struct fault *fault);

// After the pass: says no if the input is not what it was at the beginning.
bool share_check_input(const struct share *share, const struct audio_reader *in,
                       struct fault *fault);

// Finishes OUT, also of a run that is no share: as audio_finish, with what belongs beside OUT. The
// writer is gone afterwards, also on failure.
bool share_finish(struct share *share, struct audio_writer *writer,
                  struct sample_counts *ret_counts, struct fault *fault);
void share_release(struct share *share);

#endif
