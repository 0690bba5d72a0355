// SPDX-License-Identifier: MIT
// See segments.h.
#include "segments.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/thread_start.h"

struct segment {
    void *x, *y, *workspace;
    enum partita_status status;
    bool done;
};

static struct segment *segment_at(const struct segments *p, uint64_t index)
{
    return &p->ring[index % p->n_ring];
}

static void filter_segment(const struct segments *p, struct segment *segment)
{
    segment->status = partita_forward(p->plan, p->filter, segment->y, segment->x,
                                      &(struct partita_call){.workspace = segment->workspace});
}

static void *segments_work(void *context)
{
    struct segments *p = context;
    pthread_mutex_lock(&p->mutex);
    for (;;) {
        while (!p->stopped && p->started == p->submitted) pthread_cond_wait(&p->changed, &p->mutex);
        if (p->stopped) break;
        struct segment *segment = segment_at(p, p->started++);
        pthread_mutex_unlock(&p->mutex);
        filter_segment(p, segment);
        pthread_mutex_lock(&p->mutex);
        segment->done = true;
        pthread_cond_broadcast(&p->changed);
    }
    pthread_mutex_unlock(&p->mutex);
    return NULL;
}

static bool segments_allocate(struct segments *p, size_t x_bytes, size_t y_bytes)
{
    const size_t workspace = partita_plan_workspace(p->plan, PARTITA_FORWARD);
    p->ring = calloc(p->n_ring, sizeof *p->ring);
    for (size_t i = 0; p->ring && i < p->n_ring; i++) {
        struct segment *segment = &p->ring[i];
        segment->x = memory_allocate_zeros(x_bytes);
        segment->y = memory_allocate(y_bytes);
        segment->workspace = memory_allocate(workspace);
        if (!segment->x || !segment->y || !segment->workspace) return false;
    }
    return p->ring;
}

bool segments_open(struct segments *segments, const struct partita_plan *plan,
                   const struct partita_filter *filter, size_t x_bytes, size_t y_bytes,
                   size_t workers)
{
    // One per worker, one being filled, and one being taken.
    *segments =
        (struct segments){.plan = plan, .filter = filter, .n_ring = workers ? workers + 2 : 1};
    pthread_mutex_init(&segments->mutex, NULL);
    pthread_cond_init(&segments->changed, NULL);
    bool good = segments_allocate(segments, x_bytes, y_bytes);
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
    for (size_t i = 0; segments->ring && i < segments->n_ring; i++) {
        memory_free(segments->ring[i].x);
        memory_free(segments->ring[i].y);
        memory_free(segments->ring[i].workspace);
    }
    free(segments->ring);
    pthread_cond_destroy(&segments->changed);
    pthread_mutex_destroy(&segments->mutex);
    *segments = (struct segments){0};
}

void *segments_next_input(const struct segments *segments)
{
    return segments_in_flight(segments) == segments->n_ring
               ? NULL
               : segment_at(segments, segments->submitted)->x;
}

void segments_submit(struct segments *segments)
{
    struct segment *segment = segment_at(segments, segments->submitted);
    segment->done = !segments->n_workers;
    if (segment->done) filter_segment(segments, segment);
    pthread_mutex_lock(&segments->mutex);
    segments->submitted++;
    pthread_cond_broadcast(&segments->changed);
    pthread_mutex_unlock(&segments->mutex);
}

enum partita_status segments_take(struct segments *segments, const void **ret_y)
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
