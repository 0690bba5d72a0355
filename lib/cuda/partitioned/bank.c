// SPDX-License-Identifier: MIT
// Banks of cuda/partitioned (decision 45): all slots are a stream with a group of channels for each
// slot, but with filters, phases and swaps of their own. A call copies all inputs to the device
// together with the table of slots and the lists of their work, runs five kernels for each quantum,
// copies all outputs back and waits.
#include "slots.h"

#include <assert.h>
#include <string.h>

// The layout of all slots.
static struct cuda_partition_layout bank_layout(const struct partita_bank *bank)
{
    struct cuda_partition_layout layout = cuda_partitioned_of(bank->plan)->layout;
    layout.groups = (int)bank->n_slots;
    layout.inputs *= (int)bank->n_slots;
    layout.outputs *= (int)bank->n_slots;
    assert(layout.group_inputs * layout.groups == layout.inputs);
    assert(layout.latency == 0 && layout.delay == 0);
    return layout;
}

static struct bank_lists layout_lists(size_t n_slots, struct arena *arena)
{
    // Both kinds of a segment have all open slots at most, `finished` those that fade once more.
    const size_t entries = size_mul(n_slots, 3 * CUDA_MAX_SEGMENTS);
    struct bank_lists lists;
    lists.table = arena_take(arena, size_mul(n_slots, sizeof *lists.table));
    lists.entries = arena_take(arena, size_mul(entries, sizeof *lists.entries));
    return lists;
}

static void layout_bank_device(const struct partita_bank *bank, struct cuda_bank *state,
                               struct arena *arena)
{
    const struct partita_plan *plan = bank->plan;
    const struct cuda_partition_layout *layout = &state->layout;
    cuda_memory_layout(plan, layout, &state->memory, arena);
    state->memory.quantum = NULL; // the launch has it
    state->device_x = arena_take(arena, size_mul(bank->n_slots, bank->input_bytes));
    state->device_lists = layout_lists(bank->n_slots, arena);
    state->device_y = arena_take(arena, size_mul(bank->n_slots, bank->output_bytes));
}

static void layout_bank_pinned(struct partita_bank *bank, struct cuda_bank *state,
                               struct arena *arena)
{
    bank->inputs = arena_take(arena, size_mul(bank->n_slots, bank->input_bytes));
    for (size_t i = 0; i < state->n_quanta; i++) {
        const struct bank_lists lists = layout_lists(bank->n_slots, arena);
        if (arena->base) state->lists[i] = lists;
    }
    bank->outputs = arena_take(arena, size_mul(bank->n_slots, bank->output_bytes));
}

static struct cuda_bank *layout_bank_host(const struct partita_bank *bank, struct arena *arena)
{
    struct cuda_bank *state = arena_take(arena, sizeof *state), made = {0};
    made.layout = bank_layout(bank);
    made.n_quanta = bank->plan->shape.block / (size_t)made.layout.quantum;
    made.swap_queues = arena_take(arena, size_mul(bank->n_slots, sizeof *made.swap_queues));
    made.swaps = arena_take(arena, bank->n_slots);
    made.lists = arena_take(arena, size_mul(made.n_quanta, sizeof *made.lists));
    for (int k = 0; k < 2; k++)
        for (int i = 1; i < made.layout.n_segments; i++)
            made.due[k][i] = arena_take(arena, size_mul(bank->n_slots, 2 * sizeof *made.due[k][i]));
    if (state) *state = made;
    return state;
}

