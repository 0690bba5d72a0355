// SPDX-License-Identifier: MIT
// Reads the samples after any header: interleaved, or planar in seekable files. A pipe may deliver
// part of a frame, which stays in reader->raw until the rest arrives.
#include <stdlib.h>
#include <string.h>

#include "formats.h"

bool raw_reserve(unsigned char **raw, size_t *capacity, size_t n)
{
    if (n <= *capacity) return true;
    unsigned char *grown = realloc(*raw, n);
    if (!grown) return false;
    *raw = grown;
    *capacity = n;
    return true;
}

// Decodes n frames of the buffer.
static void decode_frames(struct audio_reader *r, bool as_double, void *y, size_t n)
{
    const struct encoding encoding = r->info.encoding;
    const size_t scalars = n * r->info.channels * (encoding.is_complex ? 2 : 1);
    if (as_double) samples_decode_f64(y, r->raw, scalars, encoding);
    else samples_decode_f32(y, r->raw, scalars, encoding);
}

void reader_ends_after(struct audio_reader *r, uint64_t frames)
{
    snprintf(r->shortfall, sizeof r->shortfall, "%.80s: ends after %llu of %llu frames",
             r->source.name, (unsigned long long)frames, (unsigned long long)r->info.frames);
}

// After the last frame that the header of a piped WAV counts, chunks may follow, but no samples.
static void check_rest_of_pipe(struct audio_reader *r)
{
    unsigned char x[5] = {0}; // one byte may be padding
    if (r->info.container != CONTAINER_WAV || r->source.seekable || r->info.note[0]) return;
    const size_t n = source_glimpse(&r->source, x, sizeof x);
    bool chunk = n < sizeof x;
    for (size_t at = 0; at < 2 && !chunk; at++) {
        chunk = true;
        for (size_t i = at; i < at + 4; i++) chunk = chunk && x[i] >= ' ' && x[i] <= '~';
    }
    if (!chunk)
        snprintf(r->info.note, NOTE_SIZE,
                 "%.80s: goes on after the samples that its header counts, and is not read further",
                 r->source.name);
}

// Of channels that lie one after the other, a frame needs the last one.
void flat_limit_frames(struct audio_reader *reader)
{
    struct audio_info *info = &reader->info;
    const uint64_t bytes = encoding_size(info->encoding), left = reader->source.size - info->offset;
    info->plane = info->frames;
    if (info->frames == SIZE_UNKNOWN) return;
    if (!reader->source.seekable && info->frames >> 58 == 0) return;
    if (!reader->source.seekable) { // no pipe brings so many, and results are below 2^63
        snprintf(reader->shortfall, sizeof reader->shortfall,
                 "%.80s: its header counts %llu frames, more than there can be",
                 reader->source.name, (unsigned long long)info->frames);
        info->frames = SIZE_UNKNOWN;
        return;
    }
    uint64_t held = left / (bytes * info->channels);
    if (info->planar) {
        const uint64_t before = (info->channels - 1) * info->plane;
        held = left / bytes > before ? left / bytes - before : 0;
    }
    if (held >= info->frames) return;
    reader_ends_after(reader, held);
    info->frames = held;
}

static void check_end(struct audio_reader *r, size_t frame_bytes)
{
    if (r->shortfall[0]) return;
    const char *name = r->source.name;
    if (r->info.frames != SIZE_UNKNOWN && !r->source.interrupted) reader_ends_after(r, r->position);
    else if (r->n_carried)
        snprintf(r->shortfall, sizeof r->shortfall, "%.80s: ends with %zu bytes of a frame of %zu",
                 name, r->n_carried, frame_bytes);
    r->n_carried = 0;
}

static bool read_interleaved(struct audio_reader *r, bool as_double, void *y, size_t n,
                             size_t *ret_n, struct fault *fault)
{
    size_t frame_bytes = encoding_size(r->info.encoding) * r->info.channels;
    if (!raw_reserve(&r->raw, &r->raw_capacity, n * frame_bytes))
        return fault_set(fault, "out of memory");
    // Samples with the same bytes in the file as in memory are read to where the caller wants them.
    const bool plain = encoding_is_plain(r->info.encoding, as_double) && !r->n_carried;
    unsigned char *raw = plain ? y : r->raw;
    // After the carried bytes, from a file all n frames, from a pipe at least one.
    const size_t needed = r->source.seekable ? n * frame_bytes : frame_bytes;
    size_t have = r->n_carried, got = 1;
    for (; got && have < needed; have += got)
        got = source_read_some(&r->source, raw + have, n * frame_bytes - have);
    got = have / frame_bytes;
    if (!plain) decode_frames(r, as_double, y, got);
    r->n_carried = have - got * frame_bytes;
    memmove(r->raw, raw + got * frame_bytes, r->n_carried);
    *ret_n = got;
    return true;
}

