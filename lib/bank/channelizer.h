// SPDX-License-Identifier: MIT
// The parts of a channelizer. A block of N samples, the last N - L of the block before and L new
// ones, is transformed once. A channel multiplies the bins of its band by its response, adds bins
// whose frequencies are equal modulo its output rate, and transforms them back by a transform of
// the length M = N * up / stride. The last L * up / stride samples are free of wrapping; a rotation
// shifts them by the centre.
//
// The thread that opens, changes and closes channels owns filters, inverse transforms and channels
// that are not in use. It hands a channel over by exchanging `posted` of a slot, and the thread
// that processes takes it at the next block by exchanging it too.
#ifndef PARTITA_INTERNAL_CHANNELIZER_H
#define PARTITA_INTERNAL_CHANNELIZER_H

#include <math.h>
#include <partita/channelizer.h>
#include <stdatomic.h>

#include "bins.h"

__extension__ typedef unsigned __int128 revolutions; // the fraction of a revolution, times 2^128

// An inverse transform, which all channels share that need its length.
struct inverse {
    struct inverse *next;
    struct fft *fft;
    struct bins bins;
    size_t length, step; // fft->n = length * step: every step-th sample is taken
    size_t scratch_bytes;
    char *scratch; // [workers] of a spectrum, then of samples, then of the transform
};

// Response at the frequencies g / N, g integer, of taps that are moved by half their length.
struct partita_channel_filter {
    const struct partita_channelizer *owner;
    struct inverse *inverse;
    size_t up, stride, n_taps;
    double half_band; // bins on each side of the centre
    ptrdiff_t first;  // g of the first value
    size_t count;
    double (*values)[2];
};

// A channel as it was opened or changed; never written after that, but for its outputs.
struct channel {
    const struct inverse *inverse;
    size_t up, stride, fade;
    size_t first, count; // outputs of a block: samples of the inverse transform
    revolutions centre;  // revolutions of the centre from one input sample to the next
    revolutions advance; // revolutions by which outputs are rotated, from one to the next
    double step[2];      // the rotation of SELECT_FINE outputs
    size_t lines, layers;
    uint32_t *indices;   // [layers][bins of the inverse transform]
    void *response;      // [layers] spectra
    void *fine, *output; // [SELECT_FINE] rotations; [count]
};

enum slot_state { SLOT_FREE, SLOT_OPEN, SLOT_CLOSING };
enum { SLOT_HELD = 3 };

struct channel_slot {
    atomic_int state; // stored by the opener if free, else by the one that processes
    _Atomic(struct channel *) posted; // next channel, not seen by the thread that processes
    struct channel *now, *before; // of the thread that processes; before: faded out in this block
    struct channel *held[SLOT_HELD]; // of the opener: those that may be in use, the latest first
};

struct partita_channelizer {
    struct partita_channelizer_options options;
    bool f64, is_complex;
    size_t sample_bytes, n, block, overlap; // overlap: n - block
    const struct select_kernels *kernels;
    struct fft *forward, *exact; // of the samples; complex in double, for responses
    struct bins bins, exact_bins;
    struct inverse *inverses;
    struct channel_slot *slots;
    size_t *active; // [options.channels] slots that a block computes
    char *window, *spectrum, *scratch;
    size_t filled;     // new samples in the window
    uint64_t position; // of the next sample
    bool complete;     // the last call completed a block
};

// options.c: checks and completes the structs of callers; the log names the field that is wrong.
bool channelizer_options_check(struct partita_channelizer_options *options);
bool channel_check(const struct partita_channelizer *owner, struct partita_channel *channel);
// A length of the transform from `least` on, a multiple of `stride`, that is fast.
size_t channelizer_length(size_t least, size_t stride);

// response.c. Errors: PARTITA_ERR_NOMEM; PARTITA_ERR_UNSUPPORTED if no inverse transform serves.
enum partita_status response_create(struct partita_channelizer *owner,
                                    const struct partita_channel *given,
                                    struct partita_channel_filter **ret);
void inverses_release(struct partita_channelizer *owner);
// Values at g + shift of the frequencies g from `first` on, -1 < shift < 1, before the taps were
// moved.
void response_read(const struct partita_channel_filter *filter, ptrdiff_t first, double shift,
                   size_t count, double (*ret)[2]);

// channel.c. NULL: no memory.
struct channel *channel_create(const struct partita_channel_filter *filter, double centre,
                               size_t fade);
// Computes the outputs of the block whose first sample is number `start`.
void channel_run(const struct partita_channelizer *owner, struct channel *channel, uint64_t start,
                 int worker);
// Fades from the outputs of `before` to those of `now`.
void channel_fade(const struct partita_channelizer *owner, const struct channel *before,
                  struct channel *now);

// slots.c: takes over posted channels at the start of a block, and lists those that it computes.
size_t slots_take(struct partita_channelizer *owner);
void slots_release(struct partita_channelizer *owner);

// Cosine and sine of a fraction of a revolution.
static inline void revolution_root(revolutions at, double ret[2])
{
    const double angle = ldexp((double)(int64_t)(uint64_t)(at >> 64), -64) * 2 * M_PI;
    ret[0] = cos(angle);
    ret[1] = sin(angle);
}

#endif
