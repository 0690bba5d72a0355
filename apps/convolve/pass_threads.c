// SPDX-License-Identifier: MIT
#include "pass_threads.h"

#include "base/memory.h"
#include "base/thread_start.h"
#include "pass.h"

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
    struct pass *p = context;
    uint64_t left = p->wanted;
    while (left) {
        void *buffer = frame_queue_next_buffer(&p->input);
        size_t n = left < p->chunk ? (size_t)left : p->chunk;
        if (!buffer) break;
        p->input.failed = !audio_read(p->reader, p->type, buffer, n, &n, &p->input.fault);
        if (p->input.failed || !n) break;
        if (left != SIZE_UNKNOWN) left -= n;
        frame_queue_push(&p->input, buffer, n);
    }
    frame_queue_update(&p->input, NULL, &p->input.ended);
    return NULL;
}

bool pass_input_begin(struct pass *p)
{
    const size_t frame_bytes = p->taps->in_channels * partita_type_size(p->type);
    return frame_queue_begin(&p->input, BUFFERS_IN, p->chunk * frame_bytes, read_ahead, p);
}

bool pass_input_next(struct pass *p, void **ret_frames, size_t *ret_n, struct fault *fault)
{
    if (*ret_frames) frame_queue_update(&p->input, &p->input.n_popped, NULL);
    *ret_frames = frame_queue_front(&p->input, ret_n);
    if (*ret_frames) return true;
    *ret_n = 0;
    if (p->input.failed) *fault = p->input.fault; // set before the queue was ended
    return !p->input.failed;
}

void pass_input_end(struct pass *pass)
{
    frame_queue_end(&pass->input, &pass->input.cancelled);
}

bool pass_output_write(const struct pass *p, const void *results, size_t n, struct fault *fault)
{
    const struct pass_rows *rows = &p->rows;
    if (!rows->buffer) return shard_write(p->shard, p->writer, p->type, results, n, fault);
    for (size_t at = 0, m; at < n; at += m) {
        m = n - at < rows->n ? n - at : rows->n;
        frames_interleave(rows->buffer, (const char *)results + at * rows->shape.bytes,
                          &rows->shape, m);
        if (!shard_write(p->shard, p->writer, p->type, rows->buffer, m, fault)) return false;
    }
    return true;
}

static void *write_behind(void *context)
{
    struct pass *p = context;
    struct frame_queue *queue = &p->output;
    size_t n = 0;
    for (void *frames; (frames = frame_queue_front(queue, &n));
         frame_queue_update(queue, &queue->n_popped, NULL)) {
        queue->failed = !pass_output_write(p, frames, n, &queue->fault);
        if (queue->failed) break;
    }
    if (queue->failed) frame_queue_update(queue, NULL, &queue->cancelled);
    return NULL;
}

bool pass_output_begin(struct pass *p)
{
    const size_t kept = p->n_kept, frame_bytes = p->taps->out_channels * partita_type_size(p->type);
    return frame_queue_begin(&p->output, kept ? kept : BUFFERS_OUT,
                             kept ? 1 : runner_capacity(p->runner, p->chunk) * frame_bytes,
                             write_behind, p);
}

bool pass_output_end(struct pass *pass, bool good, struct fault *fault)
{
    frame_queue_end(&pass->output, &pass->output.ended);
    // If writing failed, that is why the pass ended.
    if (pass->output.failed) *fault = pass->output.fault;
    return good && !pass->output.failed;
}
