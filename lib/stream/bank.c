// SPDX-License-Identifier: MIT
#include "bank.h"

#include <stddef.h>

#include "base/clock.h"
#include "base/sizes.h"

static size_t slot_samples(size_t channels, const struct partita_plan *plan)
{
    return size_mul(size_mul(channels, plan->shape.block), plan->shape.sample_bytes);
}

// Calls after which the work of a stream of this plan repeats: direct sums are the same in each.
// Where slots are computed together their blocks end with calls, so that it is a multiple.
static size_t period_of(const struct partita_plan *plan)
{
    const size_t hop = plan->choice.hop, block = plan->shape.block;
    size_t period = 1;
    if (!plan->choice.transform) return period;
    if (plan->engine->bank.open)
        while (period * block % hop) period *= 2;
    while (period < hop / block) period *= 2;
    return period;
}

// Slots that have the same phase modulo a power of two are neighbours: those whose blocks end in
// the same call are then processed one after the other. Phases are as many as the period, or spread
// over it, in the order of their reversed bits.
static size_t phase_of(const struct partita_bank *bank, size_t i)
{
    const size_t from = (size_t)((double)i * (double)bank->period / (double)bank->n_slots);
    size_t phase = 0;
    for (size_t m = 1; m < bank->period; m *= 2)
        if (from & (bank->period / 2 / m)) phase += m;
    return phase;
}

// All memory of the bank, so that it has large pages.
static struct partita_bank *layout_bank(struct partita_plan *plan, size_t n_slots,
                                        struct arena *arena)
{
    const struct shape *shape = &plan->shape;
    const bool by_engine = plan->engine->bank.open;
    struct partita_bank made = {.plan = plan, .n_slots = n_slots, .period = period_of(plan)};
    struct partita_bank *bank = arena_take(arena, sizeof *bank);
    made.input_bytes = mem_round(slot_samples(shape->in_channels, plan));
    made.output_bytes = mem_round(slot_samples(shape->out_channels, plan));
    made.slots = arena_take(arena, size_mul(n_slots, sizeof *made.slots));
    made.states = arena_take(arena, size_mul(n_slots, sizeof *made.states));
    made.open = arena_take(arena, size_mul(n_slots, sizeof *made.open));
    if (!by_engine) {
        made.inputs = arena_take(arena, size_mul(n_slots, made.input_bytes));
        made.outputs = arena_take(arena, size_mul(n_slots, made.output_bytes));
        made.x = arena_take(arena, shape->in_channels * sizeof *made.x);
        made.y = arena_take(arena, 2 * shape->out_channels * sizeof *made.y);
    }
    if (bank) *bank = made;
    for (size_t i = 0; i < n_slots; i++) {
        struct partita_stream *stream = by_engine ? NULL : stream_layout(plan, arena);
        if (!bank) continue;
        struct bank_slot *slot = &bank->slots[i];
        slot->stream = stream;
        if (stream) slot->swap_queue = &stream->swap_queue;
        slot->phase = phase_of(bank, i);
        atomic_init(&bank->states[i], BANK_FREE);
    }
    return bank;
}

enum partita_status bank_create(struct partita_plan *plan, size_t n_slots, double sample_rate,
                                struct partita_bank **ret_bank)
{
    struct arena arena = {0};
    layout_bank(plan, n_slots, &arena);
    if (!arena_allocate(&arena, &plan->allocator)) return PARTITA_ERR_NOMEM;
    struct partita_bank *bank = layout_bank(plan, n_slots, &arena);
    assert(arena.used == arena.size);
    bank->ahead = plan->engine->stream.prefetch && n_slots > BANK_AHEAD ? BANK_AHEAD : 0;
    bank->deadline = sample_rate > 0 ? (double)plan->shape.block / sample_rate : 0;
    assert(plan->engine->bank.open || plan->device->host);
    const enum partita_status status =
        plan->engine->bank.open ? plan->engine->bank.open(bank) : PARTITA_OK;
    if (status == PARTITA_OK) *ret_bank = bank;
    else bank_destroy(bank);
    return status;
}

void bank_destroy(struct partita_bank *bank)
{
    if (!bank) return;
    if (bank->plan->engine->bank.close) bank->plan->engine->bank.close(bank);
    mem_release(&bank->plan->allocator, bank);
}

