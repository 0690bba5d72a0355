// SPDX-License-Identifier: MIT
// One instance of a plug-in. Each field belongs to the audio thread, to the worker, or does not
// change after instantiate().
//
// At most one change of the impulse response is under way:
//   the audio thread asks the worker to load a file (MESSAGE_LOAD),
//   the worker answers with what it made (MESSAGE_LOADED), or clears `busy` if it failed,
//   the audio thread fades to it and tells the worker when the old one is silent (MESSAGE_RELEASE),
//   the worker frees the old one and clears `busy`.
// A file that is chosen meanwhile is kept in `wanted`; of several only the last is loaded.
#ifndef PARTITA_LV2_PLUGIN_H
#define PARTITA_LV2_PLUGIN_H

#include <pthread.h>
#include <stdatomic.h>

#include <lv2/atom/forge.h>
#include <lv2/log/logger.h>
#include <lv2/state/state.h>
#include <lv2/worker/worker.h>

#include "convolver.h"
#include "live/chain/ramp.h"
#include "variants.h"

struct plugin_urids {
    LV2_URID atom_path, atom_urid, atom_sequence, atom_int;
    LV2_URID patch_set, patch_get, patch_property, patch_value;
    LV2_URID nominal_block, max_block, response;
};

enum { PATH_SIZE = 4096 };

// To the worker and back.
enum message_kind {
    MESSAGE_LOAD,    // path: the file to load
    MESSAGE_LOADED,  // loaded: what to play from now on
    MESSAGE_RELEASE, // what was replaced is no longer in use
    MESSAGE_WANT,    // path, of a restored state: to the worker, which sends it to the audio thread
};

struct message {
    enum message_kind kind;
    union {
        struct loaded loaded;
        char path[PATH_SIZE]; // only as long as its text is sent
    };
};

// Fills a message and returns its size. path: NULL for messages without one.
uint32_t message_fill(struct message *message, enum message_kind kind, const char *path);

// The audio thread's part.
struct plugin_audio {
    struct loaded playing, next; // next: to which `playing` is faded
    size_t fade_at;              // frames of that fade so far
    bool swapping;               // the stream of `playing` fades to another filter
    bool release_wanted;         // the fade is over, the worker has not been told
    bool notify_wanted;          // the host has not been told of the file that was chosen
    bool started;                // levels are set; the next change is gradual
    struct ramp dry, wet;
    char wanted[PATH_SIZE]; // to load next; empty: nothing
    // [channels][block]: inputs, outputs of `playing` and of `next`
    float *x[MAX_CHANNELS], *y[MAX_CHANNELS], *y_next[MAX_CHANNELS];
    float *dry_levels, *wet_levels; // [block]
};

// The worker's part, which save() and restore() also use, under the lock. They never run on the
// audio thread.
struct plugin_worker {
    pthread_mutex_t lock;
    struct loaded now, before; // before: what `now` replaced, possibly in use
};

struct plugin {
    const struct variant *variant;
    uint32_t rate;     // Hz
    size_t block;      // frames of the largest usual call
    size_t fade, ramp; // frames
    struct plugin_urids urids;
    LV2_Log_Logger logger;
    const LV2_Worker_Schedule *schedule;
    bool activated; // run() may be called
    // Ports. Those of events may be NULL.
    const LV2_Atom_Sequence *control;
    LV2_Atom_Sequence *notify;
    const float *dry, *wet, *gain;
    float *latency;
    const float *inputs[MAX_CHANNELS];
    float *outputs[MAX_CHANNELS];

    LV2_Atom_Forge forge;
    float *samples; // of plugin_audio
    struct plugin_audio audio;
    struct plugin_worker worker;
    atomic_bool busy; // a change is under way; the audio thread sets it, the worker clears it
};

// audio.c, the audio thread: never allocates, locks, waits or calls the system.
void audio_reset(struct plugin *plugin);
void audio_run(struct plugin *plugin, uint32_t n);
LV2_Worker_Status audio_receive(LV2_Handle instance, uint32_t size, const void *data);

// Notes the file to load next. text: at most `size` bytes, with or without a terminating zero.
void audio_want(struct plugin *plugin, const char *text, size_t size);

// worker.c
extern const LV2_Worker_Interface worker_interface;
extern const LV2_State_Interface state_interface;

#endif
