// SPDX-License-Identifier: MIT
// The loop of convolve and correlate: read, filter, write. Only the wanted range of the result is
// written: input that only earlier results need is skipped, results before the range are dropped,
// and silence at the end produces the tail.
#include "pass.h"

#include <string.h>
#include <unistd.h>

#include "../../lib/base/clock.h"
#include "base/memory.h"
#include "base/sample_type.h"
#include "cli/report.h"
#include "io/bytes/temp.h"
#include "io/formats/sigmf.h"

static const size_t CHUNK_FRAMES = 16384, CHUNK_SAMPLES = (size_t)1 << 18;
static const size_t WRITE_SAMPLES = (size_t)1 << 16; // interleaved at once

// The next frames of the input; preloaded ones come first.
static bool pass_fetch(struct pass *p, void *x, size_t n, size_t *ret_n, struct fault *fault)
{
    size_t left = p->n_preloaded - p->preloaded_at,
           frame_bytes = p->taps->in_channels * partita_type_size(p->type);
    if (!left) return audio_read(p->reader, p->type, x, n, ret_n, fault);
    *ret_n = left < n ? left : n;
    memcpy(x, (char *)p->preloaded + p->preloaded_at * frame_bytes, *ret_n * frame_bytes);
    p->preloaded_at += *ret_n;
    return true;
}

bool pass_preload(struct pass *pass, size_t n, size_t *ret_n, struct fault *fault)
{
    size_t frame_bytes = pass->taps->in_channels * partita_type_size(pass->type), got = 1;
    pass->preloaded = memory_allocate(n * frame_bytes);
    if (!pass->preloaded) return memory_fault(fault, "%zu frames of the input", n);
    while (pass->n_preloaded < n && got) {
        char *x = (char *)pass->preloaded + pass->n_preloaded * frame_bytes;
        if (!audio_read(pass->reader, pass->type, x, n - pass->n_preloaded, &got, fault))
            return false;
        pass->n_preloaded += got;
    }
    *ret_n = pass->n_preloaded;
    return true;
}

