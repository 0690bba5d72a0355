// SPDX-License-Identifier: MIT
// A bounded queue of buffers of frames from one thread to another. The sender waits for a free
// buffer, the receiver for a full one, and either can end the transfer.
#ifndef PARTITA_APPS_FRAME_QUEUE_H
#define PARTITA_APPS_FRAME_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FRAME_QUEUE_MAX_BUFFERS = 4 };

struct frame_queue {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    char *memory;
    size_t bytes, n_buffers; // bytes: of one buffer
    struct {
        void *frames;
        size_t n;
    } full[FRAME_QUEUE_MAX_BUFFERS];
    uint64_t n_pushed, n_popped;
    bool ended, cancelled;
};

// False: out of memory. frame_queue_close is called when both threads are done with it, and accepts
// a zeroed struct.
bool frame_queue_open(struct frame_queue *queue, size_t n_buffers, size_t bytes);
void frame_queue_close(struct frame_queue *queue);

// Sender: next_buffer waits for a free buffer, and returns the same one until something is pushed;
// NULL if the receiver has cancelled. `frames` to push lie in that buffer, or in
// memory of the sender that stays valid until they are popped. frame_queue_end: nothing follows.
void *frame_queue_next_buffer(struct frame_queue *queue);
void frame_queue_push(struct frame_queue *queue, void *frames, size_t n);
void frame_queue_end(struct frame_queue *queue);

// Receiver: front waits for frames and returns them, NULL at the end; they stay valid until pop.
// frame_queue_cancel: no more frames are wanted.
void *frame_queue_front(struct frame_queue *queue, size_t *ret_n);
void frame_queue_pop(struct frame_queue *queue);
void frame_queue_cancel(struct frame_queue *queue);

#endif
