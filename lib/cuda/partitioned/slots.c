// SPDX-License-Identifier: MIT
#include "slots.h"

#include <string.h>

#include "schedule.h"

static const struct cuda_partition_layout *partitions_of(const struct partita_bank *bank)
{
    return &cuda_bank_of(bank)->layout;
}

static struct cuda_paths paths_of_filter(const struct partita_filter *filter)
{
    const struct cuda_partitioned_filter *state = filter->state;
    return state->device;
}

// Takes the filter that was posted last.
static void begin_slot_swap(struct bank_quantum *now, size_t i)
{
    struct bank_slot *slot = &now->bank->slots[i];
    if (!atomic_load_explicit(&slot->posted, memory_order_relaxed)) return;
    atomic_exchange_explicit(&slot->posted, false, memory_order_acquire);
    const struct pending_swap *pending = swap_queue_take(slot->swap_queue);
    if (!pending) return;
    const struct cuda_swap swap = {paths_of_filter(pending->filter), pending->fade, 0};
    cuda_slot_begin_swap(partitions_of(now->bank), 1, now->number, &now->lists.table[i], &swap);
    cuda_bank_of(now->bank)->swaps[i] = SLOT_SWAPPING;
}

// Ends a swap whose fade ended before the quantum. If it ended within a quantum, the next one is
// taken at once, as a stream does.
static void end_slot_swap(struct bank_quantum *now, size_t i)
{
    unsigned char *swap = &cuda_bank_of(now->bank)->swaps[i];
    struct cuda_slot *entry = &now->lists.table[i];
    const uint64_t frame = now->number * (uint64_t)partitions_of(now->bank)->quantum;
    if (*swap != SLOT_SWAPPING || entry->fade_end > frame) return;
    const bool within = entry->fade_end < frame;
    *swap = SLOT_SETTLING;
    cuda_slot_end_swap(entry);
    if (within) begin_slot_swap(now, i);
}

// The table's entries of slots that open and close with this call.
static void enter_slots(struct bank_quantum *now, uint64_t call)
{
    struct partita_bank *bank = now->bank;
    struct cuda_bank *state = cuda_bank_of(bank);
    struct cuda_slot empty = {.fade_begin = UINT64_MAX, .fade_end = UINT64_MAX};
    for (size_t k = 0; k < now->n_open + now->n_closing; k++) {
        const size_t i = bank->open[k];
        struct bank_slot *slot = &bank->slots[i];
        if (k < now->n_open && !slot->unseen) continue;
        state->swaps[i] = SLOT_STEADY;
        now->lists.table[i] = empty;
        if (k >= now->n_open) continue;
        slot->unseen = false;
        atomic_fetch_add_explicit(&slot->lead, call - slot->start, memory_order_relaxed);
        now->lists.table[i].phase = (int)(slot->phase * state->n_quanta);
        now->lists.table[i].filter[0] = paths_of_filter(slot->filter);
    }
}

// Appends `n` entries; returns where they will be on the device.
static const uint32_t *append_entries(struct bank_quantum *now, const uint32_t *entries, size_t n)
{
    const size_t first = now->n_entries;
    memcpy(now->lists.entries + first, entries, n * sizeof *entries);
    now->n_entries += n;
    return cuda_bank_of(now->bank)->device_lists.entries + first;
}

// The lists of segment 0, which has work for every slot: closing, open and fading ones.
static void list_all(struct bank_quantum *now)
{
    const struct partita_bank *bank = now->bank;
    const struct cuda_bank *state = cuda_bank_of(bank);
    const uint32_t *device = state->device_lists.entries;
    uint32_t *entries = now->lists.entries;
    size_t n = 0;
    for (size_t k = now->n_open; k < now->n_open + now->n_closing; k++)
        entries[n++] = 2 * (uint32_t)bank->open[k];
    for (size_t k = 0; k < now->n_open; k++) {
        const size_t i = bank->open[k];
        entries[n++] = 2 * (uint32_t)i + (uint32_t)now->lists.table[i].set;
    }
    for (size_t k = 0; k < now->n_open; k++)
        if (state->swaps[bank->open[k]] == SLOT_SWAPPING)
            entries[n++] = entries[now->n_closing + k] ^ 1;
    now->n_entries = n;
    now->n_fading = n - now->n_open - now->n_closing;
    now->work.y.slots = device;
    now->work.y.count =
        (int64_t)(now->n_closing + now->n_open) * partitions_of(bank)->group_outputs;
    now->work.x.slots = now->work.launch.bank.collected[0] = now->work.launch.bank.finished[0] =
        device + now->n_closing;
    now->work.x.count = (int64_t)now->n_open * partitions_of(bank)->group_inputs;
    now->work.launch.collected[0] = (int)now->n_open;
    now->work.launch.finished[0] = (int)(now->n_open + now->n_fading);
}

