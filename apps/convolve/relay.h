// SPDX-License-Identifier: MIT
// Blocks of frames from one thread to another, through a few buffers: the sender waits for an empty
// one, the receiver for a full one, and either may say that there will be no more.
#ifndef PARTITA_APPS_RELAY_H
#define PARTITA_APPS_RELAY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RELAY_MOST = 4 };

struct relay {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    char *memory;
    size_t bytes, slots; // of a buffer; buffers
    struct {
        void *frames;
        size_t n;
    } sent[RELAY_MOST];
    uint64_t n_sent, n_done;
    bool ended, stopped;
};

// False without memory. relay_close releases it when both threads are done; safe on zeros.
bool relay_open(struct relay *relay, size_t slots, size_t bytes);
void relay_close(struct relay *relay);

// Sender: an empty buffer, the same one until something is sent; NULL once the receiver has
// stopped. What is sent lies in it. Nothing more after relay_end.
void *relay_room(struct relay *relay);
void relay_send(struct relay *relay, void *frames, size_t n);
void relay_end(struct relay *relay);

// Receiver: the next frames, NULL at the end; they are the receiver's until relay_done. relay_stop:
// no more wanted.
void *relay_next(struct relay *relay, size_t *ret_n);
void relay_done(struct relay *relay);
void relay_stop(struct relay *relay);

#endif
