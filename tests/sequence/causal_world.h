// SPDX-License-Identifier: MIT
// Random calls of short causal convolution, and what their outputs are in double. Bounds are those
// of rounding errors: with u = 2^-24 a chain of n multiply-adds has an error of at most 2 n u times
// the sum of magnitudes (twice for plain C, which rounds products too), silu passes on at most 1.1
// of it and adds 5 u, and storing rounds once.
#ifndef PARTITA_TEST_CAUSAL_WORLD_H
#define PARTITA_TEST_CAUSAL_WORLD_H

#include "support/test.h"

#include <math.h>
#include <stdio.h>

static const double u = 0x1p-24;
static const enum partita_type types[] = {PARTITA_F32, PARTITA_F16, PARTITA_BF16};

// Samples [n[0]][n[1]][n[2]] in some order in memory, and their exact values in that of the axes.
struct samples {
    struct partita_causal_array array;
    enum partita_type type;
    size_t n[3];
    double *exact;
};

static inline double *at(const struct samples *s, size_t b, size_t c, size_t f)
{
    return s->exact + (b * s->n[1] + c) * s->n[2] + f;
}

static inline double stored(enum partita_type type, const void *data, size_t i)
{
    if (type == PARTITA_F32) return (double)((const float *)data)[i];
    const uint16_t bits = ((const uint16_t *)data)[i];
    if (type == PARTITA_BF16) {
        const uint32_t wide = (uint32_t)bits << 16;
        float value;
        memcpy(&value, &wide, sizeof value);
        return (double)value;
    }
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    const double magnitude = exponent == 0    ? ldexp(mantissa, -24)
                             : exponent == 31 ? (mantissa ? (double)NAN : (double)INFINITY)
                                              : ldexp(mantissa + 1024, exponent - 25);
    return bits >> 15 ? -magnitude : magnitude;
}

static inline size_t place(const struct samples *s, size_t b, size_t c, size_t f)
{
    return b * s->array.batch + c * s->array.channel + f * s->array.frame;
}

// Reads the exact values from memory.
static inline void read_back(const struct samples *s)
{
    for (size_t b = 0; b < s->n[0]; b++)
        for (size_t c = 0; c < s->n[1]; c++)
            for (size_t f = 0; f < s->n[2]; f++)
                *at(s, b, c, f) = stored(s->type, s->array.data, place(s, b, c, f));
}

// order 0: frames are adjacent, 1: channels are, 2: neither.
static inline struct samples make(struct random *random, enum partita_type type, const size_t n[3],
                                  size_t order)
{
    struct samples s = {.type = type, .n = {n[0], n[1], n[2]}};
    const size_t channel = order == 1   ? 1
                           : order == 2 ? 3 * n[2] + 1
                                        : n[2] + random_below(random, 3);
    const size_t frame = order == 0 ? 1 : order == 2 ? 3 : n[1] + random_below(random, 3);
    const size_t rows = order == 1 ? frame * n[2] : channel * n[1], count = n[0] * rows + 8;
    s.array = (struct partita_causal_array){
        guarded_alloc(count * partita_type_size(type), partita_type_size(type)), rows, channel,
        frame};
    random_samples(random, type, s.array.data, count);
    s.exact = malloc(n[0] * n[1] * n[2] * sizeof *s.exact + 1);
    read_back(&s);
    return s;
}

static inline void drop(struct samples *s)
{
    if (s->array.data) guarded_free(s->array.data);
    free(s->exact);
    *s = (struct samples){.n = {0}};
}

// A random call and the exact values of its arrays.
struct world {
    struct partita_causal call;
    struct samples x, y, w, bias, initial, final, gy, gx, gfinal, ginitial, gw, gbias;
    int32_t *seq_idx, *starts, *indices, *seen;
    bool *has_initial;
    struct log_lines lines;
};

enum kind { PLAIN, STATES, NUMBERED, PACKED, SLOTS, RING, KINDS };

static inline size_t up_to(struct random *random, size_t n)
{
    return 1 + random_below(random, n);
}

