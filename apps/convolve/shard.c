// SPDX-License-Identifier: MIT
#include "shard.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../lib/base/hash.h"
#include "cli/report.h"
#include "io/bytes/temp.h"
#include "io/formats/sigmf.h"

// Of several processes: enough that one which is a little slower at times delays no other. Between
// two rounds no progress is recorded, and a segment of a long filter takes seconds.
enum { SEGMENTS_PER_ROUND = 4, SEGMENTS_PER_ROUND_RESUMED = 1 };

bool shard_parse(const char *text, uint64_t *ret_k, uint64_t *ret_n, struct fault *fault)
{
    const char *at = shard_record_digits(text, ret_k);
    at = at && *at == '/' ? shard_record_digits(at + 1, ret_n) : NULL;
    if (at && !*at && *ret_k >= 1 && *ret_k <= *ret_n) return true;
    return fault_set(fault, "--range %s: is not K/N with 1 <= K <= N, for example 2/8", text);
}

bool shard_begin(struct shard *shard, const char *const *inputs, int n_inputs, struct fault *fault)
{
    const struct settings *settings = shard->settings;
    const char *out = settings->operands[2];
    struct shard_record previous;
    bool exists;
    shard->active = options_sharded_by(settings);
    shard->resume.lock = -1;
    if (!out) return true;
    if (!sigmf_differs(out, inputs, n_inputs, fault)) return false;
    if (!shard->active) return true;
    if (temp_is_special(out))
        return fault_set(fault,
                         "%s: %s writes to a file of its own, not to pipes, devices or directories",
                         out, options_sharded_by(shard->settings));
    if (settings->range && container_is_lossy(out))
        return fault_set(fault,
                         "%s: is compressed with loss, so that `partita join` could not check it; "
                         "write the shards to .flac or .wav",
                         out);
    if (settings->range && !(shard->record_path = shard_record_path(out, fault))) return false;
    if (settings->resume && !resume_begin(&shard->resume, out, fault)) return false;
    // No file that is written may be an input.
    const char *names[] = {shard->record_path, shard->resume.partial_path,
                           shard->resume.progress_path};
    for (int i = 0; i < 3; i++)
        if (names[i] && !sigmf_differs(names[i], inputs, n_inputs, fault)) return false;
    return !shard->record_path || shard_record_read(shard->record_path, &previous, &exists, fault);
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
    return hash_bytes(hash, text ? text : "", text ? strlen(text) + 1 : 1);
}

// Hashes the choices in the text of partita_plan_explain, but not threads, times and bytes. Of the
// first line it takes the instruction set at its end; it skips the lines of all engines; of the
// other lines it takes the part before the semicolon.
static bool hash_plan(uint64_t *hash, const struct partita_plan *plan)
{
    char *text = report_plan(plan), *rest = text;
    *hash = hash_text(*hash, partita_plan_engine(plan, PARTITA_FORWARD));
    for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
        const bool first = line == text, engine = strncmp(line, "  cpu/", 6) == 0;
        if (first && strrchr(line, ' ')) line = strrchr(line, ' ');
        else line[strcspn(line, ";")] = 0;
        if (!engine) *hash = hash_text(*hash, line);
    }
    free(text);
    return text;
}

// Hashes everything a sample of the result depends on except the plan: command and options, shape
// of the input, taps and their shape. File names and the number of threads are omitted: the result
// does not depend on them.
static uint64_t hash_command(const struct settings *s, const struct audio_info *in,
                             const struct shard_source *source, const struct range *range)
{
    const struct taps *taps = source->taps;
    const int64_t numbers[] = {
        s->command,    s->up,          s->stride,    s->block,   s->matrix,
        s->normalised, s->resample_ir, s->nan,       s->dither,  s->error_reach,
        source->type,  taps->type,     range->begin, range->end, range->end_counts_from_n};
    const uint64_t sizes[] = {taps->length, taps->lead, taps->in_channels, taps->out_channels,
                              taps->groups, in->frames, in->channels};
    char name[ENCODING_NAME_SIZE];
    uint64_t hash = hash_bytes(HASH_BEGIN, numbers, sizeof numbers);
    hash = hash_bytes(hash, sizes, sizeof sizes);
    hash = hash_bytes(hash, &in->rate, sizeof in->rate);
    hash = hash_bytes(hash, &s->gain, sizeof s->gain);
    hash = hash_bytes(hash, &s->tune, sizeof s->tune);
    hash = hash_bytes(hash, &source->bandwidth, sizeof source->bandwidth);
    hash = hash_text(hash_text(hash, s->engine), s->output_format);
    hash = hash_text(hash_text(hash, encoding_name(in->encoding, name)), partita_version());
    if (taps->paths) hash = hash_bytes(hash, taps->paths, taps->n_paths * sizeof *taps->paths);
    return hash_bytes(hash, taps->data,
                      taps_count_rows(taps) * taps->length * partita_type_size(taps->type));
}

