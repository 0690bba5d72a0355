// SPDX-License-Identifier: MIT
// See convolver.h.
#include "convolver.h"

#include <stdlib.h>
#include <string.h>

#include "io/frames.h"

enum { NO_CHANNEL = -1 };

// The responses of a file at the rate of the host, without the lead of resampling.
struct responses {
    struct rows rows; // a row for each channel
    size_t first, length;
};

static bool is_parallel(const struct variant *v, size_t channels)
{
    return v->inputs == v->outputs && (channels == 1 || channels == v->inputs);
}

// The channel of a file of `channels` channels with the response of a path, or NO_CHANNEL.
static int channel_of(const struct variant *v, size_t channels, size_t in, size_t out)
{
    if (is_parallel(v, channels)) {
        if (in != out) return NO_CHANNEL;
        return channels == 1 ? 0 : (int)in;
    }
    if (channels == 1) return 0; // one input
    return (int)(v->order == ORDER_BY_INPUT ? in * v->outputs + out : out * v->inputs + in);
}

static bool check_channels(const struct variant *v, size_t channels, const char *path,
                           struct fault *fault)
{
    const bool all = v->order != ORDER_PARALLEL && channels == v->inputs * v->outputs;
    if (all || is_parallel(v, channels) || (v->inputs == 1 && channels == 1)) return true;
    if (v->order == ORDER_PARALLEL)
        return fault_set(fault,
                         "%s: %zu channels; %s takes a file with %zu or 1 (True Stereo takes 4)",
                         path, channels, v->title, v->inputs);
    if (v->inputs != v->outputs)
        return fault_set(fault, "%s: %zu channels; %s takes a file with %zu, one for each path%s",
                         path, channels, v->title, v->inputs * v->outputs,
                         v->inputs == 1 ? ", or 1" : "");
    if (v->inputs == 1)
        return fault_set(fault, "%s: %zu channels; %s takes a file with 1", path, channels,
                         v->title);
    return fault_set(fault,
                     "%s: %zu channels; %s takes a file with %zu, one for each path, or with %zu or"
                     " 1, for paths from each input to the output of the same number",
                     path, channels, v->title, v->inputs * v->outputs, v->inputs);
}

static bool responses_copy(struct responses *ret, const struct frames *f, size_t lead,
                           const char *path, struct fault *fault)
{
    float *rows = malloc(f->n * f->channels * sizeof *rows);
    if (!rows) return fault_set(fault, "%s: out of memory for %zu frames", path, f->n);
    for (size_t c = 0; c < f->channels; c++) frames_copy_channel(f, c, rows + c * f->n);
    ret->rows = (struct rows){rows, f->channels, f->n};
    ret->first = rows_omitted_lead(&ret->rows, lead);
    ret->length = f->n - lead - ret->first; // after the end is as much as the lead
    return true;
}

static bool responses_read_from(struct responses *ret, struct audio_reader *reader,
                                const struct convolver_request *r, struct fault *fault)
{
    const struct audio_info *info = audio_reader_info(reader);
    struct frames frames = {0};
    size_t lead = 0;
    bool good = check_channels(r->variant, info->channels, r->path, fault) &&
                (!info->encoding.is_complex ||
                 fault_set(fault, "%s: complex samples; a response is real", r->path)) &&
                frames_read(&frames, reader, PARTITA_F32, r->path, fault);
    if (good && info->rate > 0 && info->rate != r->rate)
        good = frames_resample(&frames, info->rate, r->rate, &lead, r->path, fault);
    good = good && responses_copy(ret, &frames, lead, r->path, fault);
    frames_release(&frames);
    return good;
}

static bool responses_read(struct responses *ret, const struct convolver_request *r,
                           struct fault *note, struct fault *fault)
{
    const struct audio_request request = {.path = r->path, .max_channels = 1024, .wake_fd = -1};
    struct audio_reader *reader;
    if (strcmp(r->path, "-") == 0) return fault_set(fault, "-: is not the name of a file");
    if (!audio_check_regular(r->path, fault) || !audio_open(&reader, &request, fault)) return false;
    const bool good = responses_read_from(ret, reader, r, fault);
    const char *shortfall = audio_shortfall(reader);
    if (!shortfall && *audio_reader_info(reader)->note) shortfall = audio_reader_info(reader)->note;
    fault_set(note, "%s", good && shortfall ? shortfall : "");
    audio_reader_close(reader);
    return good;
}

