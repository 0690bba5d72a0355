// SPDX-License-Identifier: MIT
// Adaptive filters: the filter follows a path that nobody knows, such as that from loudspeakers to
// a microphone, and removes its signal (echo cancelling); its taps are the response of the path
// (identification).
//
//   struct partita_adaptive_options options = {.taps = 16384, .block = 256};
//   partita_adaptive_create(&options, &adaptive);
//   for (;;) partita_adaptive_process(adaptive, residual, microphone, loudspeakers, n_frames);
//
// Scheme: a partitioned-block frequency-domain adaptive filter (multidelay filter). The far end is
// transformed once for each block of B = options.block samples, in windows of n >= 2B samples; the
// estimate of the echo, the gradient and the sizes of the steps are computed from these spectra. In
// block t, with the spectra X[t-p] of partition p < N = K * ceil(taps / B), over K channels of the
// far end, and c = B/n, for each bin:
//
//   y     = the last B samples of the inverse transform of sum over p of  W[p] X[t-p]
//   e     = near_end - y,  the residual;  E: the transform of n-B zeros and e
//   D     = c sum over p of  P[p] |X[t-p]|^2,  the power of the echo that the residual should have
//   V     = 0.7 V + 0.3 (silence + max(0, |E|^2 - D)),  of all else: voices at the near end, noise
//   R     = P step / (D + V),  the gain
//   W[p] += R[p] conj(X[t-p]) E
//   P[p]  = (1 - drift)(1 - (2 - step) c R[p] |X[t-p]|^2 / 2) P[p] + q (|W[p]|^2 + prior/1000)
//   q     = drift + max(0, h^2 - 0.15^2)
//
// P is the variance of the error of W, at first prior = gain / N. Its decay is half of what the
// state-space model says, for which the spectra of a signal were uncorrelated from block to block.
// h is the mean over the bins of the real part of the coherence of E with the spectrum of y, over
// the blocks before this one (0.95): while it is not near 0 the path is another one than it was,
// and P grows with it, so that the filter follows. Voices at the near end are coherent with
// nothing: V grows within the block, and the filter rests.
//
// With PARTITA_ADAPTIVE_NLMS a bin has one P for all partitions, with the means over p of c R |X|^2
// and of |W|^2 before the step: slower to follow where the partitions differ. With
// PARTITA_ADAPTIVE_FIXED P is 1 and V is the power of silence: the textbook's normalised LMS.
//
// Constraint: a partition has B taps, and the rest of the inverse transform of W is zero. Every
// step breaks this a little. One partition of each channel is restored in each block, in turn
// [PARTITA_ADAPTIVE_ROTATING], or all of them (PARTITA_ADAPTIVE_EVERY: the constrained gradient, at
// two transforms for each partition), or none (PARTITA_ADAPTIVE_NONE: unconstrained).
//
// Divergence: if the residual has been louder than the near end by 6 dB, over about twenty blocks,
// the filter returns to a copy that is made every 32 blocks while it removes 6 dB or more; without
// one, or if this happens again before the next copy is made, it starts anew. Numbers that overflow
// make it start anew at once, and the near end is the residual of that block.
//
// Bits: results do not depend on how signals are cut into calls.
#ifndef PARTITA_ADAPTIVE_H
#define PARTITA_ADAPTIVE_H

#include <partita/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

struct partita_adaptive;

// How large steps are.
enum partita_adaptive_control {
    PARTITA_ADAPTIVE_STATE_SPACE,
    PARTITA_ADAPTIVE_NLMS,
    PARTITA_ADAPTIVE_FIXED,
};

// How many partitions are made ones of B taps again in each block.
enum partita_adaptive_constraint {
    PARTITA_ADAPTIVE_ROTATING,
    PARTITA_ADAPTIVE_EVERY,
    PARTITA_ADAPTIVE_NONE,
};

// Plain data; zero-initialise it and set what differs; a zero means the default given in brackets.
struct partita_adaptive_options {
    enum partita_type type;                      // of samples: f32 or f64 [f32]
    enum partita_adaptive_control control;       // [state space]
    enum partita_adaptive_constraint constraint; // [rotating]
    bool whole_blocks; // calls have multiples of `block` frames, and the residual is not delayed
    bool reserved[3];  // false
    size_t channels;   // of the far end, 1 to 1024 [1]
    size_t taps;       // of each channel's path, 1 to 2^24, no default
    size_t block;      // samples, 1 to 2^20; fast: 64 times 1, 2, 3, 4, 5, 6, 8, .. [256]
    double step;       // above 0, to 1 [0.5]
    double gain;       // power gain that the paths of all channels together may have at first [1]
    double drift;      // share of the path that changes from block to block, to 0.5 [1e-6]
    double silence;    // power of samples that counts as silence [1e-10]
    struct partita_log log;             // [none, or what PARTITA_LOG says]
    struct partita_allocator allocator; // [C library]
};

// Creates an adaptive filter whose taps are zeros.
// Errors:  PARTITA_ERR_ARG for a field out of range (the log line names it);
//          PARTITA_ERR_UNSUPPORTED for a field that the library does not know; PARTITA_ERR_NOMEM.
// Memory:  about 7 scalars for each tap.
// Threads: any.
// Source:  Soo and Pang, Multidelay block frequency domain adaptive filter, IEEE Transactions on
//          Acoustics, Speech and Signal Processing 38 (1990). Enzner and Vary, Frequency-domain
//          adaptive Kalman filter for acoustic echo control in hands-free telephones, Signal
//          Processing 86 (2006). Kuech, Mabande and Enzner, State-space architecture of the
//          partitioned-block-based acoustic echo controller, ICASSP 2014.
PARTITA_API enum partita_status
partita_adaptive_create_sized(const struct partita_adaptive_options *options, size_t options_bytes,
                              struct partita_adaptive **ret_adaptive);