struct slot_range {
    size_t first, end, n_free;
};

static struct slot_range count_range(const struct partita_bank *bank, size_t first, size_t end)
{
    struct slot_range range = {first, end, 0};
    for (size_t i = first; i < end; i++) range.n_free += bank_slot_state(bank, i) == BANK_FREE;
    return range;
}

// A free slot whose phase as few open slots as possible have, modulo any power of two: segments of
// every length then begin their blocks in turn. Slots of a phase modulo a power of two are
// neighbours, so this halves the range of slots. Returns n_slots if no slot is free.
static size_t choose_slot(const struct partita_bank *bank)
{
    struct slot_range range = count_range(bank, 0, bank->n_slots);
    if (range.n_free == 0) return bank->n_slots;
    for (size_t m = 1; m < bank->period; m *= 2) {
        size_t middle = range.first;
        while (middle < range.end && !(bank->slots[middle].phase & m)) middle++;
        const struct slot_range low = count_range(bank, range.first, middle),
                                high = count_range(bank, middle, range.end);
        const size_t low_used = middle - range.first - low.n_free,
                     high_used = range.end - middle - high.n_free;
        const bool take_high = high.n_free && (!low.n_free || high_used < low_used);
        range = take_high ? high : low;
    }
    while (bank_slot_state(bank, range.first) != BANK_FREE) range.first++;
    return range.first;
}

// A block of a slot, which is processed or opened by this thread.
static struct frames slot_frames(const struct partita_bank *bank, size_t slot, bool opening)
{
    const struct shape *shape = &bank->plan->shape;
    const size_t channel = slot_samples(1, bank->plan);
    void **y = bank->y + (opening ? shape->out_channels : 0);
    for (size_t c = 0; !opening && c < shape->in_channels; c++)
        bank->x[c] = bank->inputs + slot * bank->input_bytes + c * channel;
    for (size_t k = 0; k < shape->out_channels; k++)
        y[k] = bank->outputs + slot * bank->output_bytes + k * channel;
    return (struct frames){
        .y = y, .y_stride = 1, .x = opening ? NULL : bank->x, .x_stride = 1, .n = shape->block};
}

// One more block of silence, and one call later.
static void delay_start(struct partita_bank *bank, size_t i)
{
    struct bank_slot *slot = &bank->slots[i];
    struct frames frames = slot_frames(bank, i, true);
    stream_feed(slot->stream, &frames);
    atomic_fetch_add_explicit(&slot->lead, 1, memory_order_relaxed);
    slot->start++;
}

// The next call, and the blocks of silence before it.
static size_t begin_lead(const struct partita_bank *bank, struct bank_slot *slot)
{
    const uint64_t next = atomic_load_explicit(&bank->next_call, memory_order_acquire);
    slot->start = next;
    return (size_t)(slot->phase + next) % bank->period;
}

// A stream that is in the middle of its blocks when the bank reaches call slot->start.
static void prepare_stream(struct partita_bank *bank, size_t i_slot,
                           const struct partita_filter *filter)
{
    struct bank_slot *slot = &bank->slots[i_slot];
    stream_reset(slot->stream); // completes a swap that was cut off, hence before the filter
    swap_queue_open(&slot->stream->swap_queue);
    slot->stream->filter = filter;
    const size_t lead = begin_lead(bank, slot);
    atomic_store_explicit(&slot->lead, 0, memory_order_relaxed);
    slot->start -= lead;
    for (size_t i = 0; i < lead; i++) delay_start(bank, i_slot);
    // The bank goes on meanwhile. One whose calls are shorter than a block of silence cannot be
    // caught up with; then only the balance of phases suffers.
    for (size_t i = 0; i < bank->period; i++) {
        if (slot->start >= atomic_load_explicit(&bank->next_call, memory_order_acquire)) break;
        delay_start(bank, i_slot);
    }
}

// A slot of an engine, which needs no silence. If the bank has gone on before it is handed over,
// the first call counts its delay.
static enum partita_status prepare_slot(struct partita_bank *bank, size_t i,
                                        const struct partita_filter *filter)
{
    struct bank_slot *slot = &bank->slots[i];
    const enum partita_status status = bank->plan->engine->bank.open_slot(bank, i);
    swap_queue_open(slot->swap_queue);
    slot->filter = filter;
    slot->unseen = true;
    atomic_store_explicit(&slot->posted, false, memory_order_relaxed);
    atomic_store_explicit(&slot->lead, begin_lead(bank, slot), memory_order_relaxed);
    return status;
}

