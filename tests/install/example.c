// SPDX-License-Identifier: MIT
// A user's program in the common language of C and C++, compiled and run with the installed
// library: streams echoes of an impulse.
#include <partita/partita.h>
#include <stdio.h>

int main(void)
{
    static struct partita_problem echo;
    float taps[4] = {1, 0, 0.5f, 0.25f};
    float x[8] = {1};
    float y[8];
    const void *in[1] = {x};
    void *out[1] = {y};
    struct partita_plan *plan;
    struct partita_filter *filter;
    struct partita_stream *stream;
    echo.kernel[0] = 4;
    echo.size[0] = PARTITA_UNBOUNDED;
    if (partita_plan_create(&echo, NULL, &plan) != PARTITA_OK) return 1;
    if (partita_filter_create(plan, taps, &filter) != PARTITA_OK) return 1;
    if (partita_stream_open(plan, filter, &stream) != PARTITA_OK) return 1;
    partita_stream_process(stream, out, in, 8);
    for (int i = 0; i < 8; i++) printf("%g ", (double)y[i]);
    printf("%s %s\n", partita_plan_engine(plan, PARTITA_FORWARD), partita_version());
    partita_stream_close(stream);
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
    return 0;
}
