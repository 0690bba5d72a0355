// SPDX-License-Identifier: MIT
// The slots of a bank of cuda/partitioned: their table, their swaps, and the lists of those that
// have work in a quantum.
#ifndef PARTITA_CUDA_SLOTS_H
#define PARTITA_CUDA_SLOTS_H

#include "partitioned.h"
#include "stream/bank.h"

// A slot's swap. SLOT_SWAPPING: the table has its filter; SLOT_SETTLING: it is complete, and the
// queue does not know yet.
enum slot_swap { SLOT_STEADY, SLOT_SWAPPING, SLOT_SETTLING };

// The table and the lists of a quantum, in pinned memory or on the device. `entries` are at
// first: slots to be closed, open ones, those with a second filter; then the lists of the segments.
struct bank_lists {
    struct cuda_slot *table; // [n_slots]
    uint32_t *entries;
};

// bank->state.
struct cuda_bank {
    struct cuda_partition_layout layout;
    struct cuda_partition_memory memory;
    struct cuda_stream_memory held;
    struct swap_queue *swap_queues;      // [n_slots]
    unsigned char *swaps;                // [n_slots] enum slot_swap
    uint32_t *due[2][CUDA_MAX_SEGMENTS]; // [2 * n_slots] collected and finished of a quantum
    // The copied data: on the device, and the host's in the order of the device's, where each
    // quantum of a call has lists of its own.
    char *device_x, *device_y;
    struct bank_lists device_lists, *lists; // [quanta of a call]
    size_t n_quanta;                        // of a call
};

// A quantum that is being queued.
struct bank_quantum {
    struct partita_bank *bank;
    struct bank_lists lists; // the host's
    uint64_t number;
    size_t n_open, n_closing, n_fading;
    struct cuda_step_work work;
    size_t n_entries;
};

static inline struct cuda_bank *cuda_bank_of(const struct partita_bank *bank)
{
    return bank->state;
}

// Fills quantum `index` of a call: its number and lists, and the work of the kernels. Slots that
// open or close with the call enter the table, and swaps begin and end.
void cuda_bank_fill_quantum(struct bank_quantum *now, uint64_t call, size_t index);

// Called when the work of a call is done, after its last quantum: former filters of swaps that have
// ended are used no more.
void cuda_bank_settle(struct bank_quantum *now);

// After the device has failed outputs are zeros, and every swap counts as settled.
void cuda_bank_settle_failed(struct partita_bank *bank, size_t n_open, size_t n_closing);

#endif
