// SPDX-License-Identifier: MIT
// `partita invert`: from measured responses to the filter that corrects them.
#include <jansson.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_values.h"
#include "base/memory.h"
#include "chart.h"
#include "cli/commands.h"
#include "cli/option_words.h"
#include "cli/report.h"
#include "io/frames.h"
#include "io/points.h"

// Sound this long before the peak is none of the loudspeaker's if it has more than this share of
// the energy: it is what a deconvolved sweep has of distortion, or of a response that wrapped.
static const double EARLY_SECONDS = 0.02, EARLY_SHARE = 0.01;

enum { CLIPPED_SAMPLES = 2 }; // that may have the largest magnitude by chance

struct job {
    struct settings settings;
    struct partita_correction correction;
    struct points target;
    struct measured *files;
    size_t n_files, channels;
    double *responses, *taps;                  // [channels][positions][frames], [channels][taps]
    struct partita_correction_report *reports; // [channels]
    // Makes a channel as loud as the softest, and as late as the latest. [channels]
    struct matched {
        double gain, delay; // in dB and frames
    } * matched;
    struct measured filter;
    struct fault log;
};

static bool read_target(struct job *job, struct fault *fault)
{
    const char *name = job->settings.target ? job->settings.target : "flat";
    struct partita_correction *c = &job->correction;
    c->target = partita_correction_curve(name, &c->target_count);
    if (c->target) return true;
    if (!points_read(&job->target, name, fault))
        return strpbrk(name, "./") ? false
                                   : fault_set(fault,
                                               "--target %s: is neither a file nor one of flat, bk "
                                               "and harman-room",
                                               name);
    c->target = job->target.list;
    c->target_count = job->target.n;
    return true;
}

static bool prepare(struct job *job, struct fault *fault)
{
    struct partita_correction *c = &job->correction;
    const size_t in_file = job->files->channels;
    job->channels = job->settings.positions ? 1 : in_file;
    c->rate = job->files->rate;
    c->positions = job->n_files * in_file / job->channels;
    c->log = (struct partita_log){option_words_log, &job->log};
    c->allocator = memory_allocator();
    c->pre_time = fmax(c->pre_time, 0);
    if (c->boost == 0) c->boost = 0.01; // the least that there is
    job->responses = measured_rows(job->files, job->n_files, &c->frames);
    job->taps = memory_allocate(job->channels * c->taps * sizeof *job->taps);
    job->reports = calloc(job->channels, sizeof *job->reports);
    job->matched = calloc(job->channels, sizeof *job->matched);
    if (!job->responses || !job->taps || !job->reports || !job->matched)
        return memory_fault(fault, "%zu responses of %zu frames", job->channels * c->positions,
                            c->frames);
    return true;
}

static void warn_of_response(const struct job *job, size_t row)
{
    const size_t n = job->correction.frames;
    const double *x = job->responses + row * n;
    const size_t peak = frames_peak(x, n);
    const double first = (double)peak - EARLY_SECONDS * job->correction.rate;
    const double early = frames_energy(x, (size_t)ceil(fmax(first, 0))), all = frames_energy(x, n);
    size_t largest = 0;
    struct fault name;
    for (size_t k = 0; k < n; k++) largest += fabs(x[k]) == fabs(x[peak]);
    measured_fault(&job->settings, row, "", &name);
    if (largest > CLIPPED_SAMPLES)
        report_warning(&job->settings, "%s has %zu samples of its largest magnitude: it clipped",
                       name.text, largest);
    if (early > EARLY_SHARE * all)
        report_warning(&job->settings,
                       "%s has %.0f %% of its energy more than %.0f ms before its peak: the sweep "
                       "clipped, wrapped, or is noisy",
                       name.text, 100 * early / all, 1e3 * EARLY_SECONDS);
}

static bool design(struct job *job, struct fault *fault)
{
    const struct partita_correction *c = &job->correction;
    for (size_t i = 0; i < job->channels; i++) {
        const enum partita_status status =
            partita_correction_taps(c, job->responses + i * c->positions * c->frames,
                                    job->taps + i * c->taps, &job->reports[i]);
        if (status)
            return measured_fail(&job->settings, status, &job->log, i * c->positions, fault);
    }
    for (size_t i = 0; i < job->n_files; i++) measured_warn(&job->files[i], &job->settings);
    for (size_t i = 0; i < job->channels * c->positions; i++) warn_of_response(job, i);
    return true;
}

static bool make_filter(struct job *job, struct fault *fault)
{
    const size_t n = job->correction.taps;
    double level = INFINITY, arrival = 0, latest = 0;
    for (size_t c = 0; c < job->channels; c++) {
        level = fmin(level, job->reports[c].level);
        arrival = fmax(arrival, job->reports[c].arrival);
    }
    for (size_t c = 0; job->settings.match == MATCHING_YES && c < job->channels; c++) {
        const struct partita_correction_report *r = &job->reports[c];
        job->matched[c] = (struct matched){level - r->level, round(arrival - r->arrival)};
        latest = fmax(latest, job->matched[c].delay);
    }
    const size_t frames = n + (size_t)latest;
    double *const x = memory_allocate_zeros(job->channels * frames * sizeof *x);
    job->filter = (struct measured){
        .samples = x, .channels = job->channels, .frames = frames, .rate = job->correction.rate};
    if (!x) return memory_fault(fault, "a filter of %zu frames", frames);
    for (size_t c = 0; c < job->channels; c++) {
        const double gain = pow(10, job->matched[c].gain / 20);
        double *const y = x + c * frames + (size_t)job->matched[c].delay;
        for (size_t i = 0; i < n; i++) y[i] = gain * job->taps[c * n + i];
    }
    return true;
}

