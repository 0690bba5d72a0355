// SPDX-License-Identifier: MIT
// WAV headers for files and pipes. A JUNK chunk reserves the space of the ds64 chunk that makes the
// file an RF64 when it grows beyond 4 GiB (EBU Tech 3306). In a pipe all sizes are 0xFFFFFFFF,
// which means: up to the end.
#include <string.h>

#include "formats.h"

enum { HEADER_CAPACITY = 128, DS64_BYTES = 28 };

struct wav_header {
    unsigned char bytes[HEADER_CAPACITY];
    size_t n;
};

static void wav_put(struct wav_header *h, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) h->bytes[h->n++] = (unsigned char)(value >> (8 * i));
}

static void wav_put_id(struct wav_header *h, const char *id)
{
    memcpy(h->bytes + h->n, id, 4);
    h->n += 4;
}

static void wav_put_format(struct wav_header *h, const struct audio_info *info)
{
    static const unsigned char guid_tail[14] = {0, 0, 0,    0, 0x10, 0,    0x80,
                                                0, 0, 0xAA, 0, 0x38, 0x9B, 0x71};
    unsigned bits = info->encoding.bytes * 8, tag = info->encoding.kind == ENCODING_FLOAT ? 3 : 1;
    size_t block = info->encoding.bytes * info->channels;
    const uint64_t rate = (uint64_t)container_rate(CONTAINER_WAV, "", info->rate);
    const uint32_t usual = info->channels == 1 ? 4 : 3; // centre; left and right
    bool extensible = info->channels > 2 || (tag == 1 && bits > 16) ||
                      (info->channel_mask && info->channel_mask != usual);
    wav_put_id(h, "fmt ");
    wav_put(h, extensible ? 40 : tag == 3 ? 18 : 16, 4);
    wav_put(h, extensible ? 0xFFFE : tag, 2);
    wav_put(h, info->channels, 2);
    wav_put(h, rate, 4);
    wav_put(h, rate * block, 4);
    wav_put(h, block, 2);
    wav_put(h, bits, 2);
    if (extensible || tag == 3) wav_put(h, extensible ? 22 : 0, 2); // bytes that follow
    if (!extensible) return;
    wav_put(h, bits, 2);
    wav_put(h, info->channel_mask, 4);
    wav_put(h, tag, 2);
    memcpy(h->bytes + h->n, guid_tail, sizeof guid_tail);
    h->n += sizeof guid_tail;
}

// The whole header for `frames` frames and `after` bytes of chunks behind them; SIZE_UNKNOWN: up to
// the end.
static void wav_compose_header(struct wav_header *h, const struct audio_info *info, uint64_t frames,
                               size_t after)
{
    bool is_float = info->encoding.kind == ENCODING_FLOAT, unknown = frames == SIZE_UNKNOWN;
    uint64_t data = unknown ? 0 : frames * info->encoding.bytes * info->channels;
    struct wav_header tail = {.n = 0};
    wav_put_format(&tail, info);
    size_t n_before = 12 + 8 + DS64_BYTES + tail.n + (is_float ? 12 : 0) + 8;
    uint64_t riff = n_before - 8 + data + (data & 1) + after;
    bool is_long = riff > UINT32_MAX - 1;

    h->n = 0;
    wav_put_id(h, is_long ? "RF64" : "RIFF");
    wav_put(h, unknown || is_long ? UINT32_MAX : riff, 4);
    wav_put_id(h, "WAVE");
    wav_put_id(h, is_long ? "ds64" : "JUNK");
    wav_put(h, DS64_BYTES, 4);
    wav_put(h, is_long ? riff : 0, 8);
    wav_put(h, is_long ? data : 0, 8);
    wav_put(h, is_long ? frames : 0, 8);
    wav_put(h, 0, 4);
    memcpy(h->bytes + h->n, tail.bytes, tail.n);
    h->n += tail.n;
    if (is_float) {
        wav_put_id(h, "fact");
        wav_put(h, 4, 4);
        wav_put(h, unknown || frames > UINT32_MAX ? UINT32_MAX : frames, 4);
    }
    wav_put_id(h, "data");
    wav_put(h, unknown || is_long ? UINT32_MAX : data, 4);
}

bool wav_begin(struct audio_writer *writer, struct fault *fault)
{
    struct wav_header h;
    size_t block = writer->info.encoding.bytes * writer->info.channels;
    if (block > UINT16_MAX)
        return fault_set(fault,
                         "%s: %zu channels of %u bytes; a WAV frame holds at most 65535 bytes",
                         writer->sink.name, writer->info.channels, writer->info.encoding.bytes);
    if (writer->info.rate == 0)
        return fault_set(fault, "%s: a WAV needs a sample rate and the input has none; use --rate",
                         writer->sink.name);
    wav_compose_header(&h, &writer->info, SIZE_UNKNOWN, 0);
    return sink_write(&writer->sink, h.bytes, h.n) || sink_fault(&writer->sink, fault);
}

static bool patch_header(struct audio_writer *writer, size_t after)
{
    struct wav_header h;
    wav_compose_header(&h, &writer->info, writer->frames, after);
    return sink_patch(&writer->sink, 0, h.bytes, h.n);
}

bool wav_refresh(struct audio_writer *writer, struct fault *fault)
{
    return !writer->sink.seekable || patch_header(writer, 0) || sink_fault(&writer->sink, fault);
}

bool wav_end(struct audio_writer *writer, struct fault *fault)
{
    if (!writer->sink.seekable) return true;
    uint64_t data = writer->frames * writer->info.encoding.bytes * writer->info.channels;
    bool good = !(data & 1) || sink_write(&writer->sink, "", 1);
    good = good && sink_write(&writer->sink, writer->tags.bytes, writer->tags.n);
    return (good && patch_header(writer, writer->tags.n)) || sink_fault(&writer->sink, fault);
}
