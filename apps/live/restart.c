// SPDX-License-Identifier: MIT
#include "restart.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char VARIABLE[] = "PARTITA_LIVE_RESTART", SOCKET_VARIABLE[] = "PARTITA_LIVE_SOCKET";

bool restart_read(struct restart *ret)
{
    const char *text = getenv(VARIABLE), *socket = getenv(SOCKET_VARIABLE);
    struct restart r = {.take = 1};
    struct live_state *s = &r.state;
    int mute, bypass, waiting;
    bool good = text && sscanf(text, "%d:%d:%lf:%lf:%lf:%lf:%lf:%lf:%lf:%lf:%d:%d:%d", &r.take,
                               &r.filter, &s->gain, &s->wet, &s->dry, &s->input_gain,
                               &s->direction.azimuth, &s->direction.elevation, &s->fade, &r.played,
                               &mute, &bypass, &waiting) == 13;
    unsetenv(VARIABLE);
    *ret = (struct restart){.take = 1};
    if (!good) return false;
    s->mute = mute;
    s->bypass = bypass;
    r.waiting = waiting;
    *ret = r;
    snprintf(ret->socket, sizeof ret->socket, "%s", socket ? socket : "");
    unsetenv(SOCKET_VARIABLE);
    return true;
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
    char kept[CONTROL_KEPT_BYTES];
    const struct restart *r = restart;
    const struct live_state *s = &r->state;
    char text[256];
    char **arguments = calloc((size_t)argc + 2, sizeof *arguments);
    if (!arguments) return;
    snprintf(text, sizeof text, "%d:%d:%.17g:%.17g:%.17g:%.17g:%.17g:%.17g:%.17g:%.17g:%d:%d:%d",
             r->take, r->filter, s->gain, s->wet, s->dry, s->input_gain, s->direction.azimuth,
             s->direction.elevation, s->fade, r->played, s->mute, s->bypass, r->waiting);
    setenv(VARIABLE, text, 1);
    arguments[0] = "partita";
    for (int i = 0; i < argc; i++) arguments[i + 1] = argv[i];
    fflush(NULL);
    close_at_exec();
    control_socket_keep(socket, kept);
    setenv(SOCKET_VARIABLE, kept, 1);
    execv("/proc/self/exe", arguments);
    free(arguments);
}
