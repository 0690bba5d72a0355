// SPDX-License-Identifier: MIT
#include "pass_threads.h"

#include "base/memory.h"
#include "base/thread_start.h"

enum { BUFFERS_IN = FRAME_QUEUE_MAX_BUFFERS, BUFFERS_OUT = 4 };

void *frame_queue_next_buffer(struct frame_queue *queue)
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

void frame_queue_push(struct frame_queue *queue, void *frames, size_t n)
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

// False: memory or a thread is lacking.
static bool frame_queue_begin(struct frame_queue *queue, size_t n_buffers, size_t bytes,
                              void *(*run)(void *), void *context)
{
    *queue = (struct frame_queue){
        .bytes = bytes, .n_buffers = n_buffers, .memory = memory_allocate(n_buffers * bytes)};
    if (!queue->memory) return false;
    pthread_mutex_init(&queue->mutex, NULL);
    pthread_cond_init(&queue->changed, NULL);
    queue->running = thread_start(&queue->thread, run, context);
    if (!queue->running) memory_free(queue->memory);
    return queue->running;
}

static void frame_queue_end(struct frame_queue *queue, bool *flag)
{
    if (!queue->running) return;
    frame_queue_update(queue, NULL, flag);
    pthread_join(queue->thread, NULL);
    queue->running = false;
    pthread_mutex_destroy(&queue->mutex);
    pthread_cond_destroy(&queue->changed);
    memory_free(queue->memory);
}

static void *read_ahead(void *context)
{
    struct pass_input *in = context;
    uint64_t left = in->wanted;
    while (left) {
        void *buffer = frame_queue_next_buffer(&in->queue);
        size_t n = left < in->chunk ? (size_t)left : in->chunk;
        if (!buffer) break;
        in->queue.failed = !audio_read(in->reader, in->type, buffer, n, &n, &in->queue.fault);
        if (in->queue.failed || !n) break;
        if (left != SIZE_UNKNOWN) left -= n;
        frame_queue_push(&in->queue, buffer, n);
    }
    frame_queue_update(&in->queue, NULL, &in->queue.ended);
    return NULL;
}

bool pass_input_begin(struct pass_input *input, size_t frame_bytes)
{
    return frame_queue_begin(&input->queue, BUFFERS_IN, input->chunk * frame_bytes, read_ahead,
                             input);
}

bool pass_input_next(struct pass_input *input, void **ret_frames, size_t *ret_n,
                     struct fault *fault)
{
    if (*ret_frames) frame_queue_update(&input->queue, &input->queue.n_popped, NULL);
    *ret_frames = frame_queue_front(&input->queue, ret_n);
    if (*ret_frames) return true;
    *ret_n = 0;
    if (input->queue.failed) *fault = input->queue.fault; // set before the queue was ended
    return !input->queue.failed;
}

void pass_input_end(struct pass_input *input)
{
    frame_queue_end(&input->queue, &input->queue.cancelled);
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
        out->queue.failed = !pass_output_write(out, frames, n, &out->queue.fault);
        if (out->queue.failed) break;
    }
    if (out->queue.failed) frame_queue_update(&out->queue, NULL, &out->queue.cancelled);
    return NULL;
}

bool pass_output_begin(struct pass_output *output, size_t frame_bytes, size_t capacity)
{
    const size_t kept = output->n_kept;
    return frame_queue_begin(&output->queue, kept ? kept : BUFFERS_OUT,
                             kept ? 1 : capacity * frame_bytes, write_behind, output);
}

bool pass_output_end(struct pass_output *output, bool good, struct fault *fault)
{
    frame_queue_end(&output->queue, &output->queue.ended);
    // If writing failed, that is why the pass ended.
    if (output->queue.failed) *fault = output->queue.fault;
    return good && !output->queue.failed;
}
