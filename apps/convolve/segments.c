// SPDX-License-Identifier: MIT
#include "segments.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/thread_start.h"

struct segment {
    const void *x;
    void *y;
    enum partita_status status;
    bool done;
};

static struct segment *segment_at(const struct segments *p, uint64_t index)
{
    return &p->ring[index % p->n_ring];
}

static void filter_segment(const struct segments *p, struct segment *segment, void *workspace)
{
    segment->status = partita_forward(p->plan, p->filter, segment->y, segment->x,
                                      &(struct partita_call){.workspace = workspace});
}

static void *segments_work(void *context)
{
    struct segments *p = context;
    pthread_mutex_lock(&p->mutex);
    void *workspace = p->workspaces[p->n_working++];
    for (;;) {
        while (!p->stopped && p->started == p->submitted) pthread_cond_wait(&p->changed, &p->mutex);
        if (p->stopped) break;
        struct segment *segment = segment_at(p, p->started++);
        pthread_mutex_unlock(&p->mutex);
        filter_segment(p, segment, workspace);
        pthread_mutex_lock(&p->mutex);
        segment->done = true;
        pthread_cond_broadcast(&p->changed);
    }
    pthread_mutex_unlock(&p->mutex);
    return NULL;
}

static bool segments_allocate(struct segments *p)
{
    const size_t workspace = partita_plan_workspace(p->plan, PARTITA_FORWARD);
    const size_t workspaces = p->max_workers ? p->max_workers : 1;
    p->ring = calloc(p->n_ring, sizeof *p->ring);
    // Silence precedes the first segment; the others get their history from the one before.
    for (size_t i = 0; i < p->n_inputs; i++) {
        p->inputs[i] = i ? memory_allocate(p->x_bytes) : memory_allocate_zeros(p->x_bytes);
        if (!p->inputs[i]) return false;
    }
    for (size_t i = 0; p->ring && i < p->n_ring; i++)
        if (!(p->ring[i].y = memory_allocate(p->y_bytes))) return false;
    for (size_t i = 0; i < workspaces; i++)
        if (!(p->workspaces[i] = memory_allocate(workspace))) return false;
    return p->ring;
}

bool segments_open(struct segments *segments)
{
    const size_t workers = segments->max_workers;
    segments->n_inputs = workers ? workers + 2 : 1; // one each, one being filled, one being taken
    segments->n_ring = segments->n_inputs + segments->n_kept;
    pthread_mutex_init(&segments->mutex, NULL);
    pthread_cond_init(&segments->changed, NULL);
    bool good = segments_allocate(segments);
    while (good && segments->n_workers < workers) {
        good = thread_start(&segments->workers[segments->n_workers], segments_work, segments);
        if (good) segments->n_workers++;
    }
    if (!good) segments_close(segments);
    return good;
}

void segments_close(struct segments *segments)
{
    if (!segments->n_ring) return;
    pthread_mutex_lock(&segments->mutex);
    segments->stopped = true;
    pthread_cond_broadcast(&segments->changed);
    pthread_mutex_unlock(&segments->mutex);
    while (segments->n_workers) pthread_join(segments->workers[--segments->n_workers], NULL);
    for (size_t i = 0; segments->ring && i < segments->n_ring; i++)
        memory_free(segments->ring[i].y);
    for (size_t i = 0; i < segments->n_inputs; i++) memory_free(segments->inputs[i]);
    for (size_t i = 0; i < SEGMENTS_MAX_WORKERS; i++) memory_free(segments->workspaces[i]);
    free(segments->ring);
    pthread_cond_destroy(&segments->changed);
    pthread_mutex_destroy(&segments->mutex);
    *segments = (struct segments){0};
}

void *segments_next_input(const struct segments *segments)
{
    return segments_in_flight(segments) == segments->n_inputs
               ? NULL
               : segments->inputs[segments->submitted % segments->n_inputs];
}

void segments_submit(struct segments *segments)
{
    struct segment *segment = segment_at(segments, segments->submitted);
    segment->x = segments_next_input(segments);
    segment->done = !segments->n_workers;
    if (segment->done) filter_segment(segments, segment, segments->workspaces[0]);
    pthread_mutex_lock(&segments->mutex);
    segments->submitted++;
    pthread_cond_broadcast(&segments->changed);
    pthread_mutex_unlock(&segments->mutex);
}

enum partita_status segments_take(struct segments *segments, void **ret_y)
{
    struct segment *segment = segment_at(segments, segments->taken);
    pthread_mutex_lock(&segments->mutex);
    while (!segment->done) pthread_cond_wait(&segments->changed, &segments->mutex);
    pthread_mutex_unlock(&segments->mutex);
    segments->taken++;
    *ret_y = segment->y;
    return segment->status;
}

size_t segments_in_flight(const struct segments *segments)
{
    return (size_t)(segments->submitted - segments->taken);
}
