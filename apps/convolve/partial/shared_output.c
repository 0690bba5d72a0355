// SPDX-License-Identifier: MIT
#include "shared_output.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "../../../lib/base/hash.h"

// What the processes tell each other before the first round.
struct extent {
    uint64_t key;  // of the result and the input
    uint64_t left; // frames to write
    uint64_t held; // the file holds frames of this process up to here
};

// All processes must compute the same result with the same plan. The file holds what an earlier run
// has written up to *ret_held.
static bool compare_extents(struct shared_output *o, const struct shard_record *part,
                            uint64_t *ret_held, struct fault *fault)
{
    struct processes *p = o->processes;
    const struct extent local = {
        .key = hash_bytes(o->progress.key, &o->progress.input, sizeof o->progress.input),
        .left = part->end - part->first - part->done,
        .held = part->done ? part->first + part->done : 0};
    struct extent *all = calloc(p->n, sizeof *all);
    if (!processes_agree(p, all || fault_set(fault, "out of memory"), fault)) {
        free(all);
        return false;
    }
    processes_exchange(p, &local, sizeof local, all);
    bool good = true;
    uint64_t max_left = 0;
    for (size_t i = 0; i < p->n; i++) {
        max_left = all[i].left > max_left ? all[i].left : max_left;
        *ret_held = all[i].held > *ret_held ? all[i].held : *ret_held;
        if (all[i].key != local.key)
            good = fault_set(fault,
                             "processes %zu and %zu of mpirun found other inputs or plans; "
                             "all need the same files and processors",
                             p->rank, i);
    }
    free(all);
    o->rounds_left = (max_left + o->round - 1) / o->round;
    return processes_agree(p, good, fault);
}

// Creates the file, or continues that of an earlier run, in the first process.
static bool create_file(struct shared_output *o, const char *path, const struct audio_info *info,
                        struct fault *fault)
{
    struct audio_info whole = *info;
    if (o->processes->rank) return true;
    whole.frames = o->progress.total;
    whole.first = 0;
    if (info->container == CONTAINER_SNDFILE || info->container == CONTAINER_TEXT)
        return fault_set(fault, "%s: several processes write .wav, .npy and raw samples only",
                         path);
    if (!o->resume) return audio_create(&o->out, path, &whole, fault);
    return resume_create(o->resume, &o->progress, &o->out, path, &whole, fault);
}

// Opens the part of this process in the file that the first process has created.
static bool open_part(struct shared_output *o, const char *path, const struct shard_record *part,
                      const struct audio_info *info, struct fault *fault)
{
    struct {
        char path[PATH_MAX];
        uint64_t first_byte;
    } file = {0};
    const size_t frame_bytes = info->channels * encoding_size(info->encoding);
    if (o->out) {
        const char *name = audio_unfinished(o->out, &file.first_byte);
        if (strlen(name) < sizeof file.path) strcpy(file.path, name);
    }
    processes_broadcast(o->processes, &file, sizeof file);
    const uint64_t first_byte = file.first_byte + (part->first + part->done) * frame_bytes;
    return audio_create_part(&o->part, file.path, first_byte, path, info, fault);
}

bool shared_output_create(struct shared_output *o, struct audio_writer **ret_writer,
                          const char *path, const struct shard_record *part,
                          const struct audio_info *info, struct fault *fault)
{
    uint64_t held = 0;
    o->channels = info->channels;
    if (!compare_extents(o, part, &held, fault)) return false;
    if (!path) return true;
    if (o->resume) o->resume->held = held;
    if (!processes_agree(o->processes, create_file(o, path, info, fault), fault)) return false;
    o->all = calloc(o->processes->n, sizeof *o->all);
    const bool good =
        open_part(o, path, part, info, fault) && (o->all || fault_set(fault, "out of memory"));
    *ret_writer = o->part;
    return processes_agree(o->processes, good, fault);
}

// The counts of all processes so far, and of earlier runs, once all that they wrote is on the disk.
static bool sync_parts(struct shared_output *o, struct sample_counts *ret_sum, struct fault *fault)
{
    struct sample_counts counts, sum = o->progress.counts;
    if (!processes_agree(o->processes, audio_sync(o->part, &counts, fault), fault)) return false;
    processes_exchange(o->processes, &counts, sizeof counts, o->all);
    for (size_t i = 0; i < o->processes->n; i++) {
        sum.clipped += o->all[i].clipped;
        sum.nonfinite += o->all[i].nonfinite;
        sum.peak = o->all[i].peak > sum.peak ? o->all[i].peak : sum.peak;
    }
    *ret_sum = sum;
    return true;
}

// Makes the rounds so far durable and records them.
static bool save_progress(struct shared_output *o, struct fault *fault)
{
    struct sample_counts sum;
    if (!sync_parts(o, &sum, fault)) return false;
    if (o->processes->rank) return true;
    const uint64_t done = o->progress.done + o->rounds_done * o->round, total = o->progress.total;
    return resume_save(o->resume, &o->progress, done < total ? done : total, &sum, fault);
}

// A process that fails in saving takes part in all of it, and says so in the next round.
static bool complete_round(struct shared_output *o, struct fault *fault)
{
    if (!processes_agree(o->processes, true, fault)) return false;
    o->rounds_left--;
    o->rounds_done++;
    o->in_round = 0;
    if (!o->resume) return true;
    bool save = resume_is_due(o->resume);
    processes_broadcast(o->processes, &save, sizeof save);
    return !save || save_progress(o, fault);
}

bool shared_output_write(struct shared_output *o, enum partita_type type, const void *frames,
                         size_t n, struct fault *fault)
{
    const char *at = frames;
    while (n) {
        const size_t left = o->round - o->in_round, m = n < left ? n : left;
        if (o->part && !audio_write(o->part, type, at, m, fault)) return false;
        at += m * o->channels * partita_type_size(type);
        n -= m;
        o->in_round += m;
        if (o->in_round == o->round && !complete_round(o, fault)) return false;
    }
    return true;
}

bool shared_output_finish(struct shared_output *o, struct audio_writer **ret_out,
                          struct sample_counts *ret_counts, struct fault *fault)
{
    while (o->rounds_left)
        if (!complete_round(o, fault)) return false;
    if (!o->part) return true;
    if (!sync_parts(o, ret_counts, fault)) return false;
    if (o->out && !audio_complete(o->out, o->progress.total, ret_counts, fault)) return false;
    *ret_out = o->out;
    o->out = NULL;
    return true;
}

void shared_output_release(struct shared_output *output)
{
    audio_discard(output->out);
    free(output->all);
}