static inline enum partita_status
partita_adaptive_create(const struct partita_adaptive_options *options,
                        struct partita_adaptive **ret_adaptive)
{
    return partita_adaptive_create_sized(options, sizeof *options, ret_adaptive);
}

// Releases an adaptive filter. NULL is allowed.
// Threads: any; no thread may still use the filter.
PARTITA_API void partita_adaptive_destroy(struct partita_adaptive *adaptive);

// Removes the estimated echo from the next n_frames frames of the near end. Sample k of the
// residual is near_end[k - latency] less the estimate for that sample.
// Shapes:  residual and near_end [n_frames]; far_end [channels] pointers to n_frames samples each;
//          NULL is silence. Aligned to their scalar. residual == near_end is allowed, any other
//          overlap of the residual is not.
// Ranges:  n_frames >= 0. With options.whole_blocks frames beyond the last whole block are ignored,
//          and their residual is zero. The block of a channel with a sample that is infinite, NaN
//          or beyond 2^40 (f64: 2^400) counts as zeros, and the filter does not adapt; nor does it
//          where the whole block of the near end is zeros, as of a microphone that is switched off.
// Errors:  none: arguments are not checked.
// Memory:  none. The call never allocates, locks, logs or makes system calls.
// Time:    the work of a block is spread evenly over the first three quarters of the frames of the
//          next one, but for the transforms of its samples, its residual and its estimate, in the
//          call that completes it.
// Threads: one at a time.
PARTITA_API void partita_adaptive_process(struct partita_adaptive *adaptive, void *residual,
                                          const void *near_end, PARTITA_INPUTS far_end,
                                          size_t n_frames) PARTITA_NONBLOCKING;

// Delay of the residual in frames: options.block, or 0 with options.whole_blocks.
// Threads: any. Real-time safe.
PARTITA_API size_t partita_adaptive_latency(const struct partita_adaptive *adaptive)
    PARTITA_NONBLOCKING;

// Whether the taps rest from the next block on [no]. The echo is still removed.
// Threads: that of process. Real-time safe.
PARTITA_API void partita_adaptive_freeze(struct partita_adaptive *adaptive,
                                         bool frozen) PARTITA_NONBLOCKING;

// Reads the taps of a channel of the far end: those that the next block is computed with. (Without
// a constraint the filter has further ones, which wrap around its blocks.)
// Shapes:  taps [options.taps], aligned to its scalar.
// Errors:  PARTITA_ERR_ARG for NULL or a channel that does not exist.
// Time:    that of an inverse transform for each partition. Nothing is allocated.
// Threads: that of process.
PARTITA_API enum partita_status partita_adaptive_taps(struct partita_adaptive *adaptive,
                                                      size_t channel, void *taps);

// What the filter has achieved.
struct partita_adaptive_stats {
    uint64_t blocks;    // all so far
    uint64_t rested;    // of them, without a step: frozen, a silent near end, bad samples, restored
    uint64_t restored;  // returns to a copy after divergence
    uint64_t restarted; // and to taps that are zeros
    // dB, echo return loss enhancement: near end over residual, voices and noise included, over
    // about the last ten blocks.
    double erle;
    // dB, of the last block: power of the echo that the residual should still have (D) over that of
    // the estimate of the echo. NaN with PARTITA_ADAPTIVE_FIXED.
    double misadjustment;
    double near_share; // of the residual's power that is not echo, V / (D + V); NaN likewise
    double coherence;  // of residual and estimate, h; within sqrt(n/B). Not near 0: a new path
};

// Reads what the filter has achieved.
// Errors:  PARTITA_ERR_ARG for NULL.
// Threads: that of process. Real-time safe.
PARTITA_API enum partita_status
partita_adaptive_stats_sized(const struct partita_adaptive *adaptive,
                             struct partita_adaptive_stats *ret_stats,
                             size_t stats_bytes) PARTITA_NONBLOCKING;
static inline enum partita_status
partita_adaptive_stats(const struct partita_adaptive *adaptive,
                       struct partita_adaptive_stats *ret_stats) PARTITA_NONBLOCKING
{
    return partita_adaptive_stats_sized(adaptive, ret_stats, sizeof *ret_stats);
}

// Bytes that partita_adaptive_save writes. Threads: any.
PARTITA_API size_t partita_adaptive_state_size(const struct partita_adaptive *adaptive);

// Writes everything that future residuals depend on to state[partita_adaptive_state_size]. A filter
// that restores it continues bit for bit; it may be another one with the same options and
// instruction set. `state` needs no alignment.
// Errors:  PARTITA_ERR_ARG for NULL.
// Threads: that of process.
PARTITA_API enum partita_status partita_adaptive_save(const struct partita_adaptive *adaptive,
                                                      void *state);

// Replaces the state of a filter by a saved one. A checksum finds accidental damage; a state that
// was made to deceive it is not recognised.
// Errors:  PARTITA_ERR_ARG for NULL; PARTITA_ERR_STATE if the state is not that of a filter with
//          equal options, or if it was damaged. The filter is then unchanged.
// Threads: that of process.
PARTITA_API enum partita_status partita_adaptive_restore(struct partita_adaptive *adaptive,
                                                         const void *state, size_t size);

// Clears taps and history: the filter is as if just created.
// Threads: that of process. Real-time safe.
PARTITA_API void partita_adaptive_reset(struct partita_adaptive *adaptive) PARTITA_NONBLOCKING;

#ifdef __cplusplus
}
#endif

#endif