static json_t *json_channel(const struct partita_correction_report *r, const struct matched *m)
{
    const struct {
        const char *name;
        double value;
    } fields[] = {
        {"before_max_db", r->before_max},
        {"before_rms_db", r->before_rms},
        {"after_max_db", r->after_max},
        {"after_rms_db", r->after_rms},
        {"boost_db", r->boost},
        {"boost_frequency", r->boost_frequency},
        {"attenuation_db", r->attenuation},
        {"attenuation_frequency", r->attenuation_frequency},
        {"delay_frames", r->delay},
        {"pre_ringing_db", r->pre_ringing},
        {"pre_time_seconds", r->pre_time},
        {"level_db", r->level},
        {"match_db", m->gain},
        {"match_frames", m->delay},
        {"sine_gain_db", r->sine_gain - m->gain},
        {"safe_gain_db", r->safe_gain - m->gain},
    };
    json_t *j = json_object();
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        json_object_set_new(j, fields[i].name, json_finite(fields[i].value));
    return j;
}

static void print_channel(const struct job *job, size_t channel, FILE *to)
{
    const struct partita_correction_report *r = &job->reports[channel];
    const struct matched *m = &job->matched[channel];
    fprintf(to,
            "channel %zu\n"
            "  before   %.1f dB from the target at most, %.1f dB rms\n"
            "  after    %.1f dB at most, %.1f dB rms\n"
            "  filter   boost %.1f dB at %.4g Hz, reduction %.1f dB at %.4g Hz\n",
            channel + 1, r->before_max, r->before_rms, r->after_max, r->after_rms, r->boost,
            r->boost_frequency, r->attenuation, r->attenuation_frequency);
    fprintf(to, "  delay    %.0f frames, %.3f ms; ", r->delay, 1e3 * r->delay / job->filter.rate);
    if (isfinite(r->pre_ringing)) fprintf(to, "pre-ringing %.1f dB\n", r->pre_ringing);
    else fprintf(to, "no pre-ringing\n");
    if (m->gain <= -0.05 || m->delay > 0)
        fprintf(to, "  matched  by %.1f dB and %.0f frames\n", m->gain, m->delay);
    fprintf(to, "  gain     %.1f dB so that no sine clips, %.1f dB so that nothing does\n",
            r->sine_gain - m->gain, r->safe_gain - m->gain);
}

static bool print_json(const struct job *job, FILE *to)
{
    json_t *j = json_report("partita-correction/1", command_rows[COMMAND_INVERT].name);
    json_t *list = json_array();
    for (size_t c = 0; c < job->channels; c++)
        json_array_append_new(list, json_channel(&job->reports[c], &job->matched[c]));
    json_object_set_new(j, "out", json_text(job->settings.files[job->n_files]));
    json_object_set_new(j, "rate_hz", json_rate(job->filter.rate));
    json_object_set_new(j, "frames", json_integer((json_int_t)job->filter.frames));
    json_object_set_new(j, "positions", json_integer((json_int_t)job->correction.positions));
    json_object_set_new(j, "channels", list);
    return json_print(j, to);
}

// FILTER is written last, so that no file is left if something fails.
static bool finish(const struct job *job, struct fault *fault)
{
    const struct settings *s = &job->settings;
    const char *out = s->files[job->n_files];
    FILE *to = strcmp(out, "-") == 0 ? stderr : stdout;
    const struct partita_correction *c = &job->correction;
    const struct chart chart = {job->taps, job->channels,  c->taps,     c->rate,
                                c,         job->responses, job->reports};
    if (s->plot && !chart_write(&chart, s->plot, fault)) return false;
    for (size_t i = 0; !s->json && !s->quiet && i < job->channels; i++) print_channel(job, i, to);
    if (s->json ? !print_json(job, to) : ferror(to))
        return fault_set(fault, "standard output: cannot write");
    return measured_write(&job->filter, s, out, fault);
}

static bool check_phase(const struct settings *s, struct fault *fault)
{
    const struct partita_correction *c = &s->correction;
    if (c->phase == PARTITA_CORRECTION_MIXED)
        return c->pre_time != 0 || fault_usage(fault, "--pre-time 0: use --phase minimum");
    return (c->phase_limit == 0 && c->pre_time < 0 && c->pre_level == 0) ||
           fault_usage(fault, "--phase-limit, --pre-time and --pre-level need --phase mixed");
}

int invert_main(const struct settings *settings, struct fault *fault)
{
    struct job job = {.settings = *settings, .correction = settings->correction};
    job.files = calloc((size_t)settings->n_operands, sizeof *job.files);
    const bool good = (job.files || fault_set(fault, "out of memory")) &&
                      check_phase(settings, fault) && read_target(&job, fault) &&
                      measured_load_all(job.files, &job.n_files, settings, fault) &&
                      prepare(&job, fault) && design(&job, fault) && make_filter(&job, fault) &&
                      finish(&job, fault);
    for (size_t i = 0; job.files && i <= job.n_files; i++) measured_release(&job.files[i]);
    free(job.files);
    points_release(&job.target);
    measured_release(&job.filter);
    memory_free(job.responses);
    memory_free(job.taps);
    free(job.reports);
    free(job.matched);
    return good ? EXIT_DONE : EXIT_FAILED;
}
