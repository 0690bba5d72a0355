// SPDX-License-Identifier: MIT
// `partita convolve` and `partita correlate`: opens the files, chooses types, rates and channels,
// runs the pass, prints warnings and statistics.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/commands.h"
#include "cli/report.h"
#include "cli/wisdom_file.h"
#include "correlate/search.h"
#include "io/formats/sigmf_carry.h"
#include "output.h"
#include "pass.h"
#include "route/route.h"
#include "usage.h"

// The state of one run.
struct convolve_job {
    struct settings settings;
    struct processes processes;
    struct audio_reader *irs[MAX_WORDS], *in; // settings.n_irs
    struct network network;                   // with --config
    struct audio_writer *out;
    struct audio_writer *spool; // of a result whose level is set at the end, else NULL
    struct audio_info output;
    struct tags tags; // those of IN, moved to OUT
    struct taps taps;
    struct partita_wisdom *wisdom;
    struct runner *runner;
    struct tuner tuner; // with --tune
    struct pass pass;
    struct shard shard;
    struct pass_stats stats;
    struct search search;
    uint64_t margin;            // results before those of a shard, for its peaks
    struct sigmf_origin origin; // of the output's metadata
};

static bool open_inputs(struct convolve_job *job, struct fault *fault)
{
    const struct settings *s = &job->settings;
    if (!taps_open(job->irs, s, fault) || !usage_open_signal(&job->in, s, fault)) return false;
    const char *dot = strrchr(s->operands[1], '.');
    if (!s->format && dot && strcasecmp(dot, ".iq") == 0)
        report_warning(s, "%s: is read as cf32; if it has another type, add --format",
                       s->operands[1]);
    const struct audio_info *x = audio_reader_info(job->in);
    if (s->is_route) {
        network_release(&job->network);
        return route_read(&job->network, s, s->config, x, fault);
    }
    network_select(&job->network, x->rate * (double)s->up);
    if (s->config) return true;
    const struct audio_info *taps = audio_reader_info(job->irs[0]);
    return x->channels == taps->channels ||
           (taps_check_axes(s, 0, taps, fault) && taps_check_axes(s, 1, x, fault));
}

// The type to compute in: complex if either side is or --tune makes it so; double if either side is
// or the user asks for it.
static void choose_types(const struct convolve_job *job, enum partita_type *ret_signal,
                         enum partita_type *ret_taps)
{
    const struct audio_info *in = audio_reader_info(job->in);
    bool complex_taps = false, in_double = encoding_needs_double(in->encoding);
    for (int i = 0; i < job->settings.n_irs; i++) {
        const struct encoding taps = audio_reader_info(job->irs[i])->encoding;
        complex_taps = complex_taps || taps.is_complex;
        in_double = in_double || encoding_needs_double(taps);
    }
    bool complex_signal = complex_taps || in->encoding.is_complex || isfinite(job->settings.tune);
    // In float the rounding errors of a loud passage may exceed the signal in a quiet passage
    // beside it, where --normalised would make them large.
    bool wide =
        job->settings.precision == PRECISION_F64 ||
        (job->settings.precision == PRECISION_AUTO && (job->settings.normalised || in_double));
    *ret_signal =
        complex_signal ? (wide ? PARTITA_CF64 : PARTITA_CF32) : (wide ? PARTITA_F64 : PARTITA_F32);
    *ret_taps = complex_taps ? *ret_signal : (wide ? PARTITA_F64 : PARTITA_F32);
    if (complex_taps && !in->encoding.is_complex)
        report_detail(&job->settings,
                      "%s: the taps are complex, so the real %s is converted to complex",
                      job->settings.operands[0], job->settings.operands[1]);
}

