// SPDX-License-Identifier: MIT
#include "chain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../../lib/base/clock.h"
#include "../../../lib/stream/stats.h"
#include "denormals.h"
#include "io/samples/samples.h"
#include "limiter.h"
#include "ramp.h"

// Calls are processed in chunks of at most this many frames, so that buffers have a fixed size.
enum { CHUNK = 512 };

static const double RAMP_SECONDS = 0.02, RELEASE_SECONDS = 0.1, METER_SECONDS = 0.3;

struct canceller {
    struct partita_adaptive *adaptive;
    _Atomic float erle; // set by the audio thread
};

struct chain {
    struct chain_request request;
    size_t ramp_frames, near_channels; // inputs that are filtered
    // Set by the control thread.
    _Atomic float input_target, wet_target, dry_target, cancel_target;
    atomic_bool end_wanted, detached;
    // The audio thread's own.
    struct ramp input, wet, dry, cancel;
    struct canceller *cancellers; // [near_channels]
    struct limiter limiter;
    float *frames, **x, **y; // CHUNK frames of every channel
    float *interleaved;
    // Set by the audio thread.
    atomic_ullong n_calls, n_frames, xruns, lost[N_CHAIN_LOSSES], nonfinite_in, nonfinite_out,
        limited, unrecorded;
    atomic_bool ended;
    struct stats load; // relative to the deadline
    struct meter *meters;
};

// Only one thread writes, so a load and a store suffice.
static void add_to_counter(atomic_ullong *counter, uint64_t by)
{
    uint64_t before = atomic_load_explicit(counter, memory_order_relaxed);
    if (by) atomic_store_explicit(counter, before + by, memory_order_relaxed);
}

static bool open_cancellers(struct chain *c)
{
    const struct chain_request *r = &c->request;
    const struct partita_adaptive_options options = {
        .channels = r->far_channels, .taps = r->cancel_taps, .block = CHAIN_CANCEL_BLOCK};
    if (!r->far_channels) return true;
    c->cancellers = calloc(c->near_channels, sizeof *c->cancellers);
    for (size_t i = 0; c->cancellers && i < c->near_channels; i++)
        if (partita_adaptive_create(&options, &c->cancellers[i].adaptive)) return false;
    return c->cancellers;
}

static bool chain_allocate(struct chain *c)
{
    size_t channels = c->request.in_channels + c->request.out_channels;
    c->frames = calloc(channels * CHUNK, sizeof *c->frames);
    c->x = calloc(c->request.in_channels, sizeof *c->x);
    c->y = calloc(c->request.out_channels, sizeof *c->y);
    c->interleaved = calloc(c->request.out_channels * CHUNK, sizeof *c->interleaved);
    c->meters = calloc(channels, sizeof *c->meters);
    if (!c->frames || !c->x || !c->y || !c->interleaved || !c->meters) return false;
    for (size_t i = 0; i < c->request.in_channels; i++) c->x[i] = c->frames + i * CHUNK;
    for (size_t i = 0; i < c->request.out_channels; i++)
        c->y[i] = c->frames + (c->request.in_channels + i) * CHUNK;
    return open_cancellers(c);
}

bool chain_open(struct chain **ret_chain, const struct chain_request *request, struct fault *fault)
{
    const struct chain_request *r = request;
    struct chain *c = calloc(1, sizeof *c);
    if (!c) return fault_set(fault, "out of memory");
    *c = (struct chain){
        .request = *r,
        .ramp_frames = (size_t)(RAMP_SECONDS * r->rate),
        .near_channels = r->in_channels - r->far_channels,
        .input_target = r->levels.input,
        .wet_target = r->levels.wet,
        .dry_target = r->levels.dry,
        .cancel_target = r->levels.cancel,
        .input = {.value = r->levels.input, .target = r->levels.input},
        .wet = {.value = r->levels.wet, .target = r->levels.wet},
        .dry = {.value = r->levels.dry, .target = r->levels.dry},
        .cancel = {.value = r->levels.cancel, .target = r->levels.cancel},
    };
    limiter_open(&c->limiter, r->rate, RELEASE_SECONDS);
    if (!chain_allocate(c)) {
        chain_close(c);
        return fault_set(fault, "out of memory for %zu channels", r->in_channels + r->out_channels);
    }
    *ret_chain = c;
    return true;
}

void chain_close(struct chain *chain)
{
    if (!chain) return;
    for (size_t i = 0; chain->cancellers && i < chain->near_channels; i++)
        partita_adaptive_destroy(chain->cancellers[i].adaptive);
    free(chain->cancellers);
    free(chain->meters);
    free(chain->interleaved);
    free(chain->y);
    free(chain->x);
    free(chain->frames);
    free(chain);
}