static size_t choose_chunk(const struct pass *p)
{
    size_t channels =
        p->taps->in_channels > p->taps->out_channels ? p->taps->in_channels : p->taps->out_channels;
    size_t chunk =
        CHUNK_SAMPLES / channels < CHUNK_FRAMES ? CHUNK_SAMPLES / channels : CHUNK_FRAMES;
    const size_t up = (size_t)p->settings->up, stride = (size_t)p->settings->stride;
    if (up > stride) chunk = chunk > up / stride ? chunk * stride / up : 1;
    if (p->settings->block && (size_t)p->settings->block < chunk)
        chunk = (size_t)p->settings->block;
    const size_t segment = runner_layout(p->runner)->segment;
    if (segment && segment < chunk) chunk = segment;
    return chunk ? chunk : 1; // a frame of more channels than a chunk has samples
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

// Position of the first wanted result among the input frames and the zeros of --up after each.
static int64_t wanted_position(const struct pass *p)
{
    return p->range.begin + (int64_t)(p->taps->lead + p->taps->zeros);
}

// Segments lie on one grid, wherever the range begins, so that a sample's bits do not depend on the
// range. The grid contains input frame 0, or with a stride the last frame before it from which the
// stride hits the range; with --up the taps were delayed so that it does from frame 0 (taps_align).
static int64_t grid_origin(const struct pass *p)
{
    int64_t stride = p->settings->stride, wanted = wanted_position(p);
    int64_t phase = wanted - floor_div(wanted, stride) * stride;
    return phase ? phase - stride : 0;
}

// The runner starts at a segment, or with a stream at a multiple of the stride on the grid, early
// enough for the frames that the first wanted result depends on; with segments, for those that any
// result of its segment depends on. Before the signal there is silence.
static void align(struct pass *p)
{
    const int64_t up = p->settings->up, stride = p->settings->stride, origin = grid_origin(p);
    const int64_t segment = (int64_t)runner_layout(p->runner)->segment,
                  cell = segment ? segment : stride;
    const int64_t wanted = wanted_position(p), frame = floor_div(wanted, up) - origin;
    const int64_t needed = segment ? floor_div(frame, segment) * segment : frame;
    const int64_t history = ((int64_t)p->taps->length - 1 + up - 1) / up,
                  latest = frame < 0 ? floor_div(frame, cell) : 0,
                  begin = floor_div(needed - history, cell);
    p->origin = origin + cell * (begin > latest ? begin : latest);
    p->skip = (wanted - p->origin * up) / stride;
}

// The number of input frames that can change any bit of the results before `end`, a number like
// those of the range; rounded up to whole segments.
static int64_t input_before(const struct pass *p, int64_t end)
{
    int64_t segment = (int64_t)runner_layout(p->runner)->segment;
    end += wanted_position(p) - p->range.begin;
    end = -floor_div(-end, p->settings->up);
    if (segment) end = grid_origin(p) - floor_div(grid_origin(p) - end, segment) * segment;
    return end > 0 ? end : 0;
}

// The same for all wanted results. -1: all.
static int64_t input_limit(const struct pass *p)
{
    return p->range.end_counts_from_n ? -1 : input_before(p, p->range.end);
}

// A shard also reads frames of its neighbours. Of frames that are not finite it counts those that
// no shard before it has read, so that the counts of all shards add up.
static void choose_counted(struct pass *p)
{
    const struct shard *shard = p->shard;
    const struct shard_record *record = &shard->record;
    p->counted_end = INT64_MAX;
    if (!shard->active) return;
    if (record->first + record->done) p->counted_begin = input_before(p, shard->range.begin);
    if (record->end < record->total) p->counted_end = input_before(p, shard->range.end);
}

// Progress is printed in place on a terminal, and with --progress in lines of their own. Of several
// processes, whose parts are equal, the first prints it.
static bool shows_progress(const struct settings *settings)
{
    return !settings->quiet && (settings->progress > 0 || isatty(STDERR_FILENO));
}

// The share of the results of this run and of those that it continues.
static void print_progress(struct pass *p)
{
    const double t = clock_seconds(), every = p->settings->progress, spent = t - p->started;
    if (t - p->reported < (every > 0 ? every : 0.5)) return;
    p->reported = t;
    const uint64_t frames = audio_reader_info(p->reader)->frames;
    int64_t results = p->count; // that this run writes; -1: not known
    if (results < 0 && frames != SIZE_UNKNOWN)
        results = range_count(&p->range, (int64_t)frames * p->settings->up, p->settings->stride);
    const double before = (double)p->shard->record.done, count = (double)results,
                 written = (double)p->written;
    char text[80], left[32] = "";
    if (written > 0)
        snprintf(left, sizeof left, ", %.0f s left", spent * (count - written) / written);
    if (count > 0)
        snprintf(text, sizeof text, "%3.0f %%, %.1f s%s",
                 100 * (before + written) / (before + count), spent, left);
    else snprintf(text, sizeof text, "%llu frames, %.1f s", (unsigned long long)p->consumed, spent);
    if (every > 0) report_warning(p->settings, "%s", text);
    else fprintf(stderr, "\r%-40s", text);
    fflush(stderr);
}

static bool pass_emit(struct pass *p, void *made, size_t n, struct fault *fault)
{
    size_t drop = (int64_t)n < p->skip ? n : (size_t)p->skip;
    const size_t in_frame = p->rows.buffer ? 1 : p->taps->out_channels;
    const size_t bytes = in_frame * partita_type_size(p->type);
    char *y = (char *)made + drop * bytes;
    p->skip -= (int64_t)drop;
    n -= drop;
    if (p->count >= 0 && (int64_t)n > p->count - p->written) n = (size_t)(p->count - p->written);
    if (!n) return true;
    if (p->norm) window_norm_divide(p->norm, y, n);
    if (p->peaks && !peaks_add(p->peaks, y, n, fault)) return false;
    if (p->peaks && peaks_lost(p->peaks)) return fault_set(fault, "peaks depend on results before");
    const uint64_t at = (uint64_t)p->written, begin = p->first + p->done,
                   before = begin > at ? begin - at : 0, behind = p->end > at ? p->end - at : 0;
    p->written += (int64_t)n;
    if (behind < n) n = (size_t)behind;
    if (before >= n) return true;
    y += before * bytes;
    n -= before;
    p->done += n;
    p->stats->frames_out += n;
    if (p->measure) pass_stats_measure(p->stats, p->type, y, n * in_frame);
    if (!p->output.running) return pass_output_write(p, y, n, fault);
    frame_queue_push(&p->output, y, n);
    return true;
}

// A buffer for results; NULL if writing failed.
static void *result_buffer(struct pass *p)
{
    return p->output.running ? frame_queue_next_buffer(&p->output) : p->y;
}

static bool pass_feed(struct pass *p, const void *x, size_t n, struct fault *fault)
{
    size_t made;
    void *y = result_buffer(p);
    return y && (!p->norm || window_norm_feed(p->norm, x, n, fault)) &&
           runner_feed(p->runner, &y, &made, x, n, fault) && pass_emit(p, y, made, fault);
}

static bool pass_drain(struct pass *p, struct fault *fault)
{
    size_t made;
    void *y = result_buffer(p);
    return y && runner_drain(p->runner, &y, &made, fault) && pass_emit(p, y, made, fault);
}

static bool feed_silence(struct pass *p, int64_t n, struct fault *fault)
{
    while (n > 0) {
        size_t m = n < (int64_t)p->chunk ? (size_t)n : p->chunk;
        if (!pass_feed(p, NULL, m, fault)) return false;
        n -= (int64_t)m;
    }
    return true;
}

// Replaces samples of the next frames from `begin` to `end`, and returns how many were replaced.
static uint64_t zero_nonfinite(const struct pass *p, void *x, size_t begin, size_t end)
{
    const size_t in_frame = p->taps->in_channels * (type_is_complex(p->type) ? 2 : 1),
                 n = (end - begin) * in_frame;
    return type_is_double(p->type) ? samples_zero_nonfinite_f64((double *)x + begin * in_frame, n)
                                   : samples_zero_nonfinite_f32((float *)x + begin * in_frame, n);
}

// The next frames that are before the input frame `frame`, n at most.
static size_t frames_before(const struct pass *p, int64_t frame, size_t n)
{
    if (frame <= p->consumed) return 0;
    return frame - p->consumed < (int64_t)n ? (size_t)(frame - p->consumed) : n;
}

static bool replace_nonfinite(struct pass *p, void *x, size_t n, struct fault *fault)
{
    bool is_float = audio_reader_info(p->reader)->encoding.kind == ENCODING_FLOAT;
    if (!is_float || p->settings->nan == NAN_PROPAGATE) return true;
    const size_t begin = frames_before(p, p->counted_begin, n),
                 end = frames_before(p, p->counted_end, n);
    const uint64_t counted = zero_nonfinite(p, x, begin, end),
                   n_bad = counted + zero_nonfinite(p, x, 0, begin) + zero_nonfinite(p, x, end, n);
    p->stats->replaced += counted;
    if (!n_bad || p->settings->nan == NAN_ZERO) return true;
    return fault_set(fault, "%s: NaN or infinite sample in frames %llu to %llu",
                     p->settings->operands[1], (unsigned long long)p->consumed,
                     (unsigned long long)p->consumed + n - 1);
}

static bool feed_input(struct pass *p, struct fault *fault)
{
    int64_t limit = input_limit(p);
    void *x = NULL;
    while (!p->peaks || !peaks_settled(p->peaks)) {
        int64_t left = limit < 0 ? INT64_MAX : limit - p->consumed;
        size_t n = left < (int64_t)p->chunk ? (size_t)(left > 0 ? left : 0) : p->chunk;
        if (!n) return true;
        if (!p->input.running) {
            // The runner's memory, which may have less space, or a buffer.
            size_t capacity;
            x = runner_input(p->runner, &capacity);
            if (x && capacity < n) n = capacity;
            if (!x) x = p->x;
        }
        if (!(p->input.running ? pass_input_next(p, &x, &n, fault)
                               : pass_fetch(p, x, n, &n, fault)))
            return false;
        if (!n) return true;
        if (!replace_nonfinite(p, x, n, fault)) return false;
        const struct tuner_frames frames = {p->type, x, n, p->taps->in_channels};
        if (p->tuner) tuner_shift(p->tuner, &frames, (uint64_t)p->consumed);
        if (!pass_feed(p, x, n, fault)) return false;
        p->consumed += (int64_t)n;
        if (p->shows_progress) print_progress(p);
    }
    return true;
}

// Input that is there but was not read would be silence in the result. So would that of a shard be,
// whose range was chosen by a header, where a compressed file ends before that says.
static bool check_consumed(const struct pass *p, struct fault *fault)
{
    if (p->shard->active && audio_shortfall(p->reader))
        return fault_set(fault, "%s", audio_shortfall(p->reader));
    const uint64_t frames = audio_reader_info(p->reader)->frames, read = (uint64_t)p->consumed;
    const int64_t limit = input_limit(p);
    if (frames == SIZE_UNKNOWN || audio_shortfall(p->reader) || audio_interrupted(p->reader) ||
        read >= frames || (limit >= 0 && p->consumed >= limit))
        return true;
    return fault_set(fault, "%s: only %llu of its %llu frames were read",
                     operand_name(p->settings, 1), (unsigned long long)read,
                     (unsigned long long)frames);
}

static bool feed_tail(struct pass *p, struct fault *fault)
{
    while (p->written < p->count && (!p->peaks || !peaks_settled(p->peaks))) {
        const bool enough = p->written + (int64_t)runner_pending(p->runner) - p->skip >= p->count;
        if (!(enough ? pass_drain(p, fault) : feed_silence(p, (int64_t)p->chunk, fault)))
            return false;
        if (p->shows_progress) print_progress(p);
    }
    return true;
}

// For files only, and not with --block, where every call is to return its own results. No thread
// reads ahead where other threads filter what is read: then this thread has time to read.
static void start_threads(struct pass *p)
{
    const int64_t limit = input_limit(p), left = limit - p->consumed;
    if (p->settings->block || p->n_preloaded || audio_reader_is_pipe(p->reader)) return;
    p->wanted = limit < 0 ? SIZE_UNKNOWN : left > 0 ? (uint64_t)left : 0;
    if (!runner_layout(p->runner)->n_workers) pass_input_begin(p);
    if (p->writer && !temp_is_special(p->settings->operands[2])) pass_output_begin(p);
}

static bool pass_transfer(struct pass *p, struct fault *fault)
{
    int64_t stride = p->settings->stride;
    if (!p->range.end_counts_from_n) p->count = range_count(&p->range, 1, stride);
    if (p->origin > 0) {
        if (!audio_skip(p->reader, (uint64_t)p->origin, fault)) return false;
        p->consumed = (int64_t)audio_position(p->reader);
    }
    start_threads(p);
    if (p->origin < 0 && !feed_silence(p, -p->origin, fault)) return false;
    if (!feed_input(p, fault) || !check_consumed(p, fault)) return false;
    p->count = range_count(&p->range, p->consumed * p->settings->up, stride);
    p->stats->frames_in = (uint64_t)p->consumed;
    p->stats->tail =
        (p->taps->length - 1 - p->taps->zeros - 2 * (p->taps->lead + p->taps->centre)) /
        (uint64_t)p->settings->up;
    return feed_tail(p, fault);
}

static bool open_norm(struct pass *p, struct fault *fault)
{
    const struct taps *taps = p->taps;
    const struct window_norm_request request = {
        .signal = p->type,
        .template_type = taps->type,
        .template = taps->data,
        .length = taps->length,
        .in_channels = taps->in_channels,
        .out_channels = taps->out_channels,
        .groups = taps->groups,
        .origin = p->origin,
        .wanted = p->range.begin + (int64_t)taps->lead,
        .stride = (size_t)p->settings->stride,
        .zero_mean = p->settings->normalised == NORMALISED_ZERO_MEAN,
    };
    return !p->settings->normalised || window_norm_open(&p->norm, &request, fault);
}

// No success without the frames. Several processes write to a file of their own.
static bool check_written(const struct pass *p, uint64_t before, struct fault *fault)
{
    if (!p->writer || p->settings->shared) return true;
    const uint64_t written = audio_written(p->writer) - before, promised = (uint64_t)p->count;
    return written == promised ||
           fault_set(fault, "%s: only %llu of %llu frames were written",
                     operand_name(p->settings, 2), (unsigned long long)written,
                     (unsigned long long)promised);
}

bool pass_check_captures(const struct pass *pass, struct fault *fault)
{
    const struct settings *s = pass->settings;
    const struct range *r = &pass->range;
    const int64_t reach = (int64_t)(pass->taps->length - 2 * pass->taps->lead) - 1;
    const struct sigmf_use use = {.begin = r->begin,
                                  .end = r->end_counts_from_n ? INT64_MAX : r->end,
                                  .reach = reach,
                                  .up = s->up,
                                  .zero = s->command == COMMAND_CORRELATE ? reach : 0};
    return sigmf_check_captures(audio_reader_recording(pass->reader), &use,
                                audio_reader_info(pass->reader)->frames, fault);
}

bool pass_takes_rows(const struct pass *pass)
{
    return !pass->measure && !pass->settings->normalised && !options_want_peaks(pass->settings);
}

bool pass_run(struct pass *pass, struct fault *fault)
{
    size_t bytes = partita_type_size(pass->type);
    const uint64_t before = pass->writer ? audio_written(pass->writer) : 0;
    pass->count = -1;
    pass->started = pass->reported = clock_seconds();
    pass->shows_progress = shows_progress(pass->settings);
    pass->chunk = choose_chunk(pass);
    align(pass);
    choose_counted(pass);
    const size_t n_kept = runner_layout(pass->runner)->kept, channels = pass->taps->out_channels;
    // Single channels that the runner keeps need no buffer, only an address that is not NULL.
    const size_t y_frames = !n_kept        ? runner_capacity(pass->runner, pass->chunk)
                            : channels > 1 ? WRITE_SAMPLES / channels + 1
                                           : 1;
    pass->x = memory_allocate(pass->chunk * pass->taps->in_channels * bytes);
    if (pass->x) pass->y = memory_allocate(y_frames * pass->taps->out_channels * bytes);
    pass->n_kept = n_kept;
    if (n_kept && channels > 1)
        pass->rows = (struct pass_rows){
            {channels, bytes, runner_layout(pass->runner)->results}, y_frames, pass->y};
    bool good = pass->y || memory_fault(fault, "%zu frames of the result", y_frames);
    good = good && open_norm(pass, fault) && pass_transfer(pass, fault);
    pass_input_end(pass);
    good = pass_output_end(pass, good, fault) && check_written(pass, before, fault);
    if (pass->reported > pass->started && !(pass->settings->progress > 0))
        fprintf(stderr, "\r%40s\r", "");
    pass->stats->seconds = clock_seconds() - pass->started;
    return good;
}

void pass_release(struct pass *pass)
{
    window_norm_close(pass->norm);
    memory_free(pass->preloaded);
    memory_free(pass->x);
    memory_free(pass->y);
}
