// SPDX-License-Identifier: MIT
// `partita channelize`: takes the channels of a table from one signal, each into an output of its
// own.
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "../../lib/base/sizes.h"
#include "base/json_values.h"
#include "base/memory.h"
#include "base/sample_type.h"
#include "channel.h"
#include "cli/commands.h"
#include "cli/option_words.h"
#include "cli/report.h"
#include "convolve/output.h"
#include "convolve/pass_stats.h"
#include "convolve/usage.h"

enum { CHUNK = 1 << 16 }; // frames that are read at once

struct job {
    struct settings settings;
    struct table table;
    struct audio_reader *in;
    struct channel_source source;
    struct channel *all, *channels; // of several processes each computes n of all
    size_t n;
    struct outcome *outcomes; // of all
    struct partita_channelizer *channelizer;
    struct partita_plan *plan; // of any filter: names the instruction set, on which bits depend
    struct sigmf recording;    // metadata of IN, in which captures have a frequency
    struct processes processes, alone; // alone: in which a process writes an output
    struct pass_stats stats;
    struct spectrum spectrum; // with --plot
    void *frames;
    struct fault log;
};

static bool succeeded(struct job *job, enum partita_status status, struct fault *fault)
{
    return option_words_of_status(fault, COMMAND_CHANNELIZE, status, &job->log);
}

static bool open_signal(struct job *job, struct fault *fault)
{
    const struct settings *s = &job->settings;
    if (!usage_open_signal(&job->in, s, fault)) return false;
    const struct audio_info *in = job->source.in = audio_reader_info(job->in);
    if (job->processes.n && audio_reader_is_pipe(job->in))
        return fault_set(fault, "mpirun: all processes read %s; use a file", operand_name(s, 1));
    if (in->channels != 1)
        return fault_set(fault, "%s: has %zu channels; one is taken, or two as I and Q with --iq",
                         operand_name(s, 1), in->channels);
    if (!(in->rate > 0))
        return fault_usage(fault,
                           "%s: its sample rate is unknown; add --rate, for example --rate 2.4M",
                           operand_name(s, 1));
    const bool wide = s->precision == PRECISION_F64 ||
                      (s->precision == PRECISION_AUTO && encoding_needs_double(in->encoding));
    job->source.type = in->encoding.is_complex ? (wide ? PARTITA_CF64 : PARTITA_CF32)
                                               : (wide ? PARTITA_F64 : PARTITA_F32);
    return options_resolve_times(&job->settings, in->rate, fault);
}

// The metadata that outputs take over. Captures without a frequency get that of --frequency, or 0,
// so that outputs tell their centres.
static bool make_metadata(struct job *job, struct fault *fault)
{
    const struct sigmf *in = audio_reader_recording(job->in);
    const double given = job->settings.frequency;
    const struct sigmf_use use = {.end = INT64_MAX / 4, .up = 1};
    if (in) job->recording = *in;
    job->recording.rate = job->source.in->rate;
    job->recording.root = in ? json_deep_copy(in->root)
                             : json_pack("{s:{s:s}, s:[{s:i}]}", "global", "core:version", "1.0.0",
                                         "captures", "core:sample_start", 0);
    json_t *captures = json_object_get(job->recording.root, "captures"), *capture;
    size_t i;
    job->source.middle = isfinite(given) ? given : NAN;
    json_array_foreach(captures, i, capture)
    {
        const json_t *stated = json_object_get(capture, "core:frequency");
        const bool known = json_is_number(stated) && !isfinite(given);
        if (known) job->source.middle = json_number_value(stated);
        else json_object_set_new(capture, "core:frequency", json_real(isfinite(given) ? given : 0));
    }
    return sigmf_check_captures(audio_reader_recording(job->in), &use, job->source.in->frames,
                                fault) &&
           sigmf_check_positions(&job->recording, fault);
}

