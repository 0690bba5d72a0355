// SPDX-License-Identifier: MIT
// An output whose samples several processes write; see audio.h.
#include <stdlib.h>

#include "audio.h"
#include "io/formats/formats.h"

bool audio_encoder_create(struct audio_writer **ret_writer, const struct audio_info *info,
                          size_t max_frames, struct fault *fault)
{
    struct audio_writer *w = calloc(1, sizeof *w);
    const size_t bytes = max_frames * info->channels * encoding_size(info->encoding);
    unsigned char *memory = w ? malloc(bytes) : NULL;
    if (!memory) {
        free(w);
        return fault_set(fault, "out of memory for %zu encoded frames", max_frames);
    }
    w->sink = (struct sink){.fd = -1, .memory = memory};
    w->ops = &raw_writer;
    w->info = *info;
    w->info.tags = NULL;
    *ret_writer = w;
    return true;
}

size_t audio_encoder_take(struct audio_writer *encoder, const void **ret_bytes,
                          struct sample_counts *ret_counts)
{
    const size_t n = encoder->sink.n_collected;
    encoder->sink.n_collected = 0;
    *ret_bytes = encoder->sink.memory;
    *ret_counts = encoder->counts;
    return n;
}

const char *audio_unfinished(const struct audio_writer *writer, uint64_t *ret_first_byte)
{
    *ret_first_byte = writer->sink.base + writer->info.offset;
    return writer->temp.temporary;
}

bool audio_complete(struct audio_writer *writer, uint64_t frames,
                    const struct sample_counts *counts, struct fault *fault)
{
    struct audio_writer *w = writer;
    w->frames = frames;
    w->counts = *counts;
    return sink_seek(&w->sink, w->info.offset +
                                   frames * w->info.channels * encoding_size(w->info.encoding)) ||
           sink_fault(&w->sink, fault);
}
