// SPDX-License-Identifier: MIT
// Preloaded into the program under test. FAULT=name:n lets the n-th call of a function of the C
// library fail as it may fail in a real system: allocations and threads without memory, other calls
// with EIO. FAULT_COUNTS=file: at exit, writes how often each function was called. FAULT_OWN: only
// calls that the program and its library make themselves count, not those of other libraries.
// FAULT_STACK=file: a crash writes the modules and functions that were active, innermost first.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// Allocations are one function here: malloc, calloc, realloc, aligned_alloc and posix_memalign.
enum function {
    FUNCTION_alloc,
    FUNCTION_open,
    FUNCTION_fopen,
    FUNCTION_read,
    FUNCTION_write,
    FUNCTION_pwrite,
    FUNCTION_lseek,
    FUNCTION_fsync,
    FUNCTION_fdatasync,
    FUNCTION_rename,
    FUNCTION_mmap,
    FUNCTION_thread,
    FUNCTION_ftruncate,
    FUNCTION_fchmod,
    FUNCTION_fstat,
    FUNCTION_realpath,
    FUNCTION_unlink,
    FUNCTION_close,
    N_FUNCTIONS,
};
static const char *const names[N_FUNCTIONS] = {
    [FUNCTION_alloc] = "alloc",         [FUNCTION_open] = "open",
    [FUNCTION_fopen] = "fopen",         [FUNCTION_read] = "read",
    [FUNCTION_write] = "write",         [FUNCTION_pwrite] = "pwrite",
    [FUNCTION_lseek] = "lseek",         [FUNCTION_fsync] = "fsync",
    [FUNCTION_fdatasync] = "fdatasync", [FUNCTION_rename] = "rename",
    [FUNCTION_mmap] = "mmap",           [FUNCTION_thread] = "thread",
    [FUNCTION_ftruncate] = "ftruncate", [FUNCTION_fchmod] = "fchmod",
    [FUNCTION_fstat] = "fstat",         [FUNCTION_realpath] = "realpath",
    [FUNCTION_unlink] = "unlink",       [FUNCTION_close] = "close",
};

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t n);
void *__libc_memalign(size_t alignment, size_t n);

static atomic_ulong counts[N_FUNCTIONS];
static enum function failing = N_FUNCTIONS; // none
static unsigned long failing_call;
static int active; // calls of the loader and of constructors are not counted
static int own_only, stack_fd = -1;

static void write_counts(void)
{
    const char *path = getenv("FAULT_COUNTS");
    active = 0;
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file) return;
    for (int i = 0; i < N_FUNCTIONS; i++) fprintf(file, "%s %lu\n", names[i], counts[i]);
    fclose(file);
}

static void write_stack(int signal_number)
{
    void *frames[64];
    backtrace_symbols_fd(frames, backtrace(frames, 64), stack_fd);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void watch_crashes(const char *path)
{
    void *frame;
    backtrace(&frame, 1); // loads what it needs
    stack_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    signal(SIGSEGV, write_stack);
    signal(SIGABRT, write_stack);
}

__attribute__((constructor)) static void begin(void)
{
    const char *stack = getenv("FAULT_STACK");
    own_only = getenv("FAULT_OWN") != NULL;
    if (stack) watch_crashes(stack);
    const char *fault = getenv("FAULT"), *colon = fault ? strchr(fault, ':') : NULL;
    for (int i = 0; colon && i < N_FUNCTIONS; i++)
        if (strlen(names[i]) == (size_t)(colon - fault) &&
            memcmp(fault, names[i], strlen(names[i])) == 0) {
            failing = (enum function)i;
            failing_call = strtoul(colon + 1, NULL, 10);
        }
    atexit(write_counts);
    active = 1;
}

// Whether an address lies in partita or libpartita.so. NVIDIA's runtime, which is linked into
// libpartita-cuda.so, crashes while it is loaded if it gets no memory.
static int is_own(const void *address)
{
    Dl_info info;
    if (!dladdr(address, &info) || !info.dli_fname) return 0;
    const char *slash = strrchr(info.dli_fname, '/'), *name = slash ? slash + 1 : info.dli_fname;
    return strcmp(name, "partita") == 0 || strncmp(name, "libpartita.", 11) == 0;
}

static int call_fails(enum function function, int error, const void *caller)
{
    if (!active || (own_only && !is_own(caller))) return 0;
    if (++counts[function] != failing_call || failing != function) return 0;
    errno = error;
    return 1;
}

// In the function that is replaced, so that the return address is its caller's.
#define fails(function, error) call_fails(function, error, __builtin_return_address(0))

// The C library's function of the same type as `name`.
#define REAL(name) ((__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name))

void *malloc(size_t n)
{
    return fails(FUNCTION_alloc, ENOMEM) ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    return fails(FUNCTION_alloc, ENOMEM) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *old, size_t n)
{
    return fails(FUNCTION_alloc, ENOMEM) ? NULL : __libc_realloc(old, n);
}

void *aligned_alloc(size_t alignment, size_t n)
{
    return fails(FUNCTION_alloc, ENOMEM) ? NULL : __libc_memalign(alignment, n);
}

int posix_memalign(void **ret, size_t alignment, size_t n)
{
    if (fails(FUNCTION_alloc, ENOMEM)) return ENOMEM;
    *ret = __libc_memalign(alignment, n);
    return *ret ? 0 : ENOMEM;
}

// Standard streams never fail: the tests read them.
static int open_mode(int flags, va_list arguments)
{
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, int) : 0;
}

