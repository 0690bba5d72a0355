// SPDX-License-Identifier: MIT
// What a recording says about itself: titles and other texts (LIST INFO), cue points and their
// names (cue, LIST adtl), the broadcast extension (bext, EBU Tech 3285). They are kept as the
// chunks of a WAV; formats of libsndfile have the texts only.
#ifndef PARTITA_APPS_TAGS_H
#define PARTITA_APPS_TAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// More than this is not read.
enum { TAGS_MAX_BYTES = 1 << 20 };

struct tags {
    unsigned char *bytes; // whole chunks, each padded to an even size
    size_t n;
};

static inline uint32_t chunk_number(const unsigned char *x)
{
    return (uint32_t)x[0] | (uint32_t)x[1] << 8 | (uint32_t)x[2] << 16 | (uint32_t)x[3] << 24;
}

// Whether chunks of this name are kept.
bool tags_know(const char id[4]);

// Space for the body of another chunk of n bytes, which the caller fills. NULL: there is no memory
// for it, or the chunks are too large.
unsigned char *tags_append(struct tags *tags, const char id[4], size_t n);

// Copies `from`; without memory the copy is empty.
void tags_copy(struct tags *ret, const struct tags *from);

// Moves positions from the recording to a result: a frame of the recording becomes `up` frames, the
// result begins at frame `first` of these and has every `stride`th. Cue points before it are
// removed.
struct tags_move {
    int64_t first, up, stride;
    double tune;   // Hz by which frequencies at the centre grow
    bool unplaced; // removes positions: cue points and the broadcast extension, which has the time
                   // of the first sample
};
void tags_move(struct tags *tags, const struct tags_move *move);

// The text of this name in LIST INFO, which the caller frees; NULL: there is none, or no memory.
char *tags_text(const struct tags *tags, const char id[4]);

// Appends a text with its name to a LIST INFO, the only chunk. Without memory it is left out.
void tags_append_text(struct tags *tags, const char id[4], const char *text);

void tags_release(struct tags *tags);

#endif
