// SPDX-License-Identifier: MIT
// See runner.h. Segments overlap by taps->length - 1 frames (overlap-save), so memory use does not
// grow with the signal.
#include "runner.h"

#include <stdlib.h>
#include <string.h>

#include "base/interleave.h"
#include "base/memory.h"
#include "cli/engine_name.h"
#include "cli/option_words.h"
#include "segments.h"

struct runner {
    enum command command;
    struct runner_layout layout;
    struct partita_filter *filter;
    struct partita_stream *stream;
    size_t in_channels, out_channels, bytes, up, stride;
    size_t to_drop; // outputs of the stream that are still latency
    const void **x; // channel pointers
    void **y;
    // Segments: inputs [in_channels][history + segment], results [out_channels][results].
    size_t history, filled, plan_threads;
    struct segments segments;
    struct fault log; // the library's last line
};

// Longer files are filtered in segments, as --range, --resume and --threads do, so that these give
// the same results.
static const uint64_t MAX_STREAMED_FRAMES = (uint64_t)1 << 24;

// 2^20 samples (a few MiB), or four filter lengths, so that the overlap costs little. A shorter
// signal is one segment, together with its tail and the silence that aligns its start to the
// stride.
static size_t choose_segment(const struct runner *r, uint64_t frames, size_t stride)
{
    size_t channels = r->in_channels > r->out_channels ? r->in_channels : r->out_channels;
    size_t segment = ((size_t)1 << 20) / channels, length = r->history + 1;
    if (r->up > stride) segment = segment / r->up * stride;
    if (segment < 4 * length) segment = 4 * length;
    size_t margin = length + stride - 1;
    if (segment > margin && frames < segment - margin) segment = (size_t)frames + margin;
    return (segment + stride - 1) / stride * stride;
}

static struct partita_problem runner_problem(const struct runner *r, const struct runner_request *q)
{
    const struct taps *taps = q->taps;
    struct partita_problem problem = {
        .signal = q->signal,
        .taps = taps->type,
        .op = q->settings->command == COMMAND_CORRELATE ? PARTITA_CORRELATE : PARTITA_CONVOLVE,
        .in_channels = taps->in_channels,
        .out_channels = taps->out_channels,
        .groups = taps->groups,
        .kernel = {taps->length},
        .size = {r->layout.segment ? r->history + r->layout.segment : PARTITA_UNBOUNDED},
        .stride = {r->stride},
        .up = r->up,
    };
    if (r->layout.segment) { // the results begin after the history
        problem.pad_begin[0] = (ptrdiff_t)(taps->length - 1) - (ptrdiff_t)(r->history * r->up);
        return problem;
    }
    // The latency of an engine for a pipe is the length of the filter, but at least 8192 frames;
    // for a file four times the length, but at least 65536. More would cost memory and gain little.
    const size_t min = q->is_pipe ? 8192 : 65536, max = (r->history + 1) * (q->is_pipe ? 1 : 4);
    problem.block = (size_t)q->settings->block;
    problem.latency = problem.block ? problem.block : max > min ? max : min;
    return problem;
}

// Leaves out the zeros at both ends of a row, which cost time in some engines; one tap remains.
static void trim_zeros(struct partita_path *path, size_t bytes)
{
    static const char zeros[sizeof(double)];
    const char *row = path->taps;
    size_t n = path->length;
    while (path->delay + 1 < n && memcmp(row + path->delay * bytes, zeros, bytes) == 0)
        path->delay++;
    while (n > path->delay + 1 && memcmp(row + (n - 1) * bytes, zeros, bytes) == 0) n--;
    path->taps = row + path->delay * bytes;
    path->length = n - path->delay;
}

static enum partita_status runner_filter_create(struct runner *r, const struct taps *taps)
{
    const size_t bytes = partita_type_size(taps->type);
    if (!taps->paths) return partita_filter_create(r->layout.plan, taps->data, &r->filter);
    struct partita_path *paths = calloc(taps->n_paths, sizeof *paths);
    if (!paths) return PARTITA_ERR_NOMEM;
    for (size_t i = 0; i < taps->n_paths; i++) {
        paths[i] =
            (struct partita_path){.out = taps->paths[i].out,
                                  .in = taps->paths[i].in,
                                  .length = taps->length,
                                  .taps = (const char *)taps->data + i * taps->length * bytes};
        trim_zeros(&paths[i], bytes);
    }
    const struct partita_taps sparse = {.paths = paths, .path_count = taps->n_paths};
    const enum partita_status status =
        partita_filter_create_from(r->layout.plan, &sparse, &r->filter);
    free(paths);
    return status;
}

enum { TARGET_USES = 16 };

