// SPDX-License-Identifier: MIT
// Checks the arguments of short causal convolution before anything is written.
#include <string.h>

#include "api/sized.h"
#include "base/thread.h"
#include "causal.h"
#include "core/arguments.h"

static bool is_real(enum partita_type type)
{
    return type == PARTITA_F32 || type == PARTITA_F16 || type == PARTITA_BF16;
}

// Samples or states of a call. Bytes are SIZE_MAX if memory has not as many, or if the array is
// written and has two elements in one place: an axis must step over all axes of smaller strides.
static struct call_array samples_of(const struct partita_causal *c, const char *name,
                                    const struct partita_causal_array *array, bool states,
                                    bool written)
{
    const size_t batch = c->query_start_loc ? 1 : c->batch, size = partita_type_size(c->type);
    const size_t n[] = {states ? c->slots : batch, c->channels, states ? c->state_len : c->frames};
    const size_t stride[] = {array->batch, array->channel, array->frame};
    size_t last = 0;
    bool apart = true;
    for (int i = 0; i < 3; i++) {
        size_t reach = 0;
        for (int j = 0; j < 3; j++)
            if (stride[j] < stride[i] || (stride[j] == stride[i] && j < i))
                reach = size_add(reach, size_mul(n[j] - 1, stride[j]));
        apart = apart && (n[i] == 1 || stride[i] > reach);
        last = size_add(last, size_mul(n[i] - 1, stride[i]));
    }
    const size_t bytes = size_mul(size_add(last, 1), size);
    const bool usable = bytes <= PTRDIFF_MAX && (apart || !written);
    return (struct call_array){name, array->data, usable ? bytes : SIZE_MAX, size, written};
}

bool causal_in_range(const struct partita_log *log, const char *name, size_t value, size_t least,
                     size_t largest)
{
    if (value >= least && value <= largest) return true;
    return log_line(log, "%s = %td: must be from %zu to %zu", name, (ptrdiff_t)value, least,
                    largest);
}

static bool sizes_check(const struct partita_causal *c, bool backward)
{
    const struct partita_log *log = &c->log;
    const size_t past = c->taps - 1, max_frames = c->query_start_loc ? INT32_MAX : PTRDIFF_MAX;
    return causal_in_range(log, "batch", c->batch, 1, INT32_MAX) &&
           causal_in_range(log, "channels", c->channels, 1, PTRDIFF_MAX) &&
           causal_in_range(log, "frames", c->frames, 1, max_frames) &&
           causal_in_range(log, "taps", c->taps, 1, CAUSAL_MAX_TAPS) &&
           causal_in_range(log, "state_len", c->state_len, past, backward ? past : PTRDIFF_MAX) &&
           causal_in_range(log, "slots", c->slots, c->cache_indices ? 1 : c->batch, PTRDIFF_MAX) &&
           causal_in_range(log, "threads", (size_t)c->threads, 0, INT32_MAX);
}

static bool fields_check(const struct partita_causal *c, bool backward)
{
    const bool states = c->initial.data || c->final.data || c->gfinal.data || c->ginitial.data;
    if (c->seq_idx && (states || c->query_start_loc || c->cache_indices))
        return log_line(&c->log, "seq_idx: excludes states and query_start_loc");
    if (backward &&
        (c->query_start_loc || c->cache_indices || c->has_initial_state || c->cache_seqlens))
        return log_line(
            &c->log,
            "query_start_loc, cache_indices, has_initial_state, cache_seqlens: have no gradient");
    if (c->cache_seqlens && (!c->state_len || c->initial.data != c->final.data))
        return log_line(&c->log, "cache_seqlens: initial and final must be one array of states");
    return true;
}

static bool memory_check(const struct partita_causal *c, bool backward)
{
    enum { SAMPLES = 8 };
    const size_t size = partita_type_size(c->taps_type), bias = size_mul(c->channels, size);
    const size_t w = size_mul(bias, c->taps), numbers = size_mul(c->batch, c->frames * 4);
    const size_t indices = (c->batch + (c->query_start_loc != NULL)) * sizeof(int32_t);
    struct call_array all[] = {
        samples_of(c, "x", &c->x, false, false),
        samples_of(c, "y", &c->y, false, true),
        samples_of(c, "initial", &c->initial, true, false),
        samples_of(c, "final", &c->final, true, true),
        samples_of(c, "gy", &c->gy, false, false),
        samples_of(c, "gx", &c->gx, false, true),
        samples_of(c, "gfinal", &c->gfinal, true, false),
        samples_of(c, "ginitial", &c->ginitial, true, true),
        {"w", c->w, w, size, false},
        {"bias", c->bias, bias, size, false},
        {"gw", c->gw, w, size, true},
        {"gbias", c->gbias, bias, size, true},
        {"seq_idx", c->seq_idx, numbers, 4, false},
        {"query_start_loc", c->query_start_loc, indices, 4, false},
        {"cache_indices", c->cache_indices, indices, 4, false},
        {"cache_seqlens", c->cache_seqlens, indices, 4, false},
        {NULL, NULL, 0, 0, false},
    };
    const char *missing = backward && !c->gy.data ? "gy" : NULL;
    if (!backward && !c->y.data) missing = "y";
    if (!c->x.data || !c->w) missing = c->x.data ? "w" : "x";
    if (missing) return log_line(&c->log, "%s is NULL", missing);
    for (int i = 0; i < SAMPLES; i++)
        if (all[i].data && all[i].bytes == SIZE_MAX)
            return log_line(&c->log, "%s: strides put two elements in one place, or exceed memory",
                            all[i].name);
    if (!memcmp(&c->x, &c->y, sizeof c->x)) all[0].data = NULL; // in place
    if (!memcmp(&c->initial, &c->final, sizeof c->final)) all[2].data = NULL;
    return arrays_check(c->log, backward ? "partita_causal_backward" : "partita_causal_forward",
                        all);
}

