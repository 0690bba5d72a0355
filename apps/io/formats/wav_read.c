// SPDX-License-Identifier: MIT
// Parses WAV and RF64 headers from files and pipes: Microsoft's RIFF chunks with WAVEFORMATEX and
// WAVEFORMATEXTENSIBLE; EBU Tech 3306 for RF64 (and BW64, which begins the same way). Codings other
// than PCM and float are left to libsndfile.
#include <string.h>

#include "formats.h"

static uint32_t get16(const unsigned char *x)
{
    return (uint32_t)(x[0] | x[1] << 8);
}

static uint64_t get64(const unsigned char *x)
{
    return chunk_number(x) | (uint64_t)chunk_number(x + 4) << 32;
}

// Behind the samples.
enum { MAX_CHUNKS = 1000 };

struct wav {
    struct source *source;
    struct audio_info *info;
    struct tags *tags;
    size_t max_channels;
    uint64_t riff_size; // of the file from byte 8 on, also from the ds64 chunk
    uint64_t long_size; // size of the data, from the ds64 chunk
    bool has_long, has_format;
    unsigned block_align;
};

// Placeholder sizes that programs write into pipes: 0, SoX's 0x7FFFF000, ffmpeg's 0xFFFFFFFF, and
// values close to them; of 64 bits, ffmpeg's UINT64_MAX.
static bool is_placeholder(uint64_t size)
{
    return size == 0 || (size >= 0x7FFFF000u && size <= 0x80000000u) ||
           (size >= 0xFFFFF000u && size <= UINT32_MAX) || size == UINT64_MAX;
}

static bool wav_parse_coding(struct wav *w, unsigned tag, unsigned bits, struct fault *fault)
{
    struct encoding *e = &w->info->encoding;
    const char *name = w->source->name;
    e->bytes = bits / 8;
    if (tag == 1) {
        e->kind = bits == 8 ? ENCODING_UNSIGNED : ENCODING_SIGNED;
        if (bits == 8 || bits == 16 || bits == 24 || bits == 32) return true;
        return fault_set(fault, "%s: %u bits a sample; PCM has 8, 16, 24 or 32", name, bits);
    }
    if (tag == 3) {
        e->kind = ENCODING_FLOAT;
        if (bits == 32 || bits == 64) return true;
        return fault_set(fault, "%s: %u bits a sample; float has 32 or 64", name, bits);
    }
    w->info->container = CONTAINER_SNDFILE;
    return fault_set(
        fault, "%s: coding 0x%04x is not PCM or float; libsndfile reads it from files, not pipes",
        name, tag);
}

static bool wav_parse_format(struct wav *w, const unsigned char *x, size_t size,
                             struct fault *fault)
{
    const char *name = w->source->name;
    if (size < 16)
        return fault_set(fault, "%s: format chunk of %zu bytes, at least 16 needed", name, size);
    unsigned tag = get16(x), bits = get16(x + 14);
    if (tag == 0xFFFE) {
        if (size < 40)
            return fault_set(fault, "%s: extensible format chunk of %zu bytes, 40 needed", name,
                             size);
        w->info->channel_mask = chunk_number(x + 20);
        tag = get16(x + 24);
    }
    w->info->channels = get16(x + 2);
    w->info->rate = chunk_number(x + 4);
    w->block_align = get16(x + 12);
    if (!container_check_channels(name, w->info->channels, w->max_channels, fault)) return false;
    if (chunk_number(x + 4) == 0) return fault_set(fault, "%s: sample rate 0 Hz", name);
    if (!wav_parse_coding(w, tag, bits, fault)) return false;
    size_t expected = w->info->encoding.bytes * w->info->channels;
    if (w->block_align != expected)
        return fault_set(fault, "%s: block align %u bytes, but %zu channels of %u bits make %zu",
                         name, w->block_align, w->info->channels, bits, expected);
    w->has_format = true;
    return true;
}

