// SPDX-License-Identifier: MIT
// A JACK client that plays a file to the program's first input and stores its first output, frame
// by frame from the first call on in which both are connected; for tests that compare samples,
// count gaps and measure delay.
//   jack_probe SENT RECEIVED FRAMES [freewheel|realtime [IN OUT]]    files of raw float; prints the
//   server's period and its xruns. IN, OUT: ports to connect [those of partita live]
#include <jack/jack.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static jack_port_t *send, *hear;
static float *sent, *received;
static size_t n_sent, n_frames;
static atomic_size_t at;
static atomic_int xruns, running;

static int process(jack_nframes_t n, void *user)
{
    (void)user;
    float *out = jack_port_get_buffer(send, n), *in = jack_port_get_buffer(hear, n);
    size_t now = atomic_load(&at), left = n_frames - now < n ? n_frames - now : n;
    memset(out, 0, n * sizeof *out);
    if (!atomic_load(&running)) return 0;
    for (size_t i = 0; i < n; i++) out[i] = now + i < n_sent ? sent[now + i] : 0;
    memcpy(received + now, in, left * sizeof *in);
    atomic_store(&at, now + left);
    return 0;
}

static int count_xrun(void *user)
{
    (void)user;
    if (atomic_load(&running)) atomic_fetch_add(&xruns, 1);
    return 0;
}

static void fail(const char *what)
{
    fprintf(stderr, "jack_probe: %s\n", what);
    exit(1);
}

static void load(const char *path)
{
    FILE *file = fopen(path, "rb");
    sent = calloc(n_frames, sizeof *sent);
    received = calloc(n_frames, sizeof *received);
    if (!file || !sent || !received) fail("cannot read what to send");
    n_sent = fread(sent, sizeof *sent, n_frames, file);
    fclose(file);
}

// Waits until the program's port exists.
static void wait_for(jack_client_t *client, const char *port)
{
    for (int i = 0; i < 1000; i++, usleep(10000))
        if (jack_port_by_name(client, port)) return;
    fail("the program does not come");
}

int main(int argc, char **argv)
{
    if (argc < 4) fail("SENT RECEIVED FRAMES [freewheel|realtime [IN OUT]]");
    const bool freewheel = argc > 4 && strcmp(argv[4], "freewheel") == 0;
    const char *to = argc > 6 ? argv[5] : "partita:in_0",
               *from = argc > 6 ? argv[6] : "partita:out_0";
    n_frames = strtoul(argv[3], NULL, 10);
    load(argv[1]);
    jack_client_t *client = jack_client_open("probe", JackNoStartServer, NULL);
    if (!client) fail("no server");
    send = jack_port_register(client, "send", JACK_DEFAULT_AUDIO_TYPE, JackPortIsOutput, 0);
    hear = jack_port_register(client, "hear", JACK_DEFAULT_AUDIO_TYPE, JackPortIsInput, 0);
    jack_set_process_callback(client, process, NULL);
    jack_set_xrun_callback(client, count_xrun, NULL);
    if (jack_activate(client)) fail("cannot be activated");
    wait_for(client, to);
    wait_for(client, from);
    usleep(300000); // the program starts its stream after it has registered its ports
    if (jack_connect(client, "probe:send", to) || jack_connect(client, from, "probe:hear"))
        fail("cannot be connected");
    if (freewheel && jack_set_freewheel(client, 1)) fail("cannot freewheel");
    usleep(200000); // connections take effect some periods later
    atomic_store(&running, 1);
    for (int i = 0; atomic_load(&at) < n_frames; i++, usleep(10000))
        if (i == 6000) fail("the server has stopped");
    if (freewheel) jack_set_freewheel(client, 0);
    FILE *file = fopen(argv[2], "wb");
    if (!file || fwrite(received, sizeof *received, n_frames, file) != n_frames || fclose(file))
        fail("cannot write");
    printf("%u %d\n", jack_get_buffer_size(client), atomic_load(&xruns));
    jack_client_close(client);
    return 0;
}
