// SPDX-License-Identifier: MIT
// See frame_queue.h.
#include "frame_queue.h"

#include "memory.h"

bool frame_queue_open(struct frame_queue *queue, size_t n_buffers, size_t bytes)
{
    *queue = (struct frame_queue){
        .bytes = bytes, .n_buffers = n_buffers, .memory = memory_allocate(n_buffers * bytes)};
    if (!queue->memory) return false;
    pthread_mutex_init(&queue->mutex, NULL);
    pthread_cond_init(&queue->changed, NULL);
    return true;
}

void frame_queue_close(struct frame_queue *queue)
{
    if (!queue->memory) return;
    pthread_mutex_destroy(&queue->mutex);
    pthread_cond_destroy(&queue->changed);
    memory_free(queue->memory);
    queue->memory = NULL;
}

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

void frame_queue_end(struct frame_queue *queue)
{
    frame_queue_update(queue, NULL, &queue->ended);
}

void *frame_queue_front(struct frame_queue *queue, size_t *ret_n)
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

void frame_queue_pop(struct frame_queue *queue)
{
    frame_queue_update(queue, &queue->n_popped, NULL);
}

void frame_queue_cancel(struct frame_queue *queue)
{
    frame_queue_update(queue, NULL, &queue->cancelled);
}
