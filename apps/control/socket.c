// SPDX-License-Identifier: MIT
#include "socket.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { OUT_BYTES = 1 << 16, BACKLOG = 8 };

// Pause after a connection could not be accepted, for example for want of descriptors.
static const double ACCEPT_PAUSE = 1;

struct client {
    int fd;
    bool at_end; // it sends nothing more
    bool broken; // close it
    uint64_t ticket;
    double period, next; // s
    size_t n_in, n_out;
    char in[CONTROL_LINE_BYTES], out[OUT_BYTES];
};

struct control_socket {
    int fd;
    struct sockaddr_un address;
    dev_t device;
    ino_t file;
    double accept_after; // s
    struct client *clients[CONTROL_MAX_CLIENTS];
    int n;
};

// Whether the path is a socket of this user that refuses connections, as one whose program has
// ended does.
static bool is_dead_socket(const struct control_socket *s, const struct stat *st)
{
    if (!S_ISSOCK(st->st_mode) || st->st_uid != geteuid()) return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool dead = fd >= 0 && connect(fd, (const struct sockaddr *)&s->address, sizeof s->address) &&
                errno == ECONNREFUSED;
    if (fd >= 0) close(fd);
    return dead;
}

static bool make_way(const struct control_socket *s, struct fault *fault)
{
    struct stat st;
    if (lstat(s->address.sun_path, &st)) return true; // bind reports any other error
    if (is_dead_socket(s, &st) && unlink(s->address.sun_path) == 0) return true;
    return fault_set(fault, "--control %s: %s; name another path", s->address.sun_path,
                     S_ISSOCK(st.st_mode) ? "another program uses this socket"
                                          : "exists and is not a socket");
}

// Remembers which file the path names, so that no other one is removed.
static void identify_file(struct control_socket *s)
{
    struct stat st;
    if (lstat(s->address.sun_path, &st)) return;
    s->device = st.st_dev;
    s->file = st.st_ino;
}

static bool bind_and_listen(struct control_socket *s, struct fault *fault)
{
    if (!make_way(s, fault)) return false;
    s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t mask = umask(077);
    bool bound =
        s->fd >= 0 && bind(s->fd, (const struct sockaddr *)&s->address, sizeof s->address) == 0;
    int error = errno;
    umask(mask);
    if (!bound)
        return fault_set(fault, "--control %s: cannot create the socket: %s", s->address.sun_path,
                         strerror(error));
    identify_file(s);
    return listen(s->fd, BACKLOG) == 0 || fault_set(fault, "--control %s: cannot listen: %s",
                                                    s->address.sun_path, strerror(errno));
}

bool control_socket_open(struct control_socket **ret, const char *path, struct fault *fault)
{
    struct control_socket *s = calloc(1, sizeof *s);
    if (!s) return fault_set(fault, "out of memory");
    s->fd = -1;
    s->address.sun_family = AF_UNIX;
    const bool fits = *path && strlen(path) < sizeof s->address.sun_path;
    if (fits) strcpy(s->address.sun_path, path);
    else
        fault_usage(fault, "--control %s: must have 1 to %zu characters", path,
                    sizeof s->address.sun_path - 1);
    if (fits && bind_and_listen(s, fault)) {
        *ret = s;
        return true;
    }
    control_socket_close(s);
    return false;
}

void control_socket_keep(const struct control_socket *socket, struct control_kept *ret)
{
    *ret = (struct control_kept){.fd = socket ? socket->fd : -1};
    if (socket) fcntl(socket->fd, F_SETFD, 0);
    for (int i = 0; socket && i < socket->n; i++) {
        const struct client *c = socket->clients[i];
        if (c->n_in || c->n_out || c->ticket || c->broken) continue;
        ret->clients[ret->n].fd = c->fd;
        ret->clients[ret->n++].period = c->period;
        fcntl(c->fd, F_SETFD, 0);
    }
}

