// SPDX-License-Identifier: MIT
// `partita convolve` and `partita correlate`: opens the files, agrees on types, rates and channels,
// runs the pass, reports.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/engine_name.h"
#include "cli/interrupt.h"
#include "cli/option_words.h"
#include "cli/report.h"
#include "cli/wisdom_file.h"
#include "io/formats/sigmf.h"
#include "output.h"
#include "pass.h"

// Everything one run holds.
struct job {
    struct settings settings;
    struct audio_reader *ir, *in;
    struct audio_writer *out;
    struct audio_info output;
    struct taps taps;
    struct partita_wisdom *wisdom;
    struct runner *runner;
    struct pass pass;
    struct share share;
    struct stats stats;
};

static bool is_standard(const char *path)
{
    return strcmp(path, "-") == 0;
}

// Raw samples are asked for by type; a file that says itself what it is must not be contradicted.
static bool check_format(const char *option, const char *type, const char *path,
                         struct encoding *ret_encoding, struct fault *fault)
{
    bool known;
    if (!type) return true;
    encoding_parse(type, ret_encoding);
    if (is_standard(path) || container_of_name(path, &known) == CONTAINER_RAW) return true;
    return fault_set(fault, "%s %s: is for raw samples, but %s is a file with a header", option,
                     type, path);
}

static bool check_usage(const struct settings *s, struct encoding *ret_in, struct encoding *ret_ir,
                        struct fault *fault)
{
    if (is_standard(s->operands[0]) && is_standard(s->operands[1]))
        return fault_set(fault, "both %s and IN are standard input",
                         s->command == COMMAND_CONVOLVE ? "IR" : "TEMPLATE");
    if (s->quiet && s->verbose)
        return fault_set(fault, "--quiet and --verbose contradict each other");
    uint64_t k, n;
    if (s->range && !share_parse(s->range, &k, &n, fault)) return false;
    if ((s->range || s->resume) && is_standard(s->operands[2]))
        return fault_set(fault, "%s writes to a file of its own, not to standard output",
                         s->range ? "--range" : "--resume");
    if ((s->range || s->resume) && s->block)
        return fault_set(fault, "--block makes a stream, which --range and --resume cannot cut");
    if (s->channels && !s->format)
        return fault_set(fault, "--channels is for raw samples; say --format too");
    return range_check(s, fault) &&
           check_format("--format", s->format, s->operands[1], ret_in, fault) &&
           check_format("--ir-format", s->ir_format, s->operands[0], ret_ir, fault) &&
           engine_check(s, fault);
}

// Standard input that may never end: not a redirected file.
static bool is_live(const char *path)
{
    struct stat st;
    return is_standard(path) && (fstat(STDIN_FILENO, &st) || !S_ISREG(st.st_mode));
}

// An array of [frames, channels] looks like many channels of next to no frames. Whoever has so many
// says their number.
static bool check_axes(const struct settings *s, int operand, const struct audio_info *info,
                       struct fault *fault)
{
    static const size_t MANY = 256, RATIO = 8;
    if (info->container != CONTAINER_NPY || s->max_channels != NOT_GIVEN || info->frames == 0 ||
        info->channels <= MANY || info->frames >= info->channels ||
        info->channels <= RATIO * info->frames)
        return true;
    if (operand == 0 && s->matrix) return true; // has many cells, which may be mere gains
    return fault_set(fault,
                     "%s: the axes of an .npy array are [channels, frames], which makes %zu "
                     "channels of %llu frames of this one; save its transpose, x.T, or say "
                     "--max-channels %zu if they are that many",
                     operand_name(s, operand), info->channels, (unsigned long long)info->frames,
                     info->channels);
}

static bool open_inputs(struct job *job, const struct encoding *in, const struct encoding *ir,
                        struct fault *fault)
{
    const struct settings *s = &job->settings;
    struct audio_request request = {.max_channels = options_max_channels(s), .wake_fd = -1};
    request.path = s->operands[0];
    request.raw = s->ir_format ? ir : NULL;
    if (!audio_open(&job->ir, &request, fault)) return false;
    request.path = s->operands[1];
    request.raw = s->format ? in : NULL;
    request.channels = (size_t)s->channels;
    request.rate = (uint32_t)s->rate;
    request.wake_fd = is_live(s->operands[1]) ? interrupt_as_end_of_input() : -1;
    if (!audio_open(&job->in, &request, fault)) return false;
    const struct audio_info *x = audio_reader_info(job->in), *taps = audio_reader_info(job->ir);
    return x->channels == taps->channels ||
           (check_axes(s, 0, taps, fault) && check_axes(s, 1, x, fault));
}

static bool stored_in_double(const struct audio_info *info)
{
    return info->encoding.kind == ENCODING_FLOAT && info->encoding.bytes == 8;
}

