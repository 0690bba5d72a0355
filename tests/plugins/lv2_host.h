// SPDX-License-Identifier: MIT
// An LV2 host for tests, on lilv: it finds the plug-ins in LV2_PATH, connects ports by their
// symbols, and has a worker, a log, events and states. Work is executed when the test says so, or
// by a thread.
#ifndef PARTITA_TEST_LV2_HOST_H
#define PARTITA_TEST_LV2_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HOST_PATH = 4096, HOST_LOG = 8192 };

struct host_request {
    const char *uri;                    // of the plug-in
    double rate;                        // [48000]
    int32_t block;                      // option bufsz:nominalBlockLength [not given]
    bool thread;                        // the worker has a thread
    bool without_map, without_schedule; // features that are not offered
    bool without_event_ports;           // NULL is connected to them
    bool unsized_event_ports;           // they are connected to empty buffers, as PipeWire does
};

struct host;

// NULL if the plug-in refuses to be instantiated; host_last_log then says why. Not activated yet.
struct host *host_open(const struct host_request *request);
void host_close(struct host *host);
void host_activate(struct host *host);
void host_deactivate(struct host *host);

// Delivers answers of the worker and calls run(), under the watch of interpose.h. x and y: a
// pointer for each audio port.
void host_run(struct host *host, float *const *y, float *const *x, uint32_t n);

// Executes the work that is waiting; for hosts without a thread. Returns how many requests it was.
int host_work(struct host *host);

// How many of the next calls of schedule_work and of the respond function are refused.
void host_refuse(struct host *host, int schedules, int answers);

enum host_level { HOST_DRY, HOST_WET, HOST_GAIN };
void host_set_level(struct host *host, enum host_level level, float decibels);
float host_latency(const struct host *host);

// Audio ports for output.
size_t host_outputs(const struct host *host);

// Events of the next call of run(): a file is chosen, or asked for.
void host_choose(struct host *host, const char *path);
void host_ask(struct host *host);

// The file that the plug-in named in its last patch:Set; "": none since the last call. Cleared.
const char *host_take_notified(struct host *host, char path[HOST_PATH]);

// States in folders, by lilv.
void host_save(struct host *host, const char *folder);
void host_restore(struct host *host, const char *folder);

// Restores that file as PipeWire does: a text without a type, without a terminating zero.
void host_restore_text(struct host *host, const char *path);

// All that was logged, by any host, since the last call.
const char *host_take_log(char text[HOST_LOG]);

#endif
