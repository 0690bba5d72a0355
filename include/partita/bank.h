// SPDX-License-Identifier: MIT
// Many streams at once: a bank of equal slots, each a stream with a filter of its own or shared
// with others, which open, close and change filters while the bank runs. For servers of many
// reverbs, for the channels of a radio, for binaural renderers.
//
//   struct partita_bank_options rooms = {.slots = 512, .n_taps = 48000, .block = 64};
//   partita_bank_create(&rooms, &bank);
//   partita_bank_filter_create(bank, taps, 48000, &hall);
//   partita_bank_open(bank, hall, &slot);
//   memcpy(partita_bank_input(bank, slot), in, 64 * sizeof(float));
//   partita_bank_process(bank);                    // every open slot
//   memcpy(out, partita_bank_output(bank, slot), 64 * sizeof(float));
//
// The long transforms of different slots fall into different calls. With many open slots all calls
// take about the same time; with few, single calls take much longer than the mean: create the bank
// for about as many slots as will be open.
//
// Threads: three roles. One thread at a time processes: partita_bank_process, and the slots'
//          arrays. One thread at a time, the same one or another, opens, closes and swaps. Any
//          thread makes filters. No call waits for another, but on a device partita_bank_open
//          waits for the GPU, which other work may delay.
#ifndef PARTITA_BANK_H
#define PARTITA_BANK_H

#include <partita/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

struct partita_bank;

// Options of a bank. Plain data; zero-initialise it and set what differs; a zero means the default
// given in brackets. A field out of range is rejected, and the log names it.
struct partita_bank_options {
    size_t slots; // 1 to 2^20, no default
    // Of each slot, at most 4096 [1; no default for out_channels if there are several inputs].
    // Every output sums over all inputs; paths whose taps are zero cost nothing in long filters.
    size_t in_channels, out_channels;
    size_t n_taps;               // of the longest filter, 1 to 2^30, no default
    size_t block;                // frames of a call, 1 to 2^16; multiples of 16 cost least, and a
                                 // device takes no others [64]
    size_t latency;              // the largest added delay allowed, in frames, at most 2^30 [0]
    enum partita_type signal;    // of the samples: f32, f64, cf32 or cf64 [f32]
    enum partita_type taps_type; // as in struct partita_problem [that of the signal]
    const char *device;          // as in struct partita_options ["cpu"]
    double sample_rate;          // frames per second, for statistics [calls are not timed]
    struct partita_log log;      // [none, or what PARTITA_LOG says, see struct partita_log]
    struct partita_allocator allocator; // [C library]; filters use it too
    double error_budget;                // as in struct partita_options [any]
};

// Creates a bank without open slots.
// Ranges:  the struct is copied; hooks must outlive the bank.
// Errors:  PARTITA_ERR_ARG if a field is out of range (the log line names it);
//          PARTITA_ERR_UNSUPPORTED if no engine of the device serves such slots within the error
//          budget;
//          PARTITA_ERR_DEVICE; PARTITA_ERR_NOMEM.
// Memory:  that of `slots` streams. After this only filters allocate. On a device the samples of
//          the slots are in pinned memory of the host, everything else on the device.
// Time:    as partita_plan_create, and clearing that memory. Not real-time safe.
// Threads: any.
PARTITA_API enum partita_status
partita_bank_create_sized(const struct partita_bank_options *options, size_t options_bytes,
                          struct partita_bank **ret_bank);
static inline enum partita_status partita_bank_create(const struct partita_bank_options *options,
                                                      struct partita_bank **ret_bank)
{
    return partita_bank_create_sized(options, sizeof *options, ret_bank);
}

// Releases a bank, with its open slots. NULL is allowed. First make the last call of
// partita_bank_process, then destroy all filters of the bank (open slots may still refer to them),
// then the bank.
// Threads: any; no thread may still use the bank.
PARTITA_API void partita_bank_destroy(struct partita_bank *bank);

// The plan of every slot: for its latency and text (partita_plan_explain), for the mean and worst
// time of one slot by itself (partita_plan_load), and for filters that are made in other ways than
// by partita_bank_filter_create. It belongs to the bank. It may differ from the plan of an equal
// problem for one stream: with more slots, one call does a larger share of the work on a long
// partition of a slot, and different slots have such calls at different times. Its problem has
// whole blocks if `block` is a multiple of 16. Threads: any.
PARTITA_API const struct partita_plan *partita_bank_plan(const struct partita_bank *bank);

// Prepares taps for any number of slots. partita_filter_destroy releases the filter, which must
// happen before partita_bank_destroy.
// Shapes:  taps [out_channels][in_channels][n_taps], contiguous; copied.
// Ranges:  1 <= n_taps <= options.n_taps. Shorter filters cost less.
// Errors:  PARTITA_ERR_ARG; PARTITA_ERR_NOMEM.
// Threads: any. Not real-time safe.
PARTITA_API enum partita_status partita_bank_filter_create(const struct partita_bank *bank,
                                                           const void *taps, size_t n_taps,
                                                           struct partita_filter **ret_filter);