static bool read_planar(struct audio_reader *r, bool as_double, void *y, size_t n, size_t *ret_n,
                        struct fault *fault)
{
    size_t bytes = encoding_size(r->info.encoding), channels = r->info.channels;
    size_t frame_bytes = bytes * channels;
    if (!raw_reserve(&r->raw, &r->raw_capacity, n * (frame_bytes + bytes)))
        return fault_set(fault, "out of memory");
    unsigned char *plane = r->raw + n * frame_bytes;
    size_t got = n;
    for (size_t c = 0; c < channels && got; c++) {
        uint64_t at = r->info.offset + (c * r->info.plane + r->position) * bytes;
        size_t here =
            source_seek(&r->source, at) ? source_read(&r->source, plane, got * bytes) / bytes : 0;
        if (here < got) got = here;
        for (size_t i = 0; i < got; i++)
            memcpy(r->raw + c * bytes + i * frame_bytes, plane + i * bytes, bytes);
    }
    decode_frames(r, as_double, y, got);
    *ret_n = got;
    return true;
}

static bool flat_read(struct audio_reader *reader, bool as_double, void *scalars, size_t n,
                      size_t *ret_n, struct fault *fault)
{
    uint64_t left = reader->info.frames - reader->position; // practically unlimited if SIZE_UNKNOWN
    if (n > left) n = (size_t)left;
    *ret_n = 0;
    if (!left) check_rest_of_pipe(reader);
    if (!n) return true;
    if (!(reader->info.planar ? read_planar(reader, as_double, scalars, n, ret_n, fault)
                              : read_interleaved(reader, as_double, scalars, n, ret_n, fault)))
        return false;
    if (reader->source.error)
        return fault_set(fault, "%s: cannot read: %s", reader->source.name,
                         strerror(reader->source.error));
    reader->position += *ret_n;
    if (!*ret_n) check_end(reader, encoding_size(reader->info.encoding) * reader->info.channels);
    return true;
}

static bool flat_skip(struct audio_reader *reader, uint64_t n, struct fault *fault)
{
    uint64_t left = reader->info.frames - reader->position;
    if (n > left) n = left;
    size_t frame_bytes = encoding_size(reader->info.encoding) * reader->info.channels;
    uint64_t frame;
    if (__builtin_add_overflow(reader->position, n, &frame) ||
        frame > (UINT64_MAX >> 1) / frame_bytes)
        return fault_set(fault, "%s: frame %llu is beyond what a file can hold",
                         reader->source.name, (unsigned long long)frame);
    if (reader->info.planar) {
        reader->position = frame;
        return true;
    }
    uint64_t at = reader->info.offset + frame * frame_bytes;
    if (reader->source.seekable && at > reader->source.size) at = reader->source.size;
    source_seek(&reader->source, at);
    reader->position = (reader->source.position - reader->info.offset) / frame_bytes;
    if (!reader->source.error) return true;
    return fault_set(fault, "%s: cannot seek: %s", reader->source.name,
                     strerror(reader->source.error));
}

const struct reader_ops flat_reader = {.read = flat_read, .skip = flat_skip};

bool raw_layout(const struct source *source, const struct audio_request *request,
                struct audio_info *info, struct fault *fault)
{
    size_t channels = request->channels ? request->channels : 1;
    if (!container_check_channels(source->name, channels, request->max_channels, fault))
        return false;
    size_t frame_bytes = encoding_size(*request->raw) * channels;
    *info = (struct audio_info){
        .container = CONTAINER_RAW,
        .encoding = *request->raw,
        .channels = channels,
        .rate = request->rate,
        .frames = SIZE_UNKNOWN,
        .rank = channels > 1 ? 2 : 1,
    };
    // With an incomplete frame at the end the number stays unknown, so that reading goes on to the
    // end of the file and reports it.
    if (source->seekable && source->size % frame_bytes == 0)
        info->frames = source->size / frame_bytes;
    return true;
}