int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    const int mode = open_mode(flags, arguments);
    va_end(arguments);
    return fails(FUNCTION_open, EIO) ? -1 : REAL(open)(path, flags, mode);
}

FILE *fopen(const char *path, const char *mode)
{
    return fails(FUNCTION_fopen, EIO) ? NULL : REAL(fopen)(path, mode);
}

ssize_t read(int fd, void *to, size_t n)
{
    return fails(FUNCTION_read, EIO) ? -1 : REAL(read)(fd, to, n);
}

ssize_t write(int fd, const void *from, size_t n)
{
    return fd > 2 && fails(FUNCTION_write, EIO) ? -1 : REAL(write)(fd, from, n);
}

ssize_t pwrite(int fd, const void *from, size_t n, off_t at)
{
    return fails(FUNCTION_pwrite, EIO) ? -1 : REAL(pwrite)(fd, from, n, at);
}

off_t lseek(int fd, off_t offset, int whence)
{
    return fails(FUNCTION_lseek, EIO) ? -1 : REAL(lseek)(fd, offset, whence);
}

int fsync(int fd)
{
    return fails(FUNCTION_fsync, EIO) ? -1 : REAL(fsync)(fd);
}

int fdatasync(int fd)
{
    return fails(FUNCTION_fdatasync, EIO) ? -1 : REAL(fdatasync)(fd);
}

int rename(const char *from, const char *to)
{
    return fails(FUNCTION_rename, EIO) ? -1 : REAL(rename)(from, to);
}

void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    return fails(FUNCTION_mmap, ENOMEM) ? MAP_FAILED
                                        : REAL(mmap)(at, n, protection, flags, fd, offset);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *context)
{
    return fails(FUNCTION_thread, EAGAIN) ? EAGAIN
                                          : REAL(pthread_create)(thread, attributes, run, context);
}

int ftruncate(int fd, off_t n)
{
    return fails(FUNCTION_ftruncate, EIO) ? -1 : REAL(ftruncate)(fd, n);
}

int fchmod(int fd, mode_t mode)
{
    return fails(FUNCTION_fchmod, EIO) ? -1 : REAL(fchmod)(fd, mode);
}

int fstat(int fd, struct stat *st)
{
    return fails(FUNCTION_fstat, EIO) ? -1 : REAL(fstat)(fd, st);
}

char *realpath(const char *path, char *resolved)
{
    return fails(FUNCTION_realpath, EIO) ? NULL : REAL(realpath)(path, resolved);
}

int unlink(const char *path)
{
    return fails(FUNCTION_unlink, EIO) ? -1 : REAL(unlink)(path);
}

// The descriptor is closed all the same, as on Linux.
int close(int fd)
{
    const int result = REAL(close)(fd);
    return fd > 2 && fails(FUNCTION_close, EIO) ? -1 : result;
}
