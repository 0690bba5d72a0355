// SPDX-License-Identifier: MIT
// What the taps that were written achieve, for people, for programs and for the picture.
#ifndef PARTITA_APPS_ACHIEVED_H
#define PARTITA_APPS_ACHIEVED_H

#include <stdio.h>

#include "io/audio.h"
#include "specification.h"

// Interference of symbols: what the other symbols add to the sample of one, in relation to it.
struct interference {
    double rms;   // of independent symbols of the same power
    double worst; // of symbols of magnitude 1 with the worst signs
};

struct achieved {
    struct settings settings;
    struct specification specification;
    struct fault log; // the library's last line
    double *taps;     // [channels][n], in the end as they are stored
    size_t n;
    struct audio_info info;
    struct partita_design_result result, // of the taps as they are stored,
        exact;                           // and before
    struct interference interference;    // of raised cosines
    uint64_t clipped;
    bool missed; // an attenuation or a ripple that was asked for
};

// A band of a design, in the unit of its frequencies.
struct band {
    double begin, end;
    bool pass;
};

enum { MAX_BANDS = 3 };

// Whether the filter is the pulse of a modem, whose symbols last *ret_period frames.
bool achieved_pulse(const struct achieved *achieved, double *ret_period);

// Of a pulse, or of its convolution with itself if it is one of a pair, sets the interference at
// multiples of the period around the middle, between which the band-limited pulse is interpolated.
// False if there is no memory.
bool achieved_find_interference(struct achieved *achieved);

// The bands in which the result was measured; returns how many there are.
int achieved_bands(const struct achieved *achieved, struct band bands[MAX_BANDS]);

// "equiripple", "kaiser" or "truncated".
const char *achieved_method(const struct partita_design *design);

// False: standard output cannot be written.
bool achieved_print(const struct achieved *achieved, FILE *to);
bool achieved_print_json(const struct achieved *achieved, FILE *to);

// plot.c: writes settings.plot, which appears only when it is complete.
#ifdef HAVE_CAIRO
bool plot_write(const struct achieved *achieved, struct fault *fault);
#else // picture_check refuses --plot
#define plot_write(...) true
#endif

#endif
