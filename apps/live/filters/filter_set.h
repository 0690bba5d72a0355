// SPDX-License-Identifier: MIT
// The filters of a run: all impulse responses made ready for one plan, the stream they run in, and
// changing from one to the next or to a file's new contents while it plays.
#ifndef PARTITA_APPS_LIVE_FILTER_SET_H
#define PARTITA_APPS_LIVE_FILTER_SET_H

#include "cli/options.h"

struct filter_set;

// Channels and rate of the devices, as far as they are fixed: what the filters must fit.
struct filter_set_request {
    size_t max_in, max_out; // channels the devices have
    double rate;
};

// What a filter is.
struct filter_set_filter {
    const char *path;
    size_t taps;
    size_t onset; // frames until the response itself begins: the first sample within 20 dB of its
                  // largest (ISO 3382-1)
};

// Reads settings->irs, chooses channels (settings->channels, out_channels or what the first
// response suggests), plans, and opens the stream with the first filter. Says no, naming the file,
// if one does not fit.
bool filter_set_open(struct filter_set **ret_bank, const struct settings *settings,
                     const struct filter_set_request *request, struct fault *fault);

// The stream must no longer run.
void filter_set_close(struct filter_set *bank);

struct partita_stream *filter_set_stream(struct filter_set *bank);
const struct partita_plan *filter_set_plan(const struct filter_set *bank);
size_t filter_set_in_channels(const struct filter_set *bank);
size_t filter_set_out_channels(const struct filter_set *bank);
int filter_set_size(const struct filter_set *bank);
int filter_set_current(const struct filter_set *bank);
struct filter_set_filter filter_set_filter(const struct filter_set *bank, int i);

// Fades to filter i. Threads: the one that controls, here and below.
void filter_set_select(struct filter_set *bank, int i);

// Reads the current filter's file again on another thread; if one is being read, afterwards: what
// was asked for while a file was read may not have been in it yet.
void filter_set_reload(struct filter_set *bank);

enum filter_set_news { FILTER_SET_UNCHANGED = 0, FILTER_SET_RELOADED, FILTER_SET_KEPT };

// What became of filter_set_reload since the last call: FILTER_SET_RELOADED, the new contents fade
// in; FILTER_SET_KEPT, they cannot be used and the old filter stays. `told` says so in a sentence.
// Also releases filters that the stream has done with.
enum filter_set_news filter_set_poll(struct filter_set *bank, struct fault *told);

#endif
