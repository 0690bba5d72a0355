// SPDX-License-Identifier: MIT
// The filters of a run: all impulse responses as filters of one plan, and their stream. While it
// plays, another filter can be selected, and a file be read again.
#ifndef PARTITA_APPS_LIVE_FILTER_SET_H
#define PARTITA_APPS_LIVE_FILTER_SET_H

#include "cli/options.h"
#include "io/formats/sofa.h"

struct filter_set;

// Channels and rate of the devices, which the filters must match.
struct filter_set_request {
    size_t max_in, max_out; // channels of the devices
    double rate;
    struct sofa_direction direction; // of SOFA files
    const char **ret_ir;             // the one that a fault is about; NULL: none
};

// The points of the response of a filter, at equal distances on a logarithmic axis.
enum { FILTER_POINTS = 128 };

// The description of a filter.
struct filter_info {
    const char *path;
    size_t taps;
    size_t onset; // first frame within 20 dB of the largest sample (ISO 3382-1)
    // Of --web, from each input to the output of its number, or from the last input: real and
    // imaginary part; NULL: unknown.
    double (*response)[FILTER_POINTS][2];
};

// Reads settings->irs, chooses channels (settings->channels and out_channels, else those that the
// first response implies), plans, and opens the stream with the first filter. False, with a fault
// that names the file, if a response does not match.
bool filter_set_open(struct filter_set **ret_set, const struct settings *settings,
                     const struct filter_set_request *request, struct fault *fault);

// The stream must not be in use any more.
void filter_set_close(struct filter_set *set);

// What there is at present.
struct filter_set_view {
    struct partita_stream *stream;
    const struct partita_plan *plan;
    size_t in_channels, out_channels;
    int n, current;          // filters, and the number of the one that plays
    struct filter_info info; // of that
};
struct filter_set_view filter_set_view(const struct filter_set *set);

// The path of filter i.
const char *filter_set_path(const struct filter_set *set, int i);

// The frequency of a point in Hz.
double filter_set_frequency(const struct filter_set *set, int point);

// Fades to filter i. Threads: the control thread, here and below.
void filter_set_select(struct filter_set *set, int i);

// Fades from the measured pair of a SOFA file to the one nearest to this direction, as soon as the
// previous fade has ended, which filter_set_poll waits for while filter_set_is_turning.
void filter_set_turn(struct filter_set *set, const struct sofa_direction *direction);
bool filter_set_is_turning(const struct filter_set *set);

// Whether a filter is from a SOFA file, so that the direction matters.
bool filter_set_has_directions(const struct filter_set *set);

// The length of later fades, in milliseconds; 0 at first.
void filter_set_fade(struct filter_set *set, double milliseconds);

// Reads the file of the current filter again, on another thread; if that thread is already reading
// a file, it starts when that is done, since the file may have changed in between. Returns the
// number of this request, which grows. 0, with a fault: a file of filter_set_load, or of another
// filter, has yet to be read.
uint64_t filter_set_reload(struct filter_set *set, struct fault *fault);

// The same for another file, named as --ir does, whose filter replaces the current one or, if
// `beside`, becomes a further one as far as there is room. 0, with a fault, also while another file
// is read, and if this is not a regular file.
uint64_t filter_set_load(struct filter_set *set, const char *ir, bool beside, struct fault *fault);

// The number of the filter of this name; -1: none has it.
int filter_set_find(const struct filter_set *set, const char *ir);

enum filter_set_event { FILTER_SET_UNCHANGED = 0, FILTER_SET_CHANGED, FILTER_SET_FAILED };

struct filter_set_news {
    enum filter_set_event event;
    uint64_t request; // the last one that this ends
    struct fault message;
};

// The outcome of a request since the last call. FILTER_SET_CHANGED: the new filter fades in.
// FILTER_SET_FAILED: the file cannot be used and the old filter stays. Also releases filters that
// the stream no longer uses.
void filter_set_poll(struct filter_set *set, struct filter_set_news *ret_news);

#endif