static enum partita_status make_bank_memory(struct partita_bank *bank)
{
    const struct partita_plan *plan = bank->plan;
    struct cuda_bank *state = cuda_bank_of(bank);
    struct arena device = {0}, pinned = {0};
    layout_bank_device(bank, state, &device);
    layout_bank_pinned(bank, state, &pinned);
    const enum partita_status status =
        cuda_memory_open(plan, device.used, pinned.used, &state->held);
    if (status != PARTITA_OK) return status;
    device = (struct arena){.base = state->held.device, .size = device.used};
    pinned = (struct arena){.base = state->held.pinned, .size = pinned.used};
    layout_bank_device(bank, state, &device);
    layout_bank_pinned(bank, state, &pinned);
    assert(device.used == device.size && pinned.used == pinned.size);
    memset(state->held.pinned, 0, pinned.used);
    state->held.queue.running = true;
    return CU(plan, cudaMemsetAsync(state->held.device, 0, device.used, state->held.queue.stream));
}

void cuda_bank_close(struct partita_bank *bank)
{
    struct cuda_bank *state = cuda_bank_of(bank);
    struct cuda_scope scope;
    if (!state) return;
    cuda_enter(bank->plan, &scope);
    cuda_memory_close(bank->plan, state->held);
    cuda_leave(&scope);
    mem_release(&bank->plan->allocator, state);
}

// The part of a slot in an array [rows][slots][bytes]; NULL: there is no array.
struct slot_part {
    void *array;
    size_t rows, bytes;
};

// Clears the earlier input of a slot.
static enum partita_status clear_slot(const struct partita_bank *bank, size_t slot)
{
    const struct shape *shape = &bank->plan->shape;
    const struct cuda_partition_memory *memory = &cuda_bank_of(bank)->memory;
    const struct cuda_partition_layout *layout = &cuda_bank_of(bank)->layout;
    const size_t in = (size_t)layout->group_inputs, out = (size_t)layout->group_outputs;
    const size_t window = (size_t)layout->window * shape->sample_bytes;
    struct slot_part part[3 + 3 * CUDA_MAX_SEGMENTS] = {
        {memory->samples, 1, in * window},
        {memory->nonfinite_until, 1, in * sizeof *memory->nonfinite_until},
        {memory->affected_until, 1, in * sizeof *memory->affected_until}};
    size_t n = 3;
    for (int i = 0; i < layout->n_segments; i++) {
        const struct cuda_segment *segment = &layout->segment[i];
        const size_t partitions = (size_t)segment->partitions, quanta = (size_t)segment->quanta;
        const size_t spectrum = (size_t)segment->points * 2 * shape->scalar_bytes;
        const size_t block = (size_t)segment->hop * shape->sample_bytes;
        part[n++] = (struct slot_part){memory->segment[i].spectra, quanta,
                                       in * partitions * spectrum / quanta};
        part[n++] = (struct slot_part){memory->segment[i].sums, 2, out * spectrum};
        part[n++] = (struct slot_part){memory->segment[i].out, 4, out * block};
    }
    enum partita_status status = PARTITA_OK;
    for (const struct slot_part *p = part; p < part + n && status == PARTITA_OK; p++)
        if (p->array)
            status = CU(bank->plan, cudaMemset2DAsync((char *)p->array + slot * p->bytes,
                                                      bank->n_slots * p->bytes, 0, p->bytes,
                                                      p->rows, cuda_thread()->stream));
    return status;
}

// Nothing that is queued uses a free slot.
enum partita_status cuda_bank_open_slot(struct partita_bank *bank, size_t slot)
{
    struct cuda_scope scope;
    const enum partita_status entered = cuda_enter(bank->plan, &scope);
    enum partita_status status = (enum partita_status)atomic_load(&bank->status);
    if (status == PARTITA_OK) status = entered;
    if (status == PARTITA_OK) status = clear_slot(bank, slot);
    if (status == PARTITA_OK) status = cuda_wait(bank->plan);
    cuda_leave(&scope);
    return status == PARTITA_OK || status == PARTITA_ERR_NOMEM ? status : PARTITA_ERR_DEVICE;
}

static bool bank_succeeds(struct partita_bank *bank, enum partita_status status)
{
    return cuda_memory_succeeds(bank->plan, &cuda_bank_of(bank)->held, &bank->status, status);
}

