// SPDX-License-Identifier: MIT
// Many channels of one signal: a receiver bank. Each channel has a centre frequency, a filter and
// an output rate of its own, and opens, changes and closes while the signal runs.
//
//   struct partita_channelizer_options band = {.signal = PARTITA_CF32, .channels = 50,
//                                              .n_taps = 4801, .stride = 96, .sample_rate = 2.4e6};
//   struct partita_channel narrow = {.taps = taps, .n_taps = 4801, .stride = 96,
//                                    .bandwidth = 25e3};
//   partita_channelizer_create(&band, &channelizer);
//   partita_channel_filter_create(channelizer, &narrow, &filter);
//   partita_channelizer_open(channelizer, filter, 412.5e3, &channel);
//   for (; n; n -= used, x += used) {
//       used = partita_channelizer_process(channelizer, x, n);
//       y = partita_channelizer_output(channelizer, channel, &n_outputs);
//   }
//
// Output m of a channel, at time t = m*stride/up in input samples, is
//
//   y[m] = sum over j of  taps[m*stride - j*up] * x[j] * e^(-2 pi i j centre / sample_rate)
//
// The signal is shifted by the centre, filtered and decimated. Where up is above 1, taps are at the
// rate up * sample_rate. Samples before the first one are zeros. Time and phase count from sample
// 0: a channel that opens late has the samples that it would have had if it had been open from the
// start. The phase of the centre is exact: it differs from that of the quotient of the two numbers
// by less than j 2^-128 revolutions, or j 2^-93 if the centre is below 2^-40 sample rates.
//
// Scheme: the signal is transformed in blocks that overlap by at least n_taps - 1 samples, once for
// all channels. A channel takes the bins of its band, multiplies them by its response, adds bins
// that alias at its output rate, and transforms them back at that rate.
//
// Rates: options.stride must be a common multiple of the strides of all channels; each stride
// divides up * options.stride. For output rates r, sample_rate / options.stride divides all r: at
// 2.4 MHz for channels of 25 and 16 kHz, 2400. Blocks, and the transform, are multiples of it.
//
// Bits: results do not depend on how the signal is cut into calls, on the number of threads, or on
// other channels.
#ifndef PARTITA_CHANNELIZER_H
#define PARTITA_CHANNELIZER_H

#include <partita/problem.h>

