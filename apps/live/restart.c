// SPDX-License-Identifier: MIT
#include "restart.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static const char VARIABLE[] = "PARTITA_LIVE_RESTART"; // the descriptor

bool restart_read(struct restart *ret)
{
    const char *number = getenv(VARIABLE);
    const int fd = number ? atoi(number) : -1;
    const bool good = fd > STDERR_FILENO && pread(fd, ret, sizeof *ret, 0) == sizeof *ret;
    if (!good) *ret = (struct restart){.take = 1};
    if (good) close(fd);
    unsetenv(VARIABLE);
    return good;
}

// The audio libraries open their sockets without FD_CLOEXEC.
static void close_at_exec(void)
{
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        int fd = atoi(entry->d_name);
        if (fd > STDERR_FILENO) fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
    if (folder) closedir(folder);
}

void restart_exec(const struct restart *restart, const struct control_socket *socket, int argc,
                  char **argv)
{
    struct restart r = *restart;
    char number[16];
    char **arguments = calloc((size_t)argc + 2, sizeof *arguments);
    const int fd = memfd_create("restart", 0);
    if (arguments) arguments[0] = "partita";
    for (int i = 0; arguments && i < argc; i++) arguments[i + 1] = argv[i];
    fflush(NULL);
    close_at_exec();
    control_socket_keep(socket, &r.socket);
    snprintf(number, sizeof number, "%d", fd);
    if (arguments && write(fd, &r, sizeof r) == sizeof r && fcntl(fd, F_SETFD, 0) == 0 &&
        setenv(VARIABLE, number, 1) == 0)
        execv("/proc/self/exe", arguments);
    close(fd);
    free(arguments);
}