static inline void make_indices(struct random *random, struct world *w, enum kind kind)
{
    const size_t batch = w->call.batch, frames = w->call.frames;
    w->seq_idx = calloc(batch * frames, sizeof *w->seq_idx);
    w->starts = calloc(batch + 1, sizeof *w->starts);
    w->indices = calloc(batch, sizeof *w->indices);
    w->seen = calloc(batch, sizeof *w->seen);
    w->has_initial = calloc(batch, sizeof *w->has_initial);
    for (size_t i = 0; i < batch * frames; i++) {
        const int32_t last = i % frames ? w->seq_idx[i - 1] : 0;
        w->seq_idx[i] = random_below(random, 9) ? last : (int32_t)random_below(random, 5) - 1;
    }
    for (size_t b = 0; b < batch; b++) {
        const size_t left = frames - (size_t)w->starts[b];
        w->starts[b + 1] = w->starts[b] + (int32_t)random_below(random, left + 1);
        w->has_initial[b] = random_below(random, 2);
        w->seen[b] = (int32_t)random_below(random, 100);
        w->indices[b] = random_below(random, 5) ? (int32_t)(2 * (batch - b)) : -1;
    }
    if (kind == NUMBERED) w->call.seq_idx = w->seq_idx;
    if (kind == PACKED) w->call.query_start_loc = w->starts;
    if (kind == PACKED || kind == SLOTS) w->call.has_initial_state = w->has_initial;
    if (kind >= PACKED) w->call.cache_indices = w->indices;
    if (kind == RING) w->call.cache_seqlens = w->seen;
}

static inline struct world make_world(struct random *random, enum kind kind, bool backward)
{
    static const size_t taps[] = {1, 2, 3, 4, 4, 4, 5, 8, 31, 256};
    struct world w = {.call = {.batch = up_to(random, 4),
                               .channels = up_to(random, random_below(random, 3) ? 40 : 300),
                               .frames = up_to(random, random_below(random, 2) ? 9 : 400),
                               .taps = taps[random_below(random, 10)],
                               .type = types[random_below(random, 3)],
                               .taps_type = types[random_below(random, 3)],
                               .silu = random_below(random, 2),
                               .threads = (int)random_below(random, 3)}};
    struct partita_causal *c = &w.call;
    const bool states = kind == STATES || kind >= PACKED;
    c->state_len = states && !backward ? c->taps - 1 + random_below(random, 4) : c->taps - 1;
    if (kind == RING && !c->state_len) c->state_len = 1;
    c->slots = kind >= PACKED ? 2 * c->batch + 1 : c->batch;
    const size_t n[] = {kind == PACKED ? 1 : c->batch, c->channels, c->frames};
    const size_t n_w[] = {1, c->channels, c->taps}, n_bias[] = {1, c->channels, 1};
    const size_t n_states[] = {c->slots, c->channels, c->state_len};
    struct random flat = *random;
    make_indices(random, &w, kind);
    w.x = make(random, c->type, n, random_below(random, 3));
    w.y = make(random, c->type, n, random_below(random, 3));
    w.w = make(&flat, c->taps_type, n_w, 0);
    while (w.w.array.channel != c->taps) drop(&w.w), w.w = make(&flat, c->taps_type, n_w, 0);
    w.bias = make(random, c->taps_type, n_bias, 1);
    c->x = w.x.array, c->y = w.y.array, c->w = w.w.array.data;
    if (random_below(random, 2)) c->bias = w.bias.array.data;
    if (states) {
        w.initial = make(random, c->type, n_states, random_below(random, 3));
        w.final = make(random, c->type, n_states, random_below(random, 3));
        c->initial = w.initial.array;
        c->final = kind == RING ? c->initial : w.final.array;
    }
    if (!backward) return w;
    w.gy = make(random, c->type, n, random_below(random, 3));
    w.gx = make(random, c->type, n, random_below(random, 3));
    w.gw = make(&flat, c->taps_type, n_w, 0);
    while (w.gw.array.channel != c->taps) drop(&w.gw), w.gw = make(&flat, c->taps_type, n_w, 0);
    w.gbias = make(random, c->taps_type, n_bias, 1);
    c->gy = w.gy.array, c->gx = w.gx.array, c->gw = w.gw.array.data, c->gbias = w.gbias.array.data;
    if (states) {
        w.gfinal = make(random, c->type, n_states, random_below(random, 3));
        w.ginitial = make(random, c->type, n_states, random_below(random, 3));
        c->gfinal = w.gfinal.array, c->ginitial = w.ginitial.array;
    }
    return w;
}

