// SPDX-License-Identifier: MIT
// See remote.h. liblo encodes and decodes messages. Its servers listen on all interfaces, so the
// socket is ours.
#include <errno.h>
#include <jansson.h>
#include <lo/lo.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/nearest.h"
#include "remote.h"
#include "table.h"

enum {
    PACKET_BYTES = 8192, // longer ones are ignored
    MAX_PACKETS = 64,    // between two looks at the audio device
    NESTED_HEADER = 16,
};

static const char PREFIX[] = "/partita/";

struct osc {
    struct remote remote;
    struct sockaddr_storage sender;
    socklen_t sender_size;
    uint64_t ticket; // request whose outcome its last sender wants to know; 0: none
    control_line_fn *run;
    void *user;
    char packet[PACKET_BYTES];
};

// Adds an argument to a line. False: its type is none of a command's.
static bool add_argument(char *line, size_t size, char type, lo_arg *argument)
{
    size_t used = strlen(line), space = size - used;
    int n = 0;
    if (lo_is_numerical_type((lo_type)type))
        n = snprintf(line + used, space, " %.*Lg", type == LO_FLOAT ? 9 : 17,
                     lo_hires_val((lo_type)type, argument));
    else if (type == LO_STRING) n = snprintf(line + used, space, " %s", &argument->s);
    else if (type == LO_TRUE || type == LO_FALSE)
        n = snprintf(line + used, space, " %d", type == LO_TRUE);
    return n > 0 && (size_t)n < space;
}

// Sends a value of an answer, and another unless it is NULL. null is a level that is off.
static void send_values(const struct osc *osc, const char *path, const json_t *first,
                        const json_t *second)
{
    lo_message message = lo_message_new();
    const json_t *values[] = {first, second};
    size_t n = 0;
    if (!message) return;
    for (int i = 0; i < 2 && values[i]; i++) {
        const json_t *v = values[i];
        if (json_is_string(v)) lo_message_add_string(message, json_string_value(v));
        else if (json_is_real(v)) lo_message_add_float(message, (float)json_real_value(v));
        else if (json_is_null(v))
            lo_message_add_float(message, (float)control_rows[CONTROL_GAIN].low);
        else lo_message_add_int32(message, json_is_true(v) ? 1 : (int32_t)json_integer_value(v));
    }
    void *packet = lo_message_serialise(message, path, NULL, &n);
    if (packet)
        (void)!sendto(osc->remote.fd, packet, n, MSG_DONTWAIT | MSG_NOSIGNAL,
                      (const struct sockaddr *)&osc->sender, osc->sender_size);
    free(packet);
    lo_message_free(message);
}

static void send_error(const struct osc *osc, const char *before, const char *text)
{
    json_t *line = json_sprintf("%s%s", before, text);
    send_values(osc, "/partita/error", line, NULL);
    json_decref(line);
}

static void send_filter(const struct osc *osc, const json_t *answer)
{
    const json_t *scene = json_object_get(answer, "scene");
    if (json_is_string(scene)) send_values(osc, "/partita/scene", scene, NULL);
    send_values(osc, "/partita/filter", json_object_get(answer, "filter_number"),
                json_object_get(answer, "filter"));
}

// Sends one or two fields of the object of each channel.
static void send_channels(const struct osc *osc, const char *name, const json_t *channels,
                          const char *first, const char *second)
{
    for (size_t c = 0; c < json_array_size(channels); c++) {
        char path[64];
        const json_t *channel = json_array_get(channels, c);
        snprintf(path, sizeof path, "/partita/%s/%zu", name, c + 1);
        send_values(osc, path, json_object_get(channel, first), json_object_get(channel, second));
    }
}

