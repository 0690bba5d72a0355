// SPDX-License-Identifier: MIT
// Fuzz target: what steers `partita live`. The first byte chooses: up to 127 a command, or none,
// whose name precedes the other bytes; from 128 on these are a packet of Open Sound Control, from
// 192 on what clients send to the control socket. Every line goes to the parser.
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "control/remote.h"
#include "control/table.h"
#include "fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_line(char *line)
{
    struct control_command command;
    struct fault fault;
    if (!control_parse(&command, line, &fault)) return;
    if (command.id >= N_CONTROLS) abort();
    const struct control_row *row = &control_rows[command.id];
    const bool number = row->kind == ARGUMENT_NUMBER && command.verb != CONTROL_OFF;
    if (number && !(command.number >= (command.verb == CONTROL_SET ? row->low : 0) &&
                    command.number <= row->high))
        abort();
}

static void check_command(int id, const uint8_t *data, size_t size)
{
    const char *name = id < N_CONTROLS ? control_rows[id].name : "";
    const size_t n = strlen(name) + (id < N_CONTROLS);
    char *line = malloc(n + size + 1); // exactly as long, so that a sanitizer sees reads beyond
    if (!line) return;
    memcpy(line, name, strlen(name));
    if (n) line[n - 1] = ' ';
    if (size) memcpy(line + n, data, size);
    line[n + size] = 0;
    check_line(line);
    free(line);
}

static uint64_t tickets;

static void run_line(void *user, char *line, struct control_reply *reply)
{
    (void)user;
    const char first = *line;
    check_line(line);
    if (first == 'l') reply->ticket = ++tickets;
    else reply->line = strdup("{\"ok\":true}\n");
    if (first == 's') reply->period = 0.5;
}

// The program's socket receives what this one sends to it.
static void check_packet(const uint8_t *data, size_t size)
{
    static struct remote *osc;
    static int sender = -1;
    static struct sockaddr_in to;
    socklen_t n = sizeof to;
    struct fault fault;
    if (sender < 0) {
        sender = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (sender < 0 || !osc_open(&osc, "127.0.0.1:0", &fault)) return;
        if (getsockname(osc->fd, (struct sockaddr *)&to, &n)) abort();
    }
    if (!osc) return; // built without liblo, or a machine without a network
    (void)!sendto(sender, data, size, 0, (const struct sockaddr *)&to, sizeof to);
    osc->serve(osc, run_line, NULL);
}

static int connect_client(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address)) {
        close(fd);
        return -1;
    }
    return fd;
}

enum { CLIENTS = 3 };

// Each step: a client connects, sends bytes of the input or a part of a long line, reads, says that
// it sends nothing more, or closes.
static void step(const char *path, int clients[CLIENTS], struct input *input)
{
    static char long_line[32 * 255], received[200];
    const unsigned what = (unsigned)input_take(input, 1);
    int *fd = &clients[what % CLIENTS];
    size_t n = (size_t)input_take(input, 1);
    if (*fd < 0) *fd = connect_client(path);
    if (*fd < 0) return;
    if (what < 128) {
        if (n > input->left) n = input->left;
        (void)!send(*fd, input->data, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        input->data += n;
        input->left -= n;
    } else if (what < 160) {
        memset(long_line, 'x', sizeof long_line);
        (void)!send(*fd, long_line, 32 * n, MSG_NOSIGNAL | MSG_DONTWAIT);
    } else if (what < 192) {
        (void)!recv(*fd, received, sizeof received, MSG_DONTWAIT);
    } else if (what < 224) {
        shutdown(*fd, SHUT_WR);
    } else {
        close(*fd);
        *fd = -1;
    }
}

static void check_clients(const uint8_t *data, size_t size)
{
    struct control_socket *opened;
    struct input input = {data, size};
    struct pollfd files[CONTROL_MAX_FILES];
    int clients[CLIENTS] = {-1, -1, -1};
    struct fault fault;
    double now = 0;
    char path[FUZZ_PATH_BYTES];
    snprintf(path, sizeof path, "%s/socket", fuzz_folder());
    if (!control_socket_open(&opened, path, &fault)) abort();
    while (input.left) {
        step(path, clients, &input);
        if (control_socket_files(opened, now, files) > CONTROL_MAX_FILES) abort();
        control_socket_serve(opened, now, run_line, NULL);
        if (now >= control_socket_due(opened)) control_socket_publish(opened, now, "{}\n");
        if (input.left % 3 == 0) control_socket_answer(opened, tickets, "{\"ok\":true}\n");
        now += 0.125;
    }
    control_socket_close(opened);
    for (int i = 0; i < CLIENTS; i++)
        if (clients[i] >= 0) close(clients[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    if (data[0] < 128) check_command(data[0] % (N_CONTROLS + 1), data + 1, size - 1);
    else if (data[0] < 192) check_packet(data + 1, size - 1);
    else check_clients(data + 1, size - 1);
    return 0;
}
