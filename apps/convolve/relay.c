// SPDX-License-Identifier: MIT
#include "relay.h"

#include <stdlib.h>
#include <string.h>

bool relay_open(struct relay *relay, size_t slots, size_t bytes)
{
    *relay = (struct relay){.bytes = bytes, .slots = slots, .memory = malloc(slots * bytes)};
    if (!relay->memory) return false;
    pthread_mutex_init(&relay->mutex, NULL);
    pthread_cond_init(&relay->changed, NULL);
    return true;
}

void relay_close(struct relay *relay)
{
    if (!relay->memory) return;
    pthread_mutex_destroy(&relay->mutex);
    pthread_cond_destroy(&relay->changed);
    free(relay->memory);
    relay->memory = NULL;
}

void *relay_room(struct relay *relay)
{
    pthread_mutex_lock(&relay->mutex);
    while (!relay->stopped && relay->n_sent - relay->n_done == relay->slots)
        pthread_cond_wait(&relay->changed, &relay->mutex);
    void *room =
        relay->stopped ? NULL : relay->memory + relay->n_sent % relay->slots * relay->bytes;
    pthread_mutex_unlock(&relay->mutex);
    return room;
}

static void change(struct relay *relay, uint64_t *counter, bool *flag)
{
    pthread_mutex_lock(&relay->mutex);
    if (counter) ++*counter;
    if (flag) *flag = true;
    pthread_cond_signal(&relay->changed);
    pthread_mutex_unlock(&relay->mutex);
}

void relay_send(struct relay *relay, void *frames, size_t n)
{
    relay->sent[relay->n_sent % relay->slots].frames = frames;
    relay->sent[relay->n_sent % relay->slots].n = n;
    change(relay, &relay->n_sent, NULL);
}

void relay_end(struct relay *relay)
{
    change(relay, NULL, &relay->ended);
}

void *relay_next(struct relay *relay, size_t *ret_n)
{
    void *frames = NULL;
    pthread_mutex_lock(&relay->mutex);
    while (!relay->ended && relay->n_sent == relay->n_done)
        pthread_cond_wait(&relay->changed, &relay->mutex);
    if (relay->n_sent != relay->n_done) {
        frames = relay->sent[relay->n_done % relay->slots].frames;
        *ret_n = relay->sent[relay->n_done % relay->slots].n;
    }
    pthread_mutex_unlock(&relay->mutex);
    return frames;
}

void relay_done(struct relay *relay)
{
    change(relay, &relay->n_done, NULL);
}

void relay_stop(struct relay *relay)
{
    change(relay, NULL, &relay->stopped);
}