// Which samples of the result to compute. For --mode valid this depends on whether the input is
// shorter than the taps.
static bool choose_range(struct convolve_job *job, uint64_t *ret_frames, struct fault *fault)
{
    const struct audio_info *in = audio_reader_info(job->in);
    const int64_t centre = (int64_t)job->taps.centre, up = centre ? job->settings.up : 1;
    // --rate-out resamples the range that the filter has at the rate of IN.
    const struct settings *s = &job->settings;
    struct settings before = *s;
    int64_t m = ((int64_t)(job->taps.length - 2 * job->taps.lead) - 2 * centre - 1) / up + 1,
            n_seen = m;
    bool known = in->frames != SIZE_UNKNOWN;
    if (centre) before.up = 1;
    if (known) n_seen = (int64_t)in->frames;
    if (!known && job->settings.mode == MODE_VALID) {
        size_t n;
        if (!pass_preload(&job->pass, (size_t)m, &n, fault)) return false;
        n_seen = (int64_t)n;
    }
    job->pass.range = range_of(&before, m, n_seen);
    job->pass.range.begin = job->pass.range.begin * up + centre;
    job->pass.range.end = job->pass.range.end * up + centre;
    if (!pass_check_captures(&job->pass, fault)) return false;
    known = known || !job->pass.range.end_counts_from_n;
    *ret_frames = known ? (uint64_t)range_count(&job->pass.range, n_seen * job->settings.up,
                                                job->settings.stride)
                        : SIZE_UNKNOWN;
    return job->settings.up == 1 ||
           taps_align(&job->taps, job->pass.range.begin, job->settings.stride, fault);
}

static bool open_runner(struct convolve_job *job, enum partita_type type, struct fault *fault)
{
    const bool timed = job->settings.stats || job->settings.json;
    const struct runner_request request = {
        .settings = &job->settings,
        .signal = type,
        .is_pipe = audio_reader_is_pipe(job->in),
        .rows = pass_takes_rows(&job->pass),
        .frames = audio_reader_info(job->in)->frames,
        // Without a sample rate there is no deadline, but the library needs some rate.
        .rate = !timed                ? 0
                : job->stats.rate > 0 ? job->stats.rate
                                      : 1,
        .taps = &job->taps,
        .wisdom = job->wisdom,
    };
    if (!runner_open(&job->runner, &request, fault)) return false;
    report_plan_detail(&job->settings, runner_layout(job->runner)->plan);
    return true;
}

// The peaks of a shard are those of its results, but results around them can change them: those
// behind as far as the pass needs, those before by a margin that grows if it is too small.
static void widen_for_peaks(struct convolve_job *job, struct search *q)
{
    const struct shard_record *record = &job->shard.record;
    const uint64_t margin = job->margin ? job->margin : 8 * search_distance(q->settings, q->length);
    q->offset = record->first;
    if (!job->shard.active || !options_want_peaks(q->settings)) return;
    const uint64_t before = shard_widen(&job->shard, margin + PEAKS_MARGIN, &job->pass.range);
    job->margin = margin;
    q->first = before;
    q->end = before + record->end - record->first;
    q->offset -= before;
    q->continues = q->offset > 0;
}

static bool open_search(struct convolve_job *job, enum partita_type type, struct fault *fault)
{
    struct search *q = &job->search;
    q->settings = &job->settings;
    q->in = job->in;
    q->processes = &job->processes;
    q->type = type;
    q->channels = job->taps.out_channels;
    q->length = job->taps.length - 2 * job->taps.lead;
    q->end = UINT64_MAX;
    widen_for_peaks(job, q);
    job->pass.first = q->first;
    job->pass.end = q->end;
    q->first_lag = job->pass.range.begin - (int64_t)(q->length - 1);
    if (!search_check_annotate(q, fault) || !search_open(q, fault)) return false;
    job->pass.peaks = q->peaks;
    return true;
}

