// SPDX-License-Identifier: MIT
// See runner.h. Pieces overlap by length - 1 frames (overlap-save by hand), so memory does not grow
// with the signal.
#include "runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/engine_name.h"
#include "pieces.h"

struct runner {
    struct partita_plan *plan;
    struct partita_filter *filter;
    struct partita_stream *stream;
    size_t in_channels, out_channels, bytes, stride, latency;
    size_t to_drop; // outputs of the stream still to be thrown away
    const void **x; // channel pointers
    void **y;
    // Large pieces: [in_channels][history + piece] and [out_channels][piece / stride].
    size_t history, piece, filled, n_workers, plan_threads;
    bool is_live;
    struct pieces pieces;
    struct fault detail; // the library's last line
};

// Files of more frames are filtered piece by piece: what --range and --resume do, so that these
// give the same bits.
static const uint64_t MANY_FRAMES = (uint64_t)1 << 24;

static void keep_line(void *user, const char *text)
{
    fault_set(user, "%s", text);
}

static bool failed(const struct runner *r, enum partita_status status, struct fault *fault)
{
    const char *detail = r->detail.text;
    return fault_set(fault, "%s%s%s", partita_status_string(status), *detail ? ": " : "", detail);
}

// At least four filter lengths, so that overlap costs little, else 2^20 samples, a few MiB; a short
// signal with its tail, and the silence that brings its start to a multiple of the stride, is one
// piece.
static size_t choose_piece(const struct taps *taps, uint64_t frames, size_t stride)
{
    size_t channels =
        taps->in_channels > taps->out_channels ? taps->in_channels : taps->out_channels;
    size_t piece = ((size_t)1 << 20) / channels;
    if (piece < 4 * taps->length) piece = 4 * taps->length;
    size_t margin = taps->length + stride - 1;
    if (piece > margin && frames < piece - margin) piece = (size_t)frames + margin;
    return (piece + stride - 1) / stride * stride;
}

// Through a pipe, a filter adds no more delay than its own length, unless that is short. From a
// file, blocks of more than a few filter lengths would cost memory and save next to nothing.
static size_t allowed_latency(const struct runner *r, const struct settings *s,
                              const struct taps *taps)
{
    if (s->block) return (size_t)s->block;
    size_t least = r->is_live ? 8192 : 65536, wanted = r->is_live ? taps->length : 4 * taps->length;
    return wanted > least ? wanted : least;
}

static struct partita_problem describe(const struct runner *r, const struct settings *s,
                                       enum partita_type signal, const struct taps *taps)
{
    struct partita_problem problem = {
        .signal = signal,
        .taps = taps->type,
        .op = s->command == COMMAND_CORRELATE ? PARTITA_CORRELATE : PARTITA_CONVOLVE,
        .in_channels = taps->in_channels,
        .out_channels = taps->out_channels,
        .groups = taps->groups,
        .kernel = {taps->length},
        .size = {r->piece ? r->history + r->piece : PARTITA_UNBOUNDED},
        .stride = {r->stride},
    };
    if (r->piece) return problem;
    problem.block = (size_t)s->block;
    problem.latency = allowed_latency(r, s, taps);
    return problem;
}

static enum partita_status make_plan(struct runner *r, const struct settings *s,
                                     enum partita_type signal, double rate, const struct taps *taps,
                                     struct partita_wisdom *wisdom)
{
    struct partita_problem problem = describe(r, s, signal, taps);
    char engine[ENGINE_NAME_SIZE];
    struct partita_options options = {
        .device = s->device,
        .engine = engine_name(s->engine, engine),
        .threads = (int)r->plan_threads,
        .sample_rate = rate,
        .directions = PARTITA_FORWARD,
        .wisdom = wisdom,
        .log = {keep_line, &r->detail},
    };
    return partita_plan_create(&problem, &options, &r->plan);
}

static size_t x_bytes(const struct runner *r)
{
    return r->in_channels * (r->history + r->piece) * r->bytes;
}

static size_t y_bytes(const struct runner *r)
{
    return r->out_channels * (r->piece / r->stride) * r->bytes;
}