static void send_status(const struct osc *osc, const json_t *answer)
{
    static const char *const values[][2] = {
        {"/partita/gain", "gain"},     {"/partita/wet", "wet"},
        {"/partita/dry", "dry"},       {"/partita/input-gain", "input_gain"},
        {"/partita/fade", "fade"},     {"/partita/mute", "mute"},
        {"/partita/bypass", "bypass"},
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        send_values(osc, values[i][0], json_object_get(answer, values[i][1]), NULL);
    send_filter(osc, answer);
    send_channels(osc, "in", json_object_get(answer, "in"), "peak", "rms");
    send_channels(osc, "out", json_object_get(answer, "out"), "peak", "rms");
    send_channels(osc, "erle", json_object_get(json_object_get(answer, "cancel"), "microphones"),
                  "erle", NULL);
    send_values(osc, "/partita/load", json_object_get(json_object_get(answer, "load"), "mean"),
                NULL);
    send_values(osc, "/partita/xruns", json_object_get(answer, "xruns"), NULL);
}

// Sends of an answer what its sender wants to know of it: an error, and else what `put` sends.
static void send_answer(const struct osc *osc, const char *line,
                        void (*put)(const struct osc *, const json_t *))
{
    json_t *answer = line ? json_loads(line, 0, NULL) : NULL;
    const char *error = json_string_value(json_object_get(answer, "error")),
               *waiting = json_string_value(json_object_get(answer, "waiting_for"));
    if (error) send_error(osc, "", error);
    else if (put && waiting) send_error(osc, "waiting for the audio device: ", waiting);
    else if (put && answer) put(osc, answer);
    json_decref(answer);
}

static void run_message(struct osc *osc, const char *path, lo_message message)
{
    char line[PACKET_BYTES + 64], hint[NEAREST_HINT_SIZE];
    struct control_reply reply = {0};
    const char *types = lo_message_get_types(message);
    int n = lo_message_get_argc(message);
    lo_arg **arguments = lo_message_get_argv(message);
    if (strncmp(path, PREFIX, sizeof PREFIX - 1) != 0) return;
    snprintf(line, sizeof line, "%s", path + sizeof PREFIX - 1);
    const int id = nearest_find(line, control_rows, N_CONTROLS, sizeof *control_rows, hint);
    const bool is_button = id >= 0 && control_rows[id].kind == ARGUMENT_NONE;
    // A number tells whether the button is pressed.
    if (n == 1 && is_button && lo_is_numerical_type((lo_type)types[0])) {
        if (lo_hires_val((lo_type)types[0], arguments[0]) == 0) return;
        n = 0;
    }
    for (int i = 0; i < n; i++)
        if (!add_argument(line, sizeof line, types[i], arguments[i])) return;
    if (strchr(line, '\n')) return;
    if (id == CONTROL_SUBSCRIBE || id == CONTROL_HELP || id == CONTROL_RESPONSE) {
        send_error(osc, control_rows[id].name, ": only the socket of --control answers this");
        return;
    }
    osc->run(osc->user, line, &reply);
    if (reply.ticket) osc->ticket = reply.ticket;
    send_answer(osc, reply.line, id == CONTROL_STATUS ? send_status : NULL);
    free(reply.line);
}

// Executes a message, or the messages of a #bundle at once, whatever its time. One within another
// is ignored.
static void run_packet(struct osc *osc, char *packet, size_t n, bool nested)
{
    if (n >= NESTED_HEADER && memcmp(packet, "#bundle", 8) == 0) {
        for (size_t at = NESTED_HEADER; !nested && at + 4 <= n;) {
            const unsigned char *b = (unsigned char *)packet + at;
            size_t length = (size_t)b[0] << 24 | (size_t)b[1] << 16 | (size_t)b[2] << 8 | b[3];
            at += 4;
            if (length > n - at || length % 4) return;
            run_packet(osc, packet + at, length, true);
            at += length;
        }
        return;
    }
    if (n < 8 || n % 4) return;
    lo_message message = lo_message_deserialise(packet, n, NULL);
    if (!message) return;
    run_message(osc, packet, message);
    lo_message_free(message);
}

static void osc_serve(struct remote *remote, control_line_fn *run, void *user)
{
    struct osc *osc = (struct osc *)remote;
    osc->run = run;
    osc->user = user;
    for (int i = 0; i < MAX_PACKETS; i++) {
        osc->sender_size = sizeof osc->sender;
        ssize_t n = recvfrom(remote->fd, osc->packet, PACKET_BYTES, MSG_DONTWAIT | MSG_TRUNC,
                             (struct sockaddr *)&osc->sender, &osc->sender_size);
        if (n < 0) return;
        if (n <= PACKET_BYTES) run_packet(osc, osc->packet, (size_t)n, false);
    }
}

static void osc_answer(struct remote *remote, uint64_t ticket, const char *line)
{
    struct osc *osc = (struct osc *)remote;
    if (!osc->ticket || osc->ticket > ticket) return;
    osc->ticket = 0;
    send_answer(osc, line, send_filter);
}

static void osc_close(struct remote *remote)
{
    close(remote->fd);
    free(remote);
}

bool osc_open(struct remote **ret, const char *address, struct fault *fault)
{
    struct addrinfo *found = address_find("--osc", address, SOCK_DGRAM, fault);
    if (!found) return false;
    struct osc *osc = calloc(1, sizeof *osc);
    const int fd = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool good = osc && fd >= 0 && bind(fd, found->ai_addr, found->ai_addrlen) == 0;
    if (!good) fault_set(fault, "--osc %s: cannot receive: %s", address, strerror(errno));
    freeaddrinfo(found);
    if (good) {
        osc->remote = (struct remote){fd, osc_close, osc_serve, osc_answer};
        *ret = &osc->remote;
    } else {
        if (fd >= 0) close(fd);
        free(osc);
    }
    return good;
}
