// SPDX-License-Identifier: MIT
// `partita design`: from the command line to the taps and what they achieve.
#ifndef PARTITA_APPS_DESIGN_H
#define PARTITA_APPS_DESIGN_H

#include <stdio.h>

#include "cli/options.h"
#include "io/audio.h"
#include "io/points.h"
#include "sections.h"

// Interference of symbols: what the other symbols add to the sample of one, in relation to it.
struct interference {
    double rms;   // of independent symbols of the same power
    double worst; // of symbols of magnitude 1 with the worst signs
};

struct job {
    struct settings settings;
    const char *kind, *out; // as the command line names them
    struct partita_design design;
    struct points table;
    // eq and crossover: the filter is that of sections and crossings, not `design`.
    bool equalizes;
    struct partita_crossover crossover; // also of the others, which have one band
    struct sections sections;
    bool lowers;                               // as --gain auto
    double amplification;                      // of a list's table, dB; not above 0 otherwise
    struct partita_equalizer_result equalized; // of taps before they are stored
    double rounding;  // by which stored taps change the response, root mean square over frequencies
    struct fault log; // the library's last line
    double *taps;     // [crossover.bands][n], in the end as they are stored
    size_t n;
    struct audio_info info;
    struct partita_design_result result, // of the taps as they are stored,
        exact;                           // and before
    struct interference interference;    // of raised cosines
    uint64_t clipped;
    bool missed; // an attenuation or a ripple that was asked for
};

// equalizer.c: reads the options of eq and crossover. False: wrong usage.
bool equalizer_parse(struct job *job, struct fault *fault);

// Reads sections and crossings from operands, options and the list of another program.
bool equalizer_read(struct job *job, struct fault *fault);

// Sets job->n, or if job->taps are allocated fills them.
enum partita_status equalizer_taps(struct job *job);

// achieved.c: what the taps that were written achieve, for people, for programs and for the
// picture.

// A band of a design, in the unit of its frequencies.
struct band {
    double begin, end;
    bool pass;
};

enum { MAX_BANDS = 3 };

// Whether the filter is the pulse of a modem, whose symbols last *ret_period frames.
bool achieved_pulse(const struct job *job, double *ret_period);

// Of a pulse, or of its convolution with itself if it is one of a pair, sets the interference at
// multiples of the period around the middle, between which the band-limited pulse is interpolated.
// False if there is no memory.
bool achieved_find_interference(struct job *job);

// The bands in which the result was measured; returns how many there are.
int achieved_bands(const struct job *job, struct band bands[MAX_BANDS]);

// "equiripple", "kaiser" or "truncated".
const char *achieved_method(const struct partita_design *design);

// False: standard output cannot be written.
bool achieved_print(const struct job *job, FILE *to);
bool achieved_print_json(const struct job *job, FILE *to);

// plot.c: writes settings.plot, which appears only when it is complete.
#ifdef HAVE_CAIRO
bool plot_write(const struct job *job, struct fault *fault);
#else // main.c refuses --plot
#define plot_write(...) true
#endif

#endif
