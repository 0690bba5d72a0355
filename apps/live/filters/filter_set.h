// SPDX-License-Identifier: MIT
// The filters of a run: all impulse responses as filters of one plan, and their stream. While it
// plays, another filter can be selected, and a file be read again.
#ifndef PARTITA_APPS_LIVE_FILTER_SET_H
#define PARTITA_APPS_LIVE_FILTER_SET_H

#include "cli/options.h"

struct filter_set;

// Channels and rate of the devices, which the filters must match.
struct filter_set_request {
    size_t max_in, max_out; // channels of the devices
    double rate;
};

// The description of a filter.
struct filter_info {
    const char *path;
    size_t taps;
    size_t onset; // first frame within 20 dB of the largest sample (ISO 3382-1)
};

// Reads settings->irs, chooses channels (settings->channels and out_channels, else those that the
// first response implies), plans, and opens the stream with the first filter. False, with a fault
// that names the file, if a response does not match.
bool filter_set_open(struct filter_set **ret_set, const struct settings *settings,
                     const struct filter_set_request *request, struct fault *fault);

// The stream must not be in use any more.
void filter_set_close(struct filter_set *set);

struct partita_stream *filter_set_stream(struct filter_set *set);
const struct partita_plan *filter_set_plan(const struct filter_set *set);
size_t filter_set_in_channels(const struct filter_set *set);
size_t filter_set_out_channels(const struct filter_set *set);
int filter_set_size(const struct filter_set *set);
int filter_set_current(const struct filter_set *set);
struct filter_info filter_set_info(const struct filter_set *set, int i);

// Fades to filter i. Threads: the control thread, here and below.
void filter_set_select(struct filter_set *set, int i);

// Reads the file of the current filter again, on another thread; if that thread is already reading
// a file, it starts when that is done, since the file may have changed in between.
void filter_set_reload(struct filter_set *set);

enum filter_set_event { FILTER_SET_UNCHANGED = 0, FILTER_SET_RELOADED, FILTER_SET_NOT_RELOADED };

// The outcome of filter_set_reload since the last call. FILTER_SET_RELOADED: the new filter fades
// in. FILTER_SET_NOT_RELOADED: the file cannot be used and the old filter stays. `message`
// describes it. Also releases filters that the stream no longer uses.
enum filter_set_event filter_set_poll(struct filter_set *set, struct fault *message);

#endif