#ifdef __cplusplus
extern "C" {
#endif

struct partita_channelizer;
struct partita_channel_filter;

// Plain data; zero-initialise it and set what differs; a zero means the default given in brackets.
struct partita_channelizer_options {
    enum partita_type signal; // of the input: f32, f64, cf32 or cf64 [f32]; outputs are complex
    size_t channels;          // that can be open at once, 1 to 2^20, no default
    size_t n_taps;            // of the longest filter, or its n_taps / up, 1 to 2^24, no default
    size_t stride;            // see Rates, at most 2^24 [1]
    // Samples of a block, a multiple of stride, at most 2^24; the delay of the outputs [at least
    // three times n_taps and 3000].
    size_t block;
    double sample_rate;                 // the unit of centre and bandwidth [1: cycles per sample]
    int threads;                        // that share the channels of a block [1]
    struct partita_log log;             // [none, or what PARTITA_LOG says]
    struct partita_allocator allocator; // [C library]
};

// What the filter of a channel does. Plain data, as above.
struct partita_channel {
    const void *taps;            // [n_taps], no default
    size_t n_taps;               // 1 to up * (overlap of the blocks) + 1, no default
    enum partita_type taps_type; // f32, f64, cf32 or cf64 [f32 or f64, as the signal]
    size_t up, stride;           // the output rate is sample_rate * up / stride [1, 1]; up: to 2^16
    // The band of the channel, centred: frequencies outside are removed, as if the response of the
    // taps were zero there. Where it is not quite zero, outputs differ from the formula by about
    // that much. The cost of a channel is proportional to it [up * sample_rate: exact].
    double bandwidth;
};

// Creates a channelizer without channels.
// Errors:  PARTITA_ERR_ARG for a field out of range (the log line names it);
//          PARTITA_ERR_UNSUPPORTED if the library was built without FFTW and stride has a prime
//          factor above 5, or for a field that the library does not know; PARTITA_ERR_NOMEM.
// Memory:  some 50 bytes for each sample of a transform, and the channels.
// Threads: any.
// Source:  Borgerding, Turning overlap-save into a multiband mixing, downsampling filter bank, IEEE
//          Signal Processing Magazine 23 (2006).
PARTITA_API enum partita_status
partita_channelizer_create_sized(const struct partita_channelizer_options *options,
                                 size_t options_bytes,
                                 struct partita_channelizer **ret_channelizer);
static inline enum partita_status
partita_channelizer_create(const struct partita_channelizer_options *options,
                           struct partita_channelizer **ret_channelizer)
{
    return partita_channelizer_create_sized(options, sizeof *options, ret_channelizer);
}

// Releases a channelizer, with its channels. NULL is allowed. Destroy its filters before.
// Threads: any; no thread may still use the channelizer.
PARTITA_API void partita_channelizer_destroy(struct partita_channelizer *channelizer);

// Prepares the filter of any number of channels. Taps are copied.
// Errors:  PARTITA_ERR_ARG for a field out of range, taps that are longer than a block allows, or a
//          stride that does not divide up * options.stride (the log line names the remedy);
//          PARTITA_ERR_UNSUPPORTED for a length without a transform, or a field that the library
//          does not know; PARTITA_ERR_NOMEM.
// Memory:  16 bytes for each bin of the band, and of the first filter of an output rate a transform
//          of its length, which the channelizer keeps.
// Time:    `up` transforms in double. Not real-time safe.
// Threads: the one that opens, changes and closes channels.
PARTITA_API enum partita_status
partita_channel_filter_create_sized(struct partita_channelizer *channelizer,
                                    const struct partita_channel *channel, size_t channel_bytes,
                                    struct partita_channel_filter **ret_filter);
static inline enum partita_status
partita_channel_filter_create(struct partita_channelizer *channelizer,
                              const struct partita_channel *channel,
                              struct partita_channel_filter **ret_filter)
{
    return partita_channel_filter_create_sized(channelizer, channel, sizeof *channel, ret_filter);
}

// Releases a filter. NULL is allowed. Channels that were opened with it do not need it any more.
// Threads: any; no thread may still use the filter.
PARTITA_API void partita_channel_filter_destroy(struct partita_channel_filter *filter);

// Opens a channel, which takes part from the next block on that begins to be computed.
// Ranges:  -sample_rate/2 <= centre <= sample_rate/2; of a real signal too.
// Errors:  PARTITA_ERR_ARG for a centre outside this range or a filter of another channelizer;
//          PARTITA_ERR_STATE if options.channels are open; PARTITA_ERR_NOMEM.
// Memory:  12 bytes for each bin of the band and 8 for each output of a block; of f64 twice that.
// Time:    about 50 multiply-adds for each bin. Not real-time safe.
// Threads: the one that opens, changes and closes channels; process may run at the same time.
PARTITA_API enum partita_status
partita_channelizer_open(struct partita_channelizer *channelizer,
                         const struct partita_channel_filter *filter, double centre,
                         size_t *ret_channel);

// Replaces filter and centre of an open channel from the next block on. The first outputs of that
// block fade from the old channel to the new one: output i is old + (new - old) * (i+1) / (fade+1).
// Of several changes before that block only the last one takes effect.
// Ranges:  centre as above; fade is at most the outputs of a block, 0 if the output rate changes.
// Errors:  PARTITA_ERR_ARG; PARTITA_ERR_STATE if the channel is not open; PARTITA_ERR_NOMEM.
// Memory, Time, Threads: as partita_channelizer_open.
PARTITA_API enum partita_status
partita_channelizer_change(struct partita_channelizer *channelizer, size_t channel,
                           const struct partita_channel_filter *filter, double centre, size_t fade);

// Closes a channel. Its number is free after the next block.
// Errors:  PARTITA_ERR_ARG for NULL; PARTITA_ERR_STATE if the channel is not open.
// Threads: as partita_channelizer_open. Real-time safe.
PARTITA_API enum partita_status partita_channelizer_close(struct partita_channelizer *channelizer,
                                                          size_t channel) PARTITA_NONBLOCKING;

// Reads the next samples, at most up to the end of the current block, and returns their number: 1
// to n_frames, or 0 if n_frames is. When they complete the block, it is computed, and the outputs
// of all channels are replaced.
// Shapes:  x [n_frames], aligned to its scalar; NULL is silence.
// Ranges:  a sample that is infinite or NaN makes the outputs of all blocks whose transforms read
//          it infinite or NaN: the current one, and those that follow within the overlap.
// Errors:  none: arguments are not checked.
// Memory:  none. With one thread the call never allocates, locks, logs or makes system calls;
//          further threads are OpenMP's, which may do so.
// Time:    of a call that completes a block, that of its transforms; otherwise that of a copy.
// Threads: one at a time.
PARTITA_API size_t partita_channelizer_process(struct partita_channelizer *channelizer,
                                               const void *x, size_t n_frames) PARTITA_NONBLOCKING;

// The outputs of a channel by the last call of partita_channelizer_process: block * up / stride
// complex samples if it completed a block, otherwise NULL and *ret_n = 0, and so for a channel that
// does not exist or was not open. They are valid until the next call of process, or until the
// channel is closed and its number opened anew.
// Threads: as partita_channelizer_process. Real-time safe.
PARTITA_API const void *partita_channelizer_output(const struct partita_channelizer *channelizer,
                                                   size_t channel,
                                                   size_t *ret_n) PARTITA_NONBLOCKING;

// Samples of a block, and those of the blocks before that its transform reads again: taps may be as
// long, and 1 longer. Threads: any. Real-time safe.
PARTITA_API size_t partita_channelizer_block(const struct partita_channelizer *channelizer)
    PARTITA_NONBLOCKING;
PARTITA_API size_t partita_channelizer_overlap(const struct partita_channelizer *channelizer)
    PARTITA_NONBLOCKING;

// The number of the next input sample. After a call that completed a block, the outputs are those
// of the times from position - block to before position.
// Threads: as partita_channelizer_process. Real-time safe.
PARTITA_API uint64_t partita_channelizer_position(const struct partita_channelizer *channelizer)
    PARTITA_NONBLOCKING;

// Clears the history; the next sample has the number `position`, those before it are zeros, and
// blocks begin there. To continue a run elsewhere with its bits, reset to a multiple of the block
// that is at least the overlap earlier, and leave out the outputs before.
// Ranges:  position is a multiple of options.stride.
// Errors:  PARTITA_ERR_ARG.
// Threads: as partita_channelizer_process. Real-time safe.
PARTITA_API enum partita_status partita_channelizer_reset(struct partita_channelizer *channelizer,
                                                          uint64_t position) PARTITA_NONBLOCKING;

#ifdef __cplusplus
}
#endif

#endif
