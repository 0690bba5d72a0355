// SPDX-License-Identifier: MIT
// A layer on the stand-in with its arrays in device memory, and a queue of the caller's. One
// subject for each engine and form of its calls.
#ifndef PARTITA_TEST_QUEUED_RIG_H
#define PARTITA_TEST_QUEUED_RIG_H

#include "device/arrays.h"

struct queued_subject {
    const char *name, *engine;
    const struct partita_problem *problem;
    unsigned directions;
    struct partita_parts parts;
};
enum { N_QUEUED_SUBJECTS = 16 };
extern const struct queued_subject queued_subjects[N_QUEUED_SUBJECTS];

// Number of subjects that can run: the last one needs cuFFT.
int queued_subject_count(void);

// A layer with a filter and copies of its arrays in device memory, and a queue.
struct queued {
    const struct queued_subject *subject;
    struct layer layer; // with the results of calls without a queue
    void *array[LAYER_ARRAYS], *workspace;
    cudaStream_t stream;
    struct log_lines lines;
};

// queued_open: runs all directions without a queue, spoils the results on the device, and leaves a
// plan and a filter that have not been used. The kernels are not loaded.
void queued_open(struct queued *q, const struct queued_subject *subject);
void queued_close(struct queued *q);

// Runs all directions of the layer in the device's memory, each with the one workspace, on a queue
// or, if that is NULL, without one.
void queued_run(struct queued *q, void *queue);

// queued_spoil: overwrites the results on the device. queued_check: fails unless they have the bits
// of calls without a queue.
void queued_spoil(struct queued *q);
void queued_check(struct queued *q);

// Fails unless the call was refused, its log line names the array, and nothing was queued.
void queued_refused_as(struct queued *q, enum partita_status status, const char *name);

#endif
