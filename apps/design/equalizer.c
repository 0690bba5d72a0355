// SPDX-License-Identifier: MIT
#include "design.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "cli/report.h"
#include "config/network.h"
#include "io/bytes/bytes.h"

enum { TEXT_SIZE = 256, MAX = PARTITA_MAX_BANDS, MAX_DELAY = 1 << 16 };

// Gain, delay and polarity of each band.
static bool parse_bands(struct job *job, struct fault *fault)
{
    const struct settings *s = &job->settings;
    struct partita_crossover *c = &job->crossover;
    struct number gains[MAX] = {{0}}, delays[MAX] = {{0}}, ways[MAX] = {{0}};
    const int n = (int)c->bands;
    const int inverted = s->invert ? number_parse_list(s->invert, QUANTITY_COUNT, ways, n) : 0;
    if (s->gains && number_parse_list(s->gains, QUANTITY_DECIBELS, gains, n) != n)
        return fault_set(fault, "--gain %s: is no list of decibels of length %d", s->gains, n);
    if (s->delays && number_parse_list(s->delays, QUANTITY_FRAMES, delays, n) != n)
        return fault_set(fault, "--delay %s: is no list of %d times or numbers of frames",
                         s->delays, n);
    for (int i = 0; i < n; i++) {
        const double frames = round(delays[i].value * (delays[i].is_time ? c->rate : 1));
        if (!(frames >= 0 && frames <= MAX_DELAY))
            return fault_set(fault, "--delay %s: is not within 0 to %d frames", s->delays,
                             MAX_DELAY);
        c->gain[i] = gains[i].value;
        c->delay[i] = (size_t)frames;
    }
    for (int i = 0; i < inverted || (s->invert && !inverted); i++) {
        if (!(ways[i].integer >= 1 && ways[i].integer <= n))
            return fault_set(fault, "--invert %s: is no list of ways from 1 to %d", s->invert, n);
        c->inverted[ways[i].integer - 1] = true;
    }
    return true;
}

// Appends the section of a text, for which a message has what was given.
static bool add_words(struct job *job, const char *given, const char *text, struct fault *fault)
{
    struct fault said;
    if (sections_add_words(&job->sections, text, &said)) return true;
    fault_set(fault, "%s: %s", given, said.text);
    fault->usage = said.usage;
    return false;
}

// "3k" or "3k:lr8": the frequency and family of a low pass. `operands` begin with the first one.
static bool add_crossing(struct job *job, size_t i, char *const *operands, struct fault *fault)
{
    char text[TEXT_SIZE];
    const char *operand = operands[i], *family = strchr(operand, ':') ? "" : ":lr4";
    struct number frequency;
    snprintf(text, sizeof text, "%.*s", (int)strcspn(operand, ":"), operand);
    if (!number_parse(text, QUANTITY_FREQUENCY, &frequency))
        return fault_usage(fault,
                           "%s: is no frequency such as 3k or 3k:lr8; several stand apart, as in "
                           "300 3k",
                           operand);
    if (snprintf(text, sizeof text, "lowpass %s%s", operand, family) >= TEXT_SIZE)
        return fault_usage(fault, "%.20s..: is longer than a frequency and lr4, bw3 or the like",
                           operand);
    *strchr(text, ':') = ' ';
    if (!add_words(job, operand, text, fault)) return false;
    const struct partita_section *low = &job->sections.list[i];
    job->crossover.crossing[i] = (struct partita_crossing){low->frequency, low->family, low->order};
    if (i && low->frequency <= low[-1].frequency)
        return fault_usage(fault, "%s: must be above %s before it", operand, operands[i - 1]);
    return low->family || fault_usage(fault, "%s: needs lr4, bw3, bessel2 or the like", operand);
}

bool equalizer_parse(struct job *job, struct fault *fault)
{
    const struct settings *s = &job->settings;
    const bool eq = strcmp(job->kind, "eq") == 0;
    struct partita_crossover *c = &job->crossover;
    job->lowers = eq && s->gains && strcmp(s->gains, "auto") == 0;
    job->sections.rate = c->rate = s->rate;
    if (!eq) c->bands = (size_t)s->n_operands - 1;
    c->taps = (size_t)s->design_taps;
    c->tail = s->design_tail;
    if (s->linear_phase) c->phase = PARTITA_EQUALIZER_LINEAR;
    if (!(s->rate > 0))
        return fault_set(fault, "%s needs --rate, for example --rate 48k", job->kind);
    if (eq && s->n_operands != 3 && !(s->n_operands == 2 && s->sections.n))
        return fault_set(fault, "eq needs one list or --section, and OUT, but %d name%s given%s",
                         s->n_operands - 1, s->n_operands == 2 ? " is" : "s are",
                         s->sections.n ? "; a section of several words stands in quotes" : "");
    if (!eq && (c->bands < 2 || c->bands > PARTITA_MAX_BANDS))
        return fault_set(fault, "crossover needs 1 to %d frequencies, and OUT",
                         PARTITA_MAX_BANDS - 1);
    return job->lowers || parse_bands(job, fault);
}

