// SPDX-License-Identifier: MIT
#include "pass_threads.h"

#include "base/memory.h"
#include "base/thread_start.h"

enum { BUFFERS_IN = FRAME_QUEUE_MAX_BUFFERS, BUFFERS_OUT = 4 };

// False: out of memory. frame_queue_close is called when both threads are done with it, and accepts
// a zeroed struct.
static bool frame_queue_open(struct frame_queue *queue, size_t n_buffers, size_t bytes)
{
    *queue = (struct frame_queue){
        .bytes = bytes, .n_buffers = n_buffers, .memory = memory_allocate(n_buffers * bytes)};
    if (!queue->memory) return false;
    pthread_mutex_init(&queue->mutex, NULL);
    pthread_cond_init(&queue->changed, NULL);
    return true;
}

static void frame_queue_close(struct frame_queue *queue)
{
    if (!queue->memory) return;
    pthread_mutex_destroy(&queue->mutex);
    pthread_cond_destroy(&queue->changed);
    memory_free(queue->memory);
    queue->memory = NULL;
}

// Sender: waits for a free buffer, and returns the same one until something is pushed; NULL if the
// receiver has cancelled.
static void *frame_queue_next_buffer(struct frame_queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    while (!queue->cancelled && queue->n_pushed - queue->n_popped == queue->n_buffers)
        pthread_cond_wait(&queue->changed, &queue->mutex);
    void *buffer =
        queue->cancelled ? NULL : queue->memory + queue->n_pushed % queue->n_buffers * queue->bytes;
    pthread_mutex_unlock(&queue->mutex);
    return buffer;
}

// Counts a buffer that was pushed or popped, or sets `ended`: nothing follows, or `cancelled`: no
// more frames are wanted.
static void frame_queue_update(struct frame_queue *queue, uint64_t *counter, bool *flag)
{
    pthread_mutex_lock(&queue->mutex);
    if (counter) ++*counter;
    if (flag) *flag = true;
    pthread_cond_signal(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
}

// `frames` lie in that buffer, or in memory of the sender that stays valid until they are popped.
static void frame_queue_push(struct frame_queue *queue, void *frames, size_t n)
{
    queue->full[queue->n_pushed % queue->n_buffers].frames = frames;
    queue->full[queue->n_pushed % queue->n_buffers].n = n;
    frame_queue_update(queue, &queue->n_pushed, NULL);
}

// Receiver: waits for frames and returns them, NULL at the end; they stay valid until pop.
static void *frame_queue_front(struct frame_queue *queue, size_t *ret_n)
{
    void *frames = NULL;
    pthread_mutex_lock(&queue->mutex);
    while (!queue->ended && queue->n_pushed == queue->n_popped)
        pthread_cond_wait(&queue->changed, &queue->mutex);
    if (queue->n_pushed != queue->n_popped) {
        frames = queue->full[queue->n_popped % queue->n_buffers].frames;
        *ret_n = queue->full[queue->n_popped % queue->n_buffers].n;
    }
    pthread_mutex_unlock(&queue->mutex);
    return frames;
}

static void *read_ahead(void *context)
{
    struct pass_input *in = context;
    uint64_t left = in->wanted;
    while (left) {
        void *buffer = frame_queue_next_buffer(&in->queue);
        size_t n = left < in->chunk ? (size_t)left : in->chunk;
        if (!buffer) break;
        in->failed = !audio_read(in->reader, in->type, buffer, n, &n, &in->fault);
        if (in->failed || !n) break;
        if (left != SIZE_UNKNOWN) left -= n;
        frame_queue_push(&in->queue, buffer, n);
    }
    frame_queue_update(&in->queue, NULL, &in->queue.ended);
    return NULL;
}

bool pass_input_begin(struct pass_input *input, size_t frame_bytes)
{
    if (!frame_queue_open(&input->queue, BUFFERS_IN, input->chunk * frame_bytes)) return false;
    input->running = thread_start(&input->thread, read_ahead, input);
    if (!input->running) frame_queue_close(&input->queue);
    return input->running;
}

bool pass_input_next(struct pass_input *input, void **ret_frames, size_t *ret_n,
                     struct fault *fault)
{
    if (*ret_frames) frame_queue_update(&input->queue, &input->queue.n_popped, NULL);
    *ret_frames = frame_queue_front(&input->queue, ret_n);
    if (*ret_frames) return true;
    *ret_n = 0;
    if (input->failed) *fault = input->fault; // set before the queue was ended
    return !input->failed;
}

void pass_input_end(struct pass_input *input)
{
    if (!input->running) return;
    frame_queue_update(&input->queue, NULL, &input->queue.cancelled);
    pthread_join(input->thread, NULL);
    input->running = false;
    frame_queue_close(&input->queue);
}

bool pass_output_write(const struct pass_output *out, const void *results, size_t n,
                       struct fault *fault)
{
    const struct pass_rows *rows = &out->rows;
    if (!rows->buffer) return shard_write(out->shard, out->writer, out->type, results, n, fault);
    for (size_t at = 0, m; at < n; at += m) {
        m = n - at < rows->n ? n - at : rows->n;
        frames_interleave(rows->buffer, (const char *)results + at * rows->shape.bytes,
                          &rows->shape, m);
        if (!shard_write(out->shard, out->writer, out->type, rows->buffer, m, fault)) return false;
    }
    return true;
}

static void *write_behind(void *context)
{
    struct pass_output *out = context;
    size_t n = 0;
    for (void *frames; (frames = frame_queue_front(&out->queue, &n));
         frame_queue_update(&out->queue, &out->queue.n_popped, NULL)) {
        out->failed = !pass_output_write(out, frames, n, &out->fault);
        if (out->failed) break;
    }
    if (out->failed) frame_queue_update(&out->queue, NULL, &out->queue.cancelled);
    return NULL;
}

bool pass_output_begin(struct pass_output *output, size_t frame_bytes, size_t capacity)
{
    const size_t buffers = output->n_kept ? output->n_kept : BUFFERS_OUT;
    if (!frame_queue_open(&output->queue, buffers, output->n_kept ? 1 : capacity * frame_bytes))
        return false;
    output->running = thread_start(&output->thread, write_behind, output);
    if (!output->running) frame_queue_close(&output->queue);
    return output->running;
}

void *pass_output_buffer(struct pass_output *output)
{
    return frame_queue_next_buffer(&output->queue);
}

void pass_output_send(struct pass_output *output, void *frames, size_t n)
{
    frame_queue_push(&output->queue, frames, n);
}

bool pass_output_end(struct pass_output *output, bool good, struct fault *fault)
{
    if (!output->running) return good;
    frame_queue_update(&output->queue, NULL, &output->queue.ended);
    pthread_join(output->thread, NULL);
    output->running = false;
    frame_queue_close(&output->queue);
    // If writing failed, that is why the pass ended.
    if (output->failed) *fault = output->fault;
    return good && !output->failed;
}
