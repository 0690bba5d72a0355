// SPDX-License-Identifier: MIT
// Writes interleaved samples flat behind a header; the counterpart of flat_read.c.
#include <stdlib.h>

#include "formats.h"

static bool flat_write(struct audio_writer *w, bool as_double, const void *scalars, size_t n, struct fault *fault)
{
    size_t n_scalars = n * w->info.channels * (w->info.encoding.is_complex ? 2 : 1);
    size_t bytes = n_scalars * w->info.encoding.bytes;
    if (!raw_reserve(&w->raw, &w->raw_capacity, bytes)) return fault_set(fault, "out of memory");
    if (as_double) samples_encode_f64(w->raw, scalars, n_scalars, w->info.encoding, &w->counts);
    else samples_encode_f32(w->raw, scalars, n_scalars, w->info.encoding, &w->counts);
    if (!sink_write(&w->sink, w->raw, bytes)) return sink_fault(&w->sink, fault);
    w->frames += n;
    return true;
}

static void flat_close(struct audio_writer *writer)
{
    free(writer->raw);
}

static bool nothing(struct audio_writer *writer, struct fault *fault)
{
    (void)writer;
    (void)fault;
    return true;
}

const struct writer_ops wav_writer = {.write = flat_write, .finish = wav_end, .close = flat_close};
const struct writer_ops npy_writer = {.write = flat_write, .finish = npy_end, .close = flat_close};
const struct writer_ops raw_writer = {.write = flat_write, .finish = nothing, .close = flat_close};