static bool is_unix_socket(int fd, struct sockaddr_un *ret_address)
{
    socklen_t size = sizeof *ret_address;
    *ret_address = (struct sockaddr_un){.sun_family = AF_UNSPEC};
    return getsockname(fd, (struct sockaddr *)ret_address, &size) == 0 &&
           ret_address->sun_family == AF_UNIX && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

bool control_socket_adopt(struct control_socket **ret, const char *path,
                          const struct control_kept *kept)
{
    struct sockaddr_un address, ignored;
    struct control_socket *s = calloc(1, sizeof *s);
    if (!s || !is_unix_socket(kept->fd, &address) ||
        strncmp(address.sun_path, path, sizeof address.sun_path) != 0) {
        free(s);
        return false;
    }
    s->address = address;
    s->fd = kept->fd;
    identify_file(s);
    for (int i = 0; i < kept->n && i < CONTROL_MAX_CLIENTS; i++) {
        struct client *c =
            is_unix_socket(kept->clients[i].fd, &ignored) ? calloc(1, sizeof *c) : NULL;
        if (!c) continue;
        c->fd = kept->clients[i].fd;
        c->period = kept->clients[i].period;
        s->clients[s->n++] = c;
    }
    *ret = s;
    return true;
}

static void close_client(struct control_socket *s, int i)
{
    close(s->clients[i]->fd);
    free(s->clients[i]);
    s->clients[i] = s->clients[--s->n];
}

void control_socket_close(struct control_socket *s)
{
    struct stat st;
    if (!s) return;
    while (s->n) close_client(s, 0);
    if (s->fd >= 0) close(s->fd);
    if (s->file && lstat(s->address.sun_path, &st) == 0 && st.st_dev == s->device &&
        st.st_ino == s->file)
        unlink(s->address.sun_path);
    free(s);
}

static bool reads_commands(const struct client *c)
{
    return !c->ticket && c->n_out < OUT_BYTES / 2;
}

nfds_t control_socket_files(const struct control_socket *s, double now,
                            struct pollfd files[CONTROL_MAX_FILES])
{
    if (!s) return 0;
    files[0] = (struct pollfd){.fd = now < s->accept_after ? -1 : s->fd, .events = POLLIN};
    for (int i = 0; i < s->n; i++) {
        const struct client *c = s->clients[i];
        bool reads = reads_commands(c) && !c->at_end;
        short events = (short)((reads ? POLLIN : 0) | (c->n_out ? POLLOUT : 0));
        // Without events poll would report again and again that the other side has closed.
        files[1 + i] = (struct pollfd){.fd = events ? c->fd : -1, .events = events};
    }
    return (nfds_t)(1 + s->n);
}

static void put_line(struct client *c, const char *line)
{
    size_t n = strlen(line);
    if (n > OUT_BYTES - c->n_out) {
        c->broken = true;
        return;
    }
    memcpy(c->out + c->n_out, line, n);
    c->n_out += n;
}

static void write_some(struct client *c)
{
    while (c->n_out) {
        ssize_t n = send(c->fd, c->out, c->n_out, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            c->broken = c->broken || (errno != EAGAIN && errno != EWOULDBLOCK);
            return;
        }
        c->n_out -= (size_t)n;
        memmove(c->out, c->out + n, c->n_out);
    }
}

// Reads what has arrived, as far as it fits.
static void read_some(struct client *c)
{
    if (c->at_end || c->n_in == sizeof c->in) return;
    ssize_t n = recv(c->fd, c->in + c->n_in, sizeof c->in - c->n_in, MSG_DONTWAIT);
    if (n > 0) c->n_in += (size_t)n;
    else if (n == 0) c->at_end = true;
    else c->broken = errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR;
}

static void run_line(struct client *c, double now, control_line_fn *run, void *user, size_t n)
{
    static const char zero[] = "{\"ok\":false,\"error\":\"the line has a zero byte\"}\n";
    struct control_reply reply = {.period = -1};
    if (memchr(c->in, 0, n)) {
        put_line(c, zero);
        return;
    }
    c->in[n] = 0;
    run(user, c->in, &reply);
    if (reply.line) put_line(c, reply.line);
    else if (reply.ticket) c->ticket = reply.ticket;
    else c->broken = true; // no memory for an answer
    free(reply.line);
    if (reply.period < 0) return;
    c->period = reply.period;
    c->next = now + reply.period;
}

// A connection that is closed with unread input is reset, and its answers may be lost.
static void discard_input(struct client *c)
{
    enum { MAX_READS = 64 };
    for (int i = 0; i < MAX_READS; i++)
        if (recv(c->fd, c->in, sizeof c->in, MSG_DONTWAIT) <= 0) return;
}

// Executes the lines that have arrived completely; the last one may lack its end.
static void run_lines(struct client *c, double now, control_line_fn *run, void *user)
{
    static const char too_long[] = "{\"ok\":false,\"error\":\"the line is too long\"}\n";
    while (c->n_in && reads_commands(c) && !c->broken) {
        char *end = memchr(c->in, '\n', c->n_in);
        if (!end && c->n_in == sizeof c->in) {
            put_line(c, too_long);
            write_some(c);
            discard_input(c);
            c->broken = true;
            return;
        }
        if (!end && !c->at_end) return;
        size_t n = end ? (size_t)(end - c->in) : c->n_in, used = end ? n + 1 : n;
        run_line(c, now, run, user, n);
        c->n_in -= used;
        memmove(c->in, c->in + used, c->n_in);
    }
}

static bool is_over(const struct client *c)
{
    return c->broken || (c->at_end && !c->n_in && !c->n_out && !c->ticket && c->period <= 0);
}

static void accept_client(struct control_socket *s, double now)
{
    static const char full[] = "{\"ok\":false,\"error\":\"too many clients are connected\"}\n";
    int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR && errno != ECONNABORTED)
            s->accept_after = now + ACCEPT_PAUSE;
        return;
    }
    struct client *c = s->n < CONTROL_MAX_CLIENTS ? calloc(1, sizeof *c) : NULL;
    if (c) {
        c->fd = fd;
        s->clients[s->n++] = c;
    } else {
        (void)!send(fd, full, sizeof full - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        close(fd);
    }
}

void control_socket_serve(struct control_socket *s, double now, control_line_fn *run, void *user)
{
    if (!s) return;
    if (now >= s->accept_after) accept_client(s, now);
    for (int i = s->n - 1; i >= 0; i--) {
        struct client *c = s->clients[i];
        write_some(c);
        if (reads_commands(c)) read_some(c);
        run_lines(c, now, run, user);
        write_some(c);
        if (is_over(c)) close_client(s, i);
    }
}

void control_socket_answer(struct control_socket *socket, uint64_t ticket, const char *line)
{
    for (int i = 0; socket && i < socket->n; i++) {
        struct client *c = socket->clients[i];
        if (!c->ticket || c->ticket > ticket) continue;
        c->ticket = 0;
        put_line(c, line);
    }
}

double control_socket_due(const struct control_socket *socket)
{
    double due = INFINITY;
    for (int i = 0; socket && i < socket->n; i++)
        if (socket->clients[i]->period > 0) due = fmin(due, socket->clients[i]->next);
    return due;
}

void control_socket_publish(struct control_socket *socket, double now, const char *line)
{
    for (int i = 0; socket && i < socket->n; i++) {
        struct client *c = socket->clients[i];
        if (c->period <= 0 || now < c->next) continue;
        c->next = fmax(c->next + c->period, now);
        put_line(c, line);
    }
}