static void keep_line(void *user, const char *text)
{
    fault_set(user, "%s", text);
}

static bool plan_stream(struct convolver *c, const struct convolver_request *r, struct fault *fault)
{
    const struct variant *v = r->variant;
    struct fault line = {.text = ""};
    const struct partita_problem problem = {
        .in_channels = v->inputs,
        .out_channels = v->outputs,
        .groups = c->parallel ? v->inputs : 1,
        .kernel = {c->kernel},
        .size = {PARTITA_UNBOUNDED},
        .block = r->block,
    };
    const struct partita_options options = {.log = {keep_line, &line}};
    const enum partita_status status = partita_plan_create(&problem, &options, &c->plan);
    if (!status) return true;
    return fault_set(fault, "%s: %s%s%.400s", r->path, partita_status_string(status),
                     *line.text ? ": " : "", line.text);
}

static bool create_filter(struct loaded *l, const struct convolver_request *r,
                          const struct responses *responses, struct fault *fault)
{
    const struct variant *v = r->variant;
    const struct rows *rows = &responses->rows;
    struct partita_path *paths = calloc(v->inputs * v->outputs, sizeof *paths);
    size_t n = 0;
    if (!paths) return fault_set(fault, "%s: out of memory", r->path);
    for (size_t out = 0; out < v->outputs; out++) {
        for (size_t in = 0; in < v->inputs; in++) {
            const int channel = channel_of(v, rows->n, in, out);
            if (channel == NO_CHANNEL) continue;
            const float *row = rows->samples + (size_t)channel * rows->length;
            paths[n++] = (struct partita_path){
                .out = out, .in = in, .length = responses->length, .taps = row + responses->first};
        }
    }
    const enum partita_status status = partita_filter_create_from(
        l->convolver->plan, &(struct partita_taps){.paths = paths, .path_count = n}, &l->filter);
    free(paths);
    return !status || fault_set(fault, "%s: %s", r->path, partita_status_string(status));
}

static bool suits(const struct convolver *present, bool parallel, size_t taps)
{
    return present && present->parallel == parallel && taps <= present->kernel &&
           2 * taps >= present->kernel;
}

static bool make(struct loaded *l, const struct convolver_request *r,
                 const struct responses *responses, struct fault *fault)
{
    const bool parallel = is_parallel(r->variant, responses->rows.n);
    l->path = strdup(r->path);
    if (!l->path) return fault_set(fault, "%s: out of memory", r->path);
    if (suits(r->present, parallel, responses->length)) {
        l->convolver = r->present;
        return create_filter(l, r, responses, fault);
    }
    l->convolver = calloc(1, sizeof *l->convolver);
    if (!l->convolver) return fault_set(fault, "%s: out of memory", r->path);
    *l->convolver = (struct convolver){.kernel = responses->length, .parallel = parallel};
    if (!plan_stream(l->convolver, r, fault) || !create_filter(l, r, responses, fault))
        return false;
    const enum partita_status status =
        partita_stream_open(l->convolver->plan, l->filter, &l->convolver->stream);
    return !status || fault_set(fault, "%s: %s", r->path, partita_status_string(status));
}

bool convolver_load(struct loaded *ret, const struct convolver_request *request, struct fault *note,
                    struct fault *fault)
{
    struct responses responses = {0};
    struct loaded l = {0};
    const bool good =
        responses_read(&responses, request, note, fault) && make(&l, request, &responses, fault);
    free((void *)responses.rows.samples);
    if (good) *ret = l;
    else convolver_release(&l, request->present);
    return good;
}

void convolver_release(struct loaded *loaded, const struct convolver *kept)
{
    struct convolver *c = loaded->convolver == kept ? NULL : loaded->convolver;
    if (c) partita_stream_close(c->stream);
    partita_filter_destroy(loaded->filter);
    if (c) partita_plan_destroy(c->plan);
    free(c);
    free(loaded->path);
    *loaded = (struct loaded){0};
}

void convolver_release_all(struct loaded *now, struct loaded *before)
{
    if (now->convolver) { // its stream may still use the filter of `before`
        partita_stream_close(now->convolver->stream);
        now->convolver->stream = NULL;
    }
    convolver_release(before, now->convolver);
    convolver_release(now, NULL);
}