static bool plan_channels(struct job *job, struct fault *fault)
{
    job->n = job->table.n;
    job->channels = job->all = calloc(job->n, sizeof *job->all);
    job->outcomes = calloc(job->n, sizeof *job->outcomes);
    if (!job->all || !job->outcomes) return fault_set(fault, "out of memory");
    for (size_t i = 0; i < job->n; i++) {
        struct channel *c = &job->channels[i];
        c->row = &job->table.rows[i];
        c->outcome = &job->outcomes[i];
        c->shard.resume.lock = -1;
        c->settings = job->settings;
        c->settings.operands[0] = c->row->taps;
        c->settings.files = (char **)(void *)c->settings.operands;
        c->settings.n_irs = 1;
        c->settings.quiet = job->settings.quiet || i; // notes on outputs: once
        c->settings.iq = 1;                           // of outputs
        c->settings.shared = false;                   // each is a file of one process
        if (!channel_plan(job->channels, i, &job->source, fault)) return false;
        const double rate = job->source.in->rate;
        if (fabs(c->settings.tune) + c->bandwidth / 2 <= rate / 2 || c->bandwidth >= rate) continue;
        table_fault(&job->table, c->row, COLUMN_BANDWIDTH, fault,
                    "reaches beyond the band of IN, whose other end follows there");
        report_warning(&job->settings, "%s", fault->text);
    }
    return true;
}

static bool open_channelizer(struct job *job, struct fault *fault)
{
    const struct settings *s = &job->settings;
    struct partita_channelizer_options options = {
        .signal = job->source.type,
        .n_taps = 1,
        .stride = 1,
        .sample_rate = job->source.in->rate,
        .threads = (int)s->threads,
        .log = {option_words_log, &job->log},
        .allocator = memory_allocator(),
    };
    enum { UNIT = 128, MAX_UNITS = 1 << 20 }; // of transforms
    for (size_t i = 0; i < job->n; i++) {
        const struct channel *c = &job->channels[i];
        const size_t up = (size_t)c->settings.up, stride = (size_t)c->settings.stride;
        options.n_taps = size_max(options.n_taps, ceil_div(channel_like(c)->taps.length, up));
        options.stride *= stride / size_gcd(options.stride, stride);
        if (options.stride / size_gcd(options.stride, UNIT) > MAX_UNITS)
            return table_fault(
                &job->table, c->row, COLUMN_RATE, fault,
                "with the rates before it needs blocks of %zu samples; use rates with "
                "a larger common divisor",
                options.stride);
    }
    options.block = size_round_up((size_t)s->block, options.stride);
    const size_t parts = size_max(job->processes.n, 1), part = job->processes.rank,
                 first = ceil_div(job->n * part, parts);
    job->channels = job->all + first;
    job->n = ceil_div(job->n * (part + 1), parts) - first;
    options.channels = size_max(job->n, 1);
    if (!succeeded(job, partita_channelizer_create(&options, &job->channelizer), fault))
        return false;
    for (size_t i = 0; i < job->n; i++) {
        struct channel *c = &job->channels[i], *like = &job->all[channel_like(c) - job->all];
        const struct partita_channel channel = {.taps = like->taps.data,
                                                .n_taps = like->taps.length,
                                                .taps_type = like->taps.type,
                                                .up = (size_t)c->settings.up,
                                                .stride = (size_t)c->settings.stride,
                                                .bandwidth = c->bandwidth};
        enum partita_status status = PARTITA_OK;
        if (!like->filter)
            status = partita_channel_filter_create(job->channelizer, &channel, &like->filter);
        if (!status)
            status = partita_channelizer_open(job->channelizer, like->filter, c->settings.tune,
                                              &c->slot);
        if (!succeeded(job, status, fault))
            return table_fault(&job->table, c->row, COLUMN_RATE, fault, "%s", fault->text);
        c->settings.block = (int64_t)partita_channelizer_block(job->channelizer);
    }
    const struct partita_problem any = {.signal = PARTITA_F32, .kernel = {1}, .size = {1}};
    const struct partita_options none = {.log = options.log};
    return succeeded(job, partita_plan_create(&any, &none, &job->plan), fault);
}

// Without {name} OUT is a folder, which is created.
static bool check_names(const struct job *job, struct fault *fault)
{
    const char *out = job->settings.operands[2];
    bool known;
    if (strstr(out, CHANNEL_MARK)) return true;
    container_of_name(out, &known);
    if (known)
        return fault_usage(fault,
                           "%s: names one file for %zu channels; put {name} into it, or "
                           "name a folder",
                           out, job->table.n);
    return mkdir(out, 0777) == 0 || errno == EEXIST ||
           fault_set(fault, "%s: cannot create the folder: %s", out, strerror(errno));
}

static const struct range WHOLE = {.end_counts_from_n = true};

static uint64_t count_outputs(const struct channel *c, uint64_t frames)
{
    return (uint64_t)range_count(&WHOLE, (int64_t)frames * c->settings.up, c->settings.stride);
}

