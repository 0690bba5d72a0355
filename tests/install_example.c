// SPDX-License-Identifier: MIT
// A user's program, compiled and run with the installed library: streams echoes of an impulse.
#include <partita/partita.h>
#include <stdio.h>

int main(void)
{
    float taps[4] = {1, 0, 0.5f, 0.25f}, x[8] = {1}, y[8];
    struct partita_problem echo = {.kernel = {4}, .size = {PARTITA_UNBOUNDED}};
    struct partita_plan *plan;
    struct partita_filter *filter;
    struct partita_stream *stream;
    if (partita_plan_create(&echo, NULL, &plan) != PARTITA_OK) return 1;
    if (partita_filter_create(plan, taps, &filter) != PARTITA_OK) return 1;
    if (partita_stream_open(plan, filter, &stream) != PARTITA_OK) return 1;
    partita_stream_process(stream, &(void *){y}, &(const void *){x}, 8);
    for (int i = 0; i < 8; i++) printf("%g ", (double)y[i]);
    printf("%s %s\n", partita_plan_engine(plan), partita_version());
    partita_stream_close(stream);
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
    return 0;
}
