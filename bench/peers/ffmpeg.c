// SPDX-License-Identifier: MIT
// ffmpeg's afir filter as a command: automatic gain off (irgain undoes the factor of 2 that version
// 5.1 then has), 16 bits out, and the partition size that was fastest for 4096 taps. The number of
// filter threads is set, since one is faster than the default on two cores.
#include "peers/command.h"
#include "peers/peers.h"

enum { PARTITION = 4096 };

bool peer_ffmpeg(struct contender *contender, const struct workload *w)
{
    struct command *command = command_create(contender, w);
    if (command == NULL) return false;
    snprintf(command->threads, sizeof command->threads, "%d", contender->threads);
    snprintf(command->text, sizeof command->text,
             "[0:a][1:a]afir=gtype=none:irgain=0.5:minp=%d:maxp=%d", PARTITION, PARTITION);
    const char *const argv[] = {
        "ffmpeg",         "-v",   "error",     "-nostdin",  "-y",        "-filter_complex_threads",
        command->threads, "-i",   command->in, "-i",        command->ir, "-filter_complex",
        command->text,    "-c:a", "pcm_s16le", command->out};
    return command_ready(contender, argv, sizeof argv / sizeof *argv);
}
