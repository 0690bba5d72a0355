// SPDX-License-Identifier: MIT
#include "pieces.h"

#include <stdlib.h>

#include "base/thread_start.h"

struct piece {
    void *x, *y, *workspace;
    enum partita_status status;
    bool done;
};

static struct piece *piece_at(const struct pieces *p, uint64_t index)
{
    return &p->ring[index % p->n_ring];
}

static void filter(const struct pieces *p, struct piece *piece)
{
    piece->status = partita_forward(p->plan, p->filter, piece->y, piece->x, piece->workspace);
}

static void *work(void *context)
{
    struct pieces *p = context;
    pthread_mutex_lock(&p->mutex);
    for (;;) {
        while (!p->stopped && p->begun == p->sent) pthread_cond_wait(&p->changed, &p->mutex);
        if (p->stopped) break;
        struct piece *piece = piece_at(p, p->begun++);
        pthread_mutex_unlock(&p->mutex);
        filter(p, piece);
        pthread_mutex_lock(&p->mutex);
        piece->done = true;
        pthread_cond_broadcast(&p->changed);
    }
    pthread_mutex_unlock(&p->mutex);
    return NULL;
}

static bool allocate(struct pieces *p, size_t x_bytes, size_t y_bytes)
{
    const size_t workspace = partita_plan_workspace_size(p->plan);
    p->ring = calloc(p->n_ring, sizeof *p->ring);
    for (size_t i = 0; p->ring && i < p->n_ring; i++) {
        struct piece *piece = &p->ring[i];
        piece->x = calloc(1, x_bytes);
        piece->y = malloc(y_bytes);
        piece->workspace = aligned_alloc(64, (workspace + 127) / 64 * 64);
        if (!piece->x || !piece->y || !piece->workspace) return false;
    }
    return p->ring;
}

bool pieces_open(struct pieces *pieces, const struct partita_plan *plan,
                 const struct partita_filter *filter, size_t x_bytes, size_t y_bytes,
                 size_t workers)
{
    // One more than in work is being filled, and one is being taken.
    *pieces = (struct pieces){.plan = plan, .filter = filter, .n_ring = workers ? workers + 2 : 1};
    pthread_mutex_init(&pieces->mutex, NULL);
    pthread_cond_init(&pieces->changed, NULL);
    bool good = allocate(pieces, x_bytes, y_bytes);
    while (good && pieces->n_workers < workers) {
        good = thread_start(&pieces->workers[pieces->n_workers], work, pieces);
        if (good) pieces->n_workers++;
    }
    if (!good) pieces_close(pieces);
    return good;
}

void pieces_close(struct pieces *pieces)
{
    if (!pieces->n_ring) return;
    pthread_mutex_lock(&pieces->mutex);
    pieces->stopped = true;
    pthread_cond_broadcast(&pieces->changed);
    pthread_mutex_unlock(&pieces->mutex);
    while (pieces->n_workers) pthread_join(pieces->workers[--pieces->n_workers], NULL);
    for (size_t i = 0; pieces->ring && i < pieces->n_ring; i++) {
        free(pieces->ring[i].x);
        free(pieces->ring[i].y);
        free(pieces->ring[i].workspace);
    }
    free(pieces->ring);
    pthread_cond_destroy(&pieces->changed);
    pthread_mutex_destroy(&pieces->mutex);
    *pieces = (struct pieces){0};
}

void *pieces_room(const struct pieces *pieces)
{
    return pieces_in_work(pieces) == pieces->n_ring ? NULL : piece_at(pieces, pieces->sent)->x;
}

void pieces_send(struct pieces *pieces)
{
    struct piece *piece = piece_at(pieces, pieces->sent);
    piece->done = !pieces->n_workers;
    if (piece->done) filter(pieces, piece);
    pthread_mutex_lock(&pieces->mutex);
    pieces->sent++;
    pthread_cond_broadcast(&pieces->changed);
    pthread_mutex_unlock(&pieces->mutex);
}

enum partita_status pieces_take(struct pieces *pieces, const void **ret_y)
{
    struct piece *piece = piece_at(pieces, pieces->taken);
    pthread_mutex_lock(&pieces->mutex);
    while (!piece->done) pthread_cond_wait(&pieces->changed, &pieces->mutex);
    pthread_mutex_unlock(&pieces->mutex);
    pieces->taken++;
    *ret_y = piece->y;
    return piece->status;
}

size_t pieces_in_work(const struct pieces *pieces)
{
    return (size_t)(pieces->sent - pieces->taken);
}