static enum partita_status runner_plan_create(struct runner *r, const struct runner_request *q)
{
    struct partita_problem problem = runner_problem(r, q);
    char engine[ENGINE_NAME_SIZE];
    struct partita_options options = {
        .device = q->settings->device,
        .engine = engine_name(q->settings->engine, engine),
        .threads = (int)r->plan_threads,
        .sample_rate = r->layout.segment ? 0 : q->rate,
        .directions = PARTITA_FORWARD,
        .error_reach = (size_t)q->settings->error_reach,
        // Segments share a filter and workspaces. Their number is not given, so that wisdom serves
        // files of all lengths.
        .filter_uses = r->layout.segment && q->frames > r->layout.segment ? TARGET_USES : 0,
        .wisdom = q->wisdom,
        .allocator = memory_allocator(),
        .log = {option_words_log, &r->log},
    };
    return partita_plan_create(&problem, &options, &r->layout.plan);
}

static size_t x_bytes(const struct runner *r)
{
    return r->in_channels * (r->history + r->layout.segment) * r->bytes;
}

static size_t y_bytes(const struct runner *r)
{
    return r->out_channels * r->layout.results * r->bytes;
}

// Long files: each segment is filtered by one thread (or a few), which never waits for other
// threads within a segment. The number of segments in flight is limited by memory; a workspace is
// about as large as the buffers of its segment.
static void choose_workers(struct runner *r, const struct runner_request *q)
{
    static const size_t MAX_BYTES = (size_t)96 << 20;
    const size_t threads = r->plan_threads;
    const char *device = q->settings->device;
    if (q->is_pipe || q->frames / r->layout.segment < threads) return;
    if (device && strcmp(device, "cpu") != 0) return;
    const size_t max_in_flight = MAX_BYTES / (2 * (x_bytes(r) + y_bytes(r)));
    size_t workers = threads < SEGMENTS_MAX_WORKERS ? threads : SEGMENTS_MAX_WORKERS;
    if (max_in_flight < 3) return; // the threads share a segment
    if (workers + 2 > max_in_flight) workers = max_in_flight - 2;
    while (threads % workers) workers--; // each worker gets the same number of threads
    r->layout.n_workers = workers;
    r->plan_threads = threads / workers;
}

static bool runner_allocate(struct runner *r)
{
    r->segments = (struct segments){.plan = r->layout.plan,
                                    .filter = r->filter,
                                    .x_bytes = x_bytes(r),
                                    .y_bytes = y_bytes(r),
                                    .n_kept = r->layout.kept,
                                    .max_workers = r->layout.n_workers};
    r->x = calloc(r->in_channels, sizeof *r->x);
    r->y = calloc(r->out_channels, sizeof *r->y);
    return r->x && r->y && (!r->layout.segment || segments_open(&r->segments));
}

static bool wants_segments(const struct runner_request *q)
{
    const struct settings *s = q->settings;
    if (options_sharded_by(s)) return true;
    const bool long_file =
        q->frames != SIZE_UNKNOWN && q->frames > MAX_STREAMED_FRAMES && !q->is_pipe;
    // One thread or process has the result of several.
    const bool one_of_many = !q->is_pipe && (s->threads_given || s->launched);
    return !s->block && (s->threads > 1 || one_of_many || long_file);
}

bool runner_open(struct runner **ret_runner, const struct runner_request *q, struct fault *fault)
{
    struct runner *r = calloc(1, sizeof *r);
    if (!r) return fault_set(fault, "out of memory");
    r->command = q->settings->command;
    r->in_channels = q->taps->in_channels;
    r->out_channels = q->taps->out_channels;
    r->bytes = partita_type_size(q->signal);
    r->up = (size_t)q->settings->up;
    r->stride = (size_t)q->settings->stride;
    r->history = (q->taps->length - 1 + r->up - 1) / r->up;
    r->plan_threads = (size_t)q->settings->threads;
    if (wants_segments(q)) {
        r->layout.segment = choose_segment(r, q->frames, r->stride); // a multiple of the stride
        r->layout.results = r->layout.segment / r->stride * r->up;
        choose_workers(r, q);
        r->layout.kept = q->rows || r->out_channels == 1 ? 3 : 0;
    }
    enum partita_status status = runner_plan_create(r, q);
    if (!status) status = runner_filter_create(r, q->taps);
    if (!status && !r->layout.segment)
        status = partita_stream_open(r->layout.plan, r->filter, &r->stream);
    if (!status && !runner_allocate(r)) status = PARTITA_ERR_NOMEM;
    if (status) {
        option_words_of_status(fault, r->command, status, &r->log);
        runner_close(r);
        const struct fault said = *fault;
        if (engine_needs_bounds(said.text)) // it cannot filter a stream
            fault_set(fault, "%s; %s--threads 2 filters in segments, which are bounded", said.text,
                      q->settings->block ? "leave out --block: " : "");
        return option_words(q->settings->command, fault);
    }
    r->layout.latency = r->stream ? partita_stream_latency(r->stream) : 0;
    r->to_drop = r->layout.latency * r->up / r->stride;
    *ret_runner = r;
    return true;
}

