// SPDX-License-Identifier: MIT
// See share.h.
#include "share.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../lib/base/hash.h"
#include "base/clock.h"
#include "cli/report.h"
#include "io/bytes/temp.h"

static const double NOTE_SECONDS = 1;

// Digits alone: neither signs nor spaces. Returns what follows them, or NULL.
static const char *take_number(const char *text, uint64_t *ret)
{
    char *end;
    if (*text < '0' || *text > '9') return NULL;
    errno = 0;
    *ret = strtoull(text, &end, 10);
    return errno ? NULL : end;
}

bool share_parse(const char *text, uint64_t *ret_k, uint64_t *ret_n, struct fault *fault)
{
    const char *at = take_number(text, ret_k);
    at = at && *at == '/' ? take_number(at + 1, ret_n) : NULL;
    if (at && !*at && *ret_k >= 1 && *ret_k <= *ret_n) return true;
    return fault_set(fault, "--range %s: is not K/N with 1 <= K <= N", text);
}

static const char *option_of(const struct share *share)
{
    return share->settings->range ? "--range" : "--resume";
}

// Of what is written, nothing may be an input.
static bool check_names(const struct share *share, const char *const *inputs, int n_inputs,
                        struct fault *fault)
{
    const char *names[] = {share->range, share->partial, share->notes};
    for (int i = 0; i < 3; i++)
        if (names[i] && !temp_differs(names[i], inputs, n_inputs, fault)) return false;
    return true;
}

// A file behind a symbolic link has what is unfinished beside it: it is renamed within one folder.
static bool name_partial(struct share *share, const char *out, struct fault *fault)
{
    mode_t mode;
    char *final = temp_final(out, &mode, fault);
    if (!final) return false;
    if (asprintf(&share->partial, "%s.partial", final) < 0) share->partial = NULL;
    free(final);
    if (!share->partial) return fault_set(fault, "out of memory");
    share->notes = record_path(share->partial, fault);
    return share->notes;
}

bool share_begin(struct share *share, const struct settings *settings, const char *const *inputs,
                 int n_inputs, struct fault *fault)
{
    const char *out = settings->operands[2];
    struct record former;
    bool exists;
    *share = (struct share){
        .settings = settings, .active = settings->range || settings->resume, .lock = -1};
    if (!temp_differs(out, inputs, n_inputs, fault)) return false;
    if (!share->active) return true;
    if (temp_is_special(out))
        return fault_set(fault,
                         "%s: %s writes to a file of its own, not to pipes, devices or directories",
                         out, option_of(share));
    if (settings->range && !(share->range = record_path(out, fault))) return false;
    if (settings->resume && !name_partial(share, out, fault)) return false;
    if (!check_names(share, inputs, n_inputs, fault)) return false;
    return !share->range || record_read(share->range, &former, &exists, fault);
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
    return hash_bytes(hash, text ? text : "", text ? strlen(text) + 1 : 1);
}

// What partita_plan_explain says of the choice, but for threads, times and bytes: the processor
// level at the end of the first line, not the lines of all engines, and of what follows them not
// the flops and who chose.
static bool hash_plan(uint64_t *hash, const struct partita_plan *plan)
{
    char *text = report_plan(plan), *rest = text;
    *hash = hash_text(*hash, partita_plan_engine(plan));
    for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
        const bool first = line == text, engine = strncmp(line, "  cpu/", 6) == 0;
        if (first && strrchr(line, ' ')) line = strrchr(line, ' ');
        else line[strcspn(line, ";")] = 0;
        if (!engine) *hash = hash_text(*hash, line);
    }
    free(text);
    return text;
}