static inline void drop_world(struct world *w)
{
    struct samples *all[] = {&w->x,  &w->y,  &w->w,      &w->bias,     &w->initial, &w->final,
                             &w->gy, &w->gx, &w->gfinal, &w->ginitial, &w->gw,      &w->gbias};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) drop(all[i]);
    free(w->seq_idx), free(w->starts), free(w->indices), free(w->seen), free(w->has_initial);
}

// The sequence b of a world: its frames, and the sample `back` frames before frame f of it.
struct sequence {
    size_t batch, first, frames, slot;
    bool absent, initial;
};

static inline struct sequence sequence_of(const struct world *w, size_t b)
{
    const struct partita_causal *c = &w->call;
    struct sequence s = {.batch = b, .frames = c->frames, .slot = b, .initial = c->initial.data};
    if (c->query_start_loc) {
        s.batch = 0, s.first = (size_t)w->starts[b];
        s.frames = (size_t)(w->starts[b + 1] - w->starts[b]);
    }
    if (c->cache_indices) s.absent = w->indices[b] < 0, s.slot = (size_t)w->indices[b];
    if (c->has_initial_state) s.initial = s.initial && w->has_initial[b];
    return s;
}

// Element f of the state followed by the sequence; f may be as low as -state_len.
static inline double *sample_of(const struct world *w, const struct sequence *s, size_t b, size_t c,
                                ptrdiff_t f)
{
    static double zero;
    const size_t length = w->call.state_len;
    size_t past = length + (size_t)f;
    zero = 0;
    if (f >= 0) return at(&w->x, s->batch, c, s->first + (size_t)f);
    if (!s->initial) return &zero;
    if (w->call.cache_seqlens) past = ((size_t)w->seen[b] + length * 300 + (size_t)f) % length;
    return at(&w->initial, s->slot, c, past);
}

// Whether frame f of a sequence reaches the sample at f - back.
static inline bool reaches(const struct world *w, const struct sequence *s, size_t f, size_t back)
{
    if (!w->call.seq_idx) return true;
    const int32_t *number = w->seq_idx + s->batch * w->call.frames;
    for (size_t k = 1; k <= back; k++)
        if (k > f || number[f - k] != number[f]) return false;
    return true;
}

static inline bool is_absent(const struct world *w, const struct sequence *s, size_t f)
{
    return s->absent || (w->call.seq_idx && w->seq_idx[s->batch * w->call.frames + f] < 0);
}

struct sum {
    double value, error;
};

// The sum of an output before silu.
static inline struct sum sum_of(const struct world *w, const struct sequence *s, size_t b, size_t c,
                                size_t f)
{
    const size_t taps = w->call.taps;
    const double bias = w->call.bias ? w->bias.exact[c] : 0;
    struct sum sum = {bias, fabs(bias)};
    for (size_t k = 0; k < taps; k++) {
        const size_t back = taps - 1 - k;
        if (!reaches(w, s, f, back)) continue;
        const double term =
            *at(&w->w, 0, c, k) * *sample_of(w, s, b, c, (ptrdiff_t)f - (ptrdiff_t)back);
        sum.value += term;
        sum.error += fabs(term);
    }
    sum.error *= 2 * (double)taps * u;
    return sum;
}

static inline double rounding(enum partita_type type, double value)
{
    if (type == PARTITA_F32) return u * fabs(value) + 0x1p-126;
    return type == PARTITA_F16 ? 0x1p-11 * fabs(value) + 0x1p-25 : 0x1p-8 * fabs(value) + 0x1p-126;
}

static inline void check(double value, double expected, double error, enum partita_type type,
                         const char *name, size_t c, size_t f)
{
    const double allowed = error + rounding(type, fabs(expected) + error);
    if (!(fabs(value - expected) <= allowed))
        fail_msg("%s[%zu][%zu] is %.9g, expected %.9g within %.3g", name, c, f, value, expected,
                 allowed);
}

#endif