// Opens a slot with empty history; it takes part from the next call of partita_bank_process on. Its
// outputs have the bits of a stream of partita_bank_plan that was fed partita_bank_lead frames of
// silence before. Slots are taken in no particular order.
// Errors:  PARTITA_ERR_ARG for NULL or a filter of another plan; PARTITA_ERR_STATE if no slot is
//          free; PARTITA_ERR_DEVICE or PARTITA_ERR_NOMEM if the device failed.
// Memory:  none. The filter must live as long as the slot uses it: see partita_bank_slot_state.
// Time:    clears the slot's memory and filters the silence, which takes longer than a call for the
//          slot, though silence costs less than other samples. Never allocates, locks or makes
//          system calls. On a device the memory is cleared there, which the call waits for; there
//          is no silence to filter.
// Threads: the one that opens, closes and swaps; process may run at the same time.
PARTITA_API enum partita_status
partita_bank_open(struct partita_bank *bank, const struct partita_filter *filter, size_t *ret_slot);

// Closes a slot. The next call of partita_bank_process frees it.
// Memory:  its filters must live until partita_bank_slot_state returns PARTITA_SLOT_FREE.
// Errors:  PARTITA_ERR_ARG; PARTITA_ERR_STATE if the slot is not open.
// Threads: as partita_bank_open. Real-time safe.
PARTITA_API enum partita_status partita_bank_close(struct partita_bank *bank,
                                                   size_t slot) PARTITA_NONBLOCKING;

// Replaces the filter of an open slot as partita_stream_swap does. Only this slot is computed twice
// while it fades.
// Errors:  PARTITA_ERR_ARG for NULL or a filter of another plan; PARTITA_ERR_STATE if the slot is
//          not open; PARTITA_ERR_UNSUPPORTED if the engine cannot swap filters.
// Memory:  earlier filters must live until partita_bank_slot_state returns PARTITA_SLOT_OPEN, or
//          PARTITA_SLOT_FREE if the slot is closed first.
// Threads: as partita_bank_open. Real-time safe.
PARTITA_API enum partita_status partita_bank_swap(struct partita_bank *bank, size_t slot,
                                                  const struct partita_filter *filter,
                                                  size_t fade) PARTITA_NONBLOCKING;

// What a slot is doing.
enum partita_slot_state {
    PARTITA_SLOT_FREE = 0, // uses no filter
    PARTITA_SLOT_OPEN,     // uses only the filter passed last
    PARTITA_SLOT_SWAPPING, // uses, or waits to use, another filter too
    PARTITA_SLOT_CLOSING,  // until the next call of partita_bank_process
};

// What a slot is doing; PARTITA_SLOT_FREE for a slot that does not exist.
// Threads: any. Real-time safe.
PARTITA_API enum partita_slot_state partita_bank_slot_state(const struct partita_bank *bank,
                                                            size_t slot) PARTITA_NONBLOCKING;

// Frames of silence that count as the slot's history before its first block; 0 for a slot that does
// not exist. On a device, a slot that opens during a call of partita_bank_process has a block more
// if it missed the one after it.
// Threads: as partita_bank_open. Real-time safe.
PARTITA_API size_t partita_bank_lead(const struct partita_bank *bank,
                                     size_t slot) PARTITA_NONBLOCKING;

// The samples of a slot: the input of the next call, and the output of the last one. Both are zero
// when a slot opens; those of a slot that is not open must not be touched.
// Shapes:  input [in_channels][block], output [out_channels][block], 64-byte aligned; NULL for a
//          slot that does not exist.
// Memory:  part of the bank: the addresses of a slot never change.
// Threads: any for the addresses; the samples belong to the thread that processes. Real-time safe.
PARTITA_API void *partita_bank_input(const struct partita_bank *bank,
                                     size_t slot) PARTITA_NONBLOCKING;
PARTITA_API const void *partita_bank_output(const struct partita_bank *bank,
                                            size_t slot) PARTITA_NONBLOCKING;

// Filters one block of every open slot. On a device it copies all slots' inputs there and their
// outputs back, and waits for these.
// Errors:  none: the argument is not checked. After the device has failed all outputs are zeros:
//          see partita_bank_status.
// Memory:  none. The call never allocates, locks, logs or makes system calls. On a device the CUDA
//          runtime may lock and make system calls.
// Threads: one at a time per bank.
// Source:  partitions as in Gardner, Efficient convolution without input-output delay, JAES 43
//          (1995); phases of the slots as in van der Corput, Verteilungsfunktionen (1935).
PARTITA_API void partita_bank_process(struct partita_bank *bank) PARTITA_NONBLOCKING;

// Returns PARTITA_OK, or after a failure of the device PARTITA_ERR_DEVICE or PARTITA_ERR_NOMEM.
// From then on all outputs are zeros, swaps count as complete and no slot opens.
// Errors:  PARTITA_ERR_ARG for NULL.
// Threads: any. Real-time safe.
PARTITA_API enum partita_status
partita_bank_status(const struct partita_bank *bank) PARTITA_NONBLOCKING;

// Reads how long the calls of partita_bank_process took; `missed` counts those that took longer
// than a block lasts.
// Errors:  PARTITA_ERR_ARG for NULL; PARTITA_ERR_STATE if options.sample_rate was not set.
// Threads: any, also while process runs. Real-time safe.
PARTITA_API enum partita_status partita_bank_stats_sized(const struct partita_bank *bank,
                                                         struct partita_stream_stats *ret_stats,
                                                         size_t stats_bytes) PARTITA_NONBLOCKING;
static inline enum partita_status
partita_bank_stats(const struct partita_bank *bank,
                   struct partita_stream_stats *ret_stats) PARTITA_NONBLOCKING
{
    return partita_bank_stats_sized(bank, ret_stats, sizeof *ret_stats);
}

#ifdef __cplusplus
}
#endif

#endif