// What a term of the only path to the first channel of CamillaDSP's pipeline adds.
static bool add_term(struct job *job, const struct network *network,
                     const struct network_term *term, struct fault *fault)
{
    const struct partita_section gain = {.kind = PARTITA_SECTION_BIQUAD,
                                         .biquad = {.b = {term->gain}}};
    const struct impulse unit = {.source = IMPULSE_SECTIONS}, *filter = &unit;
    struct fault said;
    if (term->impulse != IMPULSE_UNIT) filter = &network->impulses[term->impulse];
    if (term->in || term->delay > 0 || term->gain == 0 || filter->source != IMPULSE_SECTIONS)
        return network_fault(network, term->line, fault,
                             "the first channel has more than equalizers; use convolve --config");
    bool good = term->gain == 1 || sections_add(&job->sections, &gain, &said);
    for (size_t i = 0; good && i < filter->n_sections; i++)
        good = sections_add(&job->sections, &filter->sections[i], &said);
    return good || network_fault(network, filter->line, fault, "%.500s", said.text);
}

static bool read_pipeline(struct job *job, struct fault *fault)
{
    const char *const path = job->settings.operands[1];
    struct network network;
    if (!network_read(&network, path, false, fault)) return false;
    bool good = rates_agree(network.rate, job->settings.rate) ||
                fault_set(fault, "%s: is for %.12g Hz, not for --rate %.12g", path, network.rate,
                          job->settings.rate);
    for (size_t i = 0; i < network.n_stages; i++) {
        const struct network_stage *stage = &network.stages[i];
        size_t paths = 0; // to the first channel
        for (size_t k = 0; good && k < stage->n_terms; k++)
            if (!stage->terms[k].out && paths++ == 0)
                good = add_term(job, &network, &stage->terms[k], fault);
        if (good && paths != 1)
            good = fault_set(
                fault, "%s: a mixer adds to the first channel or mutes it; use convolve --config",
                path);
    }
    for (size_t i = 0; good && i < network.n_impulses; i++)
        if (network.impulses[i].note)
            report_warning(&job->settings, "%s:%d: %s", path, network.impulses[i].line,
                           network.impulses[i].note);
    network_release(&network);
    return good;
}

// Whether OUT, if it is the only name, is a list, after which OUT was forgotten.
static bool check_out(const struct job *job, struct fault *fault)
{
    struct sections sections = {.rate = job->settings.rate};
    struct fault ignored;
    char *text = regular_read_text(job->out, &ignored);
    const bool list = text && sections_add_list(&sections, job->out, text, &ignored);
    sections_release(&sections);
    free(text);
    return !list ||
           fault_usage(fault, "%s: is a list, which taps would replace; name OUT", job->out);
}

bool equalizer_read(struct job *job, struct fault *fault)
{
    const struct settings *s = &job->settings;
    for (size_t i = 0; i + 1 < job->crossover.bands; i++)
        if (!add_crossing(job, i, s->files + 1, fault)) return false;
    for (int i = 0; i < s->sections.n; i++)
        if (!add_words(job, s->sections.words[i], s->sections.words[i], fault)) return false;
    if (job->crossover.bands > 1) return true;
    if (s->n_operands < 3) return check_out(job, fault);
    if (network_is_named(s->operands[1])) return read_pipeline(job, fault);
    char *text = regular_read_text(s->operands[1], fault);
    const bool good = text && sections_add_list(&job->sections, s->operands[1], text, fault);
    free(text);
    return good;
}

enum partita_status equalizer_taps(struct job *job)
{
    const struct partita_crossover *c = &job->crossover;
    struct partita_equalizer_result *r = &job->equalized;
    double *const taps = job->taps;
    const struct partita_equalizer one = {.rate = c->rate,
                                          .sections = job->sections.list,
                                          .n_sections = job->sections.n,
                                          .taps = c->taps,
                                          .tail = c->tail,
                                          .phase = c->phase,
                                          .exact_gains = job->settings.exact_gains,
                                          .log = c->log};
    const enum partita_status status = c->bands > 1 ? partita_crossover_taps(c, taps, job->n, r)
                                                    : partita_equalizer_taps(&one, taps, job->n, r);
    double gain = c->bands > 1 ? 0 : c->gain[0]; // the gains of several bands are in their taps
    job->n = r->taps;
    if (status || !taps) return status;
    if (job->lowers) gain = -fmax(r->gain, 0);
    for (size_t i = 0; i < job->n * c->bands; i++) taps[i] *= pow(10, gain / 20);
    r->gain += gain;
    return status;
}
