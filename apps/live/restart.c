// SPDX-License-Identifier: MIT
#include "restart.h"

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

void restart_exec(const struct restart *restart, const struct control_socket *socket, char **argv)
{
    struct restart r = *restart;
    char number[16];
    const int fd = memfd_create("restart", 0);
    fflush(NULL);
    // The audio libraries open their sockets without FD_CLOEXEC.
    close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
    control_socket_keep(socket, &r.socket);
    snprintf(number, sizeof number, "%d", fd);
    if (write(fd, &r, sizeof r) == sizeof r && fcntl(fd, F_SETFD, 0) == 0 &&
        setenv(VARIABLE, number, 1) == 0)
        execv("/proc/self/exe", argv);
    close(fd);
}