static void update_ramps(struct chain *c)
{
    bool end = atomic_load_explicit(&c->end_wanted, memory_order_relaxed);
    float input = atomic_load_explicit(&c->input_target, memory_order_relaxed);
    float wet = end ? 0 : atomic_load_explicit(&c->wet_target, memory_order_relaxed);
    float dry = end ? 0 : atomic_load_explicit(&c->dry_target, memory_order_relaxed);
    float cancel = atomic_load_explicit(&c->cancel_target, memory_order_relaxed);
    if (input != c->input.target) ramp_set_target(&c->input, input, c->ramp_frames);
    if (wet != c->wet.target) ramp_set_target(&c->wet, wet, c->ramp_frames);
    if (dry != c->dry.target) ramp_set_target(&c->dry, dry, c->ramp_frames);
    if (cancel != c->cancel.target) ramp_set_target(&c->cancel, cancel, c->ramp_frames);
}

static void meter_all(struct chain *c, struct meter *meters, float *const *x, size_t channels,
                      size_t n)
{
    float decay = (float)-expm1(-(double)n / (c->request.rate * METER_SECONDS));
    for (size_t i = 0; i < channels; i++) meter_add(&meters[i], x[i], n, decay);
}

// Copies and amplifies the input, since a device may use the same memory for input and output, and
// replaces non-finite samples, which would spread over the length of the filter.
static void chain_read_input(struct chain *c, const float *const *in, size_t at, size_t n)
{
    float gain[CHUNK];
    uint64_t n_bad = 0;
    ramp_next(&c->input, gain, n);
    for (size_t i = 0; i < c->request.in_channels; i++) {
        float *x = c->x[i];
        if (!in) memset(x, 0, n * sizeof *x);
        for (size_t k = 0; in && k < n; k++) x[k] = gain[k] * in[i][at + k];
        n_bad += samples_zero_nonfinite_f32(x, n);
    }
    add_to_counter(&c->nonfinite_in, n_bad);
    meter_all(c, c->meters, c->x, c->request.in_channels, n);
}

// Removes the far end from the other inputs. What is bypassed still learns.
static void chain_cancel(struct chain *c, size_t n)
{
    float share[CHUNK], near_end[CHUNK];
    const void *const *far_end = (const void *const *)(c->x + c->near_channels);
    if (!c->cancellers) return;
    ramp_next(&c->cancel, share, n);
    for (size_t i = 0; i < c->near_channels; i++) {
        struct canceller *canceller = &c->cancellers[i];
        struct partita_adaptive_stats stats;
        float *x = c->x[i];
        memcpy(near_end, x, n * sizeof *x);
        partita_adaptive_process(canceller->adaptive, x, near_end, far_end, n);
        for (size_t k = 0; k < n; k++) x[k] = share[k] * x[k] + (1 - share[k]) * near_end[k];
        partita_adaptive_stats(canceller->adaptive, &stats);
        atomic_store_explicit(&canceller->erle, (float)stats.erle, memory_order_relaxed);
    }
}

// Adds filtered and unfiltered input. A single input goes to every output, several inputs go each
// to the output of the same number.
static void chain_mix(struct chain *c, size_t n)
{
    float wet[CHUNK], dry[CHUNK];
    uint64_t n_bad = 0;
    ramp_next(&c->wet, wet, n);
    ramp_next(&c->dry, dry, n);
    for (size_t k = 0; k < c->request.out_channels; k++) {
        const size_t input = c->near_channels == 1 ? 0 : k;
        const float *x = input < c->near_channels ? c->x[input] : NULL;
        float *y = c->y[k];
        for (size_t i = 0; i < n; i++) y[i] = wet[i] * y[i];
        for (size_t i = 0; x && i < n; i++) y[i] += dry[i] * x[i];
        n_bad += samples_zero_nonfinite_f32(y, n);
    }
    add_to_counter(&c->nonfinite_out, n_bad);
}

static void chain_limit(struct chain *c, size_t n)
{
    if (!c->request.limiter) return;
    add_to_counter(&c->limited, limiter_process(&c->limiter, c->y, c->request.out_channels, n));
}

static void chain_record(struct chain *c, size_t n)
{
    if (!c->request.record) return;
    for (size_t k = 0; k < c->request.out_channels; k++)
        for (size_t i = 0; i < n; i++) c->interleaved[i * c->request.out_channels + k] = c->y[k][i];
    if (!ring_put(c->request.record, c->interleaved, n)) add_to_counter(&c->unrecorded, n);
}

static void chain_process_chunk(struct chain *c, float *const *out, const float *const *in,
                                size_t at, size_t n)
{
    chain_read_input(c, in, at, n);
    chain_cancel(c, n);
    partita_stream_process(c->request.stream, (void *const *)c->y, (const void *const *)c->x, n);
    chain_mix(c, n);
    chain_limit(c, n);
    meter_all(c, c->meters + c->request.in_channels, c->y, c->request.out_channels, n);
    chain_record(c, n);
    for (size_t k = 0; k < c->request.out_channels; k++)
        memcpy(out[k] + at, c->y[k], n * sizeof **out);
}

