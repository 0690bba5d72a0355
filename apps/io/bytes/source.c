// SPDX-License-Identifier: MIT
// The reading half of bytes.h.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bytes.h"

static bool source_identify(struct source *s, struct fault *fault)
{
    struct stat st;
    if (fstat(s->fd, &st)) return fault_set(fault, "%s: %s", s->name, strerror(errno));
    if (S_ISDIR(st.st_mode)) return fault_set(fault, "%s: is a directory", s->name);
    if (isatty(s->fd))
        return fault_set(fault, "%s: is a terminal; samples are read from a file or a pipe",
                         s->name);
    s->seekable = S_ISREG(st.st_mode);
    s->size = SIZE_UNKNOWN;
    if (!s->seekable) return true;
    const off_t start = lseek(s->fd, 0, SEEK_CUR);
    if (start < 0) return fault_set(fault, "%s: cannot seek: %s", s->name, strerror(errno));
    s->base = (uint64_t)start;
    s->size = st.st_size > start ? (uint64_t)(st.st_size - start) : 0;
    return true;
}

bool source_open(struct source *source, const char *path, int wake_fd, struct fault *fault)
{
    bool standard = strcmp(path, "-") == 0;
    *source =
        (struct source){.name = standard ? "standard input" : path, .fd = -1, .wake_fd = wake_fd};
    source->fd =
        standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC);
    if (source->fd < 0)
        return fault_set(fault, "%s: cannot open: %s", source->name, strerror(errno));
    if (source_identify(source, fault)) return true;
    source_close(source);
    return false;
}

FILE *regular_open(const char *path, struct fault *fault)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    const bool other = fd >= 0 && fstat(fd, &st) == 0 && !S_ISREG(st.st_mode);
    FILE *file = fd >= 0 && !other ? fdopen(fd, "r") : NULL;
    const int error = other ? EINVAL : errno;
    if (file) return file;
    if (fd >= 0) close(fd);
    fault_set(fault, "%s: cannot open: %s", path,
              other ? "is not a regular file" : strerror(error));
    errno = error;
    return NULL;
}

char *regular_read_text(const char *path, struct fault *fault)
{
    enum { MAX_TEXT = 64 << 20 }; // taps of a configuration, millions of pairs
    static const char MARK[] = "\xEF\xBB\xBF";
    FILE *file = regular_open(path, fault);
    struct stat st;
    if (!file) return NULL;
    const bool fits = fstat(fileno(file), &st) == 0 && st.st_size < MAX_TEXT;
    char *text = fits ? malloc((size_t)st.st_size + 1) : NULL;
    const size_t n = text ? fread(text, 1, (size_t)st.st_size, file) : 0;
    const char *why = NULL;
    if (!fits) why = "cannot be read, or is larger than 64 MB";
    else if (!text) why = "out of memory";
    else if (ferror(file)) why = strerror(errno);
    else if (memchr(text, 0, n)) why = "holds a zero byte; it is no text";
    fclose(file);
    if (why) {
        fault_set(fault, "%s: %s", path, why);
        free(text);
        return NULL;
    }
    text[n] = 0;
    for (char *c = text; (c = strchr(c, '\r')); c++)
        if (c[1] != '\n') *c = '\n';
    if (strncmp(text, MARK, 3) == 0) memmove(text, text + 3, n - 2);
    return text;
}

void source_from_memory(struct source *source, const void *memory, size_t size)
{
    *source = (struct source){.name = "memory",
                              .fd = -1,
                              .wake_fd = -1,
                              .memory = memory,
                              .size = size,
                              .seekable = true};
}

void source_close(struct source *source)
{
    if (source->fd >= 0) close(source->fd);
    source->fd = -1;
}

// Waits until the descriptor has bytes or is at its end. False if the wake descriptor became
// readable.
static bool wait_readable(struct source *s)
{
    struct pollfd fds[2] = {{.fd = s->fd, .events = POLLIN}, {.fd = s->wake_fd, .events = POLLIN}};
    while (poll(fds, s->wake_fd >= 0 ? 2 : 1, -1) < 0)
        if (errno != EINTR) return true; // read will report the error
    s->interrupted = s->wake_fd >= 0 && fds[1].revents;
    return !s->interrupted;
}

static size_t read_once(struct source *s, void *to, size_t n)
{
    if (s->interrupted || s->error) return 0;
    if (s->fd < 0) {
        const uint64_t left = s->size - s->position;
        if (n > left) n = (size_t)left;
        if (n) memcpy(to, s->memory + s->position, n);
        return n;
    }
    for (;;) {
        if (!s->seekable && s->wake_fd >= 0 && !wait_readable(s)) return 0;
        ssize_t got = read(s->fd, to, n);
        if (got >= 0) return (size_t)got;
        if (errno == EAGAIN && wait_readable(s)) continue;
        if (errno == EINTR) continue;
        if (!s->interrupted) s->error = errno;
        return 0;
    }
}

static size_t read_peeked(struct source *s, void *to, size_t n)
{
    size_t m = n < s->n_peeked ? n : s->n_peeked;
    memcpy(to, s->peeked, m);
    memmove(s->peeked, s->peeked + m, s->n_peeked - m);
    s->n_peeked -= m;
    return m;
}

