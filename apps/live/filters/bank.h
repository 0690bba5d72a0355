// SPDX-License-Identifier: MIT
// The filters of a run: all impulse responses made ready for one plan, the stream they run in, and
// changing from one to the next or to a file's new contents while it plays.
#ifndef PARTITA_APPS_LIVE_BANK_H
#define PARTITA_APPS_LIVE_BANK_H

#include "cli/options.h"

struct bank;

// Channels and rate of the devices, as far as they are fixed: what the filters must fit.
struct bank_request {
    size_t max_in, max_out; // channels the devices have
    double rate;
};

// What a filter is.
struct bank_filter {
    const char *path;
    size_t taps;
    size_t onset; // frames until the response itself begins: the first sample within 20 dB of its
                  // largest (ISO 3382-1)
};

// Reads settings->irs, chooses channels (settings->channels, out_channels or what the first
// response suggests), plans, and opens the stream with the first filter. Says no, naming the file,
// if one does not fit.
bool bank_open(struct bank **ret_bank, const struct settings *settings,
               const struct bank_request *request, struct fault *fault);

// The stream must no longer run.
void bank_close(struct bank *bank);

struct partita_stream *bank_stream(struct bank *bank);
const struct partita_plan *bank_plan(const struct bank *bank);
size_t bank_in_channels(const struct bank *bank);
size_t bank_out_channels(const struct bank *bank);
int bank_size(const struct bank *bank);
int bank_current(const struct bank *bank);
struct bank_filter bank_filter(const struct bank *bank, int i);

// Fades to filter i. Threads: the one that controls, here and below.
void bank_select(struct bank *bank, int i);

// Reads the current filter's file again on another thread; if one is being read, afterwards: what
// was asked for while a file was read may not have been in it yet.
void bank_reload(struct bank *bank);

enum bank_news { BANK_NOTHING = 0, BANK_RELOADED, BANK_KEPT };

// What became of bank_reload since the last call: BANK_RELOADED, the new contents fade in;
// BANK_KEPT, they cannot be used and the old filter stays. `told` says so in a sentence. Also
// releases filters that the stream has done with.
enum bank_news bank_poll(struct bank *bank, struct fault *told);

#endif