// What an earlier run has written. Of several processes the first reads the record, which is that
// of the whole result; its `done` are frames of each process.
static bool load_progress(struct shard *shard, struct fault *fault)
{
    struct shard_record *local = &shard->record, *all = &shard->shared.progress;
    const char *in = shard->settings->operands[1];
    if (!shard->shared.processes->n) return resume_load(&shard->resume, local, in, fault);
    shard->resume.shared = true;
    const bool good = shard->shared.processes->rank || resume_load(&shard->resume, all, in, fault);
    if (!processes_agree(shard->shared.processes, good, fault)) return false;
    processes_broadcast(shard->shared.processes, all, sizeof *all);
    local->done = all->done < local->end - local->first ? all->done : local->end - local->first;
    return true;
}

// k * total / n without overflow.
static uint64_t shard_bound(uint64_t total, uint64_t k, uint64_t n)
{
    return total / n * k + (uint64_t)((unsigned __int128)(total % n) * k / n);
}

bool shard_open(struct shard *shard, const struct shard_source *source, struct range *range,
                uint64_t *frames, struct fault *fault)
{
    const struct settings *settings = shard->settings;
    const struct audio_info *info = audio_reader_info(source->in);
    uint64_t k = 1, n = 1;
    if (!shard->active) return true;
    const char *option = options_sharded_by(settings);
    if (*frames == SIZE_UNKNOWN || info->frames == SIZE_UNKNOWN || audio_reader_is_pipe(source->in))
        return fault_set(fault, "%s: the length of %s is unknown; use a file", option,
                         settings->operands[1]);
    // Shards of a truncated file would depend on what it lacks.
    if (audio_shortfall(source->in)) return fault_set(fault, "%s", audio_shortfall(source->in));
    if (settings->range && !shard_parse(settings->range, &k, &n, fault)) return false;
    if (settings->shared) {
        k = shard->shared.processes->rank + 1;
        n = shard->shared.processes->n;
    }
    struct shard_record *record = &shard->record;
    record->key = hash_command(settings, info, source, range);
    if (!hash_plan(&record->key, source->plan)) return fault_set(fault, "out of memory");
    // How far each of several processes has come says nothing about another number of them.
    if (settings->shared) record->key = hash_bytes(record->key, &n, sizeof n);
    record->total = *frames;
    record->first = shard_bound(*frames, k - 1, n);
    record->end = shard_bound(*frames, k, n);
    if (!audio_reader_state(source->in, &shard->input_bytes, &record->input_time))
        return fault_set(fault, "%s: cannot get the size and time of %s", option,
                         settings->operands[1]);
    if (!audio_reader_fingerprint(source->in, &record->input, fault)) return false;
    const size_t segments = settings->resume ? SEGMENTS_PER_ROUND_RESUMED : SEGMENTS_PER_ROUND;
    shard->shared.round = segments * source->results;
    shard->shared.progress = *record;
    shard->shared.progress.first = 0;
    shard->shared.progress.end = record->total;
    if (settings->resume && !load_progress(shard, fault)) return false;
    const int64_t stride = settings->stride, begin = range->begin;
    *range = (struct range){begin + (int64_t)(record->first + record->done) * stride,
                            begin + (int64_t)record->end * stride, false};
    shard->range = *range;
    *frames = record->end - record->first;
    return true;
}

uint64_t shard_widen(const struct shard *shard, uint64_t margin, struct range *ret)
{
    const struct shard_record *record = &shard->record;
    const uint64_t before = margin < record->first ? margin : record->first;
    const int64_t stride = shard->settings->stride;
    *ret = shard->range;
    ret->begin -= (int64_t)before * stride;
    ret->end += (int64_t)(record->total - record->end) * stride;
    return before;
}

static bool create_shared(struct shard *shard, struct audio_writer **ret_writer,
                          const struct audio_info *info, struct fault *fault)
{
    const struct shard_record *record = &shard->record, searched = {.end = info->frames};
    const char *out = shard->settings->operands[2];
    struct audio_info local = *info;
    local.first = record->first + record->done;
    shard->shared.resume = shard->settings->resume ? &shard->resume : NULL;
    memcpy(shard->shared.progress.format, record->format, sizeof record->format);
    return shared_output_create(&shard->shared, ret_writer, out, out ? record : &searched, &local,
                                fault);
}