bool source_restrict(struct source *s, const struct source_part *part, struct fault *fault)
{
    uint64_t bytes = part->trailing;
    for (size_t i = 0; i < part->n_gaps; i++)
        if (__builtin_add_overflow(bytes, part->gaps[i].bytes, &bytes)) bytes = SIZE_UNKNOWN - 1;
    s->gaps = part->gaps;
    s->n_gaps = part->n_gaps;
    s->trailing = part->trailing;
    s->bounded = s->seekable;
    if (!s->seekable && (part->offset || part->trailing || part->size != SIZE_UNKNOWN))
        return fault_set(
            fault, "%s is not a regular file, which core:header_bytes and the like need", s->name);
    if (!s->seekable) return true;
    uint64_t size = s->size < part->offset ? 0 : s->size - part->offset;
    if (part->size != SIZE_UNKNOWN && part->size > size)
        return fault_set(fault, "%s ends before its samples, which are %llu bytes", s->name,
                         (unsigned long long)part->size);
    if (part->size != SIZE_UNKNOWN) size = part->size;
    if (bytes > size)
        return fault_set(fault,
                         "%s has %llu bytes, fewer than core:header_bytes and "
                         "core:trailing_bytes count",
                         s->name, (unsigned long long)size);
    s->base += part->offset;
    s->size = size - bytes;
    // A gap at the start is passed over by the first read, which adds it to the digest.
    if (lseek(s->fd, (off_t)s->base, SEEK_SET) >= 0) return true;
    return fault_set(fault, "%s: cannot seek: %s", s->name, strerror(errno));
}

// Passes over bytes of the file that are not part of the source.
static void pass_over(struct source *s, uint64_t bytes)
{
    unsigned char waste[16384];
    if (s->seekable && !s->digest) {
        if (lseek(s->fd, (off_t)bytes, SEEK_CUR) < 0) s->error = errno;
        return;
    }
    while (bytes) {
        const size_t n = bytes < sizeof waste ? (size_t)bytes : sizeof waste,
                     got = read_once(s, waste, n);
        if (!got) return;
        if (s->digest) SHA512Update(s->digest, waste, got);
        bytes -= got;
    }
}

// How many of n bytes may be read at once, up to the next gap or the end of the source.
static size_t up_to_gap(struct source *s, size_t n)
{
    while (s->next_gap < s->n_gaps && s->gaps[s->next_gap].at <= s->position)
        pass_over(s, s->gaps[s->next_gap++].bytes);
    uint64_t left = s->bounded ? s->size - s->position : SIZE_UNKNOWN;
    if (s->next_gap < s->n_gaps && s->gaps[s->next_gap].at - s->position < left)
        left = s->gaps[s->next_gap].at - s->position;
    return n < left ? n : (size_t)left;
}

void source_digest_rest(struct source *source)
{
    up_to_gap(source, 0);
    pass_over(source, source->trailing);
}

size_t source_read_some(struct source *source, void *to, size_t n)
{
    n = up_to_gap(source, n);
    if (!n) return 0;
    size_t got = source->n_peeked ? read_peeked(source, to, n) : read_once(source, to, n);
    source->position += got;
    if (source->digest) SHA512Update(source->digest, to, got);
    return got;
}

size_t source_read(struct source *source, void *to, size_t n)
{
    size_t got = 0;
    while (got < n) {
        size_t m = source_read_some(source, (unsigned char *)to + got, n - got);
        if (!m) break;
        got += m;
    }
    return got;
}

// Peeked bytes follow `position`, which is advanced past them while more are read.
size_t source_peek(struct source *source, size_t n, const unsigned char **ret_bytes)
{
    if (n > SOURCE_MAX_PEEK) n = SOURCE_MAX_PEEK;
    while (source->n_peeked < n) {
        source->position += source->n_peeked;
        size_t got = read_once(source, source->peeked + source->n_peeked, n - source->n_peeked);
        source->position -= source->n_peeked;
        if (!got) break;
        source->n_peeked += got;
    }
    *ret_bytes = source->peeked;
    return source->n_peeked < n ? source->n_peeked : n;
}

size_t source_glimpse(struct source *source, void *to, size_t n)
{
    enum { PATIENCE = 200 }; // milliseconds
    struct pollfd ready = {.fd = source->fd, .events = POLLIN};
    int copy[2];
    if (source->seekable || source->fd < 0 || source->n_peeked) return 0;
    if (poll(&ready, 1, PATIENCE) <= 0 || pipe2(copy, O_CLOEXEC)) return 0;
    ssize_t got = tee(source->fd, copy[1], n, SPLICE_F_NONBLOCK);
    if (got > 0) got = read(copy[0], to, (size_t)got);
    close(copy[0]);
    close(copy[1]);
    return got > 0 ? (size_t)got : 0;
}

static bool seek_file(struct source *s, uint64_t position)
{
    if (position > s->size) return false;
    uint64_t at = s->base + position;
    for (s->next_gap = 0; s->next_gap < s->n_gaps && s->gaps[s->next_gap].at <= position;)
        at += s->gaps[s->next_gap++].bytes;
    if (s->fd >= 0 && lseek(s->fd, (off_t)at, SEEK_SET) < 0) {
        s->error = errno;
        return false;
    }
    if (position != s->position) s->digest = NULL;
    s->n_peeked = 0;
    s->position = position;
    return true;
}

bool source_seek(struct source *source, uint64_t position)
{
    if (source->seekable) return seek_file(source, position);
    unsigned char waste[16384];
    while (source->position < position) {
        uint64_t left = position - source->position;
        size_t n = left < sizeof waste ? (size_t)left : sizeof waste;
        if (!source_read_some(source, waste, n)) return false;
    }
    return source->position == position;
}
