// SPDX-License-Identifier: MIT
// Processes a stream for some seconds under a profiler, for bench/programs/control.py:
//   bench_control CASE FD     CASE: a number of taps, one channel in calls of 64 frames
// Writes "enable" to the descriptor FD when the stream's history is full and nothing but the
// stream's calls follows, waits for no answer, and prints the lower quartile of the time of a frame
// in ns, and the distance to the upper one divided by it.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ours/ours.h"

// As few frames as stay near, as buffers of a device do.
enum { PASSES = 400, TIMED_FRAMES = 1 << 17 };

static void profiler_enable(int fd)
{
    static const char text[] = "enable\n";
    if (write(fd, text, strlen(text)) < 0) exit(1);
    usleep(100000); // perf polls its control descriptor
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s TAPS FD\n", argv[0]);
        return 2;
    }
    const size_t taps = (size_t)atol(argv[1]);
    struct workload w = {.name = "control",
                         .block = 64,
                         .n_taps = taps,
                         .warm = taps,
                         .n_frames = taps + TIMED_FRAMES};
    struct contender c = {.name = "cpu/partitioned", .engine = "cpu/partitioned", .threads = 1};
    double ns[PASSES];
    workload_create(&w, false);
    if (!ours_stream(&c, &w)) {
        fprintf(stderr, "%s\n", c.reason);
        return 1;
    }
    c.pass(c.state, &w, NULL);
    profiler_enable(atoi(argv[2]));
    for (int i = 0; i < PASSES; i++) ns[i] = 1e9 * c.pass(c.state, &w, NULL) / (double)w.timed;
    qsort(ns, PASSES, sizeof *ns, bench_compare);
    printf("%.5g %.3f\n", ns[PASSES / 4], (ns[3 * PASSES / 4] - ns[PASSES / 4]) / ns[PASSES / 4]);
    c.close(c.state);
    workload_destroy(&w);
    return 0;
}
