// SPDX-License-Identifier: MIT
// The control socket: a Unix stream socket on which several clients send lines and get one line of
// answer for each. Nothing here blocks, since the calling thread also watches the audio device.
#ifndef PARTITA_APPS_CONTROL_SOCKET_H
#define PARTITA_APPS_CONTROL_SOCKET_H

#include <poll.h>
#include <stdint.h>

#include "base/fault.h"

enum {
    CONTROL_LINE_BYTES = 8192, // with the end of line; longer lines are refused
    CONTROL_MAX_CLIENTS = 16,
    CONTROL_MAX_FILES = CONTROL_MAX_CLIENTS + 1,
};

struct control_socket;

// Creates the socket, which only this user may connect to. A path that exists is refused, unless it
// is a socket of this user that nobody listens to. Changes the umask for a moment.
bool control_socket_open(struct control_socket **ret, const char *path, struct fault *fault);

// For a program that executes itself anew: the descriptors that stay open beyond exec.
struct control_kept {
    int fd, n;
    struct {
        int fd;
        double period;
    } clients[CONTROL_MAX_CLIENTS];
};

// Keeps them, except those of clients that have sent part of a line or wait for an answer; of NULL
// none. control_socket_adopt continues with them; false: they are no socket of this path.
void control_socket_keep(const struct control_socket *socket, struct control_kept *ret);
bool control_socket_adopt(struct control_socket **ret, const char *path,
                          const struct control_kept *kept);

// Closes all connections and removes the path, unless it names another file by now. Accepts NULL.
void control_socket_close(struct control_socket *socket);

// What a line asks for.
struct control_reply {
    char *line;         // the answer with its end of line, which is freed; NULL: see ticket
    uint64_t ticket;    // the answer follows with control_socket_answer of this or a later ticket
    double period;      // seconds between status lines, 0: none; negative: unchanged
    struct fault fault; // why the line failed; empty: it did not
};

// Executes one line without its end of line, which it may change. `reply` has no line, ticket,
// period or fault at first.
typedef void control_line_fn(void *user, char *line, struct control_reply *reply);

// Writes the descriptors to wait for, and returns how many; the socket NULL has none.
nfds_t control_socket_files(const struct control_socket *socket, double now,
                            struct pollfd files[CONTROL_MAX_FILES]);

// Accepts clients, reads and executes lines, writes answers. A client waits for its answer before
// its next line is read; one that does not read its answers is not read from, and is closed when
// its status lines exceed its buffer of 64 KiB.
void control_socket_serve(struct control_socket *socket, double now, control_line_fn *run,
                          void *user);

// Answers clients that wait for this ticket or an earlier one.
void control_socket_answer(struct control_socket *socket, uint64_t ticket, const char *line);

// The time of the next status line; INFINITY: nobody wants one. control_socket_publish sends it to
// those for whom it is due.
double control_socket_due(const struct control_socket *socket);
void control_socket_publish(struct control_socket *socket, double now, const char *line);

#endif
