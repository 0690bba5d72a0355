// SPDX-License-Identifier: MIT
// `partita join`: concatenates the shards of --range, after checking that they belong to one result
// of one input and that none is missing, repeated or truncated, and while checking that their
// samples are those that were computed.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/report.h"
#include "io/audio.h"
#include "io/formats/sigmf_carry.h"
#include "partial/shard_record.h"

struct shard_file {
    const char *path;
    struct shard_record record;
};

static int compare_positions(const void *a, const void *b)
{
    const struct shard_record *x = &((const struct shard_file *)a)->record,
                              *y = &((const struct shard_file *)b)->record;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static bool load_record(struct shard_file *shard, const char *path, struct fault *fault)
{
    bool exists;
    char *record_path = shard_record_path(path, fault);
    shard->path = path;
    bool good = record_path && shard_record_read(record_path, &shard->record, &exists, fault);
    if (good && !exists)
        good = fault_set(fault, "%s: its record %s is missing, which --range writes beside OUT",
                         path, record_path);
    free(record_path);
    return good;
}

// Sorted shards must belong to one result, and each must begin where the previous one ends.
static bool check_sequence(const struct shard_file *shards, size_t n, struct fault *fault)
{
    uint64_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const struct shard_record *r = &shards[i].record;
        if (r->key != shards[0].record.key || r->total != shards[0].record.total ||
            strcmp(r->format, shards[0].record.format) != 0)
            return fault_set(fault, "%s and %s: are not shards of one result", shards[0].path,
                             shards[i].path);
        if (r->input != shards[0].record.input)
            return fault_set(fault,
                             "%s and %s: were made of inputs of one length but with other samples; "
                             "compute all shards from one file or copies of it",
                             shards[0].path, shards[i].path);
        if (r->first < at)
            return fault_set(fault, "%s: begins at sample %" PRIu64 ", but %s ends at %" PRIu64,
                             shards[i].path, r->first, shards[i - 1].path, at);
        if (r->first > at)
            return fault_set(fault, "samples %" PRIu64 " to %" PRIu64 " are missing before %s", at,
                             r->first - 1, shards[i].path);
        at = r->end;
    }
    if (at == shards[0].record.total) return true;
    return fault_set(fault, "samples %" PRIu64 " to %" PRIu64 " are missing after %s", at,
                     shards[0].record.total - 1, shards[n - 1].path);
}

// OUT has the shape and the metadata of the first shard and the frames of all.
static bool create_joined(struct audio_writer **ret, const char *path,
                          const struct audio_reader *first, struct sigmf_origin *origin,
                          struct fault *fault)
{
    struct audio_info info = *audio_reader_info(first);
    bool known;
    if (!sigmf_check_output(path, fault)) return false;
    if (container_of_name(path, &known) != info.container && known)
        return fault_set(fault, "%s: the name implies another format than that of the shards",
                         path);
    info.frames = origin->total;
    origin->sigmf = audio_reader_recording(first);
    if (origin->sigmf && sigmf_describes(path)) info.origin = origin;
    return (!info.origin || sigmf_check_positions(origin->sigmf, fault)) &&
           audio_create(ret, path, &info, fault);
}

static bool join_shards(const struct settings *s, const struct shard_file *shards, size_t n,
                        struct fault *fault)
{
    struct audio_writer *out = NULL;
    struct audio_reader *first = NULL; // its metadata are needed to the end
    struct sigmf_origin origin = {.up = 1, .stride = 1, .total = shards[0].record.total};
    struct sample_counts counts;
    bool good = true;
    for (size_t i = 0; good && i < n; i++) {
        struct audio_reader *in = NULL;
        good = shard_record_open(&shards[i].record, shards[i].path, s->channels, s, &in, fault);
        if (good && !i) good = create_joined(&out, s->files[0], first = in, &origin, fault);
        if (good && !i) audio_digest_begin(out, 0);
        const bool is_complex = good && audio_reader_info(in)->encoding.is_complex;
        // Doubles represent every encoding exactly.
        good = good && audio_copy(out, in, is_complex ? PARTITA_CF64 : PARTITA_F64, 1, fault) &&
               (!audio_shortfall(in) || fault_set(fault, "%s", audio_shortfall(in))) &&
               (audio_digest_begin(out, 0) == shards[i].record.counts.digest ||
                fault_set(fault,
                          "%s: its samples have changed since they were computed; remove it "
                          "and compute the shard again",
                          shards[i].path));
        if (in != first) audio_reader_close(in);
    }
    good = good && shard_record_discard(s->files[0], fault);
    if (good) good = audio_finish(out, false, &counts, fault);
    else audio_discard(out);
    audio_reader_close(first);
    return good;
}

int join_main(const struct settings *s, struct fault *fault)
{
    const size_t n = (size_t)s->n_operands - 1;
    struct shard_file *shards = calloc(n, sizeof *shards);
    bool good = shards || fault_set(fault, "out of memory");
    for (size_t i = 0; good && i < n; i++) {
        good = sigmf_differs(s->files[0], (const char *const *)&s->files[i + 1], 1, fault) &&
               load_record(&shards[i], s->files[i + 1], fault);
    }
    if (good) qsort(shards, n, sizeof *shards, compare_positions);
    good = good && check_sequence(shards, n, fault) && join_shards(s, shards, n, fault);
    free(shards);
    return good ? EXIT_DONE : EXIT_FAILED;
}
