// SPDX-License-Identifier: MIT
// See libraries.h. PortAudio loads ALSA and JACK; the program is not linked with them, so what it
// calls is declared here.
#include "libraries.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JACK_PORT_IS_INPUT = 1 };

// PortAudio's names are in_0, in_1 .. and out_0, out_1 ..
enum { PORT_NAME_SIZE = 32 };

typedef void alsa_handler(const char *file, int line, const char *function, int error,
                          const char *format, ...);
int snd_lib_error_set_handler(alsa_handler *handler);
void jack_set_error_function(void (*handler)(const char *text));
void jack_set_info_function(void (*handler)(const char *text));
char *jack_get_client_name(void *client);
int jack_connect(void *client, const char *source, const char *destination);
void *jack_port_register(void *client, const char *name, const char *type, unsigned long flags,
                         unsigned long buffer_size);

// A library's own function; NULL: it is not loaded.
#define library(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static bool forbidden;
static const struct network *named;
static const char *missing;

static void ignore_alsa(const char *file, int line, const char *function, int error,
                        const char *format, ...)
{
    (void)file, (void)line, (void)function, (void)error, (void)format;
}

static void ignore_jack(const char *text)
{
    (void)text;
}

void libraries_silence(void)
{
    if (library(snd_lib_error_set_handler)) library(snd_lib_error_set_handler)(ignore_alsa);
    if (library(jack_set_error_function)) library(jack_set_error_function)(ignore_jack);
    if (library(jack_set_info_function)) library(jack_set_info_function)(ignore_jack);
}

void jack_connections_forbid(void)
{
    forbidden = true;
}

// The name of a port, counted from 0, the inputs first.
static const char *name_port(const struct network *network, size_t i, char buffer[PORT_NAME_SIZE])
{
    const bool is_input = i < network->in_channels;
    const struct network_port *ports = network->ports[is_input ? NETWORK_INPUTS : NETWORK_OUTPUTS];
    if (!is_input) i -= network->in_channels;
    if (ports && ports[i].name) return ports[i].name;
    snprintf(buffer, PORT_NAME_SIZE, "%s_%zu", is_input ? "in" : "out", i);
    return buffer;
}

bool jack_connections_check(const struct network *network, struct fault *fault)
{
    const size_t n = network->in_channels + network->out_channels;
    char buffers[2][PORT_NAME_SIZE];
    for (size_t i = 0; i < n; i++) {
        const char *name = name_port(network, i, buffers[0]);
        for (size_t j = 0; j < i; j++)
            if (strcmp(name, name_port(network, j, buffers[1])) == 0)
                return fault_set(fault,
                                 "%s: two ports of JACK would have the name %s; those without a "
                                 "name are in_0, in_1 .. and out_0, out_1 ..",
                                 network->path, name);
    }
    return true;
}

void jack_connections_use(const struct network *network)
{
    named = network;
    missing = NULL;
}

const char *jack_connections_missing(void)
{
    return missing;
}

static size_t count_ports(enum network_direction direction)
{
    if (!named || !named->ports[direction]) return 0;
    return direction == NETWORK_INPUTS ? named->in_channels : named->out_channels;
}

void *jack_port_register(void *client, const char *name, const char *type, unsigned long flags,
                         unsigned long buffer_size)
{
    const enum network_direction direction =
        flags & JACK_PORT_IS_INPUT ? NETWORK_INPUTS : NETWORK_OUTPUTS;
    const char *digits = strrchr(name, '_');
    const size_t i = digits ? strtoul(digits + 1, NULL, 10) : SIZE_MAX;
    if (!library(jack_port_register)) return NULL;
    if (i < count_ports(direction) && named->ports[direction][i].name)
        name = named->ports[direction][i].name;
    return library(jack_port_register)(client, name, type, flags, buffer_size);
}

// The port of the network that is meant by the full name of a port of this client; NULL: none.
static const struct network_port *find_port(void *client, enum network_direction direction,
                                            const char *full_name)
{
    if (!count_ports(direction) || !library(jack_get_client_name)) return NULL;
    const char *name = library(jack_get_client_name)(client);
    const size_t n = strlen(name);
    if (strncmp(full_name, name, n) != 0 || full_name[n] != ':') return NULL;
    for (size_t i = 0; i < count_ports(direction); i++) {
        const struct network_port *port = &named->ports[direction][i];
        if (port->name && strcmp(port->name, full_name + n + 1) == 0) return port;
    }
    return NULL;
}

// Returns 0 for success, also where no connection is made.
int jack_connect(void *client, const char *source, const char *destination)
{
    if (forbidden || !library(jack_connect)) return 0;
    const struct network_port *from = find_port(client, NETWORK_OUTPUTS, source);
    const struct network_port *to = find_port(client, NETWORK_INPUTS, destination);
    const bool chosen = (from && from->connect_to) || (to && to->connect_to);
    if (!chosen) return library(jack_connect)(client, source, destination);
    if (from && from->connect_to) destination = from->connect_to;
    if (to && to->connect_to) source = to->connect_to;
    const int error = library(jack_connect)(client, source, destination);
    if (error && error != EEXIST && !missing)
        missing = to && to->connect_to ? to->connect_to : from->connect_to;
    return 0;
}
