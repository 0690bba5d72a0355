// SPDX-License-Identifier: MIT
// A bank: a table of slots of one plan, which are streams, or which an engine computes together. A
// thread opens, closes and swaps, another one processes; each slot's state says which of the two
// may touch it.
#ifndef PARTITA_INTERNAL_BANK_H
#define PARTITA_INTERNAL_BANK_H

#include <partita/bank.h>

#include "stream.h"

// Who uses a slot's stream: the thread that opens if the slot is free, otherwise the one that
// processes. Either thread hands it over by storing the state.
enum bank_state { BANK_FREE, BANK_OPEN, BANK_CLOSING };

enum { BANK_AHEAD = 4 }; // slots before its own turn that a slot's memory is first fetched

struct bank_slot {
    struct partita_stream *stream;       // NULL if the engine computes slots together; then
    const struct partita_filter *filter; // that it was opened with,
    bool unseen;                         // by the engine since it was opened,
    atomic_bool posted;                  // and there may be something in its queue of swaps
    struct swap_queue *swap_queue;
    uint64_t start;     // number of the call that processes the first block
    atomic_size_t lead; // blocks of silence before that
    size_t phase;       // lead - start, modulo the bank's period; that of the slot for ever
};

struct partita_bank {
    struct partita_plan *plan;
    size_t n_slots;
    struct bank_slot *slots;
    atomic_uchar *states;             // [n_slots] enum bank_state
    char *inputs, *outputs;           // [n_slots], each channel after channel
    const void **x;                   // [in_channels] of the stream that is processed
    void **y;                         // [out_channels] of it, and of the one that is opened
    size_t input_bytes, output_bytes; // of a slot
    size_t period;           // calls after which the work of a slot repeats, a power of two
    size_t *open;            // [n_slots] those that the current call processes, in order, and then
                             // those that it closes
    atomic_ullong next_call; // number of the next call
    size_t ahead;            // BANK_AHEAD, or 0 if nothing is fetched beforehand
    double deadline;         // seconds of a block; 0: calls are not timed
    atomic_int status;       // enum partita_status; set by a call whose device failed
    void *state;             // of an engine that computes slots together
    struct stats stats;
};

// The plan's own sample rate should be 0: slots are not timed one by one.
// Errors: PARTITA_ERR_NOMEM. The plan is not released; bank_destroy accepts NULL.
enum partita_status bank_create(struct partita_plan *plan, size_t n_slots, double sample_rate,
                                struct partita_bank **ret_bank);
void bank_destroy(struct partita_bank *bank);

// Errors of bank_open: PARTITA_ERR_STATE if no slot is free; PARTITA_ERR_DEVICE, and others of an
// engine's bank.open_slot.
enum partita_status bank_open(struct partita_bank *bank, const struct partita_filter *filter,
                              size_t *ret_slot);
void bank_close(struct partita_bank *bank, size_t slot);
void bank_swap(struct partita_bank *bank, size_t slot, const struct partita_filter *filter,
               size_t fade);
void bank_process(struct partita_bank *bank);

static inline enum bank_state bank_slot_state(const struct partita_bank *bank, size_t slot)
{
    return (enum bank_state)atomic_load_explicit(&bank->states[slot], memory_order_acquire);
}

#endif
