// SPDX-License-Identifier: MIT
// See temp.h. SIGKILL leaves a file named .NAME.XXXXXX, or NAME.partial of a recording, never an
// incomplete one under the final name.
#include "temp.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bytes.h"

// Global, because a signal handler takes no argument of ours. An output and the files beside it may
// be unfinished at once, in several threads.
enum { MAX_PENDING = 1 << 10 };
enum { FREE, TAKEN, SET, KEPT };
static struct {
    char path[PATH_MAX];
    atomic_int state;
} pending[MAX_PENDING];
static atomic_int last_pending;

static void pending_add(struct temp *temp)
{
    static atomic_int registered;
    // A library may end the process, as OpenMP does where a thread cannot be made.
    if (!atomic_exchange(&registered, 1)) atexit(temp_discard_on_signal);
    if (strlen(temp->temporary) >= PATH_MAX) return;
    for (int i = 0; i < MAX_PENDING; i++) {
        int expected = FREE;
        if (!atomic_compare_exchange_strong(&pending[i].state, &expected, TAKEN)) continue;
        strcpy(pending[i].path, temp->temporary);
        pending[i].state = temp->is_recording ? KEPT : SET;
        temp->pending = 1 + i;
        if (!temp->beside) last_pending = i;
        return;
    }
}

void temp_discard_on_signal(void)
{
    for (int i = 0; i < MAX_PENDING; i++)
        if (pending[i].state == SET) unlink(pending[i].path);
}

const char *temp_pending(void)
{
    const int i = last_pending;
    return pending[i].state == SET || pending[i].state == KEPT ? pending[i].path : NULL;
}