// The type to compute in: complex if either side is, double if either side is or the user says so.
static void choose_types(const struct job *job, enum partita_type *ret_signal,
                         enum partita_type *ret_taps)
{
    const struct audio_info *in = audio_reader_info(job->in), *ir = audio_reader_info(job->ir);
    bool complex_taps = ir->encoding.is_complex,
         complex_signal = complex_taps || in->encoding.is_complex;
    bool wide = job->settings.precision == PRECISION_F64 ||
                (job->settings.precision == PRECISION_AUTO &&
                 (stored_in_double(in) || stored_in_double(ir)));
    *ret_signal =
        complex_signal ? (wide ? PARTITA_CF64 : PARTITA_CF32) : (wide ? PARTITA_F64 : PARTITA_F32);
    *ret_taps = complex_taps ? *ret_signal : (wide ? PARTITA_F64 : PARTITA_F32);
    if (complex_taps && !in->encoding.is_complex)
        report_detail(&job->settings, "%s: taps are complex, so the real %s becomes complex too",
                      job->settings.operands[0], job->settings.operands[1]);
}

// Which samples of the result; for that --mode valid has to know whether the input is shorter than
// the taps.
static bool choose_range(struct job *job, uint64_t *ret_frames, struct fault *fault)
{
    const struct audio_info *in = audio_reader_info(job->in);
    int64_t m = (int64_t)(job->taps.length - 2 * job->taps.lead), n_seen = m;
    bool known = in->frames != SIZE_UNKNOWN;
    if (known) n_seen = (int64_t)in->frames;
    if (!known && job->settings.mode == MODE_VALID) {
        size_t n;
        if (!pass_preload(&job->pass, (size_t)m, &n, fault)) return false;
        n_seen = (int64_t)n;
    }
    job->pass.range = range_of(&job->settings, m, n_seen);
    known = known || !job->pass.range.end_counts_from_n;
    *ret_frames = known ? (uint64_t)range_count(&job->pass.range, n_seen, job->settings.stride)
                        : SIZE_UNKNOWN;
    return true;
}

static void explain(const struct job *job)
{
    if (!job->settings.verbose) return;
    char *text = report_plan(runner_plan(job->runner));
    if (text) fputs(text, stderr);
    free(text);
}

// Calls are timed for those who will read it. Samples of no known rate have no deadline, but some
// rate must be named.
static double clock_rate(const struct job *job)
{
    if (!job->settings.stats && !job->settings.json) return 0;
    return job->stats.rate ? job->stats.rate : 1;
}

// An engine of bounded signals is refused as long as the file is run as a stream.
static bool explain_refusal(const struct settings *s, struct fault *fault)
{
    const struct fault said = *fault;
    if (engine_needs_bounds(said.text))
        fault_set(fault, "%s; %s--threads 2 filters in pieces, which are bounded", said.text,
                  s->block ? "leave out --block: " : "");
    return option_words(s->command, fault);
}

static bool prepare(struct job *job, struct fault *fault)
{
    enum partita_type type, taps_type;
    uint64_t frames;
    const struct audio_info *in = audio_reader_info(job->in);
    choose_types(job, &type, &taps_type);
    if (!taps_load(&job->taps, job->ir, taps_type, in, &job->settings, fault)) return false;
    job->pass = (struct pass){.settings = &job->settings,
                              .reader = job->in,
                              .taps = &job->taps,
                              .type = type,
                              .share = &job->share,
                              .stats = &job->stats};
    if (!choose_range(job, &frames, fault)) return false;
    uint32_t ir_rate = audio_reader_info(job->ir)->rate;
    if (!output_choose(&job->output, &job->settings, in, ir_rate, &job->taps, type, frames, fault))
        return false;
    job->wisdom = wisdom_file_load();
    job->stats.rate = in->rate ? in->rate : job->output.rate;
    if (!runner_open(&job->runner, &job->settings, type, audio_reader_is_pipe(job->in), in->frames,
                     clock_rate(job), &job->taps, job->wisdom, fault))
        return explain_refusal(&job->settings, fault);
    explain(job);
    return share_open(&job->share, job->in, &job->taps, type, runner_plan(job->runner),
                      &job->pass.range, &job->output.frames, fault) &&
           share_create(&job->share, &job->out, &job->output, fault);
}

static void fill_stats(struct job *job)
{
    struct stats *s = &job->stats;
    s->in_channels = job->taps.in_channels;
    s->out_channels = job->taps.out_channels;
    s->taps = job->taps.length;
    s->latency = runner_latency(job->runner);
    s->calls = runner_calls(job->runner);
    s->call_frames = job->pass.chunk;
    s->engine = partita_plan_engine(runner_plan(job->runner));
    s->type = partita_type_name(job->pass.type);
    s->truncated = audio_shortfall(job->in) || audio_shortfall(job->ir);
    s->interrupted = audio_interrupted(job->in);
}