// Outputs are complex floats, unless --output-format or a suffix says otherwise.
static bool open_output(struct job *job, struct channel *c, struct fault *fault)
{
    struct settings *s = &c->settings;
    const struct audio_info *in = job->source.in;
    const bool wide = type_is_double(job->source.type);
    struct audio_info as_computed = *in;
    as_computed.container = CONTAINER_RAW;
    as_computed.encoding = (struct encoding){.bytes = wide ? 8 : 4, .is_complex = true};
    as_computed.rank = 1;
    const struct taps *taps = &channel_like(c)->taps;
    const struct shard_source source = {job->in,   taps, job->source.type,
                                        job->plan, 0,    c->bandwidth};
    struct range range = WHOLE;
    const char *const inputs[] = {s->operands[1], job->table.path, c->row->taps};
    struct output_request request = {.settings = s,
                                     .in = &as_computed,
                                     .channels = 1,
                                     .type = wide ? PARTITA_CF64 : PARTITA_CF32,
                                     .frames = SIZE_UNKNOWN};
    c->shard.settings = s;
    c->shard.shared.processes = &job->alone;
    if (in->frames != SIZE_UNKNOWN) request.frames = count_outputs(c, in->frames);
    c->end = request.frames;
    if (!shard_begin(&c->shard, inputs, c->row->taps ? 3 : 2, fault) ||
        !output_choose(&c->output, &request, fault) ||
        !shard_open(&c->shard, &source, &range, &c->output.frames, fault))
        return false;
    const struct shard_record *record = &c->shard.record;
    if (c->shard.active) {
        c->next = record->first + record->done;
        c->end = record->end;
    }
    c->origin = (struct sigmf_origin){.sigmf = &job->recording,
                                      .up = s->up,
                                      .shift = llround(taps_delay(taps)),
                                      .stride = s->stride,
                                      .tune = s->tune,
                                      .first = record->first,
                                      .total = record->total};
    c->output.origin = &c->origin;
    c->output.first = record->first;
    c->output.certain = request.frames != SIZE_UNKNOWN;
    return shard_create(&c->shard, &c->out, &c->output, fault);
}

static bool open_outputs(struct job *job, struct fault *fault)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    if (!check_names(job, fault)) return false;
    for (size_t i = 0; i < job->table.n; i++)
        if (!channel_name_output(&job->all[i], fault)) return false;
    for (size_t i = 0; i < job->n; i++) {
        struct channel *c = &job->channels[i];
        if (!open_output(job, c, fault))
            return table_fault(&job->table, c->row, COLUMN_NAME, fault, "%s", fault->text);
    }
    return true;
}

// The other channels go on.
static void give_up(struct channel *c)
{
    audio_discard(c->out);
    c->out = NULL;
    c->outcome->failed = true;
}

// Writes the results of a block that was completed, the number of which is `block`.
static void write_block(struct job *job, uint64_t block)
{
    const enum partita_type type = type_is_double(job->source.type) ? PARTITA_CF64 : PARTITA_CF32;
    for (size_t i = 0; i < job->n; i++) {
        struct channel *c = &job->channels[i];
        size_t n;
        const char *y = partita_channelizer_output(job->channelizer, c->slot, &n);
        const uint64_t first = block * n, end = c->end < first + n ? c->end : first + n;
        if (!y || c->outcome->failed || c->next < first || c->next >= end) continue;
        y += (c->next - first) * partita_type_size(type);
        if (!shard_write(&c->shard, c->out, type, y, (size_t)(end - c->next), &c->outcome->fault))
            give_up(c);
        c->next = end;
    }
}

// Feeds n frames; x NULL: silence.
static void feed(struct job *job, const char *x, size_t n)
{
    const size_t bytes = partita_type_size(job->source.type);
    while (n) {
        const size_t used = partita_channelizer_process(job->channelizer, x, n);
        if (x) x += used * bytes;
        n -= used;
        const uint64_t position = partita_channelizer_position(job->channelizer),
                       block = partita_channelizer_block(job->channelizer);
        if (position % block == 0) write_block(job, position / block - 1);
    }
}