// Whether an earlier run has completed the shard that --resume is to continue. What is reported
// about samples is computed again.
static bool is_complete(const struct shard *shard, const struct audio_info *info)
{
    const struct settings *s = shard->settings;
    const struct shard_record *r = &shard->record;
    struct shard_record earlier;
    struct audio_reader *out;
    struct fault ignored;
    bool exists;
    if (!s->resume || !shard->record_path || s->stats || s->json ||
        !shard_record_read(shard->record_path, &earlier, &exists, &ignored) || !exists)
        return false;
    if (earlier.key != r->key || earlier.first != r->first || earlier.end != r->end ||
        earlier.total != r->total || earlier.done != r->end - r->first ||
        earlier.input != r->input || earlier.input_time != r->input_time ||
        strcmp(earlier.format, r->format) != 0 ||
        !shard_record_open(r, s->operands[2], (int64_t)info->channels, s, &out, &ignored))
        return false;
    audio_reader_close(out);
    return true;
}

bool shard_create(struct shard *shard, struct audio_writer **ret_writer,
                  const struct audio_info *info, struct fault *fault)
{
    encoding_name(info->encoding, shard->record.format);
    const char *out = shard->settings->operands[2];
    if (shard->settings->shared) return create_shared(shard, ret_writer, info, fault);
    if (!out) return true;
    shard->complete = is_complete(shard, info);
    if (shard->complete)
        report_warning(shard->settings, "%s: is complete; nothing was computed", out);
    if (shard->complete) return true;
    if (!(shard->settings->resume
              ? resume_create(&shard->resume, &shard->record, ret_writer, out, info, fault)
              : audio_create(ret_writer, out, info, fault)))
        return false;
    if (shard->record_path) audio_digest_begin(*ret_writer, shard->record.counts.digest);
    return true;
}

bool shard_write(struct shard *shard, struct audio_writer *writer, enum partita_type type,
                 const void *frames, size_t n, struct fault *fault)
{
    if (shard->settings->shared) return shared_output_write(&shard->shared, type, frames, n, fault);
    struct sample_counts counts;
    if (!writer) return true;
    if (!audio_write(writer, type, frames, n, fault)) return false;
    return !resume_is_due(&shard->resume) ||
           (audio_sync(writer, &counts, fault) &&
            resume_save(&shard->resume, &shard->record, audio_written(writer), &counts, fault));
}

bool shard_check_input(const struct shard *shard, const struct audio_reader *in,
                       struct fault *fault)
{
    if (!shard->active) return true;
    uint64_t bytes = 0;
    int64_t time = 0;
    if (audio_shortfall(in)) return fault_set(fault, "%s", audio_shortfall(in));
    if (audio_reader_state(in, &bytes, &time) && bytes == shard->input_bytes &&
        time == shard->record.input_time)
        return true;
    return fault_set(fault, "%s: changed while it was read, from %" PRIu64 " to %" PRIu64 " bytes",
                     shard->settings->operands[1], shard->input_bytes, bytes);
}

// Once OUT is complete, its record replaces the progress file.
static bool finish_file(struct shard *shard, struct audio_writer *writer,
                        struct sample_counts *ret_counts, struct fault *fault)
{
    shard->resume.created = false; // OUT.partial becomes OUT
    if (!shard_record_discard(shard->settings->operands[2], fault)) {
        audio_discard(writer);
        return false;
    }
    if (!shard->active) return audio_finish(writer, false, ret_counts, fault);
    if (!audio_finish(writer, true, ret_counts, fault)) return false;
    if (shard->resume.progress_path) unlink(shard->resume.progress_path);
    shard->record.done = shard->record.end - shard->record.first;
    shard->record.counts = *ret_counts;
    return !shard->record_path || shard_record_write(shard->record_path, &shard->record, fault);
}

bool shard_finish(struct shard *shard, struct audio_writer *writer,
                  struct sample_counts *ret_counts, struct fault *fault)
{
    struct audio_writer *out = NULL;
    struct sample_counts counts;
    if (!shard->settings->shared) return !writer || finish_file(shard, writer, ret_counts, fault);
    bool good = shared_output_finish(&shard->shared, &out, ret_counts, fault);
    audio_discard(writer);
    if (good && out) good = finish_file(shard, out, &counts, fault);
    return processes_agree(shard->shared.processes, good, fault);
}

void shard_release(struct shard *shard)
{
    shared_output_release(&shard->shared);
    resume_release(&shard->resume);
    free(shard->record_path);
}
