// SPDX-License-Identifier: MIT
// Files, signals and whole runs for tests of the plug-ins.
#ifndef PARTITA_TEST_LV2_RIG_H
#define PARTITA_TEST_LV2_RIG_H

#include "lv2_host.h"
#include "support/test.h"

enum { MAX_PORTS = 16, RIG_FRAMES = 24000, RIG_RATE = 48000, RIG_FADE = 2400 };

// A path in the folder of this test program, which is removed at its end.
const char *rig_path(const char *name, char path[HOST_PATH]);

// Writes taps [channels][n] as a WAV of floats.
void rig_write_taps(const char *name, const float *taps, size_t channels, size_t n, uint32_t rate);

// Writes a WAV of one channel of n random taps with a sum of squares of about 1.
void rig_write_random(const char *name, size_t n, struct random *random);

// Writes the state of a plug-in with that file into a folder of that name.
void rig_write_state(const char *name, const char *uri, const char *file);

// The signals of a run: planes of RIG_FRAMES samples for each port.
struct rig_signal {
    float *x[MAX_PORTS], *y[MAX_PORTS];
};

// x: random.
void rig_signal_open(struct rig_signal *signal, struct random *random);
void rig_signal_close(struct rig_signal *signal);

// Runs frames [first, end) in calls of random length, sometimes 0. After each call the waiting work
// is executed if `work`.
void rig_run(struct host *host, struct rig_signal *signal, size_t first, size_t end, bool work,
             struct random *random);

// A run of RIG_FRAMES of mono with one file from the first frame on, whose input is silence before
// frame `first`.
void rig_run_alone(struct rig_signal *signal, const char *file, size_t first,
                   struct random *random);

#endif
