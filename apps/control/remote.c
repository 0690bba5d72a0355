// SPDX-License-Identifier: MIT
#include "remote.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

enum { MAX_PORT = 65535 };

// The address between brackets, or of a name that is this machine's own everywhere; NULL: no
// memory.
static char *numeric_host(const char *text, size_t n)
{
    if (n == strlen("localhost") && strncmp(text, "localhost", n) == 0) return strdup("127.0.0.1");
    if (*text == '[' && text[n - 1] == ']' && memchr(text, ':', n)) return strndup(text + 1, n - 2);
    return strndup(text, n);
}

// getaddrinfo takes ports modulo 65536 and accepts none, so ports are checked here. The names of
// ports (/etc/services) are not accepted.
struct addrinfo *address_find(const char *option, const char *text, int kind, struct fault *fault)
{
    const struct addrinfo hints = {.ai_socktype = kind,
                                   .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
    const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : text;
    struct addrinfo *found = NULL;
    struct number number;
    if (port[strspn(port, "0123456789")] || !number_parse(port, QUANTITY_COUNT, &number) ||
        !number.whole || number.integer < 1 || number.integer > MAX_PORT) {
        fault_usage(fault,
                    "%s %s: must be PORT or ADDRESS:PORT, with a whole number from 1 to %d as the "
                    "port",
                    option, text, MAX_PORT);
        return NULL;
    }
    char *host = colon ? numeric_host(text, (size_t)(colon - text)) : strdup("127.0.0.1");
    const int error = host ? getaddrinfo(host, port, &hints, &found) : EAI_MEMORY;
    free(host);
    if (!error) return found;
    fault_usage(fault, "%s %s: must be PORT or ADDRESS:PORT, such as 0.0.0.0:9000: %s", option,
                text, gai_strerror(error));
    return NULL;
}

void remotes_wait(const struct remotes *remotes, int other, int another, double now, double seconds)
{
    struct pollfd files[2 + N_REMOTES + CONTROL_MAX_FILES] = {{.fd = other, .events = POLLIN},
                                                              {.fd = another, .events = POLLIN}};
    nfds_t n = 2;
    for (int i = 0; i < N_REMOTES; i++)
        if (remotes->others[i])
            files[n++] = (struct pollfd){.fd = remotes->others[i]->fd, .events = POLLIN};
    n += control_socket_files(remotes->socket, now, files + n);
    poll(files, n, (int)ceil(fmax(1e3 * seconds, 0)));
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
