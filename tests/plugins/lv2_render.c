// SPDX-License-Identifier: MIT
// Plays a sound file through a plug-in whose state is restored first, in calls of random length.
//   lv2_render URI STATE-FOLDER IN OUT    OUT: interleaved frames of raw float
#include <stdio.h>
#include <stdlib.h>

#include "io/frames.h"
#include "lv2_host.h"

enum { MAX_PORTS = 16, MAX_CALL = 1000 };

static void fail(const char *what)
{
    fprintf(stderr, "lv2_render: %s\n", what);
    exit(1);
}

static void read_input(struct frames *ret, const char *path, double *ret_rate)
{
    const struct audio_request request = {.path = path, .max_channels = MAX_PORTS, .wake_fd = -1};
    struct audio_reader *reader;
    struct fault fault;
    if (!audio_open(&reader, &request, &fault)) fail(fault.text);
    *ret_rate = audio_reader_info(reader)->rate;
    if (!frames_read(ret, reader, PARTITA_F32, path, &fault)) fail(fault.text);
    audio_reader_close(reader);
}

int main(int argc, char **argv)
{
    struct frames in;
    double rate;
    char log[HOST_LOG];
    float *x[MAX_PORTS], *y[MAX_PORTS];
    if (argc != 5) fail("URI STATE-FOLDER IN OUT");
    read_input(&in, argv[3], &rate);
    for (size_t c = 0; c < MAX_PORTS; c++) {
        x[c] = calloc(in.n, sizeof(float));
        y[c] = calloc(in.n, sizeof(float));
        if (c < in.channels) frames_copy_channel(&in, c, x[c]);
    }
    struct host *host = host_open(&(struct host_request){.uri = argv[1], .rate = rate});
    if (!host) fail(host_take_log(log));
    host_restore(host, argv[2]);
    host_activate(host);
    srand(1);
    for (size_t at = 0, n; at < in.n; at += n) {
        float *x_at[MAX_PORTS], *y_at[MAX_PORTS];
        n = (size_t)(rand() % MAX_CALL);
        if (n > in.n - at) n = in.n - at;
        for (size_t c = 0; c < MAX_PORTS; c++) {
            x_at[c] = x[c] + at;
            y_at[c] = y[c] + at;
        }
        host_run(host, y_at, x_at, (uint32_t)n);
    }
    const size_t outputs = host_outputs(host);
    FILE *out = fopen(argv[4], "wb");
    if (!out) fail("cannot write");
    for (size_t i = 0; i < in.n; i++)
        for (size_t k = 0; k < outputs; k++) fwrite(&y[k][i], sizeof(float), 1, out);
    if (fclose(out)) fail("cannot write");
    fputs(host_take_log(log), stderr);
    host_close(host);
    frames_release(&in);
    for (size_t c = 0; c < MAX_PORTS; c++) {
        free(x[c]);
        free(y[c]);
    }
}
