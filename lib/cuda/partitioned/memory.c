// SPDX-License-Identifier: MIT
#include "partitioned.h"

#include <assert.h>

#include "base/sizes.h"

enum partita_status cuda_memory_open(const struct partita_plan *plan, size_t device_bytes,
                                     size_t pinned_bytes, struct cuda_stream_memory *ret_memory)
{
    struct cuda_stream_memory memory = {0};
    enum partita_status status = cuda_queue_open(plan, &memory.queue);
    if (status == PARTITA_OK) status = cuda_pin(plan, pinned_bytes, &memory.pinned);
    if (status == PARTITA_OK) status = cuda_allocate(plan, device_bytes, &memory.device);
    if (status == PARTITA_OK) status = cuda_wait(plan); // it comes from another queue
    if (status == PARTITA_OK) *ret_memory = memory;
    else cuda_memory_close(plan, memory);
    return status;
}

void cuda_memory_close(const struct partita_plan *plan, struct cuda_stream_memory memory)
{
    cuda_queue_close(plan, &memory.queue);
    cuda_release(plan, memory.device);
    cuda_unpin(plan, memory.pinned);
}

void cuda_memory_keep(const struct partita_plan *plan, struct cuda_stream_memory *memory)
{
    struct cuda_partitioned *partitioned = plan->state;
    pthread_mutex_lock(&partitioned->lock);
    memory->next = partitioned->idle;
    partitioned->idle = memory;
    pthread_mutex_unlock(&partitioned->lock);
}

struct cuda_stream_memory *cuda_memory_take_idle(const struct partita_plan *plan)
{
    struct cuda_partitioned *partitioned = plan->state;
    pthread_mutex_lock(&partitioned->lock);
    struct cuda_stream_memory *memory = partitioned->idle;
    if (memory) partitioned->idle = memory->next;
    pthread_mutex_unlock(&partitioned->lock);
    return memory;
}

bool cuda_memory_succeeds(const struct partita_plan *plan, struct cuda_stream_memory *memory,
                          atomic_int *ret_status, enum partita_status status)
{
    if (status == PARTITA_OK) return true;
    if (memory->queue.running) cuda_queue_wait(plan, &memory->queue);
    const bool no_memory = status == PARTITA_ERR_NOMEM;
    atomic_store(ret_status, (int)(no_memory ? status : PARTITA_ERR_DEVICE));
    return false;
}

bool cuda_partitioned_succeeds(struct partita_stream *stream, enum partita_status status)
{
    return cuda_memory_succeeds(stream->plan, cuda_stream_of(stream)->held, &stream->status,
                                status);
}

void cuda_memory_layout(const struct partita_plan *plan, const struct cuda_partition_layout *layout,
                        struct cuda_partition_memory *memory, struct arena *arena)
{
    const struct shape *shape = &plan->shape;
    const size_t inputs = (size_t)layout->inputs, outputs = (size_t)layout->outputs;
    const size_t history = (size_t)layout->history;
    const size_t rows = size_mul(2 * (size_t)layout->ring_quanta, outputs);
    const size_t bytes = shape->sample_bytes;
    assert(history % (size_t)layout->quantum == 0 && layout->inputs % layout->groups == 0);
    memory->samples = arena_take(arena, size_mul(inputs, (size_t)layout->window * bytes));
    for (int i = 0; i < layout->n_segments; i++) {
        const struct cuda_segment *segment = &layout->segment[i];
        const size_t spectrum = (size_t)segment->points * 2 * shape->scalar_bytes;
        const size_t block = (size_t)segment->hop * bytes;
        memory->segment[i].spectra =
            arena_take(arena, size_mul(inputs * (size_t)segment->partitions, spectrum));
        memory->segment[i].sums = arena_take(arena, size_mul(2 * outputs, spectrum));
        memory->segment[i].out = i ? arena_take(arena, size_mul(4 * outputs, block)) : NULL;
    }
    memory->position = arena_take(arena, sizeof *memory->position);
    memory->nonfinite_until = arena_take(arena, inputs * sizeof *memory->nonfinite_until);
    memory->affected_until = arena_take(arena, inputs * sizeof *memory->affected_until);
    memory->nonfinite = arena_take(arena, size_mul(inputs, history));
    memory->x = arena_take(arena, size_mul(inputs, history * bytes));
    memory->y = arena_take(arena, size_mul(rows, (size_t)layout->quantum * bytes));
    if (arena->base) memory->quantum = &memory->position->quantum;
}

enum partita_status cuda_partitioned_issue(const struct partita_plan *plan,
                                           const struct cuda_partition_layout *layout,
                                           const struct cuda_partition_memory *memory,
                                           const struct cuda_step_work *work)
{
    enum partita_status status = CU(plan, cuda_frames_take(layout, memory, &work->step, &work->x));
    if (status == PARTITA_OK)
        status = CU(plan, cuda_partitioned_launch(layout, memory, &work->launch));
    return status == PARTITA_OK ? CU(plan, cuda_frames_emit(layout, memory, &work->step, &work->y))
                                : status;
}