void runner_close(struct runner *runner)
{
    if (!runner) return;
    segments_close(&runner->segments);
    partita_stream_close(runner->stream);
    partita_filter_destroy(runner->filter);
    partita_plan_destroy(runner->layout.plan);
    free(runner->x);
    free(runner->y);
    free(runner);
}

static size_t feed_stream(struct runner *r, char *y, const char *x, size_t n)
{
    size_t made = partita_stream_output_frames(r->stream, n);
    for (size_t c = 0; c < r->out_channels; c++) r->y[c] = y + c * r->bytes;
    for (size_t c = 0; x && c < r->in_channels; c++) r->x[c] = x + c * r->bytes;
    partita_stream_process_strided(r->stream, r->y, r->out_channels, x ? r->x : NULL,
                                   x ? r->in_channels : 0, n);
    size_t drop = r->to_drop < made ? r->to_drop : made;
    r->to_drop -= drop;
    if (drop)
        memmove(y, y + drop * r->out_channels * r->bytes,
                (made - drop) * r->out_channels * r->bytes);
    return made - drop;
}

// Where the next frames of a channel are stored.
static char *input_row(const struct runner *r, size_t channel)
{
    char *input = segments_next_input(&r->segments);
    return input + (channel * (r->history + r->layout.segment) + r->history + r->filled) * r->bytes;
}

void *runner_input(const struct runner *r, size_t *ret_n)
{
    *ret_n = r->layout.segment - r->filled;
    return r->layout.n_workers && r->in_channels == 1 ? input_row(r, 0) : NULL;
}

static void append_input(struct runner *r, const char *x, size_t n)
{
    const struct channel_rows rows = {r->in_channels, r->bytes, r->history + r->layout.segment};
    char *first = input_row(r, 0);
    // x is `first` if the caller stored the frames there (runner_input).
    if (x && x != first) frames_deinterleave(first, x, &rows, n);
    for (size_t c = 0; !x && c < r->in_channels; c++) memset(input_row(r, c), 0, n * r->bytes);
    r->filled += n;
}

// The last frames of the previous segment are the history of the next.
static void begin_segment(struct runner *r, const char *previous)
{
    char *next = segments_next_input(&r->segments);
    for (size_t c = 0; c < r->in_channels; c++) {
        const size_t row = c * (r->history + r->layout.segment) * r->bytes;
        memmove(next + row, previous + row + r->layout.segment * r->bytes, r->history * r->bytes);
    }
    r->filled = 0;
}

// The results of the oldest segment in flight.
static bool take_segment(struct runner *r, void **y, size_t *ret_n, struct fault *fault)
{
    void *results;
    if (!option_words_of_status(fault, r->command, segments_take(&r->segments, &results), &r->log))
        return false;
    *ret_n = r->layout.results;
    const struct channel_rows rows = {r->out_channels, r->bytes, *ret_n};
    if (r->layout.kept) *y = results;
    else frames_interleave(*y, results, &rows, *ret_n);
    return true;
}

// At most one segment is complete after n frames.
static bool feed_segments(struct runner *r, void **y, size_t *ret_n, const char *x, size_t n,
                          struct fault *fault)
{
    *ret_n = 0;
    while (n) {
        size_t m = r->layout.segment - r->filled < n ? r->layout.segment - r->filled : n;
        append_input(r, x, m);
        if (x) x += m * r->in_channels * r->bytes;
        n -= m;
        if (r->filled < r->layout.segment) continue;
        const char *submitted = segments_next_input(&r->segments);
        segments_submit(&r->segments);
        if (!segments_next_input(&r->segments) && !take_segment(r, y, ret_n, fault)) return false;
        begin_segment(r, submitted);
    }
    return true;
}

bool runner_feed(struct runner *runner, void **y, size_t *ret_n, const void *x, size_t n,
                 struct fault *fault)
{
    if (!runner->stream) return feed_segments(runner, y, ret_n, x, n, fault);
    *ret_n = feed_stream(runner, *y, x, n);
    return true;
}

bool runner_drain(struct runner *runner, void **y, size_t *ret_n, struct fault *fault)
{
    *ret_n = 0;
    return !runner_pending(runner) || take_segment(runner, y, ret_n, fault);
}

size_t runner_pending(const struct runner *runner)
{
    return runner->stream ? 0 : segments_in_flight(&runner->segments) * runner->layout.results;
}

size_t runner_capacity(const struct runner *runner, size_t n)
{
    if (runner->stream) return n * runner->up / runner->stride + 1;
    return runner->layout.results;
}

const struct runner_layout *runner_layout(const struct runner *runner)
{
    return &runner->layout;
}

struct partita_stream_stats runner_calls(const struct runner *runner)
{
    struct partita_stream_stats calls = {0};
    if (runner->stream)
        partita_stream_stats(runner->stream,
                             &calls); // fails and leaves `calls` unchanged if nothing was timed
    return calls;
}