// The lists of the other segments: the slots whose block is complete, and whose products are.
static void list_due(struct bank_quantum *now)
{
    const struct cuda_partition_layout *layout = partitions_of(now->bank);
    const struct cuda_bank *state = cuda_bank_of(now->bank);
    const uint32_t *open = now->lists.entries + now->n_closing;
    size_t n[2][CUDA_MAX_SEGMENTS] = {{0}};
    for (size_t k = 0; k < now->n_open; k++) {
        const size_t i = open[k] >> 1;
        const uint64_t number = now->number + (uint64_t)now->lists.table[i].phase;
        for (int s = 1; s < layout->n_segments; s++) {
            const uint64_t mask = (uint64_t)layout->segment[s].quanta - 1;
            if (!((number + 1) & mask)) state->due[0][s][n[0][s]++] = open[k];
            if ((number + 2) & mask) continue;
            state->due[1][s][n[1][s]++] = open[k];
            if (state->swaps[i] == SLOT_SWAPPING) state->due[1][s][n[1][s]++] = open[k] ^ 1;
        }
    }
    for (int s = 1; s < layout->n_segments; s++) {
        now->work.launch.bank.collected[s] = append_entries(now, state->due[0][s], n[0][s]);
        now->work.launch.bank.finished[s] = append_entries(now, state->due[1][s], n[1][s]);
        now->work.launch.collected[s] = (int)n[0][s];
        now->work.launch.finished[s] = (int)n[1][s];
    }
}

// All but the lists.
static void describe_quantum(struct bank_quantum *now, size_t index)
{
    const struct partita_bank *bank = now->bank;
    const struct cuda_bank *state = cuda_bank_of(bank);
    const struct cuda_partition_layout *layout = partitions_of(bank);
    const int64_t first = (int64_t)index * layout->quantum,
                  block = (int64_t)bank->plan->shape.block;
    now->work.step = (struct cuda_step){.x_first = first,
                                        .y_first = first,
                                        .n = layout->quantum,
                                        .due = layout->quantum,
                                        .slots = state->device_lists.table,
                                        .frame = now->number * (uint64_t)layout->quantum};
    now->work.x = (struct cuda_channels){
        .base = state->device_x, .pitch = (int64_t)bank->input_bytes, .samples = block};
    now->work.y = (struct cuda_channels){
        .base = state->device_y, .pitch = (int64_t)bank->output_bytes, .samples = block};
    now->work.launch = (struct cuda_partition_launch){.quantum = {.frames = layout->quantum},
                                                      .bank = {.slots = state->device_lists.table}};
    cuda_quantum_begin(layout, now->number, &now->work.launch.quantum);
}

void cuda_bank_fill_quantum(struct bank_quantum *now, uint64_t call, size_t index)
{
    const struct partita_bank *bank = now->bank;
    const struct cuda_bank *state = cuda_bank_of(bank);
    const struct bank_lists before = state->lists[(index ? index : state->n_quanta) - 1];
    now->lists = state->lists[index];
    now->number = call * state->n_quanta + index;
    if (before.table != now->lists.table)
        memcpy(now->lists.table, before.table, bank->n_slots * sizeof *before.table);
    if (index == 0) enter_slots(now, call);
    for (size_t k = 0; k < now->n_open; k++) {
        end_slot_swap(now, bank->open[k]);
        if (state->swaps[bank->open[k]] != SLOT_SWAPPING) begin_slot_swap(now, bank->open[k]);
    }
    describe_quantum(now, index);
    list_all(now);
    list_due(now);
}

void cuda_bank_settle(struct bank_quantum *now)
{
    const struct cuda_bank *state = cuda_bank_of(now->bank);
    now->number++;
    for (size_t k = 0; k < now->n_open; k++) {
        const size_t i = now->bank->open[k];
        end_slot_swap(now, i);
        if (state->swaps[i] != SLOT_SETTLING) continue;
        state->swaps[i] = SLOT_STEADY;
        swap_queue_settle(now->bank->slots[i].swap_queue);
    }
}

void cuda_bank_settle_failed(struct partita_bank *bank, size_t n_open, size_t n_closing)
{
    struct cuda_bank *state = cuda_bank_of(bank);
    for (size_t k = 0; k < n_open + n_closing; k++) {
        const size_t i = bank->open[k];
        if (swap_queue_take(bank->slots[i].swap_queue)) state->swaps[i] = SLOT_SETTLING;
        if (state->swaps[i] != SLOT_STEADY) swap_queue_settle(bank->slots[i].swap_queue);
        state->swaps[i] = SLOT_STEADY;
        memset(bank->outputs + i * bank->output_bytes, 0, bank->output_bytes);
    }
}