// Many pieces go to a thread each: nobody waits for others within a piece, nor spins. Memory bounds
// how many at once; a workspace is about as large as what it is for.
static void share_out(struct runner *r, size_t threads, uint64_t frames, const char *device)
{
    if (r->is_live || frames / r->piece < threads || (device && strcmp(device, "cpu") != 0)) return;
    static const size_t MEMORY = (size_t)96 << 20;
    const size_t most = MEMORY / (2 * (x_bytes(r) + y_bytes(r)));
    size_t workers = threads < PIECES_WORKERS ? threads : PIECES_WORKERS;
    if (workers + 2 > most) workers = most > 2 ? most - 2 : 0;
    while (workers > 1 && threads % workers)
        workers--; // all threads work, the same number on each piece
    if (workers < 2) return;
    r->n_workers = workers;
    r->plan_threads = threads / workers;
}

static bool allocate(struct runner *r)
{
    r->x = calloc(r->in_channels, sizeof *r->x);
    r->y = calloc(r->out_channels, sizeof *r->y);
    return r->x && r->y &&
           (!r->piece ||
            pieces_open(&r->pieces, r->plan, r->filter, x_bytes(r), y_bytes(r), r->n_workers));
}

bool runner_open(struct runner **ret_runner, const struct settings *settings,
                 enum partita_type signal, bool is_live, uint64_t frames, double rate,
                 const struct taps *taps, struct partita_wisdom *wisdom, struct fault *fault)
{
    struct runner *r = calloc(1, sizeof *r);
    if (!r) return fault_set(fault, "out of memory");
    r->in_channels = taps->in_channels;
    r->out_channels = taps->out_channels;
    r->bytes = partita_type_size(signal);
    r->stride = (size_t)settings->stride;
    r->is_live = is_live;
    const bool many = frames != SIZE_UNKNOWN && frames > MANY_FRAMES && !is_live;
    if (settings->range || settings->resume ||
        (!settings->block && (settings->threads > 1 || many))) {
        r->history = taps->length - 1;
        r->piece = choose_piece(taps, frames, r->stride);
    }
    r->plan_threads = (size_t)settings->threads;
    if (r->piece) share_out(r, r->plan_threads, frames, settings->device);
    enum partita_status status = make_plan(r, settings, signal, rate, taps, wisdom);
    if (!status) status = partita_filter_create(r->plan, taps->data, &r->filter);
    if (!status && !r->piece) status = partita_stream_open(r->plan, r->filter, &r->stream);
    if (!status && !allocate(r)) status = PARTITA_ERR_NOMEM;
    if (status) {
        failed(r, status, fault);
        runner_close(r);
        return false;
    }
    r->latency = r->stream ? partita_stream_latency(r->stream) : 0;
    r->to_drop = r->latency / r->stride;
    *ret_runner = r;
    return true;
}

void runner_close(struct runner *runner)
{
    if (!runner) return;
    pieces_close(&runner->pieces);
    partita_stream_close(runner->stream);
    partita_filter_destroy(runner->filter);
    partita_plan_destroy(runner->plan);
    free(runner->x);
    free(runner->y);
    free(runner);
}

static size_t feed_stream(struct runner *r, char *y, const char *x, size_t n)
{
    size_t made = partita_stream_output_frames(r->stream, n);
    for (size_t c = 0; c < r->out_channels; c++) r->y[c] = y + c * r->bytes;
    for (size_t c = 0; x && c < r->in_channels; c++) r->x[c] = x + c * r->bytes;
    if (x)
        partita_stream_process_strided(r->stream, r->y, r->out_channels, r->x, r->in_channels, n);
    else partita_stream_drain(r->stream, r->y, r->out_channels, n);
    size_t drop = r->to_drop < made ? r->to_drop : made;
    r->to_drop -= drop;
    if (drop)
        memmove(y, y + drop * r->out_channels * r->bytes,
                (made - drop) * r->out_channels * r->bytes);
    return made - drop;
}

