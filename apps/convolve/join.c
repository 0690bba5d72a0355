// SPDX-License-Identifier: MIT
// `partita join`: puts the shares of --range together, after checking that they are shares of one
// result and that none is missing, twice or cut short.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/report.h"
#include "io/audio.h"
#include "io/bytes/temp.h"
#include "io/formats/sigmf.h"
#include "record.h"

enum { CHUNK_FRAMES = 65536 };

struct part {
    const char *path;
    struct record record;
};

static int by_place(const void *a, const void *b)
{
    const struct record *x = &((const struct part *)a)->record,
                        *y = &((const struct part *)b)->record;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static bool load(struct part *part, const char *path, struct fault *fault)
{
    bool exists;
    char *notes = record_path(path, fault);
    part->path = path;
    bool good = notes && record_read(notes, &part->record, &exists, fault);
    if (good && !exists)
        good = fault_set(fault, "%s: %s is missing, which --range leaves beside its output", path,
                         notes);
    free(notes);
    return good;
}

// Sorted parts: all of one result, each where the one before ends.
static bool check(const struct part *parts, size_t n, struct fault *fault)
{
    uint64_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const struct record *r = &parts[i].record;
        if (r->key != parts[0].record.key || r->total != parts[0].record.total ||
            strcmp(r->format, parts[0].record.format) != 0)
            return fault_set(fault, "%s and %s: are not parts of one result", parts[0].path,
                             parts[i].path);
        if (r->first < at)
            return fault_set(fault, "%s: begins at sample %" PRIu64 ", but %s goes to %" PRIu64,
                             parts[i].path, r->first, parts[i - 1].path, at);
        if (r->first > at)
            return fault_set(fault, "samples %" PRIu64 " to %" PRIu64 " are missing before %s", at,
                             r->first - 1, parts[i].path);
        at = r->end;
    }
    if (at == parts[0].record.total) return true;
    return fault_set(fault, "samples %" PRIu64 " to %" PRIu64 " are missing behind %s", at,
                     parts[0].record.total - 1, parts[n - 1].path);
}

static bool open_part(const struct part *part, const struct settings *s, struct audio_reader **ret,
                      struct fault *fault)
{
    struct encoding encoding;
    bool known;
    struct audio_request request = {
        .path = part->path, .max_channels = options_max_channels(s), .wake_fd = -1};
    request.channels = (size_t)s->channels;
    if (container_of_name(part->path, &known) == CONTAINER_RAW && !sigmf_is_recording(part->path) &&
        encoding_parse(part->record.format, &encoding))
        request.raw = &encoding;
    if (!audio_open(ret, &request, fault)) return false;
    const uint64_t frames = audio_reader_info(*ret)->frames,
                   wanted = part->record.end - part->record.first;
    if (frames == wanted) return true;
    return fault_set(fault, "%s: holds %" PRIu64 " frames, but %" PRIu64 " belong there",
                     part->path, frames, wanted);
}

static bool copy(struct audio_writer *out, struct audio_reader *in, struct fault *fault)
{
    const struct audio_info *info = audio_reader_info(in);
    const enum partita_type type =
        info->encoding.is_complex ? PARTITA_CF64 : PARTITA_F64; // holds every encoding
    void *frames = malloc(CHUNK_FRAMES * info->channels * partita_type_size(type));
    bool good = frames || fault_set(fault, "out of memory");
    for (size_t n = 1; good && n;)
        good = audio_read(in, type, frames, CHUNK_FRAMES, &n, fault) &&
               (!n || audio_write(out, type, frames, n, fault));
    free(frames);
    if (good && audio_shortfall(in)) good = fault_set(fault, "%s", audio_shortfall(in));
    return good;
}

// OUT has the shape of the first part, and all frames.
static bool create(struct audio_writer **ret, const char *path, const struct audio_reader *first,
                   uint64_t frames, struct fault *fault)
{
    struct audio_info info = *audio_reader_info(first);
    bool known;
    if (!sigmf_check_output(path, fault)) return false;
    if (container_of_name(path, &known) != info.container && known)
        return fault_set(fault, "%s: is named as another format than the parts have", path);
    info.frames = frames;
    return audio_create(ret, path, &info, fault);
}

static bool join(const struct settings *s, const struct part *parts, size_t n, struct fault *fault)
{
    struct audio_writer *out = NULL;
    struct sample_counts counts;
    bool good = true;
    for (size_t i = 0; good && i < n; i++) {
        struct audio_reader *in = NULL;
        good = open_part(&parts[i], s, &in, fault) &&
               (out || create(&out, s->files[0], in, parts[0].record.total, fault)) &&
               copy(out, in, fault);
        audio_reader_close(in);
    }
    good = good && record_forget(s->files[0], fault);
    if (good) return audio_finish(out, &counts, fault);
    audio_discard(out);
    return false;
}

static bool run(const struct settings *s, struct fault *fault)
{
    const size_t n = (size_t)s->n_operands - 1;
    struct part *parts = calloc(n, sizeof *parts);
    bool good = parts || fault_set(fault, "out of memory");
    good = good && temp_differs(s->files[0], (const char *const *)s->files + 1, (int)n, fault);
    for (size_t i = 0; good && i < n; i++) good = load(&parts[i], s->files[i + 1], fault);
    if (good) qsort(parts, n, sizeof *parts, by_place);
    good = good && check(parts, n, fault) && join(s, parts, n, fault);
    free(parts);
    return good;
}

int join_main(const struct settings *settings)
{
    struct fault fault;
    interrupt_install();
    return run(settings, &fault) ? EXIT_DONE : report_fault(COMMAND_JOIN, &fault, EXIT_FAILED);
}