// Of a pipe only the end tells; a result that starts and ends before its first sample does not read
// it.
static bool is_empty(const struct job *job)
{
    const struct stats *stats = &job->stats;
    const uint64_t frames = audio_reader_info(job->in)->frames;
    if (stats->truncated || stats->interrupted) return false;
    return frames == 0 ||
           (frames == SIZE_UNKNOWN && stats->frames_in == 0 && stats->frames_out == 0);
}

// What helps: less gain, how much less if the peak is known, and floats in a file that holds them.
static void warn_clipped(const struct job *job)
{
    const struct settings *s = &job->settings;
    const struct encoding written = job->output.encoding;
    const struct encoding wish = {
        .kind = ENCODING_FLOAT, .bytes = 4, .is_complex = written.is_complex};
    struct encoding held;
    const bool floats = container_encoding(job->output.container, s->operands[2], wish, &held) &&
                        held.kind == ENCODING_FLOAT;
    const double full = 1 - ldexp(1, 1 - 8 * (int)written.bytes); // the largest value above 0
    const double fitting = s->gain + floor(200 * log10(full / job->stats.peak)) / 10;
    // --range and --resume read and write a part.
    const bool measured =
        job->stats.peak > full && !s->range && !s->resume && fitting >= LEAST_GAIN;
    char gain[64] = "lower --gain (--stats tells by how much)";
    if (measured) snprintf(gain, sizeof gain, "--gain %.1f fits", fitting);
    report_warning(s, "%s: %llu samples clipped; %s%s", operand_name(s, 2),
                   (unsigned long long)job->stats.written.clipped, gain,
                   floats ? ", or use --output-format f32" : "");
}

static void warn(const struct job *job)
{
    const struct settings *s = &job->settings;
    const struct stats *stats = &job->stats;
    const char *shortfalls[] = {audio_shortfall(job->ir), audio_shortfall(job->in)};
    for (int i = 0; i < 2; i++)
        if (shortfalls[i]) report_warning(s, "%s", shortfalls[i]);
    if (is_empty(job)) report_warning(s, "%s: holds no samples", operand_name(s, 1));
    if (stats->interrupted)
        report_warning(s, "interrupted after %llu frames", (unsigned long long)stats->frames_in);
    if (stats->replaced)
        report_warning(s, "%s: %llu NaN or infinite values read as 0", operand_name(s, 1),
                       (unsigned long long)stats->replaced);
    if (stats->written.clipped) warn_clipped(job);
    if (stats->written.not_finite)
        report_warning(s, "%s: %llu NaN or infinite values in the result", operand_name(s, 2),
                       (unsigned long long)stats->written.not_finite);
}

static int conclude(struct job *job)
{
    const struct settings *s = &job->settings;
    fill_stats(job);
    warn(job);
    int status = job->stats.truncated || job->stats.interrupted ? EXIT_DEGRADED : EXIT_DONE;
    if (s->stats) stats_print(&job->stats, stderr);
    if (!s->json) return status;
    FILE *to = is_standard(s->operands[2]) ? stderr : stdout;
    bool good = stats_print_json(&job->stats, s, to);
    return to == stdout ? report_close(s->command, status) : good ? status : EXIT_FAILED;
}

static int run(struct job *job, const struct encoding *raw_in, const struct encoding *raw_ir)
{
    struct fault fault;
    const char *const *names = job->settings.operands;
    enum command command = job->settings.command;
    char data[2][PATH_MAX];
    const char *inputs[] = {sigmf_samples(names[0], data[0]), sigmf_samples(names[1], data[1])};
    bool good = share_begin(&job->share, &job->settings, inputs, 2, &fault) &&
                open_inputs(job, raw_in, raw_ir, &fault) && prepare(job, &fault);
    if (good) {
        job->pass.runner = job->runner;
        job->pass.writer = job->out;
        good = pass_run(&job->pass, &fault) && share_check_input(&job->share, job->in, &fault);
    }
    if (good) {
        struct audio_writer *out = job->out;
        job->out = NULL;
        good = share_finish(&job->share, out, &job->stats.written, &fault);
    }
    return good ? conclude(job) : report_fault(command, &fault, EXIT_FAILED);
}

static void release(struct job *job)
{
    pass_release(&job->pass);
    share_release(&job->share);
    audio_discard(job->out);
    runner_close(job->runner);
    partita_wisdom_destroy(job->wisdom);
    taps_release(&job->taps);
    audio_reader_close(job->in);
    audio_reader_close(job->ir);
}

int convolve_main(const struct settings *settings)
{
    struct job job = {.settings = *settings};
    struct encoding raw_in = {0}, raw_ir = {0};
    struct fault fault;
    if (!check_usage(&job.settings, &raw_in, &raw_ir, &fault))
        return report_usage(settings->command, &fault);
    interrupt_install();
    int status = run(&job, &raw_in, &raw_ir);
    release(&job);
    return status;
}
