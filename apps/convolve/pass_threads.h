// SPDX-License-Identifier: MIT
// A thread that reads the input ahead of the pass, and one that writes the output after it, so that
// the filter does not wait for copies and disks. Reader and writer make the same calls in the same
// order as without threads, so the results and the progress records are the same. Pipes get no
// threads: there a frame must not wait for others.
#ifndef PARTITA_APPS_PASS_THREADS_H
#define PARTITA_APPS_PASS_THREADS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"

// A bounded queue of buffers of frames from one thread to another. The sender waits for a free
// buffer, the receiver for a full one, and either can end the transfer.
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
    pthread_t thread; // that receives or sends; `failed` and `fault` are its own until it ends
    bool running, failed;
    struct fault fault;
};

// Sender: waits for a free buffer, and returns the same one until something is pushed; NULL if the
// receiver has cancelled.
void *frame_queue_next_buffer(struct frame_queue *queue);

// n frames, which lie in that buffer, or in memory of the sender that stays valid until they are
// popped.
void frame_queue_push(struct frame_queue *queue, void *frames, size_t n);

struct pass;

// Start the threads of a pass; `chunk` must be set, and `rows` and `n_kept`. False if memory or a
// thread is lacking; then the pass continues without them.
bool pass_input_begin(struct pass *pass);
bool pass_output_begin(struct pass *pass);

// The next *ret_n frames, 0 at the end, as the reader returned them; valid until the next call.
// False if reading failed.
bool pass_input_next(struct pass *pass, void **ret_frames, size_t *ret_n, struct fault *fault);

// Writes n results as shard_write does, in this thread.
bool pass_output_write(const struct pass *pass, const void *results, size_t n, struct fault *fault);

// End the threads; then the caller may use reader and writer again. pass_output_end first writes
// what was sent, and returns `good` unless writing failed. Both may be called if no thread was
// started.
void pass_input_end(struct pass *pass);
bool pass_output_end(struct pass *pass, bool good, struct fault *fault);

#endif
