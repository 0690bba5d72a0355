// SPDX-License-Identifier: MIT
// See osc.h. liblo encodes and decodes messages. Its servers listen on all interfaces, so the
// socket is ours.
#include "osc.h"

#include <errno.h>
#include <lo/lo.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "address.h"
#include "table.h"

enum {
    PACKET_BYTES = 8192, // longer ones are ignored
    MAX_PACKETS = 64,    // between two looks at the audio device
    NESTED_HEADER = 16,
};

static const char PREFIX[] = "/partita/";

struct osc {
    int fd;
    struct sockaddr_storage sender;
    socklen_t sender_size;
    char packet[PACKET_BYTES];
};

bool osc_open(struct osc **ret, const char *address, struct fault *fault)
{
    struct addrinfo *found = address_find("--osc", address, SOCK_DGRAM, fault);
    if (!found) return false;
    struct osc *osc = calloc(1, sizeof *osc);
    if (osc) osc->fd = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool good = osc && osc->fd >= 0 && bind(osc->fd, found->ai_addr, found->ai_addrlen) == 0;
    if (!good) fault_set(fault, "--osc %s: cannot receive: %s", address, strerror(errno));
    freeaddrinfo(found);
    if (good) *ret = osc;
    else osc_close(osc);
    return good;
}

void osc_close(struct osc *osc)
{
    if (!osc) return;
    if (osc->fd >= 0) close(osc->fd);
    free(osc);
}

int osc_file(const struct osc *osc)
{
    return osc ? osc->fd : -1;
}

// Adds an argument to a line. False: its type is none of a command's.
static bool add_argument(char *line, size_t size, char type, lo_arg *argument)
{
    size_t used = strlen(line), space = size - used;
    int n = 0;
    if (type == LO_INT32) n = snprintf(line + used, space, " %d", argument->i);
    else if (type == LO_INT64) n = snprintf(line + used, space, " %lld", (long long)argument->h);
    else if (type == LO_FLOAT) n = snprintf(line + used, space, " %.9g", (double)argument->f);
    else if (type == LO_DOUBLE) n = snprintf(line + used, space, " %.17g", argument->d);
    else if (type == LO_STRING) n = snprintf(line + used, space, " %s", &argument->s);
    else if (type == LO_TRUE || type == LO_FALSE)
        n = snprintf(line + used, space, " %d", type == LO_TRUE);
    return n > 0 && (size_t)n < space;
}

// Whether the command takes no argument. Then a number tells whether its button is pressed.
static bool is_button(const char *name)
{
    for (int i = 0; i < N_CONTROLS; i++)
        if (strcmp(name, control_rows[i].name) == 0) return control_rows[i].kind == ARGUMENT_NONE;
    return false;
}

static void run_message(const char *path, lo_message message, osc_line_fn *run, void *user)
{
    char line[PACKET_BYTES + 64];
    const char *types = lo_message_get_types(message);
    int n = lo_message_get_argc(message);
    lo_arg **arguments = lo_message_get_argv(message);
    if (strncmp(path, PREFIX, sizeof PREFIX - 1) != 0) return;
    snprintf(line, sizeof line, "%s", path + sizeof PREFIX - 1);
    if (n == 1 && is_button(line) && lo_is_numerical_type((lo_type)types[0])) {
        if (lo_hires_val((lo_type)types[0], arguments[0]) == 0) return;
        n = 0;
    }
    for (int i = 0; i < n; i++)
        if (!add_argument(line, sizeof line, types[i], arguments[i])) return;
    if (!strchr(line, '\n')) run(user, line);
}

// Executes a message, or the messages of a #bundle at once, whatever its time. One within another
// is ignored.
static void run_packet(char *packet, size_t n, bool nested, osc_line_fn *run, void *user)
{
    if (n >= NESTED_HEADER && memcmp(packet, "#bundle", 8) == 0) {
        for (size_t at = NESTED_HEADER; !nested && at + 4 <= n;) {
            const unsigned char *b = (unsigned char *)packet + at;
            size_t length = (size_t)b[0] << 24 | (size_t)b[1] << 16 | (size_t)b[2] << 8 | b[3];
            at += 4;
            if (length > n - at || length % 4) return;
            run_packet(packet + at, length, true, run, user);
            at += length;
        }
        return;
    }
    if (n < 8 || n % 4) return;
    lo_message message = lo_message_deserialise(packet, n, NULL);
    if (!message) return;
    run_message(packet, message, run, user);
    lo_message_free(message);
}

void osc_serve(struct osc *osc, osc_line_fn *run, void *user)
{
    for (int i = 0; osc && i < MAX_PACKETS; i++) {
        osc->sender_size = sizeof osc->sender;
        ssize_t n = recvfrom(osc->fd, osc->packet, PACKET_BYTES, MSG_DONTWAIT | MSG_TRUNC,
                             (struct sockaddr *)&osc->sender, &osc->sender_size);
        if (n < 0) return;
        if (n <= PACKET_BYTES) run_packet(osc->packet, (size_t)n, false, run, user);
    }
}

void osc_send(struct osc *osc, const char *path, const char *types, ...)
{
    lo_message message = lo_message_new();
    size_t n = 0;
    va_list arguments;
    if (!message) return;
    va_start(arguments, types);
    for (const char *t = types; *t; t++) {
        if (*t == 'f') lo_message_add_float(message, (float)va_arg(arguments, double));
        else if (*t == 'i') lo_message_add_int32(message, va_arg(arguments, int));
        else lo_message_add_string(message, va_arg(arguments, const char *));
    }
    va_end(arguments);
    void *packet = lo_message_serialise(message, path, NULL, &n);
    if (packet)
        (void)!sendto(osc->fd, packet, n, MSG_DONTWAIT | MSG_NOSIGNAL,
                      (struct sockaddr *)&osc->sender, osc->sender_size);
    free(packet);
    lo_message_free(message);
}
