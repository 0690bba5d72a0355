// SPDX-License-Identifier: MIT
// Short causal convolution for sequence models: every channel has a filter of its own of 1 to 256
// taps, and an output depends on the present sample and the taps - 1 before it. One call computes a
// batch of sequences, continues them from states that it keeps up to date, or computes gradients.
//
//   struct partita_causal mixer = {.batch = 2, .channels = 8192, .frames = 1024, .taps = 4,
//                                  .type = PARTITA_BF16, .silu = true, .w = w, .bias = bias};
//   mixer.x = (struct partita_causal_array){x, 8192 * 1024, 1, 8192}; // [batch][frames][channels]
//   mixer.y = (struct partita_causal_array){y, 8192 * 1024, 1, 8192};
//   mixer.final = (struct partita_causal_array){state, 8192 * 3, 3, 1};
//   if (partita_causal_forward(&mixer)) return false;
//   mixer.initial = mixer.final; // from now on the state is continued in place
//   mixer.frames = 1;            // token by token
//
// Bits: the sum of an output is a chain of multiply-adds in f32 that begins with the bias (0
// without one) and goes from the oldest sample to the present one; silu follows, and one rounding
// to the type of y. So results do not depend on the strides of the arrays, on the number of
// threads, on other sequences, or on how a sequence is cut into calls by states.
#ifndef PARTITA_SEQUENCE_H
#define PARTITA_SEQUENCE_H

#include <partita/problem.h>

#ifdef __cplusplus
extern "C" {
#endif

// An array [batch][channels][frames]: its elements are at data[b*batch + c*channel + f*frame].
// Fast where the stride of channels or of frames is 1. NULL stands for no array.
struct partita_causal_array {
    void *data;
    size_t batch, channel, frame; // strides in elements
};

// A call. Plain data; zero-initialise it and set what differs; a zero means the default given in
// brackets.
struct partita_causal {
    size_t batch, channels, frames;   // of x and y, no default
    size_t taps;                      // 1 to 256, no default
    enum partita_type type;           // of all samples and states: f32, f16 or bf16 [f32]
    enum partita_type taps_type;      // of w, bias and their gradients: likewise [type]
    bool silu;                        // y / (1 + exp(-y)) replaces the sum y
    int threads;                      // at most so many [what the work pays for]
    struct partita_log log;           // [none, or what PARTITA_LOG says]
    const void *w;                    // [channels][taps], the tap of the oldest sample first
    const void *bias;                 // [channels] [zeros]
    struct partita_causal_array x, y; // y may be x, with equal strides

    // Sequences in one batch. seq_idx [batch][frames]: a run of equal numbers is a sequence, whose
    // past is zeros; where the number is negative, y is 0. query_start_loc [batch + 1]: sequence b
    // is frames query_start_loc[b] .. query_start_loc[b+1] - 1 of x and y, which have no axis of
    // batches then. It begins with 0 and does not fall; frames after the last one are left as they
    // are [one sequence in each batch].
    const int32_t *seq_idx, *query_start_loc;

    // States [slots][channels][state_len], in the order of time: the samples before a sequence, and
    // the last ones with it. `initial` is read [zeros], `final` is written [nowhere]; both may be
    // the same array. Without cache_indices the state of sequence b is in slot b.
    struct partita_causal_array initial, final;
    size_t state_len; // at least taps - 1 [taps - 1]
    size_t slots;     // [batch]
    // [batch], each slot once; -1: the sequence is padding, its y is 0 [0, 1, ..].
    const int32_t *cache_indices;
    const bool *has_initial_state; // [batch]; false: the sequence has a past of zeros [all true]
    // [batch]: states are rings, of which so many frames have been written: frame i of a sequence
    // is written at (cache_seqlens[b] + i) % state_len, nothing else moves [states are shifted].
    const int32_t *cache_seqlens;

    // For partita_causal_backward. gx, gw, gbias and ginitial are written; NULL: not.
    struct partita_causal_array gy, gx, gfinal, ginitial; // as y, x, final and initial
    void *gw, *gbias;                                     // as w and bias
};

// Computes y and final states. One new frame of each sequence, or a few, is the same call.
// Ranges:  arrays are aligned to their elements and have no two elements in one place; those that
//          are written share no memory with others, except as said above. Strides of axes that have
//          one element do not count. seq_idx excludes states and query_start_loc.
// Errors:  PARTITA_ERR_ARG for a field out of range, a slot out of range or given twice
//          (the log line names the field); PARTITA_ERR_UNSUPPORTED for another type, or a field
//          that the library does not know. Nothing has been written then.
// Memory:  none; 64 KiB of each thread's stack.
// Time:    each of cache_indices is compared with those before it.
// Threads: any.
// Source:  fields as in the package causal-conv1d (Gu & Dao 2023) and in vLLM.
PARTITA_API enum partita_status partita_causal_forward_sized(const struct partita_causal *call,
                                                             size_t call_bytes);
static inline enum partita_status partita_causal_forward(const struct partita_causal *call)
{
    return partita_causal_forward_sized(call, sizeof *call);
}

// Computes gradients of a forward call with the same fields, from gy and, if there are final
// states, gfinal. y and final are not read. gw and gbias are sums over sequences and frames in f32,
// in an order that depends only on the sizes and strides of the call.
// Ranges, Threads: as partita_causal_forward. state_len is taps - 1, and there are neither
//          query_start_loc nor cache_indices, has_initial_state and cache_seqlens.
// Errors:  as partita_causal_forward; PARTITA_ERR_NOMEM.
// Memory:  allocates 96 KiB for each thread.
PARTITA_API enum partita_status partita_causal_backward_sized(const struct partita_causal *call,
                                                              size_t call_bytes);
static inline enum partita_status partita_causal_backward(const struct partita_causal *call)
{
    return partita_causal_backward_sized(call, sizeof *call);
}

#ifdef __cplusplus
}
#endif

#endif
