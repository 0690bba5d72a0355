// SPDX-License-Identifier: MIT
// See tags.h. Positions of cue points are in Microsoft's "Multimedia Programming Interface and Data
// Specifications 1.0".
#include "tags.h"

#include <stdlib.h>
#include <string.h>

enum { CUE_BYTES = 24, CUE_POSITION = 4, CUE_OFFSET = 20, BEXT_TIME = 338 };

// The chunk auxi of SpectraVue: the times of the first and the last sample (SYSTEMTIME of Windows),
// and the frequency at the centre in Hz. Some programs write XML instead.
enum { AUXI_TIMES = 32, AUXI_FREQUENCY = 32 };

static void store32(unsigned char *x, uint32_t value)
{
    for (int i = 0; i < 4; i++) x[i] = (unsigned char)(value >> (8 * i));
}

static bool has_id(const unsigned char *chunk, const char *id)
{
    return memcmp(chunk, id, 4) == 0;
}

bool tags_know(const char id[4])
{
    const unsigned char *chunk = (const unsigned char *)id;
    return has_id(chunk, "LIST") || has_id(chunk, "bext") || has_id(chunk, "cue ") ||
           has_id(chunk, "auxi");
}

// Appends n zeros; NULL: no memory, or too many.
static unsigned char *tags_extend(struct tags *tags, size_t n)
{
    if (n > TAGS_MAX_BYTES - tags->n) return NULL;
    unsigned char *grown = realloc(tags->bytes, tags->n + n);
    if (!grown) return NULL;
    tags->bytes = grown;
    tags->n += n;
    return memset(grown + tags->n - n, 0, n);
}

unsigned char *tags_append(struct tags *tags, const char id[4], size_t n)
{
    unsigned char *chunk = n < TAGS_MAX_BYTES ? tags_extend(tags, 8 + n + (n & 1)) : NULL;
    if (!chunk) return NULL;
    memcpy(chunk, id, 4);
    store32(chunk + 4, (uint32_t)n);
    return chunk + 8;
}

void tags_copy(struct tags *ret, const struct tags *from)
{
    *ret = (struct tags){.bytes = from->n ? malloc(from->n) : NULL};
    if (!ret->bytes) return;
    memcpy(ret->bytes, from->bytes, from->n);
    ret->n = from->n;
}

// Removes points before the result and returns the new size of the body.
static size_t move_cues(unsigned char *body, size_t n, const struct tags_move *move)
{
    if (n < 4) return n;
    size_t kept = 0, count = (n - 4) / CUE_BYTES;
    if (chunk_number(body) < count) count = chunk_number(body);
    for (size_t i = 0; i < count; i++) {
        unsigned char *cue = body + 4 + i * CUE_BYTES;
        const int64_t at = (int64_t)chunk_number(cue + CUE_OFFSET) * move->up - move->first;
        if (at < 0 || at / move->stride > UINT32_MAX) continue;
        const uint32_t moved = (uint32_t)(at / move->stride);
        store32(cue + CUE_POSITION, moved);
        store32(cue + CUE_OFFSET, moved);
        memmove(body + 4 + kept++ * CUE_BYTES, cue, CUE_BYTES);
    }
    store32(body, (uint32_t)kept);
    return 4 + kept * CUE_BYTES;
}

// The time of the first sample, in samples since midnight.
static void move_time(unsigned char *body, size_t n, const struct tags_move *move)
{
    if (n < BEXT_TIME + 8) return;
    const uint64_t time =
        chunk_number(body + BEXT_TIME) | (uint64_t)chunk_number(body + BEXT_TIME + 4) << 32;
    if (time > INT64_MAX >> 24 || (int64_t)time * move->up + move->first < 0) return;
    const uint64_t moved = (uint64_t)(((int64_t)time * move->up + move->first) / move->stride);
    store32(body + BEXT_TIME, (uint32_t)moved);
    store32(body + BEXT_TIME + 4, (uint32_t)(moved >> 32));
}

// Times that are no longer true are set to 0, which stands for unknown ones.
static void move_auxi(unsigned char *body, size_t n, const struct tags_move *move)
{
    if (n < AUXI_FREQUENCY + 4 || body[0] == '<') return;
    if (move->first) memset(body, 0, AUXI_TIMES);
    const double hz = (double)chunk_number(body + AUXI_FREQUENCY) + move->tune;
    if (hz >= 0 && hz <= UINT32_MAX) store32(body + AUXI_FREQUENCY, (uint32_t)hz);
}

void tags_move(struct tags *tags, const struct tags_move *move)
{
    size_t kept = 0;
    for (size_t at = 0, n; at < tags->n; at += 8 + n + (n & 1)) {
        unsigned char *chunk = tags->bytes + at;
        n = chunk_number(chunk + 4);
        size_t after = n;
        const bool time = has_id(chunk, "bext"), cues = has_id(chunk, "cue ");
        if (move->unplaced && (time || cues)) continue;
        if (time) move_time(chunk + 8, n, move);
        if (cues) after = move_cues(chunk + 8, n, move);
        if (has_id(chunk, "auxi")) move_auxi(chunk + 8, n, move);
        store32(chunk + 4, (uint32_t)after);
        memmove(tags->bytes + kept, chunk, 8 + after + (after & 1));
        kept += 8 + after + (after & 1);
    }
    tags->n = kept;
}

char *tags_text(const struct tags *tags, const char id[4])
{
    for (size_t at = 0, n; at < tags->n; at += 8 + n + (n & 1)) {
        const unsigned char *chunk = tags->bytes + at, *body = chunk + 8;
        n = chunk_number(chunk + 4);
        if (!has_id(chunk, "LIST") || n < 4 || !has_id(body, "INFO")) continue;
        for (size_t i = 4, size; i + 8 <= n; i += 8 + size + (size & 1)) {
            size = chunk_number(body + i + 4);
            if (size > n - i - 8) break;
            if (has_id(body + i, id) && size && body[i + 8])
                return strndup((const char *)body + i + 8, size);
        }
    }
    return NULL;
}

void tags_append_text(struct tags *tags, const char id[4], const char *text)
{
    const size_t length = strlen(text) + 1;
    unsigned char *info = tags->n ? tags->bytes + 8 : tags_append(tags, "LIST", 4);
    if (!info) return;
    memcpy(info, "INFO", 4);
    unsigned char *at = tags_extend(tags, 8 + (length + 1) / 2 * 2);
    if (!at) return;
    memcpy(at, id, 4);
    store32(at + 4, (uint32_t)length);
    memcpy(at + 8, text, length);
    store32(tags->bytes + 4, (uint32_t)(tags->n - 8));
}

void tags_release(struct tags *tags)
{
    free(tags->bytes);
    *tags = (struct tags){0};
}
