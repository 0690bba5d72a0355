// SPDX-License-Identifier: MIT
// .npy headers. Several channels are written as [channels, frames] in Fortran order, which is
// interleaved.
#include <string.h>

#include "formats.h"

void npy_header_compose(unsigned char header[NPY_HEADER_BYTES], const struct npy_header *npy)
{
    char text[NPY_HEADER_BYTES - 10 + 1];
    const struct encoding *e = &npy->encoding;
    int n = snprintf(text, sizeof text, "{'descr': '%c%c%u', 'fortran_order': %s, 'shape': (",
                     e->big_endian ? '>' : '<', e->is_complex ? 'c' : 'f',
                     (unsigned)encoding_size(*e), npy->fortran ? "True" : "False");
    for (int i = 0; i < npy->rank; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%llu%s", i ? ", " : "",
                      (unsigned long long)npy->shape[i], npy->rank == 1 ? "," : "");
    n += snprintf(text + n, sizeof text - (size_t)n, "), }");
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = NPY_HEADER_BYTES - 10;
    header[9] = 0;
    memset(header + 10, ' ', NPY_HEADER_BYTES - 11);
    memcpy(header + 10, text, (size_t)n);
    header[NPY_HEADER_BYTES - 1] = '\n';
}

static void npy_compose_header(unsigned char header[NPY_HEADER_BYTES],
                               const struct audio_info *info, uint64_t frames)
{
    struct npy_header npy = {
        .encoding = info->encoding, .fortran = info->channels > 1, .rank = 1, .shape = {frames}};
    if (info->channels > 1 || info->rank == 2) {
        npy.rank = 2;
        npy.shape[0] = info->channels;
        npy.shape[1] = frames;
    }
    npy_header_compose(header, &npy);
}

bool npy_begin(struct audio_writer *writer, struct fault *fault)
{
    unsigned char header[NPY_HEADER_BYTES];
    if (writer->info.frames == SIZE_UNKNOWN && !writer->sink.seekable)
        return fault_set(fault,
                         "%s: an .npy begins with its length, which is not known yet; write to a "
                         "file, or raw samples",
                         writer->sink.name);
    npy_compose_header(header, &writer->info,
                       writer->info.frames == SIZE_UNKNOWN ? 0 : writer->info.frames);
    return sink_write(&writer->sink, header, sizeof header) || sink_fault(&writer->sink, fault);
}

bool npy_end(struct audio_writer *writer, struct fault *fault)
{
    unsigned char header[NPY_HEADER_BYTES];
    if (writer->frames == writer->info.frames) return true;
    if (!writer->sink.seekable)
        return fault_set(fault, "%s: %llu frames written, but the header promised %llu",
                         writer->sink.name, (unsigned long long)writer->frames,
                         (unsigned long long)writer->info.frames);
    npy_compose_header(header, &writer->info, writer->frames);
    return sink_patch(&writer->sink, 0, header, sizeof header) || sink_fault(&writer->sink, fault);
}