static void count_call(struct chain *c, size_t n, unsigned losses, double seconds)
{
    struct call_time time = {atomic_load_explicit(&c->n_frames, memory_order_relaxed),
                             (float)seconds};
    if (c->request.calls) ring_put(c->request.calls, &time, 1);
    if (n) stats_count(&c->load, seconds * c->request.rate / (double)n, 1);
    const bool several = losses & (losses - 1);
    for (int i = 0; i < N_DEVICE_LOSSES; i++)
        add_to_counter(&c->lost[i], !several && losses >> i & 1);
    add_to_counter(&c->lost[CHAIN_SEVERAL], several);
    add_to_counter(&c->xruns, losses != 0);
    add_to_counter(&c->n_frames, n);
    add_to_counter(&c->n_calls, 1);
}

// Whether this chunk was the last: the duration is reached, or the fade-out is complete.
static bool is_over(const struct chain *c, uint64_t frames)
{
    bool faded = atomic_load_explicit(&c->end_wanted, memory_order_relaxed) && !c->wet.left &&
                 !c->dry.left && c->wet.value == 0 && c->dry.value == 0;
    return faded || frames >= c->request.duration;
}

bool chain_process(void *user, float *const *out, const float *const *in, size_t n, unsigned losses)
{
    struct chain *c = user;
    if (atomic_load_explicit(&c->detached, memory_order_relaxed)) {
        for (size_t k = 0; k < c->request.out_channels; k++) memset(out[k], 0, n * sizeof **out);
        return false;
    }
    double begin = clock_seconds();
    uint64_t mode = denormals_off(),
             done = atomic_load_explicit(&c->n_frames, memory_order_relaxed);
    bool over = atomic_load_explicit(&c->ended, memory_order_relaxed);
    size_t played = 0;
    update_ramps(c);
    while (played < n && !over) {
        uint64_t left = c->request.duration - (done + played);
        size_t chunk = n - played < CHUNK ? n - played : CHUNK;
        if (chunk > left) chunk = (size_t)left;
        chain_process_chunk(c, out, in, played, chunk);
        played += chunk;
        over = is_over(c, done + played);
    }
    for (size_t k = 0; k < c->request.out_channels; k++)
        memset(out[k] + played, 0, (n - played) * sizeof **out);
    denormals_restore(mode);
    count_call(c, played, losses, clock_seconds() - begin);
    if (over) atomic_store_explicit(&c->ended, true, memory_order_release);
    return !over;
}

void chain_set_levels(struct chain *chain, const struct chain_levels *levels)
{
    atomic_store_explicit(&chain->input_target, levels->input, memory_order_relaxed);
    atomic_store_explicit(&chain->wet_target, levels->wet, memory_order_relaxed);
    atomic_store_explicit(&chain->dry_target, levels->dry, memory_order_relaxed);
    atomic_store_explicit(&chain->cancel_target, levels->cancel, memory_order_relaxed);
}

void chain_end(struct chain *chain)
{
    atomic_store_explicit(&chain->end_wanted, true, memory_order_relaxed);
}

void chain_detach(struct chain *chain)
{
    atomic_store_explicit(&chain->detached, true, memory_order_relaxed);
}

struct chain_counts chain_counts(const struct chain *chain)
{
    const struct chain *c = chain;
    struct chain_counts counts = {
        .ended = atomic_load_explicit(
            &c->ended, memory_order_acquire), // read first, so that the other counts are final
        .calls = atomic_load_explicit(&c->n_calls, memory_order_relaxed),
        .frames = atomic_load_explicit(&c->n_frames, memory_order_relaxed),
        .xruns = atomic_load_explicit(&c->xruns, memory_order_relaxed),
        .nonfinite_in = atomic_load_explicit(&c->nonfinite_in, memory_order_relaxed),
        .nonfinite_out = atomic_load_explicit(&c->nonfinite_out, memory_order_relaxed),
        .limited = atomic_load_explicit(&c->limited, memory_order_relaxed),
        .unrecorded = atomic_load_explicit(&c->unrecorded, memory_order_relaxed),
    };
    for (int i = 0; i < N_CHAIN_LOSSES; i++)
        counts.lost[i] = atomic_load_explicit(&c->lost[i], memory_order_relaxed);
    return counts;
}

struct partita_stream_stats chain_load(const struct chain *chain)
{
    struct partita_stream_stats load;
    stats_read(&chain->load, &load);
    return load;
}

float chain_erle(const struct chain *chain, size_t channel)
{
    return atomic_load_explicit(&chain->cancellers[channel].erle, memory_order_relaxed);
}

void chain_update_levels(struct chain *chain, double now)
{
    for (size_t i = 0; i < chain->request.in_channels + chain->request.out_channels; i++)
        meter_update(&chain->meters[i], now);
}

struct level chain_level(const struct chain *chain, bool out, size_t channel)
{
    return chain->meters[(out ? chain->request.in_channels : 0) + channel].level;
}
