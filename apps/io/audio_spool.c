// SPDX-License-Identifier: MIT
// Frames in a temporary file, as they are in memory.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audio.h"
#include "base/sample_type.h"
#include "io/formats/formats.h"

bool audio_spool_create(struct audio_writer **ret_writer, const char *path, enum partita_type type,
                        size_t channels, struct fault *fault)
{
    struct audio_writer *w = calloc(1, sizeof *w);
    if (!w) return fault_set(fault, "out of memory");
    const int fd = temp_open_unnamed(path, fault);
    if (fd < 0) {
        free(w);
        return false;
    }
    sink_from_fd(&w->sink, fd, "the temporary file of the result");
    w->ops = &raw_writer;
    w->info = (struct audio_info){
        .container = CONTAINER_RAW,
        .encoding = {.kind = ENCODING_FLOAT,
                     .bytes = type_is_double(type) ? 8 : 4,
                     .is_complex = type_is_complex(type)},
        .channels = channels,
        .frames = SIZE_UNKNOWN,
        .rank = 2,
    };
    *ret_writer = w;
    return true;
}

bool audio_spool_read(struct audio_reader **ret_reader, struct audio_writer *spool,
                      struct fault *fault)
{
    struct audio_reader *r = calloc(1, sizeof *r);
    const int fd = r ? fcntl(spool->sink.fd, F_DUPFD_CLOEXEC, 3) : -1;
    const bool good = fd >= 0 && lseek(fd, 0, SEEK_SET) == 0;
    if (good) {
        r->ops = &flat_reader;
        r->info = spool->info;
        r->info.frames = spool->frames;
        r->source = (struct source){.name = spool->sink.name,
                                    .fd = fd,
                                    .wake_fd = -1,
                                    .size = spool->sink.end,
                                    .seekable = true};
        *ret_reader = r;
    } else {
        fault_set(fault, "%s: cannot read: %s", spool->sink.name, strerror(errno));
        if (fd >= 0) close(fd);
        free(r);
    }
    audio_discard(spool);
    return good;
}
