// SPDX-License-Identifier: MIT
#include "remote.h"

nfds_t remotes_files(const struct remotes *remotes, double now,
                     struct pollfd files[REMOTES_MAX_FILES])
{
    nfds_t n = control_socket_files(remotes->socket, now, files);
    for (int i = 0; i < N_REMOTES; i++)
        if (remotes->others[i])
            files[n++] = (struct pollfd){.fd = remotes->others[i]->fd, .events = POLLIN};
    return n;
}

void remotes_serve(const struct remotes *remotes, double now, control_line_fn *run, void *user)
{
    control_socket_serve(remotes->socket, now, run, user);
    for (int i = 0; i < N_REMOTES; i++)
        if (remotes->others[i]) remotes->others[i]->serve(remotes->others[i], run, user);
}

void remotes_answer(const struct remotes *remotes, uint64_t ticket, const char *line)
{
    control_socket_answer(remotes->socket, ticket, line);
    for (int i = 0; i < N_REMOTES; i++)
        if (remotes->others[i]) remotes->others[i]->answer(remotes->others[i], ticket, line);
}

void remotes_close(struct remotes *remotes)
{
    control_socket_close(remotes->socket);
    for (int i = 0; i < N_REMOTES; i++)
        if (remotes->others[i]) remotes->others[i]->close(remotes->others[i]);
    *remotes = (struct remotes){0};
}