static bool wav_truncated(struct wav *w, const char *where, struct fault *fault)
{
    return fault_set(fault, "%s: not a complete WAV: ends after %llu bytes, in %s", w->source->name,
                     (unsigned long long)w->source->position, where);
}

// Chunks are padded to an even size, but some writers omit the byte: then a known chunk name
// follows directly.
static bool skip_padding(struct wav *w)
{
    static const char *const names[] = {"data", "LIST", "fact", "fmt ", "bext", "JUNK"};
    const unsigned char *next;
    size_t n = source_peek(w->source, 4, &next);
    for (size_t i = 0; n == 4 && i < sizeof names / sizeof *names; i++)
        if (memcmp(next, names[i], 4) == 0) return true;
    return source_seek(w->source, w->source->position + 1);
}

static bool wav_parse_chunk(struct wav *w, const char *id, uint32_t size, struct fault *fault)
{
    unsigned char x[40];
    size_t n = size < sizeof x ? size : sizeof x;
    uint64_t end = w->source->position + size;
    w->info->iq = w->info->iq || memcmp(id, "auxi", 4) == 0; // SDR programs alone write it
    if (memcmp(id, "fmt ", 4) == 0) {
        if (w->has_format) return fault_set(fault, "%s: two format chunks", w->source->name);
        if (source_read(w->source, x, n) < n) return wav_truncated(w, "the format chunk", fault);
        if (!wav_parse_format(w, x, n, fault)) return false;
    } else if (memcmp(id, "ds64", 4) == 0) {
        if (n < 28)
            return fault_set(fault, "%s: ds64 chunk of %zu bytes, at least 28 needed",
                             w->source->name, n);
        if (source_read(w->source, x, n) < n) return wav_truncated(w, "the ds64 chunk", fault);
        if (w->riff_size == UINT32_MAX) w->riff_size = get64(x);
        w->long_size = get64(x + 8);
        w->has_long = true;
    } else if (tags_know(id)) {
        const size_t before = w->tags->n;
        unsigned char *body = tags_append(w->tags, id, size);
        if (body && source_read(w->source, body, size) < size) {
            w->tags->n = before;
            return wav_truncated(w, "a chunk", fault);
        }
    }
    return (source_seek(w->source, end) && (!(size & 1) || skip_padding(w))) ||
           wav_truncated(w, "a chunk", fault);
}

// Whether nothing but whole chunks are between a position and the end of a file, apart from up to
// seven bytes at the end.
static bool ends_in_chunks(struct wav *w, uint64_t at)
{
    unsigned char x[8];
    struct source *s = w->source;
    for (int n = 0; s->size - at >= sizeof x; n++) {
        if (n == MAX_CHUNKS || !source_seek(s, at) || source_read(s, x, sizeof x) < sizeof x)
            return false;
        for (int i = 0; i < 4; i++)
            if (x[i] < ' ' || x[i] > '~') return false;
        const uint64_t size = chunk_number(x + 4), left = s->size - at - sizeof x;
        if (size > left) return false;
        at += sizeof x + size + (size & 1 && size < left);
    }
    return true;
}

// Whether a size that may be a placeholder is none. 0 is true if the RIFF size counts more than the
// header or another chunk follows.
static bool size_is_unknown(const struct wav *w, uint64_t size)
{
    if (!is_placeholder(size)) return false;
    if (size == 0) return is_placeholder(w->riff_size) || w->riff_size <= w->source->position - 8;
    return size == UINT32_MAX || size == UINT64_MAX || !w->source->seekable ||
           size > w->source->size - w->info->offset;
}

