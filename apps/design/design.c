// SPDX-License-Identifier: MIT
// `partita design`: designs taps, writes them as a file that the other commands read, and says what
// they achieve.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/number.h"
#include "cli/commands.h"
#include "cli/option_words.h"
#include "cli/report.h"
#include "correct/measured.h"
#include "design.h"
#include "io/bytes/temp.h"

static bool succeeded(const struct job *job, enum partita_status status, struct fault *fault)
{
    return option_words_of_status(fault, COMMAND_DESIGN, status, &job->log);
}

static const char *const kinds[] = {
    [PARTITA_DESIGN_LOW_PASS] = "lowpass",
    [PARTITA_DESIGN_HIGH_PASS] = "highpass",
    [PARTITA_DESIGN_BAND_PASS] = "bandpass",
    [PARTITA_DESIGN_BAND_STOP] = "bandstop",
    [PARTITA_DESIGN_HILBERT] = "hilbert",
    [PARTITA_DESIGN_DIFFERENTIATOR] = "differentiator",
    [PARTITA_DESIGN_RAISED_COSINE] = "raised-cosine",
    [PARTITA_DESIGN_ROOT_RAISED_COSINE] = "root-raised-cosine",
    [PARTITA_DESIGN_TABLE] = "table",
    "eq",
    "crossover",
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static bool find_kind(struct job *job, struct fault *fault)
{
    char list[NAME_LIST_SIZE], hint[NEAREST_HINT_SIZE];
    const int found = nearest_find(job->kind, kinds, N_KINDS, sizeof *kinds, hint);
    job->design.kind = (enum partita_design_kind)found;
    return found >= 0 ||
           fault_set(fault, "%s: no such kind of filter%s; choose one of %s", job->kind, hint,
                     nearest_list(kinds, N_KINDS, sizeof *kinds, list));
}

// Reads operands and options except the table or list. False: wrong usage.
static bool parse(struct job *job, struct fault *fault)
{
    const struct settings *s = &job->settings;
    job->design = (struct partita_design){.method = s->equiripple ? PARTITA_DESIGN_EQUIRIPPLE
                                                                  : PARTITA_DESIGN_KAISER,
                                          .rate = s->rate,
                                          .width = isnan(s->width) ? 0 : s->width,
                                          .attenuation = s->attenuation,
                                          .ripple = isnan(s->ripple) ? 0 : s->ripple,
                                          .taps = (size_t)s->design_taps,
                                          .minimum_phase = s->minimum_phase};
    if (!find_kind(job, fault)) return false;
    job->equalizes = job->design.kind > PARTITA_DESIGN_TABLE;
    if (job->equalizes) return equalizer_parse(job, fault);
    struct number cutoff[2] = {{.value = 0}};
    if (s->cutoff && !number_parse_list(s->cutoff, QUANTITY_FREQUENCY, cutoff, 2))
        return fault_set(fault, "--cutoff %s: is not one frequency or two, such as 20k or 20k,40k",
                         s->cutoff);
    for (int i = 0; i < 2; i++) job->design.cutoff[i] = cutoff[i].value;
    if (s->width <= 0)
        return fault_set(fault,
                         "--width %g: a transition is wider than 0, for example --width 500; or "
                         "leave it out and set --taps",
                         s->width);
    if (s->ripple == 0)
        return fault_set(fault,
                         "--ripple 0: no filter has exactly the gain that is wanted; set the "
                         "largest deviation, for example --ripple 0.01, or leave it out");
    if (!(s->rate > 0) && (job->design.cutoff[0] >= 0.5 || job->design.width >= 0.5))
        return fault_set(fault, "frequencies are fractions of the sample rate, below 0.5, without "
                                "--rate; add it, for example --rate 48k");
    const enum partita_design_kind kind = job->design.kind;
    const bool table = kind == PARTITA_DESIGN_TABLE;
    const bool pulse =
        kind == PARTITA_DESIGN_RAISED_COSINE || kind == PARTITA_DESIGN_ROOT_RAISED_COSINE;
    const bool two = kind == PARTITA_DESIGN_BAND_PASS || kind == PARTITA_DESIGN_BAND_STOP;
    if (s->n_operands != (table ? 3 : 2))
        return fault_set(fault, "%s needs %s, but %d %s given", job->kind,
                         table ? "the file of the table, and OUT" : "OUT", s->n_operands - 1,
                         s->n_operands == 2 ? "name is" : "names are");
    if (two && job->design.cutoff[1] == 0)
        return fault_set(fault, "%s needs two cutoffs, for example --cutoff 1k,2k", job->kind);
    if (!table && kind != PARTITA_DESIGN_HILBERT && !s->cutoff)
        return fault_set(fault, "%s needs --cutoff, for example --cutoff 1k", job->kind);
    if (isnan(s->width) && (!s->design_taps || pulse))
        return fault_set(fault, "%s needs --width, %s%s", job->kind,
                         pulse ? "twice the cutoff times the roll-off: "
                               : "the width of each transition, or --taps; ",
                         pulse ? "for example --cutoff 1k --width 700 for a roll-off of 0.35"
                               : "for example --width 500");
    return true;
}

// Reads the table or the list, if the design has one. The points of a list's line GraphicEQ are a
// table, of which some 10000 taps are made.
static bool load(struct job *job, struct fault *fault)
{
    struct partita_design *d = &job->design;
    const struct sections *list = &job->sections;
    double max = job->lowers ? 0 : -INFINITY;
    if (d->kind == PARTITA_DESIGN_TABLE) {
        const bool good = points_read(&job->table, job->settings.operands[1], fault);
        d->table = job->table.list;
        d->table_count = job->table.n;
        return good;
    }
    if (job->equalizes && !equalizer_read(job, fault)) return false;
    if (!list->n_points) return true;
    if (job->crossover.tail > 0 || job->settings.exact_gains)
        return fault_set(fault, "%s: GraphicEQ goes with neither --tail nor --exact-gains",
                         job->settings.operands[1]);
    for (size_t i = 0; i < list->n_points; i++) max = fmax(max, list->points[i].decibels);
    const double gain = job->lowers ? -max : job->crossover.gain[0];
    for (size_t i = 0; i < list->n_points; i++) list->points[i].decibels += gain;
    job->amplification = max + gain;
    job->equalizes = false;
    d->kind = PARTITA_DESIGN_TABLE;
    d->table = list->points;
    d->table_count = list->n_points;
    d->minimum_phase = !job->settings.linear_phase;
    if (!d->taps && !(d->width > 0)) d->width = d->rate / 2000;
    return true;
}

static bool choose_format(struct job *job, struct fault *fault)
{
    const struct settings *s = &job->settings;
    job->info.channels = job->crossover.bands;
    job->info.rank = job->info.channels > 1 ? 2 : 1;
    job->info.rate = s->rate;
    if (!measured_choose_format(&job->info, s, job->out, fault)) return false;
    if (job->info.container != CONTAINER_WAV || s->rate > 0) return true;
    return fault_set(fault,
                     "%s: a WAV needs a sample rate; add --rate, for example --rate 48k, or "
                     "write to .npy, .txt or .raw",
                     job->out);
}

static bool design_filter(struct job *job, struct fault *fault)
{
    struct partita_design *d = &job->design;
    d->log = job->crossover.log = (struct partita_log){option_words_log, &job->log};
    enum partita_status status =
        job->equalizes ? equalizer_taps(job) : partita_design_taps_count(d, &job->n);
    if (!succeeded(job, status, fault)) return false;
    job->taps = malloc(job->crossover.bands * job->n * sizeof *job->taps);
    if (!job->taps) return fault_set(fault, "out of memory");
    status = job->equalizes ? equalizer_taps(job) : partita_design_taps(d, job->taps, job->n);
    return succeeded(job, status, fault);
}

// Taps as a reader of OUT has them, and what these achieve.
static bool round_taps(struct job *job, struct fault *fault)
{
    struct sample_counts counts = {0};
    const size_t bytes = encoding_size(job->info.encoding), n = job->crossover.bands * job->n;
    unsigned char *stored = malloc(n * bytes);
    if (!stored) return fault_set(fault, "out of memory");
    if (!job->equalizes) partita_design_measure(&job->design, job->taps, n, &job->exact);
    samples_encode_f64(stored, job->taps, n, job->info.encoding, &counts);
    double error = 0;
    for (size_t i = 0; i < n; i++) {
        const double exact = job->taps[i];
        samples_decode_f64(&job->taps[i], stored + i * bytes, 1, job->info.encoding);
        error += (job->taps[i] - exact) * (job->taps[i] - exact);
    }
    job->rounding = sqrt(error);
    free(stored);
    job->clipped = counts.clipped;
    job->result.delay = job->equalized.delay;
    job->result.attenuation = INFINITY;
    if (job->equalizes) return true;
    // If the number of taps was chosen, the design still says for which width.
    return succeeded(job, partita_design_measure(&job->design, job->taps, job->n, &job->result),
                     fault);
}

// Kaiser's formulas err by less than this.
static const double TOLERATED_DB = 1, TOLERATED_RIPPLE = 1.1;

static bool misses(const struct settings *s, const struct partita_design_result *result)
{
    return s->attenuation - result->attenuation > TOLERATED_DB ||
           (s->ripple > 0 && result->ripple > TOLERATED_RIPPLE * s->ripple);
}

// The attenuation of a table and of a raised cosine is that of a window.
static void warn_of_misses(struct job *job)
{
    const struct settings *s = &job->settings;
    const struct partita_design_result *r = &job->result;
    double period;
    const bool measured = job->design.kind != PARTITA_DESIGN_TABLE && !achieved_pulse(job, &period);
    job->missed = measured && !job->equalizes && misses(s, r);
    if (!job->missed) return;
    const bool rounded = !misses(s, &job->exact);
    const char *remedy = rounded          ? "use --output-format f64"
                         : s->design_taps ? "leave out --taps or use more, or a larger --width"
                                          : "use a larger --width";
    if (s->attenuation - r->attenuation > TOLERATED_DB)
        report_warning(s, "--attenuation %g: %zu taps%s reach %.2f dB; %s", s->attenuation, job->n,
                       rounded ? ", rounded as they are stored," : "", r->attenuation, remedy);
    else
        report_warning(s, "--ripple %g: %zu taps%s reach %.4g dB; %s", s->ripple, job->n,
                       rounded ? ", rounded as they are stored," : "", r->ripple, remedy);
}

// What the picture and the report say. The picture comes first, so that OUT is written last of all
// files.
static bool finish(struct job *job, struct fault *fault)
{
    const struct settings *s = &job->settings;
    FILE *to = strcmp(job->out, "-") == 0 ? stderr : stdout;
    if (!achieved_find_interference(job)) return fault_set(fault, "out of memory");
    if (s->plot && !plot_write(job, fault)) return false;
    job->info.frames = job->n;
    if (!measured_store(job->taps, &job->info, job->out, s, job->clipped, fault)) return false;
    if (job->amplification > 0)
        report_warning(s,
                       "%s: amplifies by up to %.2f dB, by which loud signals clip unless --gain "
                       "lowers them",
                       s->operands[1], job->amplification);
    warn_of_misses(job);
    const bool good = s->json ? achieved_print_json(job, to) : s->quiet || achieved_print(job, to);
    return good || fault_set(fault, "standard output: cannot write");
}

int design_main(const struct settings *settings, struct fault *fault)
{
    struct job job = {.settings = *settings,
                      .kind = settings->operands[0],
                      .out = settings->files[settings->n_operands - 1],
                      .crossover.bands = 1};
    if (!parse(&job, fault)) return EXIT_USAGE;
    const bool good =
        (settings->n_operands < 3 || temp_differs(job.out, &settings->operands[1], 1, fault)) &&
        choose_format(&job, fault) && load(&job, fault) && design_filter(&job, fault) &&
        round_taps(&job, fault) && finish(&job, fault);
    points_release(&job.table);
    sections_release(&job.sections);
    free(job.taps);
    if (!good) return EXIT_FAILED;
    return job.missed && settings->strict ? EXIT_DEGRADED : EXIT_DONE;
}
