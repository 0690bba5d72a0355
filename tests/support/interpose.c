// SPDX-License-Identifier: MIT
// The C library's calls of its own functions do not reach these definitions. Those of the library
// under test do, because the executable's symbols come first.

#include "support/interpose.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Thread_local bool watching;
static _Thread_local unsigned permitted_wakes;

void watch_this_thread(bool watched)
{
    watching = watched;
}

unsigned watch_permit_wakes(unsigned n)
{
    const unsigned left = permitted_wakes;
    permitted_wakes = n;
    return left;
}

static void check_watched(const char *name)
{
    if (!watching) return;
    watching = false;
    static const char text[] = " called where it must not be\n";
    if (write(STDERR_FILENO, name, strlen(name)) < 0 ||
        write(STDERR_FILENO, text, sizeof text - 1) < 0)
        _exit(1);
    abort();
}

// The C library's function of that name. Condition variables also have an older version, which
// programs do not use.
static void *real(const char *name)
{
    void *found =
        strncmp(name, "pthread_cond_", 13) == 0 ? dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2") : NULL;
    if (!found) found = dlsym(RTLD_NEXT, name);
    if (!found) abort();
    return found;
}

// Forwards the call to the real function, looked up once.
#define PASS(name, ...)                                                                            \
    static __typeof__(&name) next;                                                                 \
    check_watched(#name);                                                                          \
    if (!__atomic_load_n(&next, __ATOMIC_RELAXED))                                                 \
        __atomic_store_n(&next, (__typeof__(next))(uintptr_t)real(#name), __ATOMIC_RELAXED);       \
    return __atomic_load_n(&next, __ATOMIC_RELAXED)(__VA_ARGS__)

// Memory: looking up a function may allocate, so these use the internal names of the C library.
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t n, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);
extern void __libc_free(void *memory);

void *malloc(size_t bytes)
{
    check_watched("malloc");
    return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    check_watched("calloc");
    return __libc_calloc(n, bytes);
}

void *realloc(void *memory, size_t bytes)
{
    check_watched("realloc");
    return __libc_realloc(memory, bytes);
}

void free(void *memory)
{
    check_watched("free");
    __libc_free(memory);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    check_watched("aligned_alloc");
    return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    check_watched("posix_memalign");
    void *got = __libc_memalign(alignment, bytes);
    if (!got) return ENOMEM;
    *memory = got;
    return 0;
}

void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    PASS(mmap, at, bytes, protection, flags, file, offset);
}

int munmap(void *at, size_t bytes)
{
    PASS(munmap, at, bytes);
}

int madvise(void *at, size_t bytes, int advice)
{
    PASS(madvise, at, bytes, advice);
}

int mprotect(void *at, size_t bytes, int protection)
{
    PASS(mprotect, at, bytes, protection);
}

// Locks, condition variables and semaphores.
int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    PASS(pthread_mutex_lock, mutex);
}

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    PASS(pthread_mutex_trylock, mutex);
}

int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until)
{
    PASS(pthread_mutex_timedlock, mutex, until);
}

int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    PASS(pthread_rwlock_rdlock, lock);
}

int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
    PASS(pthread_rwlock_wrlock, lock);
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    PASS(pthread_cond_wait, condition, mutex);
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                           const struct timespec *until)
{
    PASS(pthread_cond_timedwait, condition, mutex, until);
}

int pthread_cond_signal(pthread_cond_t *condition)
{
    PASS(pthread_cond_signal, condition);
}

int pthread_cond_broadcast(pthread_cond_t *condition)
{
    PASS(pthread_cond_broadcast, condition);
}

int pthread_barrier_wait(pthread_barrier_t *barrier)
{
    PASS(pthread_barrier_wait, barrier);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument)
{
    PASS(pthread_create, thread, attributes, run, argument);
}

int pthread_join(pthread_t thread, void **result)
{
    PASS(pthread_join, thread, result);
}

int sem_wait(sem_t *semaphore)
{
    PASS(sem_wait, semaphore);
}

int sem_trywait(sem_t *semaphore)
{
    PASS(sem_trywait, semaphore);
}

int sem_timedwait(sem_t *semaphore, const struct timespec *until)
{
    PASS(sem_timedwait, semaphore, until);
}

static int pass_sem_post(sem_t *semaphore)
{
    PASS(sem_post, semaphore);
}

int sem_post(sem_t *semaphore)
{
    const bool watched = watching;
    if (watching && permitted_wakes) permitted_wakes--, watching = false;
    const int result = pass_sem_post(semaphore);
    watching = watched;
    return result;
}

// System calls, among them futexes, which have no function of their own.
long syscall(long number, ...)
{
    long a[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(arguments, long);
    va_end(arguments);
    PASS(syscall, number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
    PASS(nanosleep, time, left);
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
    PASS(clock_nanosleep, clock, flags, time, left);
}

int usleep(useconds_t microseconds)
{
    PASS(usleep, microseconds);
}

unsigned sleep(unsigned seconds)
{
    PASS(sleep, seconds);
}

int sched_yield(void)
{
    PASS(sched_yield);
}

int poll(struct pollfd *files, nfds_t n, int timeout)
{
    PASS(poll, files, n, timeout);
}

// Files.
int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    PASS(open, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    PASS(openat, folder, path, flags, mode);
}

ssize_t read(int file, void *to, size_t bytes)
{
    PASS(read, file, to, bytes);
}

ssize_t write(int file, const void *from, size_t bytes)
{
    PASS(write, file, from, bytes);
}

int close(int file)
{
    PASS(close, file);
}

FILE *fopen(const char *path, const char *mode)
{
    PASS(fopen, path, mode);
}

size_t fwrite(const void *from, size_t bytes, size_t n, FILE *file)
{
    PASS(fwrite, from, bytes, n, file);
}

int fputs(const char *text, FILE *file)
{
    PASS(fputs, text, file);
}

int puts(const char *text)
{
    PASS(puts, text);
}

int fflush(FILE *file)
{
    PASS(fflush, file);
}

int vfprintf(FILE *file, const char *format, va_list arguments)
{
    PASS(vfprintf, file, format, arguments);
}

int fprintf(FILE *file, const char *format, ...)
{
    check_watched("fprintf");
    va_list arguments;
    va_start(arguments, format);
    int length = vfprintf(file, format, arguments);
    va_end(arguments);
    return length;
}

int printf(const char *format, ...)
{
    check_watched("printf");
    va_list arguments;
    va_start(arguments, format);
    int length = vfprintf(stdout, format, arguments);
    va_end(arguments);
    return length;
}
