// SPDX-License-Identifier: MIT
// Writes interleaved samples after a header; the counterpart of flat_read.c.
#include <stdlib.h>

#include "formats.h"

// Bytes per write: small enough that encoded samples are still in the cache when the kernel copies
// them, and enough that the kernel takes its memory in large parts: 64 KiB at a time took a third
// longer. Writes end at page boundaries of the file, and the buffer has the same offset within its
// page as the file.
enum { PAGE = 4096, WRITE_BYTES = 64 * PAGE };

// Scalars up to the next multiple of WRITE_BYTES in the file, n at most.
static size_t to_boundary(const struct sink *sink, size_t n, size_t bytes)
{
    const size_t scalars =
        (WRITE_BYTES - (size_t)((sink->base + sink->position) % WRITE_BYTES)) / bytes;
    if (!scalars) return 1; // one that crosses the boundary
    return n < scalars ? n : scalars;
}

// n scalars from index `at` on in the file's encoding; without a copy if memory has the same.
static const unsigned char *encode_scalars(struct audio_writer *w, bool as_double,
                                           const void *scalars, size_t at, size_t n)
{
    const double *doubles = (const double *)scalars + (as_double ? at : 0);
    const float *floats = (const float *)scalars + (as_double ? 0 : at);
    const bool plain = encoding_is_plain(w->info.encoding, as_double);
    unsigned char *chunk = plain ? NULL : w->raw + (w->sink.base + w->sink.position) % PAGE;
    if (as_double) samples_encode_f64(chunk, doubles, n, w->info.encoding, &w->counts);
    else samples_encode_f32(chunk, floats, n, w->info.encoding, &w->counts);
    return !plain      ? chunk
           : as_double ? (const unsigned char *)doubles
                       : (const unsigned char *)floats;
}

static bool flat_write(struct audio_writer *w, bool as_double, const void *scalars, size_t n,
                       struct fault *fault)
{
    const size_t in_frame = w->info.channels * (w->info.encoding.is_complex ? 2 : 1),
                 bytes = w->info.encoding.bytes;
    if (!w->raw) w->raw = aligned_alloc(PAGE, WRITE_BYTES + PAGE);
    if (!w->raw) return fault_set(fault, "out of memory");
    for (size_t at = 0, m; at < n * in_frame; at += m) {
        m = to_boundary(&w->sink, n * in_frame - at, bytes);
        const unsigned char *encoded = encode_scalars(w, as_double, scalars, at, m);
        if (!sink_write(&w->sink, encoded, m * bytes)) return sink_fault(&w->sink, fault);
        if (w->digested)
            w->counts.digest = samples_digest(w->counts.digest, encoded, m, w->info.encoding.bytes);
    }
    w->frames += n;
    return true;
}

const struct writer_ops wav_writer = {
    .write = flat_write, .begin = wav_begin, .finish = wav_end, .refresh = wav_refresh};
const struct writer_ops npy_writer = {
    .write = flat_write, .begin = npy_begin, .finish = npy_end, .refresh = npy_end};
const struct writer_ops raw_writer = {.write = flat_write};
