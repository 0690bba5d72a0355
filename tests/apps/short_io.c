// SPDX-License-Identifier: MIT
// Preloaded into the program under test: injects faults that read and write may have. SHORT_IO=1
// transfers 1 to 7 bytes per call and lets some calls fail with EINTR or EAGAIN; FAIL_WRITE=n lets
// the n-th write fail with EIO, FAIL_READ=n the n-th read, FAIL_CLOSE=1 every close of a descriptor
// that was written to; FAIL_SYNC=1 every fdatasync, FAIL_SYNC=2 every fsync of a folder.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static unsigned calls, reads, writes;
static unsigned char written[1024];

static int setting(const char *name)
{
    const char *value = getenv(name);
    return value ? atoi(value) : 0;
}

static int refuse(void)
{
    unsigned call = ++calls;
    if (!setting("SHORT_IO") || call % 5 > 1) return 0;
    errno = call % 5 ? EINTR : EAGAIN;
    return 1;
}

static size_t shorten(size_t n)
{
    size_t max = calls % 7 + 1;
    return setting("SHORT_IO") && n > max ? max : n;
}

ssize_t read(int fd, void *to, size_t n)
{
    ssize_t (*real)(int, void *, size_t) =
        (ssize_t(*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
    if (refuse()) return -1;
    if (setting("FAIL_READ") && ++reads == (unsigned)setting("FAIL_READ")) {
        errno = EIO;
        return -1;
    }
    return real(fd, to, shorten(n));
}

ssize_t write(int fd, const void *from, size_t n)
{
    ssize_t (*real)(int, const void *, size_t) =
        (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    if (fd <= 2) return real(fd, from, n);
    if (refuse()) return -1;
    if (setting("FAIL_WRITE") && ++writes == (unsigned)setting("FAIL_WRITE")) {
        errno = EIO;
        return -1;
    }
    if (fd < 1024) written[fd] = 1;
    return real(fd, from, shorten(n));
}

int close(int fd)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "close");
    int fail = setting("FAIL_CLOSE") && fd >= 0 && fd < 1024 && written[fd];
    int result = real(fd);
    if (!fail) return result;
    errno = EIO;
    return -1;
}

static int fail(void)
{
    errno = EIO;
    return -1;
}

int fdatasync(int fd)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    return setting("FAIL_SYNC") == 1 ? fail() : real(fd);
}

int fsync(int fd)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    struct stat st;
    int folder = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
    return setting("FAIL_SYNC") == 2 && folder ? fail() : real(fd);
}