// Where the samples of a recording are in the result: a filter delays them, and a template is found
// where it begins.
static bool carry_metadata(struct convolve_job *job, struct fault *fault)
{
    const struct sigmf *sigmf = audio_reader_recording(job->in);
    const char *out = job->settings.operands[2];
    if (!sigmf || !out || !sigmf_describes(out)) return true;
    const int64_t delay = job->settings.command == COMMAND_CORRELATE
                              ? (int64_t)(job->taps.length - 2 * job->taps.lead) - 1
                              : llround(taps_delay(&job->taps));
    job->origin = (struct sigmf_origin){
        .sigmf = sigmf,
        .up = job->settings.up,
        .shift = delay - job->pass.range.begin,
        .stride = job->settings.stride,
        .tune = job->pass.tuner ? job->settings.tune : 0,
    };
    job->output.origin = &job->origin;
    return sigmf_check_positions(sigmf, fault);
}

static bool open_output(struct convolve_job *job, enum partita_type type, struct fault *fault)
{
    const struct runner_layout *layout = runner_layout(job->runner);
    const struct shard_source source = {
        job->in, &job->taps, type, layout->plan, layout->results, 0,
    };
    const struct audio_info *in = audio_reader_info(job->in);
    struct tags_move move = {job->pass.range.begin - (int64_t)job->taps.centre, job->settings.up,
                             job->settings.stride, job->pass.tuner ? job->settings.tune : 0, false};
    if (!carry_metadata(job, fault) ||
        !shard_open(&job->shard, &source, &job->pass.range, &job->output.frames, fault) ||
        !open_search(job, type, fault))
        return false;
    job->origin.first = job->shard.record.first;
    job->origin.total = job->shard.record.total;
    job->output.first = job->shard.record.first;
    // Positions are those of the whole result, whose tags join takes from its beginning.
    move.unplaced = job->shard.record.first;
    if (in->tags && job->settings.command == COMMAND_CONVOLVE) tags_copy(&job->tags, in->tags);
    tags_move(&job->tags, &move);
    job->output.tags = &job->tags;
    return shard_create(&job->shard, &job->out, &job->output, fault) &&
           (!level_is_wanted(&job->settings) ||
            audio_spool_create(&job->spool, job->settings.operands[2], type, job->taps.out_channels,
                               fault));
}

// The rate of the taps; 0: unknown.
static double taps_rate(const struct convolve_job *job)
{
    return job->settings.config ? job->network.rate : audio_reader_info(job->irs[0])->rate;
}

static bool tune(struct convolve_job *job, struct fault *fault)
{
    const double rate = audio_reader_info(job->in)->rate;
    if (!isfinite(job->settings.tune)) return true;
    if (!usage_check_tune(&job->settings, rate, fault)) return false;
    tuner_begin(&job->tuner, job->settings.tune, rate);
    job->pass.tuner = &job->tuner;
    return true;
}

static bool convolve_prepare(struct convolve_job *job, struct fault *fault)
{
    enum partita_type type, taps_type;
    const struct audio_info *in = audio_reader_info(job->in);
    const double rate = in->rate > 0 ? in->rate : taps_rate(job);
    if (!options_resolve_times(&job->settings, rate, fault) || !range_check(&job->settings, fault))
        return false;
    choose_types(job, &type, &taps_type);
    if (job->settings.config
            ? !network_taps_load(&job->taps, &job->network, taps_type, in, &job->settings, fault)
            : !taps_load(&job->taps, job->irs, taps_type, in, &job->settings, fault))
        return false;
    if (job->settings.normalised == NORMALISED_ZERO_MEAN)
        template_subtract_means(job->taps.data, taps_type, taps_count_rows(&job->taps),
                                job->taps.length);
    job->stats.filter_peak = taps_peak(&job->taps);
    report_detail(&job->settings, "%s: %zu taps, with their peak at frame %lld",
                  operand_name(&job->settings, 0), job->taps.length - 2 * job->taps.lead,
                  (long long)job->stats.filter_peak);
    if (!resampler_apply(&job->taps, &job->settings, in->rate, fault)) return false;
    job->pass = (struct pass){.settings = &job->settings,
                              .reader = job->in,
                              .taps = &job->taps,
                              .type = type,
                              .shard = &job->shard,
                              .stats = &job->stats,
                              .measure = job->settings.stats || job->settings.json ||
                                         level_is_wanted(&job->settings)};
    struct output_request output = {.settings = &job->settings,
                                    .in = in,
                                    .ir_rate = taps_rate(job),
                                    .channels = job->taps.out_channels,
                                    .type = type};
    if (!tune(job, fault)) return false;
    if (!choose_range(job, &output.frames, fault)) return false;
    if (!output_choose(&job->output, &output, fault)) return false;
    job->output.certain = !job->pass.range.end_counts_from_n;
    job->wisdom = wisdom_file_load();
    job->stats.rate = in->rate > 0 ? in->rate : job->output.rate;
    return open_runner(job, type, fault) && open_output(job, type, fault);
}

