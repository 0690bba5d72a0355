// SPDX-License-Identifier: MIT
// `partita design`: designs taps, writes them as a file that the other commands read, and says what
// they achieve.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "achieved.h"
#include "cli/commands.h"
#include "cli/option_words.h"
#include "cli/report.h"
#include "correct/measured.h"
#include "io/bytes/temp.h"
#include "picture/check.h"
#include "specification.h"

static bool succeeded(const struct achieved *a, enum partita_status status, struct fault *fault)
{
    return option_words_of_status(fault, COMMAND_DESIGN, status, &a->log);
}

static bool choose_format(struct achieved *a, struct fault *fault)
{
    const struct settings *s = &a->settings;
    a->info.channels = a->specification.ways;
    a->info.rank = a->info.channels > 1 ? 2 : 1;
    a->info.rate = s->rate;
    if (!measured_choose_format(&a->info, s, specification_out(s), fault)) return false;
    if (a->info.container != CONTAINER_WAV || s->rate > 0) return true;
    return fault_set(fault,
                     "%s: a WAV needs a sample rate; add --rate, for example --rate 48k, or "
                     "write to .npy, .txt or .raw",
                     specification_out(s));
}

static bool design_filter(struct achieved *a, struct fault *fault)
{
    struct specification *s = &a->specification;
    s->design.log = s->equalizer.crossover.log = (struct partita_log){option_words_log, &a->log};
    enum partita_status status = s->equalizes ? equalizer_taps(&s->equalizer, NULL, &a->n)
                                              : partita_design_taps_count(&s->design, &a->n);
    if (!succeeded(a, status, fault)) return false;
    a->taps = malloc(s->ways * a->n * sizeof *a->taps);
    if (!a->taps) return fault_set(fault, "out of memory");
    status = s->equalizes ? equalizer_taps(&s->equalizer, a->taps, &a->n)
                          : partita_design_taps(&s->design, a->taps, a->n);
    return succeeded(a, status, fault);
}

// Taps as a reader of OUT has them, and what these achieve.
static bool round_taps(struct achieved *a, struct fault *fault)
{
    struct sample_counts counts = {0};
    const size_t bytes = encoding_size(a->info.encoding), n = a->specification.ways * a->n;
    unsigned char *stored = malloc(n * bytes);
    if (!stored) return fault_set(fault, "out of memory");
    if (!a->specification.equalizes)
        partita_design_measure(&a->specification.design, a->taps, n, &a->exact);
    samples_encode_f64(stored, a->taps, n, a->info.encoding, &counts);
    double error = 0;
    for (size_t i = 0; i < n; i++) {
        const double exact = a->taps[i];
        samples_decode_f64(&a->taps[i], stored + i * bytes, 1, a->info.encoding);
        error += (a->taps[i] - exact) * (a->taps[i] - exact);
    }
    a->specification.equalizer.rounding = sqrt(error);
    free(stored);
    a->clipped = counts.clipped;
    a->result.delay = a->specification.equalizer.result.delay;
    a->result.attenuation = INFINITY;
    if (a->specification.equalizes) return true;
    // If the number of taps was chosen, the design still says for which width.
    return succeeded(a, partita_design_measure(&a->specification.design, a->taps, a->n, &a->result),
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
static void warn_of_misses(struct achieved *a)
{
    const struct settings *s = &a->settings;
    const struct partita_design_result *r = &a->result;
    double period;
    const bool measured =
        a->specification.design.kind != PARTITA_DESIGN_TABLE && !achieved_pulse(a, &period);
    a->missed = measured && !a->specification.equalizes && misses(s, r);
    if (!a->missed) return;
    const bool rounded = !misses(s, &a->exact);
    const char *remedy = rounded          ? "use --output-format f64"
                         : s->design_taps ? "leave out --taps or use more, or a larger --width"
                                          : "use a larger --width";
    if (s->attenuation - r->attenuation > TOLERATED_DB)
        report_warning(s, "--attenuation %g: %zu taps%s reach %.2f dB; %s", s->attenuation, a->n,
                       rounded ? ", rounded as they are stored," : "", r->attenuation, remedy);
    else
        report_warning(s, "--ripple %g: %zu taps%s reach %.4g dB; %s", s->ripple, a->n,
                       rounded ? ", rounded as they are stored," : "", r->ripple, remedy);
}

// What the picture and the report say. The picture comes first, so that OUT is written last of all
// files.
static bool finish(struct achieved *a, struct fault *fault)
{
    const struct settings *s = &a->settings;
    FILE *to = strcmp(specification_out(s), "-") == 0 ? stderr : stdout;
    if (!achieved_find_interference(a)) return fault_set(fault, "out of memory");
    if (s->plot && !plot_write(a, fault)) return false;
    a->info.frames = a->n;
    if (!measured_store(a->taps, &a->info, specification_out(s), s, a->clipped, fault))
        return false;
    if (a->specification.amplification > 0)
        report_warning(s,
                       "%s: amplifies by up to %.2f dB, by which loud signals clip unless --gain "
                       "lowers them",
                       s->operands[1], a->specification.amplification);
    warn_of_misses(a);
    const bool good = s->json ? achieved_print_json(a, to) : s->quiet || achieved_print(a, to);
    return good || fault_set(fault, "standard output: cannot write");
}

int design_main(const struct settings *settings, struct fault *fault)
{
    struct achieved a = {.settings = *settings};
    if (!specification_parse(&a.specification, settings, fault)) return EXIT_USAGE;
    const bool good =
        picture_check(settings, fault) &&
        (settings->n_operands < 3 ||
         temp_differs(specification_out(settings), &settings->operands[1], 1, fault)) &&
        choose_format(&a, fault) && specification_load(&a.specification, settings, fault) &&
        design_filter(&a, fault) && round_taps(&a, fault) && finish(&a, fault);
    specification_release(&a.specification);
    free(a.taps);
    if (!good) return EXIT_FAILED;
    return a.missed && settings->strict ? EXIT_DEGRADED : EXIT_DONE;
}