// All that a sample of the result depends on but the plan: the command and its options, the input's
// shape, the taps and theirs. The names of the files are none of it, nor is the number of threads.
static uint64_t key_of(const struct settings *s, const struct audio_info *in,
                       const struct taps *taps, enum partita_type type, const struct range *range)
{
    const int64_t numbers[] = {s->command,
                               s->stride,
                               s->block,
                               s->matrix,
                               s->resample_ir,
                               s->nan,
                               type,
                               taps->type,
                               (int64_t)taps->length,
                               (int64_t)taps->lead,
                               (int64_t)taps->in_channels,
                               (int64_t)taps->out_channels,
                               (int64_t)taps->groups,
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

// A file that is renamed between its opening and its locking is another run's OUT.
static bool try_lock(int fd, const char *partial, struct fault *fault)
{
    struct stat ours, there;
    if (fstat(fd, &ours) || !S_ISREG(ours.st_mode))
        return fault_set(fault, "%s: is no file; remove it or name another output", partial);
    int failed = flock(fd, LOCK_EX | LOCK_NB);
    if (failed && errno != EWOULDBLOCK)
        return fault_set(fault, "%s: cannot lock: %s", partial, strerror(errno));
    if (!failed && stat(partial, &there) == 0 && there.st_dev == ours.st_dev &&
        there.st_ino == ours.st_ino)
        return true;
    return fault_set(fault, "%s: another run is writing it", partial);
}

// OUT.partial is this run's from here to share_release, beyond its renaming.
static bool lock_partial(struct share *share, struct fault *fault)
{
    const char *partial = share->partial;
    int fd = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    const bool is_new = fd >= 0;
    if (!is_new && errno == EEXIST)
        fd = open(partial, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return fault_set(fault, "%s: cannot open for writing: %s", partial, strerror(errno));
    if (!try_lock(fd, partial, fault)) {
        close(fd);
        return false;
    }
    share->lock = fd;
    share->is_new = is_new;
    return true;
}

static bool is_empty(const struct share *share)
{
    struct stat st;
    return fstat(share->lock, &st) == 0 && st.st_size == 0;
}

// What an earlier run noted, if it was the same. Notes without their file are left where OUT was
// finished.
static bool look_back(struct share *share, struct fault *fault)
{
    struct record before, *now = &share->record;
    const char *in = share->settings->operands[1];
    bool exists;
    if (!lock_partial(share, fault) || !record_read(share->notes, &before, &exists, fault))
        return false;
    if (share->is_new || (!exists && is_empty(share))) return true;
    if (!exists)
        return fault_set(fault,
                         "%s: is not empty, but %s, which says what it holds, is missing; remove "
                         "it or move it away",
                         share->partial, share->notes);
    if (before.key != now->key || before.first != now->first || before.end != now->end)
        return fault_set(fault,
                         "%s: was begun by another command, with other taps or with another plan; "
                         "remove it to start afresh",
                         share->partial);
    if (before.input_time != now->input_time)
        return fault_set(fault, "%s: has changed since %s was begun; remove that to start afresh",
                         in, share->partial);
    *now = before;
    return true;
}

bool share_open(struct share *share, const struct audio_reader *in, const struct taps *taps,
                enum partita_type type, const struct partita_plan *plan, struct range *range,
                uint64_t *frames, struct fault *fault)
{
    const struct settings *settings = share->settings;
    const struct audio_info *info = audio_reader_info(in);
    uint64_t k = 1, n = 1;
    if (!share->active) return true;
    const char *option = option_of(share);
    if (*frames == SIZE_UNKNOWN || info->frames == SIZE_UNKNOWN || audio_reader_is_pipe(in))
        return fault_set(fault, "%s: %s has no known length; use a file", option,
                         settings->operands[1]);
    if (settings->range && !share_parse(settings->range, &k, &n, fault)) return false;
    struct record *record = &share->record;
    record->key = key_of(settings, info, taps, type, range);
    if (!hash_plan(&record->key, plan)) return fault_set(fault, "out of memory");
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

bool share_create(struct share *share, struct audio_writer **ret_writer,
                  const struct audio_info *info, struct fault *fault)
{
    encoding_name(info->encoding, share->record.format);
    const char *out = share->settings->operands[2];
    if (!share->active || !share->settings->resume)
        return audio_create(ret_writer, out, info, fault);
    if (!record_write(share->notes, &share->record, fault))
        return false; // before there is anything to note
    const struct sample_counts counts = {share->record.clipped, share->record.invalid};
    return audio_resume(ret_writer, out, share->partial, info, share->record.done, &counts, fault);
}

bool share_note(struct share *share, struct audio_writer *writer, uint64_t written,
                struct fault *fault)
{
    if (!share->active || !share->settings->resume || clock_now() - share->noted < NOTE_SECONDS)
        return true;
    struct record record = share->record;
    struct sample_counts counts;
    if (!audio_sync(writer, &counts, fault)) return false;
    record.done += written;
    record.clipped = counts.clipped;
    record.invalid = counts.not_finite;
    share->noted = clock_now();
    return record_write(share->notes, &record, fault);
}

bool share_check_input(const struct share *share, const struct audio_reader *in,
                       struct fault *fault)
{
    if (!share->active) return true;
    uint64_t bytes = 0;
    int64_t time = 0;
    if (audio_shortfall(in)) return fault_set(fault, "%s", audio_shortfall(in));
    if (audio_reader_state(in, &bytes, &time) && bytes == share->input_bytes &&
        time == share->record.input_time)
        return true;
    return fault_set(fault, "%s: changed while it was read, from %" PRIu64 " to %" PRIu64 " bytes",
                     share->settings->operands[1], share->input_bytes, bytes);
}

// With OUT finished: its record in place of the notes.
static bool conclude(struct share *share, const struct sample_counts *counts, struct fault *fault)
{
    if (share->notes) unlink(share->notes);
    if (!share->range) return true;
    share->record.done = share->record.end - share->record.first;
    share->record.clipped = counts->clipped;
    share->record.invalid = counts->not_finite;
    return record_write(share->range, &share->record, fault);
}

bool share_finish(struct share *share, struct audio_writer *writer,
                  struct sample_counts *ret_counts, struct fault *fault)
{
    share->is_new = false; // OUT.partial becomes OUT
    if (!record_forget(share->settings->operands[2], fault)) {
        audio_discard(writer);
        return false;
    }
    if (!share->active) return audio_finish(writer, ret_counts, fault);
    return audio_finish_durably(writer, ret_counts, fault) && conclude(share, ret_counts, fault);
}

// A run that failed before its first sample leaves nothing.
void share_release(struct share *share)
{
    struct fault ignored;
    if (share->is_new && is_empty(share)) {
        unlink(share->partial);
        record_remove(share->notes, &ignored);
    }
    if (share->partial && share->lock >= 0) close(share->lock);
    free(share->partial);
    free(share->notes);
    free(share->range);
}
