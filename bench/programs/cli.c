// SPDX-License-Identifier: MIT
// The program `partita` as a user runs it, wall time of the whole command, against ffmpeg and SoX.
#include "peers/command.h"
#include "peers/peers.h"

static bool ours_command(struct contender *contender, const struct workload *w)
{
    struct command *command = command_create(contender, w);
    if (command == NULL) return false;
    snprintf(command->threads, sizeof command->threads, "%d", contender->threads);
    const char *const argv[] = {PARTITA_PROGRAM, "convolve",  "--threads", command->threads,
                                command->ir,     command->in, command->out};
    return command_ready(contender, argv, sizeof argv / sizeof *argv);
}

static const struct workload cases[] = {
    {
        .name = "convolve-10min-stereo-t4096",
        .n_frames = 28800000,
        .n_taps = 4096,
        .block = 28800000,
        .in_channels = 2,
        .out_channels = 2,
        .groups = 2,
        .shape = command_shape,
    },
};

static const struct contender contenders[] = {
    {.name = "partita", .open = ours_command},
    {.name = "ffmpeg", .open = peer_ffmpeg},
    {.name = "sox", .open = peer_sox},
};

int main(int argc, char **argv)
{
    static const struct suite suite = {
        .program = "bench_cli",
        .cases = cases,
        .n_cases = sizeof cases / sizeof *cases,
        .contenders = contenders,
        .n_contenders = sizeof contenders / sizeof *contenders,
        .repetitions = 5,
        .thread_counts = {1, 2},
    };
    return bench_main(argc, argv, &suite);
}