static bool replace_nonfinite(struct job *job, size_t n, uint64_t at, struct fault *fault)
{
    const enum partita_type type = job->source.type;
    const size_t scalars = type_is_complex(type) ? 2 * n : n;
    if (job->settings.nan == NAN_PROPAGATE || job->source.in->encoding.kind != ENCODING_FLOAT)
        return true;
    const uint64_t bad = type_is_double(type) ? samples_zero_nonfinite_f64(job->frames, scalars)
                                              : samples_zero_nonfinite_f32(job->frames, scalars);
    job->stats.replaced += bad;
    return !bad || job->settings.nan == NAN_ZERO ||
           fault_set(fault,
                     "%s: NaN or infinite sample in frames %llu to %llu; --nan zero reads it as 0",
                     operand_name(&job->settings, 1), (unsigned long long)at,
                     (unsigned long long)(at + n - 1));
}

// The number of the first block that a channel is waiting for; UINT64_MAX: none is.
static uint64_t first_block(const struct job *job)
{
    const uint64_t block = partita_channelizer_block(job->channelizer);
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < job->n; i++) {
        const struct channel *c = &job->channels[i];
        const uint64_t each = block * (uint64_t)c->settings.up / (uint64_t)c->settings.stride;
        if (!c->outcome->failed && !c->shard.complete && c->next < c->end && c->next / each < first)
            first = c->next / each;
    }
    return first;
}

// Skips all of IN but the overlap before that block.
static bool skip_to_start(struct job *job, struct fault *fault)
{
    const uint64_t block = partita_channelizer_block(job->channelizer), first = first_block(job),
                   before = ceil_div(partita_channelizer_overlap(job->channelizer), block);
    if (first == UINT64_MAX || first <= before) return true;
    const uint64_t start = (first - before) * block;
    return succeeded(job, partita_channelizer_reset(job->channelizer, start), fault) &&
           audio_skip(job->in, start, fault);
}

static bool run_pass(struct job *job, struct fault *fault)
{
    job->frames = memory_allocate(CHUNK * partita_type_size(job->source.type));
    if (!job->frames) return memory_fault(fault, "%d frames of IN", CHUNK);
    if (!skip_to_start(job, fault)) return false;
    size_t n = 1;
    while (n && first_block(job) < UINT64_MAX) {
        const uint64_t at = audio_position(job->in);
        if (!audio_read(job->in, job->source.type, job->frames, CHUNK, &n, fault) ||
            !replace_nonfinite(job, n, at, fault) ||
            (job->settings.plot && n &&
             !spectrum_add(&job->spectrum, job->source.type, job->frames, n, fault)))
            return false;
        feed(job, job->frames, n);
    }
    job->stats.frames_in = audio_position(job->in);
    for (size_t i = 0; !n && i < job->n; i++) // of a pipe the length is now known
        if (!job->channels[i].shard.active)
            job->channels[i].end = count_outputs(&job->channels[i], job->stats.frames_in);
    const size_t block = partita_channelizer_block(job->channelizer);
    if (first_block(job) < UINT64_MAX) feed(job, NULL, block - job->stats.frames_in % block);
    return !job->n || shard_check_input(&job->channels[0].shard, job->in, fault);
}

// Of several processes the first gets what became of all channels.
static bool finish_outputs(struct job *job, struct fault *fault)
{
    struct outcome *computed = job->outcomes + (job->channels - job->all), *all = NULL;
    for (size_t i = 0; i < job->n; i++) {
        struct channel *c = &job->channels[i];
        struct audio_writer *out = c->out;
        c->outcome->rate = c->output.rate;
        c->outcome->frames = c->next - c->shard.record.first;
        if (c->outcome->failed) continue;
        c->out = NULL;
        if (!shard_finish(&c->shard, out, &c->outcome->written, &c->outcome->fault)) give_up(c);
    }
    if (job->processes.n && !processes_gather(&job->processes, computed, job->n, sizeof *computed,
                                              (void **)&all, &job->n, fault))
        return false;
    if (all) memcpy(job->outcomes, all, job->n * sizeof *all);
    job->channels = job->all;
    free(all);
    return true;
}