// What follows the samples of a file that is longer than its header says. If these are no chunks,
// samples follow: the recorder stopped, or its size has wrapped at 2^32. Then the size is corrected
// where that explains the file's length.
static uint64_t check_size(struct wav *w, uint64_t size)
{
    const struct source *s = w->source;
    const uint64_t held = s->size - w->info->offset, wraps = (held - size) >> 32 << 32;
    const uint64_t end = w->info->offset + size;
    char *note = w->info->note;
    if (ends_in_chunks(w, end + (size & 1)) || ends_in_chunks(w, end)) return size;
    if (wraps && !w->has_long && ends_in_chunks(w, end + wraps + (size & 1))) {
        snprintf(note, NOTE_SIZE,
                 "%.80s: is longer by %llu bytes than its header can count, and is read to its end",
                 s->name, (unsigned long long)wraps);
        return size + wraps;
    }
    if (is_placeholder(size)) return held;
    snprintf(note, NOTE_SIZE,
             "%.80s: %llu bytes follow the samples that its header counts, and are not read",
             s->name, (unsigned long long)(held - size));
    return size;
}

static bool wav_parse_data(struct wav *w, uint32_t short_size, struct fault *fault)
{
    const struct source *s = w->source;
    if (!w->has_format) return fault_set(fault, "%s: data chunk before the format chunk", s->name);
    uint64_t size = w->has_long && is_placeholder(short_size) ? w->long_size : short_size;
    struct audio_info *info = w->info;
    info->offset = s->position;
    info->rank = info->channels > 1 ? 2 : 1;
    info->frames = SIZE_UNKNOWN;
    if (size_is_unknown(w, size)) {
        size = s->seekable ? s->size - info->offset : SIZE_UNKNOWN;
        if (size % w->block_align) return true;
    } else if (s->seekable && size < s->size - info->offset) {
        size = check_size(w, size);
        if (!source_seek(w->source, info->offset)) return wav_truncated(w, "its samples", fault);
    }
    if (size != SIZE_UNKNOWN) info->frames = size / w->block_align;
    return true;
}

// Chunks behind the samples, in files. Damaged ones end the search: the samples do not need them.
static bool wav_parse_rest(struct wav *w, struct fault *fault)
{
    const struct audio_info *info = w->info;
    unsigned char x[8];
    struct fault ignored;
    if (!w->source->seekable || info->frames == SIZE_UNKNOWN) return true;
    const uint64_t bytes = info->frames * w->block_align, end = info->offset + bytes + (bytes & 1);
    int left = end < w->source->size && source_seek(w->source, end) ? MAX_CHUNKS : 0;
    for (bool more = true; left > 0 && more && source_read(w->source, x, sizeof x) == sizeof x;
         left--)
        more = memcmp(x, "data", 4) != 0 && memcmp(x, "fmt ", 4) != 0 &&
               wav_parse_chunk(w, (const char *)x, chunk_number(x + 4), &ignored);
    return source_seek(w->source, info->offset) || wav_truncated(w, "its samples", fault);
}

bool wav_parse(struct source *source, size_t max_channels, struct audio_info *info,
               struct tags *tags, struct fault *fault)
{
    *info = (struct audio_info){.container = CONTAINER_WAV};
    struct wav w = {.source = source, .info = info, .tags = tags, .max_channels = max_channels};
    unsigned char x[12];
    size_t n = source_read(source, x, sizeof x);
    bool known = n >= 4 && (memcmp(x, "RIFF", 4) == 0 || memcmp(x, "RF64", 4) == 0 ||
                            memcmp(x, "BW64", 4) == 0);
    if (n < sizeof x || !known || memcmp(x + 8, "WAVE", 4) != 0)
        return fault_set(fault, "%s: not a WAV: %zu bytes without a RIFF WAVE header", source->name,
                         n);
    w.riff_size = chunk_number(x + 4);
    for (;;) {
        n = source_read(source, x, 8);
        if (n < 8) return wav_truncated(&w, "the search for the data chunk", fault);
        uint32_t size = chunk_number(x + 4);
        if (memcmp(x, "data", 4) == 0)
            return wav_parse_data(&w, size, fault) && wav_parse_rest(&w, fault);
        if (!wav_parse_chunk(&w, (const char *)x, size, fault)) return false;
    }
}
