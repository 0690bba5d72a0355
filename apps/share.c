// SPDX-License-Identifier: MIT
// See share.h.
#include "share.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../lib/hash.h"

static const double NOTE_SECONDS = 1;

bool share_parse(const char *text, uint64_t *ret_k, uint64_t *ret_n, struct fault *fault)
{
    char behind;
    if (sscanf(text, "%" SCNu64 "/%" SCNu64 "%c", ret_k, ret_n, &behind) == 2 && *text != '-' && *ret_k >= 1 &&
        *ret_k <= *ret_n)
        return true;
    return fault_set(fault, "--range %s: is not K/N with 1 <= K <= N", text);
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
    return hash_bytes(hash, text ? text : "", text ? strlen(text) + 1 : 1);
}

// All that a sample of the result depends on: the command and its options, the input's shape, the taps themselves. The
// names of the files are none of it, nor is the number of threads.
static uint64_t key_of(const struct settings *s, const struct audio_info *in, const struct taps *taps,
                       enum partita_type type, const struct range *range)
{
    const int64_t numbers[] = {s->command,
                               s->stride,
                               s->block,
                               s->matrix,
                               s->resample_ir,
                               s->nan,
                               type,
                               taps->type,
                               in->rate,
                               (int64_t)in->frames,
                               (int64_t)in->channels,
                               range->begin,
                               range->end,
                               range->end_counts_from_n};
    char name[ENCODING_NAME_SIZE];
    uint64_t hash = hash_bytes(HASH_BEGIN, numbers, sizeof numbers);
    hash = hash_bytes(hash, &s->gain, sizeof s->gain);
    hash = hash_text(hash_text(hash, s->engine), s->output_format);
    hash = hash_text(hash_text(hash, encoding_name(in->encoding, name)), partita_version());
    const size_t cells = taps->out_channels * (taps->in_channels / taps->groups);
    return hash_bytes(hash, taps->data, cells * taps->length * partita_type_size(taps->type));
}

// k*total/n without overflow.
static uint64_t cut(uint64_t total, uint64_t k, uint64_t n)
{
    return total / n * k + (uint64_t)((unsigned __int128)(total % n) * k / n);
}

// What an earlier run noted, if it was the same.
static bool look_back(struct share *share, struct fault *fault)
{
    struct record before, *now = &share->record;
    const char *in = share->settings->operands[1];
    bool exists;
    if (asprintf(&share->partial, "%s.partial", share->settings->operands[2]) < 0 ||
        asprintf(&share->notes, "%s.range", share->partial) < 0)
        return fault_set(fault, "out of memory");
    if (access(share->partial, F_OK)) return true; // notes alone are left where OUT was finished
    if (!record_read(share->notes, &before, &exists, fault) || !exists) return exists || !*fault->text;
    if (before.key != now->key || before.first != now->first || before.end != now->end)
        return fault_set(fault, "%s: was begun by another command or with other taps; remove it to start afresh",
                         share->partial);
    if (before.input_time != now->input_time)
        return fault_set(fault, "%s: has changed since %s was begun; remove that to start afresh", in, share->partial);
    *now = before;
    return true;
}

bool share_open(struct share *share, const struct settings *settings, const struct audio_reader *in,
                const struct taps *taps, enum partita_type type, struct range *range, uint64_t *frames,
                struct fault *fault)
{
    const struct audio_info *info = audio_reader_info(in);
    uint64_t k = 1, n = 1;
    *share = (struct share){.settings = settings, .active = settings->range || settings->resume};
    fault->text[0] = 0;
    if (!share->active) return true;
    const char *option = settings->range ? "--range" : "--resume";
    if (*frames == SIZE_UNKNOWN || info->frames == SIZE_UNKNOWN || audio_reader_is_pipe(in))
        return fault_set(fault, "%s: %s has no known length; use a file", option, settings->operands[1]);
    if (settings->range && !share_parse(settings->range, &k, &n, fault)) return false;
    struct record *record = &share->record;
    record->key = key_of(settings, info, taps, type, range);
    record->total = *frames;
    record->first = cut(*frames, k - 1, n);
    record->end = cut(*frames, k, n);
    if (!audio_reader_state(in, &share->input_bytes, &record->input_time))
        return fault_set(fault, "%s: %s cannot watch this file", option, settings->operands[1]);
    if (settings->resume && !look_back(share, fault)) return false;
    const int64_t stride = settings->stride, begin = range->begin;
    *range = (struct range){begin + (int64_t)(record->first + record->done) * stride,
                            begin + (int64_t)record->end * stride, false};
    *frames = record->end - record->first;
    return true;
}

bool share_create(struct share *share, struct audio_writer **ret_writer, const struct audio_info *info,
                  struct fault *fault)
{
    encoding_name(info->encoding, share->record.format);
    const char *out = share->settings->operands[2];
    if (!share->active || !share->settings->resume) return audio_create(ret_writer, out, info, fault);
    const struct sample_counts counts = {share->record.clipped, share->record.invalid};
    return audio_resume(ret_writer, out, share->partial, info, share->record.done, &counts, fault);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool share_note(struct share *share, struct audio_writer *writer, uint64_t written, struct fault *fault)
{
    if (!share->active || !share->settings->resume || now() - share->noted < NOTE_SECONDS) return true;
    struct record record = share->record;
    struct sample_counts counts;
    if (!audio_sync(writer, &counts, fault)) return false;
    record.done += written;
    record.clipped = counts.clipped;
    record.invalid = counts.not_finite;
    share->noted = now();
    return record_write(share->notes, &record, fault);
}

bool share_check_input(const struct share *share, const struct audio_reader *in, struct fault *fault)
{
    if (!share->active) return true;
    uint64_t bytes = 0;
    int64_t time = 0;
    if (audio_shortfall(in)) return fault_set(fault, "%s", audio_shortfall(in));
    if (audio_reader_state(in, &bytes, &time) && bytes == share->input_bytes && time == share->record.input_time)
        return true;
    return fault_set(fault, "%s: changed while it was read, from %" PRIu64 " to %" PRIu64 " bytes",
                     share->settings->operands[1], share->input_bytes, bytes);
}

bool share_finish(struct share *share, const struct sample_counts *counts, struct fault *fault)
{
    char *path;
    if (!share->active) return true;
    if (share->notes) unlink(share->notes);
    if (!share->settings->range) return true;
    if (asprintf(&path, "%s.range", share->settings->operands[2]) < 0) return fault_set(fault, "out of memory");
    share->record.done = share->record.end - share->record.first;
    share->record.clipped = counts->clipped;
    share->record.invalid = counts->not_finite;
    bool good = record_write(path, &share->record, fault);
    free(path);
    return good;
}

void share_release(struct share *share)
{
    free(share->partial);
    free(share->notes);
}
