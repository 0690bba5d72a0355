// SPDX-License-Identifier: MIT
// Equalizers and crossovers, from the public calls of partita/equalizer.h on.
#ifndef PARTITA_EQUALIZER_EQUALIZER_H
#define PARTITA_EQUALIZER_EQUALIZER_H

#include "base/log.h"
#include "base/mem.h"

#include <partita/equalizer.h>

enum { MAX_SECTIONS = 4096, SECTION_MAX_BIQUADS = 8, MAX_DECIBELS = 150 };

// Biquads in series.
struct biquad_chain {
    struct partita_biquad *biquads;
    size_t n;
};

// The gain of a chain, for design_bins_symmetric too.
double chain_gain(const void *chain, double frequency);

// Taps of the bands of a crossover, or of an equalizer as its one band.
struct taps_job {
    const char *name; // of the caller's struct, for messages
    double *taps;     // the caller's [bands][n]; NULL: only their number is wanted
    size_t n;         // 0 without them
    struct partita_crossover given;
    struct biquad_chain chain[PARTITA_MAX_BANDS];
    bool linear; // phase
    struct partita_equalizer_result result;
    // A band's response from frame 0 on; one of linear phase is symmetric around it.
    double *frames, *left; // left[n_frames + 1]: the energy from a frame on, on both sides
    size_t n_frames;
    double floor; // of wanted gains that are compared, dB
};

// Checks the fields of `given` but for bands and crossings, taps and n; fills in defaults. False:
// refused, after a line in the log.
bool job_resolve(struct taps_job *job);

// Appends the biquads of a section, up to SECTION_MAX_BIQUADS. An all pass may have a family here:
// it is the sum of a low pass and a high pass of that family, see equalizer.c.
void section_append(const struct partita_section *section, double rate, struct biquad_chain *chain);

// The same for a section that may be refused: false, after a line in the log, which has the name
// of the caller's list.
bool section_append_checked(struct taps_job *job, size_t band, const char *list, size_t index,
                            const struct partita_section *section);

// Writes taps and result or, without taps, the result's number of taps.
enum partita_status job_run(struct taps_job *job, struct partita_equalizer_result *ret_result,
                            size_t result_bytes);

#endif
