// SPDX-License-Identifier: MIT
// Equalizers and crossovers, from the public calls of partita/equalizer.h on.
#ifndef PARTITA_EQUALIZER_EQUALIZER_H
#define PARTITA_EQUALIZER_EQUALIZER_H

#include "base/log.h"
#include "base/mem.h"

#include <partita/equalizer.h>

// The log of a caller's struct, which may be NULL.
#define LOG_GIVEN(given) ((given) && (given)->log.line ? (given)->log : log_default())

enum { SECTION_MAX_BIQUADS = 8 };

// Biquads in series.
struct biquad_chain {
    struct partita_biquad *biquads;
    size_t n;
};

// The gain of a chain, for design_bins_symmetric too.
double chain_gain(const void *chain, double frequency);

// Checks a section and appends its biquads, up to SECTION_MAX_BIQUADS. `name` is that of the
// section in messages, such as "sections[2]". False: refused, after a line in the log.
bool section_append(const struct partita_log *log, const char *name,
                    const struct partita_section *section, double rate, struct biquad_chain *chain);

// Poles of a low pass: factors of its frequency, and q, which is 0 for a single real pole.
struct section_pole {
    double factor, q;
};
size_t section_poles(enum partita_section_family family, int order, struct section_pole *ret);

// Taps of the bands of a crossover, or of an equalizer as its one band.
struct taps_job {
    const char *name; // of the caller's struct, for messages
    double rate, tail;
    size_t taps; // 0: to be chosen
    enum partita_equalizer_phase phase;
    struct partita_log log;
    struct partita_allocator allocator;
    size_t bands;
    struct biquad_chain chain[PARTITA_MAX_BANDS];
    double factor[PARTITA_MAX_BANDS];
    size_t delay[PARTITA_MAX_BANDS];
};

// Checks the fields before `bands` and fills in defaults. False: refused, after a line in the log.
bool job_resolve(struct taps_job *job);

// Writes taps[bands][n] and the result or, without taps, the result's number of taps.
enum partita_status job_run(const struct taps_job *job, double *taps, size_t n,
                            struct partita_equalizer_result *ret_result, size_t result_bytes);

#endif
