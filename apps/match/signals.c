// SPDX-License-Identifier: MIT
#include "signals.h"

#include <stdlib.h>
#include <string.h>

#include "base/interleave.h"
#include "base/memory.h"

enum { CHUNK = 1 << 14 }; // frames read at once

bool signals_reserve(struct signals *s, size_t pitch, struct fault *fault)
{
    size_t max_channels = 0, held = (size_t)(s->to - s->from);
    for (size_t k = 0; k < s->n_in; k++) {
        const size_t channels = audio_reader_info(s->in[k])->channels;
        max_channels = channels > max_channels ? channels : max_channels;
    }
    float *x = memory_allocate(s->n * pitch * sizeof *x);
    if (x && !s->chunk) s->chunk = memory_allocate(CHUNK * max_channels * sizeof *s->chunk);
    if (x && s->chunk) {
        for (size_t i = 0; held && i < s->n; i++)
            memcpy(x + i * pitch, s->x + i * s->pitch, held * sizeof *x);
        memory_free(s->x);
        s->x = x;
        s->pitch = pitch;
        return true;
    }
    memory_free(x);
    return memory_fault(fault, "%zu frames of %zu signals", pitch, s->n);
}

bool signals_hold(struct signals *s, uint64_t from, uint64_t to, struct fault *fault)
{
    const uint64_t kept = from < s->to ? s->to - from : 0;
    float *row = s->x;
    for (size_t k = 0; k < s->n_in; k++) {
        struct audio_reader *in = s->in[k];
        const struct channel_rows rows = {
            .channels = audio_reader_info(in)->channels, .bytes = sizeof *row, .length = s->pitch};
        for (size_t c = 0; kept && c < rows.channels; c++)
            memmove(row + c * s->pitch, row + c * s->pitch + (from - s->from), kept * sizeof *row);
        if (!kept && !audio_skip(in, from - s->to, fault)) return false;
        for (uint64_t at = from + kept; at < to;) {
            size_t n = to - at < CHUNK ? (size_t)(to - at) : CHUNK;
            if (!audio_read(in, PARTITA_F32, s->chunk, n, &n, fault)) return false;
            if (!n && !s->may_end) return fault_set(fault, "%s", audio_shortfall(in));
            if (!n) to = at;
            frames_deinterleave(row + (at - from), s->chunk, &rows, n);
            at += n;
        }
        row += rows.channels * s->pitch;
    }
    s->from = from;
    s->to = to;
    return true;
}

void signals_release(struct signals *s)
{
    for (size_t k = 0; k < s->n_in; k++) audio_reader_close(s->in[k]);
    memory_free(s->x);
    memory_free(s->chunk);
    free(s->in);
    *s = (struct signals){0};
}