enum partita_status bank_open(struct partita_bank *bank, const struct partita_filter *filter,
                              size_t *ret_slot)
{
    const size_t i = choose_slot(bank);
    if (i == bank->n_slots) return PARTITA_ERR_STATE;
    struct bank_slot *slot = &bank->slots[i];
    memset(bank->inputs + i * bank->input_bytes, 0, bank->input_bytes);
    if (slot->stream) {
        memset(bank->outputs + i * bank->output_bytes, 0, bank->output_bytes);
        prepare_stream(bank, i, filter);
    } else {
        const enum partita_status status = prepare_slot(bank, i, filter);
        if (status != PARTITA_OK) return status;
    }
    atomic_store_explicit(&bank->states[i], BANK_OPEN, memory_order_release);
    *ret_slot = i;
    return PARTITA_OK;
}

void bank_close(struct partita_bank *bank, size_t slot)
{
    assert(bank_slot_state(bank, slot) == BANK_OPEN);
    atomic_store_explicit(&bank->states[slot], BANK_CLOSING, memory_order_release);
}

void bank_swap(struct partita_bank *bank, size_t slot, const struct partita_filter *filter,
               size_t fade)
{
    assert(bank_slot_state(bank, slot) == BANK_OPEN);
    swap_queue_post(bank->slots[slot].swap_queue, filter, fade);
    atomic_store_explicit(&bank->slots[slot].posted, true, memory_order_release);
}

// Lists the slots that a call processes, and after them those that were closed. One that opens
// during this call, or as it begins, waits for the next one.
static size_t list_slots(struct partita_bank *bank, uint64_t call, size_t *ret_closing)
{
    size_t n = 0, end = bank->n_slots;
    for (size_t i = 0; i < bank->n_slots; i++) {
        const enum bank_state state = bank_slot_state(bank, i);
        if (state == BANK_OPEN && bank->slots[i].start <= call) bank->open[n++] = i;
        else if (state == BANK_CLOSING) bank->open[--end] = i;
    }
    *ret_closing = bank->n_slots - end;
    memmove(bank->open + n, bank->open + end, *ret_closing * sizeof *bank->open);
    return n;
}

// Begins to fetch a slot that is processed `ahead` slots later; the struct of its stream first.
static void prefetch_slot(const struct partita_bank *bank, size_t slot, int ahead)
{
    const struct partita_stream *stream = bank->slots[slot].stream;
    if (ahead < BANK_AHEAD) {
        bank->plan->engine->stream.prefetch(stream, ahead);
        return;
    }
    for (size_t at = 0; at < offsetof(struct partita_stream, stats); at += MEM_ALIGN)
        __builtin_prefetch((const char *)stream + at, 0, 2);
}

static void feed_streams(struct partita_bank *bank, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct bank_slot *slot = &bank->slots[bank->open[i]];
        for (size_t ahead = size_min(bank->ahead, n - 1 - i); ahead > 0; ahead--)
            prefetch_slot(bank, bank->open[i + ahead], (int)ahead);
        slot->stream->next = i + 1 < n ? bank->slots[bank->open[i + 1]].stream : NULL;
        struct frames frames = slot_frames(bank, bank->open[i], false);
        stream_feed(slot->stream, &frames);
        slot->stream->next = NULL; // which may be closed, and opened anew, after this call
    }
}

void bank_process(struct partita_bank *bank)
{
    const double begin = bank->deadline > 0 ? clock_seconds() : 0;
    const uint64_t call = atomic_load_explicit(&bank->next_call, memory_order_relaxed);
    size_t n_closing;
    atomic_store_explicit(&bank->next_call, call + 1, memory_order_release);
    const size_t n = list_slots(bank, call, &n_closing);
    if (bank->plan->engine->bank.process)
        bank->plan->engine->bank.process(bank, call, n, n_closing);
    else feed_streams(bank, n);
    for (size_t i = n; i < n + n_closing; i++)
        atomic_store_explicit(&bank->states[bank->open[i]], BANK_FREE, memory_order_release);
    if (begin > 0) stats_count(&bank->stats, clock_seconds() - begin, bank->deadline);
}
