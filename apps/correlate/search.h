// SPDX-License-Identifier: MIT
// The peaks of `partita correlate`: options, search, annotations, and what is said about them, in
// lines or JSON.
#ifndef PARTITA_APPS_SEARCH_H
#define PARTITA_APPS_SEARCH_H

#include "cli/options.h"
#include "io/audio.h"
#include "peaks.h"
#include "processes/processes.h"

// A peak in the samples of the signal.
struct match {
    int64_t sample;  // where the template begins; negative: before the signal
    double position; // the same, interpolated
    double magnitude, phase;
    size_t channel;
};

struct search {
    // Set by the caller:
    const struct settings *settings;
    const struct audio_reader *in;
    struct processes *processes;
    enum partita_type type; // of the results
    size_t channels;        // of the results
    uint64_t length;        // frames of the template
    int64_t first_lag;      // of the first result
    uint64_t first, end;    // results whose peaks are reported
    bool continues;         // the whole result has others before the first
    uint64_t offset;        // number of the first result in the whole result
    // Of templates, of which peaks have the numbers in place of channels; NULL: of channels.
    const char *const *names;
    // Filled:
    struct peaks *peaks;   // NULL: none are wanted
    double largest;        // magnitude of all results, after search_finish
    uint64_t n;            // peaks that were printed
    struct match *matches; // n with --annotate, for free
    size_t matches_capacity;
    // Of one of several processes, and of templates: peaks until search_combine reports all.
    struct peak *found;
    size_t n_found, capacity;
};

// False, with a usage error, for options that contradict each other.
bool search_check_usage(const struct settings *settings, struct fault *fault);

// The distance of peaks in results.
uint64_t search_distance(const struct settings *settings, uint64_t length);

// Opens the search, if peaks are wanted, and prints the header of their lines. Once more, of
// results that begin earlier, if the peaks were lost (peaks.h).
bool search_open(struct search *search, struct fault *fault);

// After the last result: prints the peaks that are left.
bool search_finish(struct search *search, struct fault *fault);

// Keeps a peak; context: a search.
bool search_collect(void *context, const struct peak *peak, struct fault *fault);

// After that: prints the peaks that were kept, of several processes the first those of all.
// Collective. Of what the caller sets it needs settings, in and processes.
bool search_combine(struct search *search, struct fault *fault);

// Before any output is written: false, with a fault, if the file of --annotate would replace an
// input or the metadata of another signal, or cannot take over those of IN.
bool search_check_annotate(const struct search *search, struct fault *fault);

// Writes the file of --annotate, if it is given. frames: of the signal, as far as it is known.
bool search_annotate(const struct search *search, uint64_t frames, struct fault *fault);
void search_close(struct search *search);

#endif