// Whether the slots of all sequences exist, each at most once.
static bool slots_check(const struct partita_causal *c)
{
    const int32_t *slots = c->cache_indices;
    for (size_t i = 0; i < c->batch; i++) {
        bool twice = false;
        if (slots[i] < -1 || (slots[i] >= 0 && (size_t)slots[i] >= c->slots))
            return log_line(&c->log, "cache_indices[%zu] = %d: must be -1 or below slots = %zu", i,
                            slots[i], c->slots);
        for (size_t j = 0; j < i; j++) twice |= slots[j] == slots[i];
        if (twice && slots[i] >= 0)
            return log_line(&c->log, "cache_indices[%zu] = %d: is given twice", i, slots[i]);
    }
    return true;
}

static bool indices_check(const struct partita_causal *c)
{
    const int32_t *starts = c->query_start_loc;
    for (size_t i = 0; starts && i <= c->batch; i++) {
        const int32_t least = i ? starts[i - 1] : 0;
        if (starts[i] < least || (i == 0 && starts[0]) || (size_t)starts[i] > c->frames)
            return log_line(
                &c->log,
                "query_start_loc[%zu] = %d: must begin with 0, not fall, and be at most "
                "frames = %zu",
                i, starts[i], c->frames);
    }
    for (size_t i = 0; c->cache_seqlens && i < c->batch; i++)
        if (c->cache_seqlens[i] < 0)
            return log_line(&c->log, "cache_seqlens[%zu] = %d: must not be negative", i,
                            c->cache_seqlens[i]);
    return !c->cache_indices || slots_check(c);
}

enum { SMALL = 1 << 16 }; // sums that take about as long as to wake a thread

enum partita_status causal_resolve(struct causal *ret, const struct partita_causal *given,
                                   size_t bytes, bool backward)
{
    struct partita_causal *c = &ret->call;
    const struct partita_log log = log_given(given);
    if (!given) return log_error(&log, PARTITA_ERR_ARG, "causal is NULL");
    if (!sized_read(c, sizeof *c, given, bytes, &log, "causal")) return PARTITA_ERR_UNSUPPORTED;
    c->log = log;
    if (!c->type) c->type = PARTITA_F32;
    if (!c->taps_type) c->taps_type = c->type;
    if (!c->state_len && c->taps) c->state_len = c->taps - 1;
    if (!c->slots) c->slots = c->batch;
    const struct partita_causal_array none = {NULL, 0, 0, 0};
    if (backward) c->y = c->final = none; // not used
    else c->gy = c->gx = c->gfinal = c->ginitial = none, c->gw = c->gbias = NULL;
    if (!c->state_len) // there is nothing to read or write
        c->initial = c->final = c->gfinal = c->ginitial = none;
    if (!is_real(c->type) || !is_real(c->taps_type))
        return log_error(&log, PARTITA_ERR_UNSUPPORTED, "%s: must be f32, f16 or bf16",
                         is_real(c->type) ? "taps_type" : "type");
    if (!sizes_check(c, backward) || !fields_check(c, backward) || !memory_check(c, backward) ||
        !indices_check(c))
        return PARTITA_ERR_ARG;
    const size_t past = size_max(c->taps - 1, 1);
    const bool rows = c->x.frame != 1 || c->frames < 2 * CAUSAL_LANES;
    const size_t lanes = rows ? (size_t)CAUSAL_MAX_BLOCK >> backward : (size_t)2 * CAUSAL_LANES;
    const size_t eighth = c->channels / 8; // eight tasks, so that there is work for threads
    const size_t max = size_min(size_min(eighth, lanes), CAUSAL_TILE / 2 / past);
    const enum cpu_isa isa = cpu_detect();
    ret->block = size_max(max / CAUSAL_LANES, 1) * CAUSAL_LANES;
    ret->kernels = kernels_select(isa, false);
    ret->sums = causal_kernels_of(isa, false);
    ret->threads = c->threads ? thread_bound(c->threads) : thread_default();
    const size_t sequences = c->query_start_loc ? 1 : c->batch;
    if (size_mul(size_mul(sequences, c->channels), size_mul(c->frames, c->taps)) < SMALL)
        ret->threads = 1;
    return PARTITA_OK;
}
