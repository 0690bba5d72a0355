// SPDX-License-Identifier: MIT
#include "specification.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "base/number.h"

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

static bool find_kind(struct specification *ret, const char *name, struct fault *fault)
{
    char list[256] = "", hint[NEAREST_HINT_SIZE];
    struct nearest nearest = nearest_to(name);
    for (int i = 0; i < N_KINDS; i++) {
        const size_t at = strlen(list);
        ret->kind = kinds[i];
        ret->design.kind = (enum partita_design_kind)i;
        if (strcmp(name, kinds[i]) == 0) return true;
        nearest_try(&nearest, kinds[i]);
        snprintf(list + at, sizeof list - at, "%s%s", i ? ", " : "", kinds[i]);
    }
    return fault_set(fault, "%s: no such kind of filter%s; choose one of %s", name,
                     nearest_hint(&nearest, "", hint), list);
}

bool specification_parse(struct specification *ret, const struct settings *settings,
                         struct fault *fault)
{
    const struct settings *s = settings;
    *ret = (struct specification){
        .design = {.method = s->equiripple ? PARTITA_DESIGN_EQUIRIPPLE : PARTITA_DESIGN_KAISER,
                   .rate = s->rate,
                   .width = isnan(s->width) ? 0 : s->width,
                   .attenuation = s->attenuation,
                   .ripple = isnan(s->ripple) ? 0 : s->ripple,
                   .taps = (size_t)s->design_taps,
                   .minimum_phase = s->minimum_phase}};
    if (!find_kind(ret, s->operands[0], fault)) return false;
    const bool crossover = strcmp(ret->kind, "crossover") == 0;
    ret->equalizes = ret->design.kind > PARTITA_DESIGN_TABLE;
    ret->ways = crossover ? (size_t)s->n_operands - 1 : 1;
    if (ret->equalizes) return equalizer_parse(&ret->equalizer, s, fault);
    struct number cutoff[2] = {{.value = 0}};
    if (s->cutoff && !number_parse_list(s->cutoff, QUANTITY_FREQUENCY, cutoff, 2))
        return fault_set(fault, "--cutoff %s: is not one frequency or two, such as 20k or 20k,40k",
                         s->cutoff);
    for (int i = 0; i < 2; i++) ret->design.cutoff[i] = cutoff[i].value;
    if (s->width <= 0)
        return fault_set(fault,
                         "--width %g: a transition is wider than 0, for example --width 500; or "
                         "leave it out and set --taps",
                         s->width);
    if (s->ripple == 0)
        return fault_set(fault,
                         "--ripple 0: no filter has exactly the gain that is wanted; set the "
                         "largest deviation, for example --ripple 0.01, or leave it out");
    if (!(s->rate > 0) && (ret->design.cutoff[0] >= 0.5 || ret->design.width >= 0.5))
        return fault_set(fault, "frequencies are fractions of the sample rate, below 0.5, without "
                                "--rate; add it, for example --rate 48k");
    const enum partita_design_kind kind = ret->design.kind;
    const bool table = kind == PARTITA_DESIGN_TABLE;
    const bool pulse =
        kind == PARTITA_DESIGN_RAISED_COSINE || kind == PARTITA_DESIGN_ROOT_RAISED_COSINE;
    const bool two = kind == PARTITA_DESIGN_BAND_PASS || kind == PARTITA_DESIGN_BAND_STOP;
    if (s->n_operands != (table ? 3 : 2))
        return fault_set(fault, "%s needs %s, but %d %s given", ret->kind,
                         table ? "the file of the table, and OUT" : "OUT", s->n_operands - 1,
                         s->n_operands == 2 ? "name is" : "names are");
    if (two && ret->design.cutoff[1] == 0)
        return fault_set(fault, "%s needs two cutoffs, for example --cutoff 1k,2k", ret->kind);
    if (!table && kind != PARTITA_DESIGN_HILBERT && !s->cutoff)
        return fault_set(fault, "%s needs --cutoff, for example --cutoff 1k", ret->kind);
    if (isnan(s->width) && (!s->design_taps || pulse))
        return fault_set(fault, "%s needs --width, %s%s", ret->kind,
                         pulse ? "twice the cutoff times the roll-off: "
                               : "the width of each transition, or --taps; ",
                         pulse ? "for example --cutoff 1k --width 700 for a roll-off of 0.35"
                               : "for example --width 500");
    return true;
}

const char *specification_out(const struct settings *settings)
{
    return settings->files[settings->n_operands - 1];
}

// Reads a list. The points of its line GraphicEQ are a table, of which some 10000 taps are made.
static bool load_list(struct specification *specification, const struct settings *settings,
                      struct fault *fault)
{
    struct equalizer *e = &specification->equalizer;
    struct partita_design *d = &specification->design;
    const struct sections *list = &e->sections;
    double max = e->lowers ? 0 : -INFINITY;
    if (!equalizer_read(e, settings, fault)) return false;
    if (!list->n_points) return true;
    if (e->crossover.tail > 0 || e->exact_gains)
        return fault_set(fault, "%s: GraphicEQ goes with neither --tail nor --exact-gains",
                         settings->operands[1]);
    for (size_t i = 0; i < list->n_points; i++) max = fmax(max, list->points[i].decibels);
    const double gain = e->lowers ? -max : e->crossover.gain[0];
    for (size_t i = 0; i < list->n_points; i++) list->points[i].decibels += gain;
    specification->amplification = max + gain;
    specification->equalizes = false;
    d->kind = PARTITA_DESIGN_TABLE;
    d->table = list->points;
    d->table_count = list->n_points;
    d->minimum_phase = !settings->linear_phase;
    if (!d->taps && !(d->width > 0)) d->width = d->rate / 2000;
    return true;
}

bool specification_load(struct specification *specification, const struct settings *settings,
                        struct fault *fault)
{
    struct specification *s = specification;
    if (s->equalizes) return load_list(s, settings, fault);
    if (s->design.kind != PARTITA_DESIGN_TABLE) return true;
    if (!points_read(&s->table, settings->operands[1], fault)) return false;
    s->design.table = s->table.list;
    s->design.table_count = s->table.n;
    return true;
}

void specification_release(struct specification *specification)
{
    points_release(&specification->table);
    sections_release(&specification->equalizer.sections);
}
