// SPDX-License-Identifier: MIT
// The ways by which lines reach a run: the socket of --control, messages of --osc, the page of
// --web. Nothing here blocks.
#ifndef PARTITA_APPS_CONTROL_REMOTE_H
#define PARTITA_APPS_CONTROL_REMOTE_H

#include <netdb.h>

#include "socket.h"

// A way other than the socket.
struct remote {
    int fd; // to wait for
    void (*close)(struct remote *remote);
    // Reads what has arrived, executes its lines and answers.
    void (*serve)(struct remote *remote, control_line_fn *run, void *user);
    // Answers what waits for this ticket or an earlier one.
    void (*answer)(struct remote *remote, uint64_t ticket, const char *line);
};

// Finds the address PORT or ADDRESS:PORT, which the caller frees with freeaddrinfo; without
// ADDRESS, and for localhost, it is this machine's own. kind: SOCK_STREAM or SOCK_DGRAM. NULL, with
// a fault that names the option: the text is none, with a port from 1 to 65535.
struct addrinfo *address_find(const char *option, const char *text, int kind, struct fault *fault);

// Commands as Open Sound Control messages over UDP: /partita/gain with the number -6 is the line
// "gain -6". Received at PORT or ADDRESS:PORT, with a port from 1 to 65535; without ADDRESS from
// this machine only. Others than /partita/ are ignored, and so are messages of a button that is
// released: a 0 for a command without argument. Answers go to where the last message came from:
// /partita/error with a text if a line fails, the filter when its file has been read, and for
// `status` a message for each value. False, with a fault, also if the program was built without
// liblo.
bool osc_open(struct remote **ret, const char *address, struct fault *fault);

// The page that steers a run: an HTTP server that sends one page, and executes the lines that this
// posts to /command. A WAV that is posted to /load?name=x.wav becomes the line "load" with a
// temporary file, which is removed if it is refused, when the next one is loaded, or at the end.
// Receives as osc_open, and prints where a browser finds the page: for an address of other machines
// with a token, without which nothing is answered. Its end tells requests that wait that the
// program ends. False, with a fault, also if the program was built without libmicrohttpd.
bool web_open(struct remote **ret, const char *address, struct fault *fault);

enum { N_REMOTES = 2 };

// All of a run; NULL: there is none.
struct remotes {
    struct control_socket *socket;
    struct remote *others[N_REMOTES];
};

// Waits until something arrives, or at one of two other descriptors, of which -1 is none, for so
// many seconds at most.
void remotes_wait(const struct remotes *remotes, int other, int another, double now,
                  double seconds);

// As the functions of the socket.
void remotes_serve(const struct remotes *remotes, double now, control_line_fn *run, void *user);
void remotes_answer(const struct remotes *remotes, uint64_t ticket, const char *line);
void remotes_close(struct remotes *remotes);

#endif