static void print_json(const struct job *job)
{
    const struct pass_stats *stats = &job->stats;
    json_t *report = json_report("partita-channelize/1", command_rows[COMMAND_CHANNELIZE].name),
           *rows = json_array();
    for (size_t i = 0; i < job->n; i++) {
        const struct channel *c = &job->channels[i];
        json_array_append_new(
            rows,
            json_pack("{s:o, s:o, s:f, s:o, s:o, s:I, s:I, s:I, s:b}", "name",
                      json_text(c->row->name), "out", json_text(c->path), "centre",
                      c->settings.tune, "frequency",
                      json_finite(job->source.middle + c->settings.tune), "rate",
                      json_rate(c->outcome->rate), "taps", (json_int_t)channel_like(c)->taps.length,
                      "frames", (json_int_t)c->outcome->frames, "clipped",
                      (json_int_t)c->outcome->written.clipped, "complete", !c->outcome->failed));
    }
    json_object_set_new(report, "in", json_text(job->settings.operands[1]));
    json_object_set_new(report, "frames_in", json_integer((json_int_t)stats->frames_in));
    json_object_set_new(report, "not_finite_read", json_integer((json_int_t)stats->replaced));
    json_object_set_new(report, "truncated", json_boolean(stats->truncated));
    json_object_set_new(report, "interrupted", json_boolean(stats->interrupted));
    json_object_set_new(report, "channels", rows);
    json_print(report, stdout);
}

static int conclude(struct job *job)
{
    const struct settings *s = &job->settings;
    struct pass_stats *stats = &job->stats;
    struct fault fault;
    size_t n_failed = 0;
    for (size_t i = 0; i < job->n; i++) {
        n_failed += job->outcomes[i].failed;
        stats->written.clipped += job->outcomes[i].written.clipped;
        stats->written.nonfinite += job->outcomes[i].written.nonfinite;
    }
    stats->truncated = report_input(s, job->in);
    stats->interrupted = audio_interrupted(job->in);
    pass_stats_warn(stats, s, job->source.in->frames);
    if (stats->written.clipped)
        report_warning(s,
                       "%llu samples are beyond full scale and were clipped; use "
                       "--output-format cf32",
                       (unsigned long long)stats->written.clipped);
    for (size_t i = 0; i < job->n; i++) {
        const struct channel *c = &job->channels[i];
        if (!c->outcome->failed) continue;
        table_fault(&job->table, c->row, COLUMN_NAME, &fault, "%s; %zu of %zu outputs are complete",
                    c->outcome->fault.text, job->n - n_failed, job->n);
        report_fault(COMMAND_CHANNELIZE, &fault, EXIT_FAILED);
    }
    const bool degraded =
        stats->truncated || stats->interrupted || (s->strict && stats->written.clipped);
    const int status = n_failed ? EXIT_FAILED : degraded ? EXIT_DEGRADED : EXIT_DONE;
    if (s->json) print_json(job);
    return status;
}

static void release(struct job *job)
{
    for (size_t i = 0; job->all && i < job->table.n; i++) {
        struct channel *c = &job->all[i];
        audio_discard(c->out);
        shard_release(&c->shard);
        partita_channel_filter_destroy(c->filter);
        taps_release(&c->taps);
        free(c->path);
    }
    free(job->all);
    free(job->outcomes);
    partita_channelizer_destroy(job->channelizer);
    partita_plan_destroy(job->plan);
    memory_free(job->frames);
    json_decref(job->recording.root);
    audio_reader_close(job->in);
    table_release(&job->table);
}

int channelize_main(const struct settings *settings, struct fault *fault)
{
    struct job job = {.settings = *settings};
    struct processes *processes = &job.processes;
    bool good = usage_begin(&job.settings, processes, fault);
    if (processes->rank) job.settings.plot = NULL;
    signal(SIGPIPE, SIG_IGN); // a reader that ends concerns its channel only
    job.source.table = &job.table;
    good = good && table_read(&job.table, settings->operands[0], fault) &&
           open_signal(&job, fault) && make_metadata(&job, fault) && plan_channels(&job, fault) &&
           open_channelizer(&job, fault) && open_outputs(&job, fault);
    good = processes_agree(processes, good, fault) && run_pass(&job, fault);
    good = processes_agree(processes, good, fault) && finish_outputs(&job, fault);
    int status = good ? EXIT_DONE : fault->usage ? EXIT_USAGE : EXIT_FAILED;
    if (good) *fault->text = 0; // of a warning
    if (good && !processes->rank) status = conclude(&job);
    if (good && job.settings.plot &&
        !spectrum_write(&job.spectrum, &job.source, job.channels, job.n, job.settings.plot, fault))
        status = EXIT_FAILED;
    if (processes->rank) *fault->text = 0;                    // the first speaks for all
    status = report_fault(COMMAND_CHANNELIZE, fault, status); // while all processes run
    release(&job);
    processes_end(processes);
    return status;
}
