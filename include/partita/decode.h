// SPDX-License-Identifier: MIT
// Long causal convolution for models that generate: every channel has a filter of its own, and a
// state filters any number of sequences with them, each at its own position. A sequence is filled
// by a prompt at once and then continued by a few frames a call, without added delay.
//
//   struct partita_decode_options mixer = {.sequences = 8, .channels = 4096, .n_taps = 8192,
//                                          .signal = PARTITA_BF16};
//   partita_decode_create(&mixer, taps, &decode);          // taps[4096][8192]
//   partita_decode_join(decode, &slot);
//   partita_decode_prefill(decode, slot, y, x, n);         // x and y [4096][n]
//   partita_decode_step(decode, &slot, 1, 1, y, x);        // a token: x and y [1][4096][1]
//
// Bits: an output depends on the samples of its sequence and on the taps alone. It has the same
// bits for every way to cut a sequence into calls, in every slot, after clones and rewinds, beside
// other sequences and with any number of threads. So a sequence that is filled by one call of
// partita_decode_prefill is the layer on the whole sequence.
//
// Samples that are not finite: outputs after one of them may not be finite either, until two of the
// longest blocks (at most n_taps / 2 frames) after the filter's reach. Earlier outputs and other
// channels are not affected.
//
// Threads: one thread at a time uses a state; calls compute on options.threads threads.
#ifndef PARTITA_DECODE_H
#define PARTITA_DECODE_H

#include <partita/problem.h>

#ifdef __cplusplus
extern "C" {
#endif

struct partita_decode;

// The largest number of frames of a step.
enum { PARTITA_DECODE_FRAMES = 8 };

// Options of a state. Plain data; zero-initialise it and set what differs; a zero means the default
// given in brackets.
struct partita_decode_options {
    size_t sequences;         // slots, 1 to 2^20, no default
    size_t channels;          // 1 to 2^20, no default
    size_t n_taps;            // of each filter, 1 to 2^20, no default
    size_t max_frames;        // of a sequence; later taps cost nothing [no limit]
    size_t rewind;            // frames that partita_decode_rewind may take back, at most 2^20 [0]
    enum partita_type signal; // of all samples: f32, f16 or bf16; arithmetic is f32 [f32]
    int threads;              // at most so many [what the work pays for]
    struct partita_log log;   // [none, or what PARTITA_LOG says, see struct partita_log]
    struct partita_allocator allocator; // [C library]
};

// The bytes that partita_decode_create takes for such a state, taps included, without the tables of
// its transforms, which all channels share.
// Errors:  as partita_decode_create.
// Threads: any.
PARTITA_API enum partita_status
partita_decode_memory_sized(const struct partita_decode_options *options, size_t options_bytes,
                            size_t *ret_bytes);
static inline enum partita_status
partita_decode_memory(const struct partita_decode_options *options, size_t *ret_bytes)
{
    return partita_decode_memory_sized(options, sizeof *options, ret_bytes);
}

// Creates a state without sequences.
// Shapes:  taps [channels][n_taps], f32, contiguous; y[t] = sum over j of taps[j] * x[t - j].
// Errors:  PARTITA_ERR_ARG if a field is out of range (the log line names it);
//          PARTITA_ERR_UNSUPPORTED for another type of samples, or a field that the library does
//          not know; PARTITA_ERR_NOMEM.
// Memory:  taps are copied. After this no call allocates, but for the threads' own stacks.
// Threads: any.
PARTITA_API enum partita_status
partita_decode_create_sized(const struct partita_decode_options *options, size_t options_bytes,
                            const float *taps, struct partita_decode **ret_decode);
static inline enum partita_status
partita_decode_create(const struct partita_decode_options *options, const float *taps,
                      struct partita_decode **ret_decode)
{
    return partita_decode_create_sized(options, sizeof *options, taps, ret_decode);
}

// Releases a state. NULL is allowed.
PARTITA_API void partita_decode_destroy(struct partita_decode *decode);

// Opens the free slot of lowest number for a sequence of zero frames.
// Errors:  PARTITA_ERR_ARG for NULL; PARTITA_ERR_STATE if no slot is free.
// Time:    clears 4 bytes of a channel for each frame of the longest block.
PARTITA_API enum partita_status partita_decode_join(struct partita_decode *decode,
                                                    size_t *ret_slot);

// Frees a slot.
// Errors:  PARTITA_ERR_ARG for NULL or a slot that is not open.
PARTITA_API enum partita_status partita_decode_drop(struct partita_decode *decode, size_t slot);

// Opens the free slot of lowest number for a copy of a sequence.
// Errors:  as partita_decode_join; PARTITA_ERR_ARG for a slot that is not open.
// Time:    copies the memory of a slot.
PARTITA_API enum partita_status partita_decode_clone(struct partita_decode *decode, size_t slot,
                                                     size_t *ret_slot);

// Takes back the last n frames of a sequence, as if they had never been given. The new position may
// not lie more than options.rewind frames before the largest one that the sequence ever had.
// Errors:  PARTITA_ERR_ARG for NULL, a slot that is not open, or a larger n.
// Time:    about that of three frames; of few channels, up to a block of one channel more.
PARTITA_API enum partita_status partita_decode_rewind(struct partita_decode *decode, size_t slot,
                                                      size_t n);

// Frames of a sequence; 0 for a slot that is not open.
PARTITA_API size_t partita_decode_position(const struct partita_decode *decode, size_t slot);

// Appends n frames to a sequence and writes their outputs.
// Shapes:  x and y [channels][n], contiguous, of options.signal.
// Ranges:  y may not overlap x. Arrays are aligned to their samples.
// Errors:  PARTITA_ERR_ARG for NULL, a slot that is not open, arrays out of range, or more frames
//          than options.max_frames in all. Nothing has been changed then.
PARTITA_API enum partita_status partita_decode_prefill(struct partita_decode *decode, size_t slot,
                                                       void *y, const void *x, size_t n);

// Appends 1 to 8 frames to each of some sequences and writes their outputs. No call takes much
// longer than the mean: the transforms of the channels are spread over all calls.
// Shapes:  slots [n_slots], each once; x and y [n_slots][channels][frames], contiguous.
// Ranges, Errors: as partita_decode_prefill; n_slots may be 0.
// Memory:  none. With options.threads = 1 the call makes no system call.
// Source:  partitions of growing size, Gardner, Efficient convolution without input-output delay,
//          JAES 43 (1995); the same order of work for sequence models: Oncescu et al., Flash
//          Inference, arXiv 2410.12982 (2024), and Agarwal et al., FutureFill, arXiv 2410.03766.
PARTITA_API enum partita_status partita_decode_step(struct partita_decode *decode,
                                                    const size_t *slots, size_t n_slots,
                                                    size_t frames, void *y, const void *x);

#ifdef __cplusplus
}
#endif

#endif
