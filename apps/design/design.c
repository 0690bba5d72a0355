// SPDX-License-Identifier: MIT
// `partita design`: designs taps, writes them as a file that the other commands read, and says what
// they achieve.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "achieved.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/option_words.h"
#include "cli/report.h"
#include "correct/measured.h"
#include "io/bytes/temp.h"
#include "plot.h"
#include "specification.h"

struct job {
    struct settings settings;
    struct specification specification;
    struct fault log; // the library's last line
    double *taps;     // [channels][n]
    size_t n;
    struct audio_info info;
    struct partita_design_result result, // of the taps as they are stored,
        exact;                           // and before
    uint64_t clipped;
    bool missed; // an attenuation or a ripple that was asked for
};

static bool job_fail(const struct job *job, enum partita_status status, struct fault *fault)
{
    return option_words_of_status(fault, COMMAND_DESIGN, status, &job->log);
}

// PLOT, OUT and the table must be different files.
static bool check_names(const struct settings *s, struct fault *fault)
{
    const char *const out = specification_out(s);
    const char *const others[] = {out, s->operands[1]};
    const int tables = s->n_operands == 3 ? 1 : 0;
    if (tables && !temp_differs(out, &s->operands[1], 1, fault)) return false;
    return !s->plot || temp_differs(s->plot, others, 1 + tables, fault);
}

static bool choose_format(struct job *job, struct fault *fault)
{
    const struct settings *s = &job->settings;
    job->info.channels = job->specification.ways;
    job->info.rank = job->info.channels > 1 ? 2 : 1;
    job->info.rate = s->rate;
    if (!measured_choose_format(&job->info, s, specification_out(s), fault)) return false;
    if (job->info.container != CONTAINER_WAV || s->rate > 0) return true;
    return fault_set(fault,
                     "%s: a WAV needs a sample rate; add --rate, for example --rate 48k, or "
                     "write to .npy, .txt or .raw",
                     specification_out(s));
}

static bool design_filter(struct job *job, struct fault *fault)
{
    struct specification *s = &job->specification;
    s->design.log = s->equalizer.crossover.log = (struct partita_log){option_words_log, &job->log};
    enum partita_status status = s->equalizes ? equalizer_taps(&s->equalizer, NULL, &job->n)
                                              : partita_design_taps_count(&s->design, &job->n);
    if (status) return job_fail(job, status, fault);
    job->taps = malloc(s->ways * job->n * sizeof *job->taps);
    if (!job->taps) return fault_set(fault, "out of memory");
    status = s->equalizes ? equalizer_taps(&s->equalizer, job->taps, &job->n)
                          : partita_design_taps(&s->design, job->taps, job->n);
    return status == PARTITA_OK || job_fail(job, status, fault);
}

// Taps as a reader of OUT has them, and what these achieve.
static bool round_taps(struct job *job, struct fault *fault)
{
    struct sample_counts counts = {0};
    const size_t bytes = encoding_size(job->info.encoding), n = job->specification.ways * job->n;
    unsigned char *stored = malloc(n * bytes);
    if (!stored) return fault_set(fault, "out of memory");
    if (!job->specification.equalizes)
        partita_design_measure(&job->specification.design, job->taps, n, &job->exact);
    samples_encode_f64(stored, job->taps, n, job->info.encoding, &counts);
    double error = 0;
    for (size_t i = 0; i < n; i++) {
        const double exact = job->taps[i];
        samples_decode_f64(&job->taps[i], stored + i * bytes, 1, job->info.encoding);
        error += (job->taps[i] - exact) * (job->taps[i] - exact);
    }
    job->specification.equalizer.rounding = sqrt(error);
    free(stored);
    job->clipped = counts.clipped;
    job->result.delay = job->specification.equalizer.result.delay;
    job->result.attenuation = INFINITY;
    if (job->specification.equalizes) return true;
    // If the number of taps was chosen, the design still says for which width.
    const enum partita_status status =
        partita_design_measure(&job->specification.design, job->taps, job->n, &job->result);
    return status == PARTITA_OK || job_fail(job, status, fault);
}

// Kaiser's formulas err by less than this.
static const double TOLERATED_DB = 1, TOLERATED_RIPPLE = 1.1;

static bool misses(const struct settings *s, const struct partita_design_result *result)
{
    return s->attenuation - result->attenuation > TOLERATED_DB ||
           (s->ripple > 0 && result->ripple > TOLERATED_RIPPLE * s->ripple);
}

// The attenuation of a table and of a raised cosine is that of a window.
static void warn_of_misses(struct job *job, const struct achieved *achieved)
{
    const struct settings *s = &job->settings;
    const struct partita_design_result *r = &job->result;
    double period;
    const bool measured = job->specification.design.kind != PARTITA_DESIGN_TABLE &&
                          !achieved_pulse(achieved, &period);
    job->missed = measured && !job->specification.equalizes && misses(s, r);
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
    struct achieved achieved = {
        .specification = &job->specification,
        .settings = s,
        .taps = job->taps,
        .n = job->n,
        .encoding = job->info.encoding,
        .result = job->result,
    };
    struct sample_counts counts;
    FILE *to = strcmp(specification_out(s), "-") == 0 ? stderr : stdout;
    if (!achieved_find_interference(&achieved)) return fault_set(fault, "out of memory");
    if (s->plot && !plot_write(&achieved, fault)) return false;
    job->info.frames = job->n;
    if (!measured_store(job->taps, &job->info, specification_out(s), &counts, fault)) return false;
    measured_warn_clipped(s, &job->info, specification_out(s), job->clipped);
    if (job->specification.amplification > 0)
        report_warning(s,
                       "%s: amplifies by up to %.2f dB, by which loud signals clip unless --gain "
                       "lowers them",
                       s->operands[1], job->specification.amplification);
    warn_of_misses(job, &achieved);
    const bool good =
        s->json ? achieved_print_json(&achieved, to) : s->quiet || achieved_print(&achieved, to);
    return good || fault_set(fault, "standard output: cannot write");
}

int design_main(const struct settings *settings)
{
    struct job job = {.settings = *settings};
    struct fault fault;
    if (!specification_parse(&job.specification, settings, &fault))
        return report_usage(COMMAND_DESIGN, &fault);
    interrupt_install();
    const bool good =
        picture_check(settings, &fault) && check_names(settings, &fault) &&
        choose_format(&job, &fault) && specification_load(&job.specification, settings, &fault) &&
        design_filter(&job, &fault) && round_taps(&job, &fault) && finish(&job, &fault);
    specification_release(&job.specification);
    free(job.taps);
    const int status = job.missed && settings->strict ? EXIT_DEGRADED : EXIT_DONE;
    return report_close(COMMAND_DESIGN,
                        good ? status : report_fault(COMMAND_DESIGN, &fault, EXIT_FAILED));
}
