// SPDX-License-Identifier: MIT
// See temp.h. A kill -9 leaves a file named .NAME.XXXXXX, never a short one under the final name.
#include "temp.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// A signal handler has no argument to find the file by.
static char pending[PATH_MAX];
static volatile int pending_set;

static void remember(const char *path)
{
    pending_set = 0;
    if (path && strlen(path) < sizeof pending) {
        strcpy(pending, path);
        pending_set = 1;
    }
}

void temp_discard_on_signal(void)
{
    if (pending_set) unlink(pending);
}

static mode_t new_file_mode(void)
{
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

// "dir/name" -> "dir/.name.XXXXXX"
static char *temporary_name(const char *final)
{
    const char *slash = strrchr(final, '/');
    int n_directory = slash ? (int)(slash - final + 1) : 0;
    char *name = NULL;
    if (asprintf(&name, "%.*s.%.200s.XXXXXX", n_directory, final, final + n_directory) < 0) return NULL;
    return name;
}

static int open_temporary(struct temp *temp, const char *path, mode_t mode, struct fault *fault)
{
    temp->temporary = temporary_name(temp->final);
    int fd = temp->temporary ? mkostemp(temp->temporary, O_CLOEXEC) : -1;
    if (fd < 0) {
        fault_set(fault, "%s: cannot create: %s", path, strerror(errno));
        free(temp->temporary);
        temp->temporary = NULL;
        return -1;
    }
    remember(temp->temporary);
    if (fchmod(fd, mode)) {
        fault_set(fault, "%s: cannot set its mode: %s", path, strerror(errno));
        close(fd);
        return -1;
    }
    return fd;
}

static int open_directly(int fd, const char *path, struct fault *fault)
{
    if (fd < 0) {
        fault_set(fault, "%s: cannot open for writing: %s", path, strerror(errno));
    } else if (isatty(fd)) {
        fault_set(fault, "%s: is a terminal; samples go to a file or a pipe", path);
        close(fd);
        fd = -1;
    }
    return fd;
}

// An existing file keeps its mode, and a symbolic link goes on pointing to it.
static int open_existing(struct temp *temp, const char *path, const struct stat *st, struct fault *fault)
{
    if (S_ISDIR(st->st_mode)) {
        fault_set(fault, "%s: is a directory", path);
        return -1;
    }
    if (!S_ISREG(st->st_mode)) return open_directly(open(path, O_WRONLY | O_CLOEXEC), path, fault);
    if (access(path, W_OK)) {
        fault_set(fault, "%s: cannot write: %s", path, strerror(errno));
        return -1;
    }
    temp->final = realpath(path, NULL);
    if (temp->final) return open_temporary(temp, path, st->st_mode & 07777, fault);
    fault_set(fault, "%s: %s", path, strerror(errno));
    return -1;
}

int temp_open(struct temp *temp, const char *path, struct fault *fault)
{
    *temp = (struct temp){0};
    struct stat st;
    if (strcmp(path, "-") == 0)
        return open_directly(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3), "standard output", fault);
    int fd = -1;
    if (stat(path, &st) == 0) {
        fd = open_existing(temp, path, &st, fault);
    } else if (!*path || errno != ENOENT || lstat(path, &st) == 0) {
        fault_set(fault, "%s: cannot create: %s", path, strerror(errno ? errno : ENOENT));
    } else {
        temp->final = strdup(path);
        if (temp->final) fd = open_temporary(temp, path, new_file_mode(), fault);
    }
    if (fd < 0) temp_discard(temp);
    return fd;
}

int temp_resume(struct temp *temp, const char *path, const char *partial, struct fault *fault)
{
    struct stat st;
    *temp = (struct temp){.keep = true};
    if (strcmp(path, "-") == 0 || (stat(path, &st) == 0 && !S_ISREG(st.st_mode))) {
        fault_set(fault, "%s: --resume writes to a file of its own, not to pipes, devices or directories", path);
        return -1;
    }
    int fd = open(partial, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) {
        fault_set(fault, "%s: cannot create: %s", partial, strerror(errno));
        return -1;
    }
    temp->final = strdup(path);
    temp->temporary = strdup(partial);
    return fd;
}

static void forget(struct temp *temp)
{
    remember(NULL);
    free(temp->final);
    free(temp->temporary);
    *temp = (struct temp){0};
}

bool temp_commit(struct temp *temp, struct fault *fault)
{
    if (!temp->final) return true;
    if (rename(temp->temporary, temp->final)) {
        fault_set(fault, "%s: cannot rename the finished file: %s", temp->final, strerror(errno));
        temp_discard(temp);
        return false;
    }
    forget(temp);
    return true;
}

void temp_discard(struct temp *temp)
{
    if (temp->temporary && !temp->keep) unlink(temp->temporary);
    forget(temp);
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
        if (identify(inputs[i], STDIN_FILENO, &in) && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
            return fault_set(fault, "%s: is the input %s itself; name another output", path, inputs[i]);
    return true;
}
