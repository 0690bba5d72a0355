// SPDX-License-Identifier: MIT
// .npy headers. Several channels are [channels, frames] in Fortran order: interleaved, as they come out of the filter.
#include <string.h>

#include "formats.h"

enum { NPY_HEADER_BYTES = 128 }; // numpy aligns samples to 64; the digits of any shape fit

static void compose(unsigned char header[NPY_HEADER_BYTES], const struct audio_info *info, uint64_t frames)
{
    char text[NPY_HEADER_BYTES - 10 + 1];
    const struct encoding *e = &info->encoding;
    int n =
        snprintf(text, sizeof text, "{'descr': '%c%c%u', 'fortran_order': %s, 'shape': (", e->big_endian ? '>' : '<',
                 e->is_complex ? 'c' : 'f', (unsigned)encoding_size(*e), info->channels > 1 ? "True" : "False");
    if (info->channels > 1 || info->rank == 2)
        n += snprintf(text + n, sizeof text - (size_t)n, "%zu, ", info->channels);
    n += snprintf(text + n, sizeof text - (size_t)n, "%llu%s), }", (unsigned long long)frames,
                  info->channels > 1 || info->rank == 2 ? "" : ",");
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = NPY_HEADER_BYTES - 10;
    header[9] = 0;
    memset(header + 10, ' ', NPY_HEADER_BYTES - 11);
    memcpy(header + 10, text, (size_t)n);
    header[NPY_HEADER_BYTES - 1] = '\n';
}

bool npy_begin(struct audio_writer *writer, struct fault *fault)
{
    unsigned char header[NPY_HEADER_BYTES];
    if (writer->info.frames == SIZE_UNKNOWN && !writer->sink.seekable)
        return fault_set(fault,
                         "%s: an .npy begins with its length, which is not known yet; write to a file, or raw samples",
                         writer->sink.name);
    compose(header, &writer->info, writer->info.frames == SIZE_UNKNOWN ? 0 : writer->info.frames);
    return sink_write(&writer->sink, header, sizeof header) || sink_fault(&writer->sink, fault);
}

bool npy_end(struct audio_writer *writer, struct fault *fault)
{
    unsigned char header[NPY_HEADER_BYTES];
    if (writer->frames == writer->info.frames) return true;
    if (!writer->sink.seekable)
        return fault_set(fault, "%s: %llu frames written, but the header promised %llu", writer->sink.name,
                         (unsigned long long)writer->frames, (unsigned long long)writer->info.frames);
    compose(header, &writer->info, writer->frames);
    return sink_patch(&writer->sink, 0, header, sizeof header) || sink_fault(&writer->sink, fault);
}
