// SPDX-License-Identifier: MIT
// For the fuzz targets of file formats: opens bytes as a file and as a pipe, skips, reads to the
// end.
#ifndef PARTITA_FUZZ_READ_ALL_H
#define PARTITA_FUZZ_READ_ALL_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "io/audio.h"
#include "io/formats/formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Reads a signal that was opened from `size` bytes; a complex one is not read as a real type.
static inline void read_frames(struct audio_reader *reader, enum partita_type type, size_t size,
                               const struct audio_request *request)
{
    enum { FRAMES = 61 };
    struct fault fault;
    const struct audio_info *info = audio_reader_info(reader);
    if (info->channels == 0 || info->channels > request->max_channels) abort();
    if (info->encoding.is_complex) type = PARTITA_CF64;
    char *frames = malloc(FRAMES * info->channels * partita_type_size(type));
    size_t got = 1, total = 0;
    if (audio_skip(reader, size % 7, &fault))
        while (got && audio_read(reader, type, frames, FRAMES, &got, &fault)) {
            if (got > FRAMES) abort();
            total += got;
            // A sample has at least one byte, unless libsndfile decompresses it.
            if (info->container != CONTAINER_SNDFILE && total * info->channels > size) abort();
        }
    free(frames);
}

static inline void read_as(const uint8_t *data, size_t size, bool as_pipe,
                           const struct audio_request *request)
{
    static const enum partita_type types[] = {PARTITA_F32, PARTITA_CF64};
    struct audio_reader *reader;
    struct fault fault;
    for (size_t t = 0; t < 2; t++) {
        if (!audio_open_memory(&reader, data, size, as_pipe, request, &fault)) return;
        read_frames(reader, types[t], size, request);
        audio_reader_close(reader);
    }
}

// Reads `head` followed by the data.
static inline void read_after(const void *head, size_t n_head, const uint8_t *data, size_t size,
                              const struct audio_request *request)
{
    uint8_t *whole = malloc(n_head + size + 1);
    if (!whole) return;
    memcpy(whole, head, n_head);
    if (size) memcpy(whole + n_head, data, size);
    read_as(whole, n_head + size, false, request);
    read_as(whole, n_head + size, true, request);
    free(whole);
}

#endif
