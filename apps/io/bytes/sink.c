// SPDX-License-Identifier: MIT
// The writing half of bytes.h.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bytes.h"

// A descriptor opened with O_APPEND writes at the end of the file whatever the offset, so it cannot
// overwrite earlier bytes. A regular file whose offset cannot be found is an error: written as a
// pipe it would get another header.
static bool can_patch(struct sink *sink)
{
    struct stat st;
    if (fstat(sink->fd, &st)) {
        sink->error = errno;
        return false;
    }
    if (!S_ISREG(st.st_mode) || fcntl(sink->fd, F_GETFL) & O_APPEND) return false;
    const off_t start = lseek(sink->fd, 0, SEEK_CUR);
    if (start < 0) sink->error = errno;
    else sink->base = (uint64_t)start;
    return start >= 0;
}

void sink_from_fd(struct sink *sink, int fd, const char *name)
{
    *sink = (struct sink){.name = name, .fd = fd};
    sink->seekable = can_patch(sink);
}

// Whether the write may be tried again.
static bool retry(struct sink *s)
{
    if (errno == EINTR) return true;
    if (errno == EAGAIN) {
        struct pollfd fd = {.fd = s->fd, .events = POLLOUT};
        return poll(&fd, 1, -1) >= 0 || errno == EINTR;
    }
    s->error = errno;
    return false;
}

bool sink_write(struct sink *sink, const void *data, size_t n)
{
    const unsigned char *at = data;
    while (n && !sink->error) {
        ssize_t put = write(sink->fd, at, n);
        if (put < 0) {
            if (retry(sink)) continue;
            break;
        }
        at += put;
        n -= (size_t)put;
        sink->position += (uint64_t)put;
        if (sink->position > sink->end) sink->end = sink->position;
    }
    return !sink->error;
}

bool sink_patch(struct sink *sink, uint64_t at, const void *data, size_t n)
{
    const unsigned char *from = data;
    while (n && !sink->error) {
        ssize_t put = pwrite(sink->fd, from, n, (off_t)(sink->base + at));
        if (put < 0) {
            if (retry(sink)) continue;
            break;
        }
        from += put;
        at += (uint64_t)put;
        n -= (size_t)put;
    }
    return !sink->error;
}

bool sink_seek(struct sink *sink, uint64_t position)
{
    if (sink->error) return false;
    if (lseek(sink->fd, (off_t)(sink->base + position), SEEK_SET) < 0) sink->error = errno;
    if (!sink->error) sink->position = position;
    return !sink->error;
}

bool sink_close(struct sink *sink)
{
    if (sink->fd >= 0 && close(sink->fd) && errno != EINTR && !sink->error) sink->error = errno;
    sink->fd = -1;
    return !sink->error;
}

bool sink_fault(const struct sink *sink, struct fault *fault)
{
    return fault_set(fault, "%s: cannot write: %s", sink->name, strerror(sink->error));
}
