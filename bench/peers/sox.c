// SPDX-License-Identifier: MIT
// SoX's fir effect as a command, on a text file of coefficients. With two threads channels run in
// parallel, which the large buffer makes ten times faster than the default. Dither is off, as the
// other commands add none. SoX drops the first half of the filter's length from the result.
#include "peers/command.h"
#include "peers/peers.h"

bool peer_sox(struct contender *contender, const struct workload *w)
{
    struct command *command = command_create(contender, w);
    if (command == NULL) return false;
    const char *const argv[] = {"sox",
                                contender->threads > 1 ? "--multi-threaded" : "--single-threaded",
                                "--buffer",
                                "65536",
                                "-D",
                                command->in,
                                command->out,
                                "fir",
                                command->coefficients};
    command->skipped = (w->n_taps - 1) / 2;
    return command_ready(contender, argv, sizeof argv / sizeof *argv);
}
