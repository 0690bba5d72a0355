// SPDX-License-Identifier: MIT
// Reads a filter: its taps, its statistics, and its state, which is a part of the arena.
#include <math.h>
#include <string.h>

#include "adaptive.h"
#include "api/sized.h"
#include "base/hash.h"
#include "base/sizes.h"
#include "core/arguments.h"

static struct partita_log log_of_adaptive(const struct partita_adaptive *adaptive)
{
    return adaptive ? adaptive->options.log : log_default();
}

size_t partita_adaptive_latency(const struct partita_adaptive *adaptive)
{
    return adaptive->options.whole_blocks ? 0 : adaptive->options.block;
}

void partita_adaptive_freeze(struct partita_adaptive *adaptive, bool frozen)
{
    adaptive->state->frozen = frozen;
}

enum partita_status partita_adaptive_taps(struct partita_adaptive *adaptive, size_t channel,
                                          void *taps)
{
    const struct partita_log log = log_of_adaptive(adaptive);
    if (!arguments_given(log, adaptive, taps)) return PARTITA_ERR_ARG;
    const size_t block = adaptive->options.block, n_taps = adaptive->options.taps;
    const size_t slots = adaptive->partitions, bytes = adaptive->spectrum_bytes;
    if (channel >= adaptive->options.channels)
        return log_error(&log, PARTITA_ERR_ARG, "%s: channel = %zu: less than %zu", __func__,
                         channel, adaptive->options.channels);
    adaptive_run_tasks(adaptive, adaptive->tasks);
    for (size_t p = 0; p < slots; p++) {
        memcpy(adaptive->spectrum, adaptive->weights + (channel * slots + p) * bytes, bytes);
        fft_inverse(adaptive->fft, adaptive->samples, adaptive->spectrum, adaptive->scratch);
        adaptive->kernels->scale((char *)taps + p * block * adaptive->scalar, adaptive->samples,
                                 1 / adaptive->fft->gain, size_min(block, n_taps - p * block));
    }
    return PARTITA_OK;
}

static double ratio_in_db(double a, double b)
{
    return a == b ? 0 : 10 * log10(a / b); // 0 / 0 too
}

enum partita_status partita_adaptive_stats_sized(const struct partita_adaptive *adaptive,
                                                 struct partita_adaptive_stats *ret_stats,
                                                 size_t stats_bytes)
{
    if (!adaptive || !ret_stats) return PARTITA_ERR_ARG;
    const struct adaptive_state *state = adaptive->state;
    const double total = state->predicted_power + state->other;
    struct partita_adaptive_stats stats = {
        .blocks = state->blocks,
        .rested = state->rested,
        .restored = state->restored,
        .restarted = state->restarted,
        .erle = ratio_in_db(state->near_power, state->residual_power),
        .misadjustment = ratio_in_db(state->predicted_power, state->echo_power),
        .near_share = total > 0 ? state->other / total : 0,
        .coherence = state->coherence,
    };
    if (adaptive->options.control == PARTITA_ADAPTIVE_FIXED)
        stats.misadjustment = stats.near_share = (double)NAN;
    sized_write(ret_stats, stats_bytes, &stats, sizeof stats);
    return PARTITA_OK;
}

size_t partita_adaptive_state_size(const struct partita_adaptive *adaptive)
{
    return sizeof(uint64_t) + adaptive->state_bytes;
}

// A hash of everything by which the numbers of two filters may differ, and of the state.
static uint64_t sum_of_state(const struct partita_adaptive *adaptive, const void *state)
{
    const enum cpu_isa isa = cpu_detect();
    const char *provider = fft_provider(adaptive->fft);
    uint64_t hash = hash_bytes(HASH_BEGIN, provider, strlen(provider));
    hash = hash_bytes(hash_bytes(hash, &isa, sizeof isa), PARTITA_VERSION, sizeof PARTITA_VERSION);
    hash = hash_bytes(hash, &adaptive->options, offsetof(struct partita_adaptive_options, log));
    return hash_words(hash, state, adaptive->state_bytes);
}

enum partita_status partita_adaptive_save(const struct partita_adaptive *adaptive, void *state)
{
    if (!arguments_given(log_of_adaptive(adaptive), adaptive, state)) return PARTITA_ERR_ARG;
    const uint64_t sum = sum_of_state(adaptive, adaptive->state);
    memcpy(state, &sum, sizeof sum);
    memcpy((char *)state + sizeof sum, adaptive->state, adaptive->state_bytes);
    return PARTITA_OK;
}

enum partita_status partita_adaptive_restore(struct partita_adaptive *adaptive, const void *state,
                                             size_t size)
{
    const struct partita_log log = log_of_adaptive(adaptive);
    if (!arguments_given(log, adaptive, state)) return PARTITA_ERR_ARG;
    const char *bytes = (const char *)state + sizeof(uint64_t);
    const uint64_t sum =
        size == partita_adaptive_state_size(adaptive) ? sum_of_state(adaptive, bytes) : 0;
    if (size != partita_adaptive_state_size(adaptive) || memcmp(state, &sum, sizeof sum) != 0)
        return log_error(&log, PARTITA_ERR_STATE,
                         "%s: state: of a filter with other options, or damaged", __func__);
    memcpy(adaptive->state, bytes, adaptive->state_bytes);
    return PARTITA_OK;
}