static enum partita_status queue_copy(const struct bank_quantum *now, void *to, const void *from,
                                      size_t bytes)
{
    return cuda_thread()->loads ? PARTITA_OK : cuda_copy(now->bank->plan, to, from, bytes);
}

// The lists of a quantum to the device, those of the first one with the inputs before them.
static enum partita_status queue_lists(const struct bank_quantum *now, bool inputs)
{
    const struct partita_bank *bank = now->bank;
    const struct cuda_bank *state = cuda_bank_of(bank);
    const char *from = inputs ? bank->inputs : (const char *)now->lists.table;
    char *to = inputs ? state->device_x : (char *)state->device_lists.table;
    const char *end = (const char *)(now->lists.entries + now->n_entries);
    assert((const char *)state->lists[0].table - bank->inputs ==
           (const char *)state->device_lists.table - state->device_x);
    return queue_copy(now, to, from, (size_t)(end - from));
}

// All quanta of a call, and the outputs.
static enum partita_status queue_call(struct bank_quantum *now, uint64_t call)
{
    const struct partita_bank *bank = now->bank;
    const struct cuda_bank *state = cuda_bank_of(bank);
    enum partita_status status = PARTITA_OK;
    for (size_t q = 0; q < state->n_quanta && status == PARTITA_OK; q++) {
        cuda_bank_fill_quantum(now, call, q);
        status = queue_lists(now, q == 0);
        if (status == PARTITA_OK)
            status = cuda_partitioned_issue(bank->plan, &state->layout, &state->memory, &now->work);
    }
    if (status != PARTITA_OK) return status;
    return queue_copy(now, bank->outputs, state->device_y, bank->n_slots * bank->output_bytes);
}

// The work of slot 0, which has all kernels of calls.
static enum partita_status queue_one_slot(void *context)
{
    struct bank_quantum now = {.bank = context, .n_open = 1};
    now.bank->open[0] = 0;
    return queue_call(&now, 0);
}

enum partita_status cuda_bank_open(struct partita_bank *bank)
{
    const struct partita_plan *plan = bank->plan;
    struct arena arena = {0};
    layout_bank_host(bank, &arena);
    if (!arena_allocate(&arena, &plan->allocator)) return PARTITA_ERR_NOMEM;
    struct cuda_bank *state = bank->state = layout_bank_host(bank, &arena);
    assert(arena.used == arena.size);
    for (size_t i = 0; i < bank->n_slots; i++) {
        bank->slots[i].swap_queue = &state->swap_queues[i];
        swap_queue_open(bank->slots[i].swap_queue);
    }
    struct cuda_scope scope;
    enum partita_status status = cuda_enter(plan, &scope);
    if (status == PARTITA_OK) status = make_bank_memory(bank);
    if (status == PARTITA_OK) status = cuda_queue_load(queue_one_slot, bank);
    if (status == PARTITA_OK) status = cuda_queue_wait(plan, &state->held.queue);
    cuda_leave(&scope);
    return status;
}

void cuda_bank_process(struct partita_bank *bank, uint64_t call, size_t n_open, size_t n_closing)
{
    struct bank_quantum now = {.bank = bank, .n_open = n_open, .n_closing = n_closing};
    if (n_open + n_closing == 0) return;
    bool good = atomic_load(&bank->status) == PARTITA_OK;
    struct cuda_queue *queue = &cuda_bank_of(bank)->held.queue;
    struct cuda_scope scope;
    if (good) {
        good = bank_succeeds(bank, cuda_enter(bank->plan, &scope));
        queue->running = true;
        cuda_queue_use(queue);
        good = good && bank_succeeds(bank, queue_call(&now, call)) &&
               bank_succeeds(bank, cuda_queue_wait(bank->plan, queue));
        cuda_leave(&scope);
    }
    if (good) cuda_bank_settle(&now);
    else cuda_bank_settle_failed(bank, n_open, n_closing);
}