// Prepares another pass of a shard that begins earlier. Its results were written as far as
// pass.done says.
static bool begin_earlier(struct convolve_job *job, const struct pass *pass, struct fault *fault)
{
    const uint64_t done = job->pass.done;
    pass_release(&job->pass);
    runner_close(job->runner);
    audio_reader_close(job->in);
    job->runner = NULL;
    job->in = NULL;
    job->pass = *pass;
    job->pass.done = done;
    job->stats.replaced = 0;
    job->margin *= 8;
    if (!usage_open_signal(&job->in, &job->settings, fault) || !open_runner(job, pass->type, fault))
        return false;
    job->pass.reader = job->in;
    job->pass.runner = job->runner;
    return open_search(job, pass->type, fault);
}

static bool pass_and_search(struct convolve_job *job, struct fault *fault)
{
    const struct pass pass = job->pass;
    for (;;) {
        const bool good = pass_run(&job->pass, fault) && search_finish(&job->search, fault);
        if (!job->search.peaks || !peaks_lost(job->search.peaks)) return good;
        if (!begin_earlier(job, &pass, fault)) return false;
    }
}

// Filters all of IN, and sets the level of the result if that depends on its peak.
static bool run_pass(struct convolve_job *job, struct fault *fault)
{
    struct pass_stats *stats = &job->stats;
    if (job->shard.complete) return true;
    struct audio_writer *spool = job->spool;
    double factor;
    job->pass.runner = job->runner;
    job->pass.writer = spool ? spool : job->out;
    if (!pass_and_search(job, fault) || !shard_check_input(&job->shard, job->in, fault))
        return false;
    if (!spool) return true;
    if (!level_factor(&job->settings, job->output.encoding, stats->peak, &factor, fault))
        return false;
    report_detail(&job->settings, "the result is amplified by %.2f dB", 20 * log10(factor));
    stats->peak *= factor;
    stats->energy *= factor * factor;
    job->spool = NULL;
    return audio_spool_copy(job->out, spool, job->pass.type, factor, fault);
}

static void fill_stats(struct convolve_job *job)
{
    struct pass_stats *s = &job->stats;
    s->in_channels = job->taps.in_channels;
    s->out_channels = job->taps.out_channels;
    s->taps = job->taps.length;
    s->latency = runner_layout(job->runner)->latency;
    s->calls = runner_calls(job->runner);
    s->call_frames = job->pass.chunk;
    s->delayed = job->settings.block || audio_reader_is_pipe(job->in);
    s->engine = partita_plan_engine(runner_layout(job->runner)->plan, PARTITA_FORWARD);
    s->type = partita_type_name(job->pass.type);
    s->truncated = audio_shortfall(job->in);
    for (int i = 0; i < job->settings.n_irs; i++)
        s->truncated = s->truncated || audio_shortfall(job->irs[i]);
    s->interrupted = audio_interrupted(job->in);
}