// Copies n samples from one spacing to another, both in samples.
static void respace(char *y, size_t y_step, const char *x, size_t x_step, size_t n, size_t bytes)
{
    if (x_step == 1 && y_step == 1) {
        memcpy(y, x, n * bytes);
    } else if (bytes == 4) {
        for (size_t i = 0; i < n; i++) memcpy(y + 4 * i * y_step, x + 4 * i * x_step, 4);
    } else if (bytes == 8) {
        for (size_t i = 0; i < n; i++) memcpy(y + 8 * i * y_step, x + 8 * i * x_step, 8);
    } else {
        for (size_t i = 0; i < n; i++) memcpy(y + 16 * i * y_step, x + 16 * i * x_step, 16);
    }
}

static void gather(struct runner *r, const char *x, size_t n)
{
    char *gathered = pieces_room(&r->pieces);
    for (size_t c = 0; c < r->in_channels; c++) {
        char *row = gathered + (c * (r->history + r->piece) + r->history + r->filled) * r->bytes;
        if (x) respace(row, 1, x + c * r->bytes, r->in_channels, n, r->bytes);
        else memset(row, 0, n * r->bytes);
    }
    r->filled += n;
}

// The last frames of the piece before are the history of the next.
static void begin_piece(struct runner *r, const char *before)
{
    char *next = pieces_room(&r->pieces);
    for (size_t c = 0; c < r->in_channels; c++) {
        const size_t row = c * (r->history + r->piece) * r->bytes;
        memmove(next + row, before + row + r->piece * r->bytes, r->history * r->bytes);
    }
    r->filled = 0;
}

// Writes the results of the oldest piece in work.
static bool take_piece(struct runner *r, char *y, size_t *ret_n, struct fault *fault)
{
    const void *results;
    const enum partita_status status = pieces_take(&r->pieces, &results);
    if (status) return failed(r, status, fault);
    *ret_n = r->piece / r->stride;
    for (size_t c = 0; c < r->out_channels; c++)
        respace(y + c * r->bytes, r->out_channels, (const char *)results + c * *ret_n * r->bytes, 1,
                *ret_n, r->bytes);
    return true;
}

static bool feed_pieces(struct runner *r, char *y, size_t *ret_n, const char *x, size_t n,
                        struct fault *fault)
{
    *ret_n = 0;
    while (n) {
        size_t m = r->piece - r->filled < n ? r->piece - r->filled : n, made = 0;
        gather(r, x, m);
        if (x) x += m * r->in_channels * r->bytes;
        n -= m;
        if (r->filled < r->piece) continue;
        const char *sent = pieces_room(&r->pieces);
        pieces_send(&r->pieces);
        if (!pieces_room(&r->pieces) &&
            !take_piece(r, y + *ret_n * r->out_channels * r->bytes, &made, fault))
            return false;
        *ret_n += made;
        begin_piece(r, sent);
    }
    return true;
}

bool runner_feed(struct runner *runner, void *y, size_t *ret_n, const void *x, size_t n,
                 struct fault *fault)
{
    if (!runner->stream) return feed_pieces(runner, y, ret_n, x, n, fault);
    *ret_n = feed_stream(runner, y, x, n);
    return true;
}

bool runner_finish(struct runner *runner, void *y, size_t *ret_n, struct fault *fault)
{
    *ret_n = 0;
    return !runner_owed(runner) || take_piece(runner, y, ret_n, fault);
}

size_t runner_owed(const struct runner *runner)
{
    return runner->stream ? 0 : pieces_in_work(&runner->pieces) * (runner->piece / runner->stride);
}

size_t runner_capacity(const struct runner *runner, size_t n)
{
    if (runner->stream) return n / runner->stride + 1;
    return (n / runner->piece + 1) * (runner->piece / runner->stride);
}

size_t runner_appetite(const struct runner *runner)
{
    return runner->stream ? SIZE_MAX : runner->piece;
}

size_t runner_piece(const struct runner *runner)
{
    return runner->piece;
}

size_t runner_latency(const struct runner *runner)
{
    return runner->latency;
}

const struct partita_plan *runner_plan(const struct runner *runner)
{
    return runner->plan;
}

struct partita_stream_stats runner_calls(const struct runner *runner)
{
    struct partita_stream_stats calls = {0};
    if (runner->stream)
        partita_stream_stats(runner->stream, &calls); // refuses, untouched, when nothing was timed
    return calls;
}