static mode_t new_file_mode(void)
{
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

// "dir/name" with something before and after the name. Names of files have at most 255 bytes, so
// long ones are cut. NULL: out of memory.
static char *name_between(const char *before, const char *final, const char *after)
{
    const int n_directory = (int)(path_base(final) - final);
    char *name = NULL;
    if (asprintf(&name, "%.*s%s%.200s%s", n_directory, final, before, path_base(final), after) < 0)
        return NULL;
    return name;
}

// What follows opening the file, which failed if `fd` is negative.
static int begin_file(struct temp *temp, const char *path, int fd, mode_t mode, struct fault *fault)
{
    if (fd < 0) {
        fault_set(fault, "%s: cannot create: %s", path, strerror(errno));
        free(temp->temporary);
        temp->temporary = NULL;
        return -1;
    }
    pending_add(temp);
    if (fchmod(fd, mode) == 0) return fd;
    fault_set(fault, "%s: cannot set its mode: %s", path, strerror(errno));
    close(fd);
    return -1;
}

static int open_temporary(struct temp *temp, const char *path, mode_t mode, struct fault *fault)
{
    temp->temporary = name_between(".", temp->final, ".XXXXXX");
    const int fd = temp->temporary ? mkostemp(temp->temporary, O_CLOEXEC) : -1;
    return begin_file(temp, path, fd, mode, fault);
}

// Locked until the descriptor is closed, which tells the file from those that a killed run left.
static int open_recording(struct temp *temp, const char *path, mode_t mode, struct fault *fault)
{
    int fd = -1;
    for (int i = 1; fd < 0 && (i == 1 || errno == EEXIST); i++) {
        free(temp->temporary);
        temp->temporary = temp_recording_name(temp->final, i);
        if (!temp->temporary) break;
        fd = open(temp->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    }
    fd = begin_file(temp, path, fd, mode, fault);
    if (fd >= 0) (void)flock(fd, LOCK_EX | LOCK_NB); // some file systems have no locks
    return fd;
}

char *temp_recording_name(const char *final, int number)
{
    char suffix[32] = ".partial";
    if (number > 1) snprintf(suffix, sizeof suffix, ".%d.partial", number);
    return name_between("", final, suffix);
}

bool temp_is_left(const char *recording)
{
    const int fd = open(recording, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    const bool left = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
                      (flock(fd, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK);
    if (fd >= 0) close(fd);
    return left;
}

static int open_directly(int fd, const char *path, struct fault *fault)
{
    if (fd < 0) {
        fault_set(fault, "%s: cannot open for writing: %s", path, strerror(errno));
    } else if (isatty(fd)) {
        fault_set(fault, "%s: is a terminal; samples are written to a file or a pipe", path);
        close(fd);
        fd = -1;
    }
    return fd;
}

bool temp_is_special(const char *path)
{
    struct stat st;
    return strcmp(path, "-") == 0 ||
           (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
}

char *temp_final(const char *path, mode_t *ret_mode, struct fault *fault)
{
    struct stat st;
    char *name = NULL;
    if (stat(path, &st) == 0) { // its mode is kept; a symbolic link keeps pointing to it
        *ret_mode = st.st_mode & 07777;
        if (S_ISDIR(st.st_mode)) fault_set(fault, "%s: is a directory", path);
        else if (access(path, W_OK))
            fault_set(fault, "%s: cannot write: %s", path, strerror(errno));
        else if (!(name = realpath(path, NULL))) fault_set(fault, "%s: %s", path, strerror(errno));
        return name;
    }
    if (!*path || errno != ENOENT || lstat(path, &st) == 0) {
        fault_set(fault, "%s: cannot create: %s", path, strerror(errno ? errno : ENOENT));
        return NULL;
    }
    *ret_mode = new_file_mode();
    name = strdup(path);
    if (!name) fault_set(fault, "out of memory");
    return name;
}

int temp_open(struct temp *temp, const char *path, bool is_recording, struct fault *fault)
{
    mode_t mode;
    *temp = (struct temp){.is_recording = is_recording};
    if (strcmp(path, "-") == 0)
        return open_directly(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3), "standard output", fault);
    if (temp_is_special(path)) return open_directly(open(path, O_WRONLY | O_CLOEXEC), path, fault);
    temp->final = temp_final(path, &mode, fault);
    const int fd = !temp->final   ? -1
                   : is_recording ? open_recording(temp, path, mode, fault)
                                  : open_temporary(temp, path, mode, fault);
    if (fd < 0) temp_discard(temp);
    return fd;
}

bool temp_write_beside(struct temp *temp, const char *path, char *text, bool durable,
                       struct fault *fault)
{
    struct sink sink;
    *temp = (struct temp){.final = strdup(path), .beside = true};
    const bool memory = (text && temp->final) || fault_set(fault, "out of memory");
    const int fd = memory ? open_temporary(temp, path, new_file_mode(), fault) : -1;
    bool good = fd >= 0;
    if (good) {
        sink_from_fd(&sink, fd, path);
        if (sink_write(&sink, text, strlen(text)) && durable && fsync(fd)) sink.error = errno;
        good = sink_close(&sink) || sink_fault(&sink, fault);
    }
    free(text);
    if (!good) temp_discard(temp);
    return good;
}

bool temp_write_text(const char *path, char *text, bool durable, struct fault *fault)
{
    struct temp temp;
    return temp_write_beside(&temp, path, text, durable, fault) && temp_commit(&temp, false, fault);
}

static char *folder_of(const char *path)
{
    const size_t n = (size_t)(path_base(path) - path);
    return n ? strndup(path, n) : strdup(".");
}

int temp_open_unnamed(const char *path, struct fault *fault)
{
    const char *chosen = secure_getenv("TMPDIR");
    char *name = NULL, *folder = temp_is_special(path)
                                     ? strdup(chosen && *chosen ? chosen : "/var/tmp")
                                     : folder_of(path);
    int fd = folder ? open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;
    // Some file systems have no files without names.
    if (fd < 0 && folder && asprintf(&name, "%s/.partita.XXXXXX", folder) >= 0) {
        fd = mkostemp(name, O_CLOEXEC);
        if (fd >= 0) unlink(name);
        free(name);
    }
    if (fd < 0)
        fault_set(fault, "%s: cannot create a temporary file in %s: %s", path,
                  folder ? folder : "its folder", strerror(errno));
    free(folder);
    return fd;
}

int temp_resume(struct temp *temp, const char *path, const char *partial, struct fault *fault)
{
    *temp = (struct temp){.keep = true};
    mode_t mode;
    temp->final = temp_final(path, &mode, fault);
    temp->temporary = strdup(partial);
    if (!temp->temporary) fault_set(fault, "out of memory");
    if (temp->final && temp->temporary) {
        const int fd = open(partial, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (fd >= 0 && fchmod(fd, mode) == 0) return fd;
        fault_set(fault, "%s: cannot create: %s", partial, strerror(errno));
        if (fd >= 0) close(fd);
    }
    temp_discard(temp);
    return -1;
}

static void temp_release(struct temp *temp)
{
    if (temp->pending) pending[temp->pending - 1].state = FREE;
    free(temp->final);
    free(temp->temporary);
    *temp = (struct temp){0};
}

// A name is on the disk when its folder is. Some file systems cannot sync folders (EINVAL).
static bool sync_folder(const char *path)
{
    char *folder = folder_of(path);
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    bool good = fd >= 0 && (fsync(fd) == 0 || errno == EINVAL);
    const int error = errno;
    if (fd >= 0) close(fd);
    free(folder);
    errno = error;
    return good;
}

bool temp_commit(struct temp *temp, bool durable, struct fault *fault)
{
    bool good = true;
    if (!temp->final) return true;
    if (rename(temp->temporary, temp->final)) {
        fault_set(fault, "%s: cannot rename the finished file: %s", temp->final, strerror(errno));
        temp_discard(temp);
        return false;
    }
    if (durable && !sync_folder(temp->final))
        good =
            fault_set(fault, "%s: cannot synchronise its folder: %s", temp->final, strerror(errno));
    temp_release(temp);
    return good;
}

void temp_discard(struct temp *temp)
{
    if (temp->temporary && !temp->keep) unlink(temp->temporary);
    temp_release(temp);
}

static bool identify(const char *path, int standard, struct stat *st)
{
    int failed = strcmp(path, "-") == 0 ? fstat(standard, st) : stat(path, st);
    return !failed && S_ISREG(st->st_mode);
}

bool temp_differs(const char *path, const char *const *inputs, int n_inputs, struct fault *fault)
{
    struct stat out, in;
    if (!identify(path, STDOUT_FILENO, &out)) return true;
    for (int i = 0; i < n_inputs; i++)
        if (identify(inputs[i], STDIN_FILENO, &in) && in.st_dev == out.st_dev &&
            in.st_ino == out.st_ino)
            return fault_set(fault, "%s: is the input %s itself; name another output", path,
                             inputs[i]);
    return true;
}