static void print_warnings(const struct convolve_job *job)
{
    const struct settings *s = &job->settings;
    for (int i = 0; i <= s->n_irs; i++) report_input(s, i < s->n_irs ? job->irs[i] : job->in);
    pass_stats_warn(&job->stats, s, audio_reader_info(job->in)->frames);
    if (job->search.peaks && !job->search.n && !isnan(s->threshold))
        report_warning(s, "no peak reaches --threshold %g; the largest magnitude is %g",
                       s->threshold, job->search.largest);
    level_warn_clipped(s, &job->output, &job->stats.written);
}

static int convolve_conclude(struct convolve_job *job)
{
    const struct settings *s = &job->settings;
    fill_stats(job);
    print_warnings(job);
    const bool degraded =
        job->stats.truncated || job->stats.interrupted || (s->strict && job->stats.written.clipped);
    int status = degraded ? EXIT_DEGRADED : EXIT_DONE;
    if (s->stats) pass_stats_print(&job->stats, stderr);
    FILE *to = is_standard(s->operands[2]) ? stderr : stdout;
    bool good = !s->json || pass_stats_print_json(&job->stats, s, to);
    return good || to == stdout ? status : EXIT_FAILED; // report_end says what fails there
}

static bool begin_shard(struct convolve_job *job, struct fault *fault)
{
    const struct settings *s = job->shard.settings = &job->settings;
    if (s->config && !(s->is_route ? route_read(&job->network, s, s->config, NULL, fault)
                                   : network_read(&job->network, s->config, true, fault)))
        return false;
    const char **inputs = calloc(
        (size_t)s->n_irs + 1 + (size_t)network_list_files(&job->network, NULL), sizeof *inputs);
    if (!inputs) return fault_set(fault, "out of memory");
    int n = s->n_irs + 1;
    for (int i = 0; i < n; i++) inputs[i] = i < s->n_irs ? s->files[i] : s->operands[1];
    if (s->config) n += network_list_files(&job->network, inputs + n);
    job->shard.shared.processes = &job->processes;
    const bool good = shard_begin(&job->shard, inputs, n, fault);
    free(inputs);
    return good;
}

// Also combines what several processes have found.
static bool compute(struct convolve_job *job, struct fault *fault)
{
    bool good = begin_shard(job, fault) && open_inputs(job, fault) &&
                convolve_prepare(job, fault) && run_pass(job, fault);
    if (good) {
        struct audio_writer *out = job->out;
        job->out = NULL;
        good = shard_finish(&job->shard, out, &job->stats.written, fault);
    }
    uint64_t frames = good ? audio_reader_info(job->in)->frames : 0;
    if (frames == SIZE_UNKNOWN) frames = job->stats.frames_in; // of a pipe: what was read
    good =
        good && search_combine(&job->search, fault) && search_annotate(&job->search, frames, fault);
    return processes_agree(&job->processes, good, fault) &&
           pass_stats_combine(&job->stats, &job->processes, fault);
}

static void convolve_release(struct convolve_job *job)
{
    pass_release(&job->pass);
    search_close(&job->search);
    shard_release(&job->shard);
    tags_release(&job->tags);
    audio_discard(job->spool);
    audio_discard(job->out);
    runner_close(job->runner);
    partita_wisdom_destroy(job->wisdom);
    taps_release(&job->taps);
    network_release(&job->network);
    audio_reader_close(job->in);
    for (int i = 0; i < job->settings.n_irs && i < MAX_WORDS; i++) audio_reader_close(job->irs[i]);
}

int convolve_main(const struct settings *settings, struct fault *fault)
{
    struct convolve_job job = {.settings = *settings};
    route_adopt(&job.settings);
    const bool good = usage_begin(&job.settings, &job.processes, fault) && compute(&job, fault);
    int status = good ? EXIT_DONE : fault->usage ? EXIT_USAGE : EXIT_FAILED;
    if (good && !job.processes.rank) status = convolve_conclude(&job);
    if (good || job.processes.rank) *fault->text = 0;        // the first speaks for all
    status = report_fault(settings->command, fault, status); // while all processes run
    convolve_release(&job);
    processes_end(&job.processes);
    return status;
}
