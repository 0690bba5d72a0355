// SPDX-License-Identifier: MIT
#include "shared_output.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "../../../lib/base/hash.h"

// About the size of a stripe of a parallel file system.
static const size_t BLOCK_BYTES = (size_t)1 << 20;

// What the processes tell each other before the first round.
struct extent {
    uint64_t key;  // of the result and the input
    uint64_t left; // frames to write
    uint64_t held; // the file holds frames of this process up to here
};

// All processes must compute the same result with the same plan. The file holds what an earlier run
// has written up to *ret_held.
static bool compare_extents(struct shared_output *o, const struct shared_part *part,
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

// Opens the file that the first process has created.
static bool open_file(struct shared_output *o, const char *path, struct fault *fault)
{
    struct {
        char path[PATH_MAX];
        uint64_t first_byte;
    } file = {0};
    if (o->out) {
        const char *name = audio_unfinished(o->out, &file.first_byte);
        if (strlen(name) < sizeof file.path) strcpy(file.path, name);
    }
    processes_broadcast(o->processes, &file, sizeof file);
    o->position += file.first_byte;
    return processes_open(o->processes, file.path, path, fault);
}

bool shared_output_create(struct shared_output *o, struct audio_writer **ret_writer,
                          const struct shared_part *part, const struct audio_info *info,
                          struct fault *fault)
{
    const size_t frame_bytes = info->channels * (part->path ? encoding_size(info->encoding) : 4);
    uint64_t held = 0;
    o->channels = info->channels;
    o->block = BLOCK_BYTES > frame_bytes ? BLOCK_BYTES / frame_bytes : 1;
    o->position = (part->first + part->done) * frame_bytes;
    if (!compare_extents(o, part, &held, fault)) return false;
    if (!part->path) return true;
    if (o->resume) o->resume->held = held;
    if (!processes_agree(o->processes, create_file(o, part->path, info, fault), fault) ||
        !open_file(o, part->path, fault))
        return false;
    o->all = calloc(o->processes->n, sizeof *o->all);
    const bool good = (o->all || fault_set(fault, "out of memory")) &&
                      audio_encoder_create(&o->encoder, info, o->block, fault);
    *ret_writer = o->encoder;
    return processes_agree(o->processes, good, fault);
}

// The counts of all processes up to the last round, and of earlier runs.
static struct sample_counts sum_counts(struct shared_output *o)
{
    struct sample_counts sum = {.clipped = o->progress.clipped, .nonfinite = o->progress.invalid};
    processes_exchange(o->processes, &o->counts, sizeof o->counts, o->all);
    for (size_t i = 0; i < o->processes->n; i++) {
        sum.clipped += o->all[i].clipped;
        sum.nonfinite += o->all[i].nonfinite;
        sum.peak = o->all[i].peak > sum.peak ? o->all[i].peak : sum.peak;
    }
    return sum;
}

// Makes the rounds so far durable and records them.
static bool save_progress(struct shared_output *o, struct fault *fault)
{
    const bool good = processes_sync(o->processes, fault);
    const struct sample_counts sum = sum_counts(o);
    if (!good || o->processes->rank) return good;
    struct shard_record progress = o->progress;
    progress.done += o->rounds_done * o->round;
    if (progress.done > progress.total) progress.done = progress.total;
    progress.clipped = sum.clipped;
    progress.invalid = sum.nonfinite;
    return resume_record(o->resume, &progress, fault);
}

static bool write_block(struct shared_output *o, struct fault *fault)
{
    const void *bytes;
    o->in_block = 0;
    if (!o->encoder) return true;
    const size_t n = audio_encoder_take(o->encoder, &bytes, &o->counts);
    o->position += n;
    return processes_write(o->processes, o->position - n, bytes, n, fault);
}

// A process that fails here takes part in all of it, and says so in the next round.
static bool complete_round(struct shared_output *o, struct fault *fault)
{
    if (!write_block(o, fault) || !processes_agree(o->processes, true, fault)) return false;
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
        const size_t in_block = o->block - o->in_block, in_round = o->round - o->in_round,
                     left = in_block < in_round ? in_block : in_round, m = n < left ? n : left;
        if (o->encoder && !audio_write(o->encoder, type, at, m, fault)) return false;
        at += m * o->channels * partita_type_size(type);
        n -= m;
        o->in_block += m;
        o->in_round += m;
        const bool good = o->in_round == o->round   ? complete_round(o, fault)
                          : o->in_block == o->block ? write_block(o, fault)
                                                    : true;
        if (!good) return false;
    }
    return true;
}

bool shared_output_finish(struct shared_output *o, struct audio_writer **ret_out,
                          struct sample_counts *ret_counts, struct fault *fault)
{
    while (o->rounds_left)
        if (!complete_round(o, fault)) return false;
    if (!o->encoder) return true;
    // A process may have failed after its last round.
    if (!processes_agree(o->processes, true, fault)) return false;
    const bool synced = processes_sync(o->processes, fault),
               closed = processes_close(o->processes, fault);
    if (!processes_agree(o->processes, synced && closed, fault)) return false;
    *ret_counts = sum_counts(o);
    if (o->out && !audio_complete(o->out, o->progress.total, ret_counts, fault)) return false;
    *ret_out = o->out;
    o->out = NULL;
    return true;
}

void shared_output_release(struct shared_output *output)
{
    struct fault ignored;
    if (output->processes && output->processes->file) processes_close(output->processes, &ignored);
    audio_discard(output->out);
    free(output->all);
}
