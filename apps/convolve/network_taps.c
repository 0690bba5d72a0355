// SPDX-License-Identifier: MIT
#include "taps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sample_type.h"
#include "cli/report.h"
#include "config/matrix.h"
#include "io/frames.h"

static size_t count_firs(const struct matrix *m)
{
    return m->out_channels * m->in_channels;
}

static bool add_dry_units(struct matrix *m, const struct settings *s, struct fault *fault)
{
    const double factor = pow(10, s->dry / 20);
    if (factor == 0) return true;
    const bool one = m->in_channels == 1;
    if (!one && m->in_channels != m->out_channels)
        return fault_set(fault, "--dry needs as many outputs as inputs, not %zu and %zu",
                         m->out_channels, m->in_channels);
    for (size_t c = 0; c < m->out_channels; c++)
        if (!matrix_add_unit(m, c, one ? 0 : c, factor, fault)) return false;
    return true;
}

static void scale_matrix(struct matrix *m, double decibels)
{
    const double factor = pow(10, decibels / 20);
    if (factor == 1) return;
    for (size_t i = 0; i < count_firs(m); i++)
        for (size_t k = 0; m->firs[i].taps && k < m->firs[i].n; k++) m->firs[i].taps[k] *= factor;
}

// --ir-length and --ir-fade, by the end of all responses together, and --delay.
static void shorten_and_delay(struct matrix *m, const struct settings *s)
{
    size_t length = 0, fade;
    for (size_t i = 0; i < count_firs(m); i++) {
        const struct fir *f = &m->firs[i];
        if (f->taps && f->delay + f->n - 2 * f->lead > length)
            length = f->delay + f->n - 2 * f->lead;
    }
    const size_t end = taps_choose_end(s, length, &fade);
    for (size_t i = 0; i < count_firs(m); i++) {
        struct fir *f = &m->firs[i];
        const size_t kept = 2 * f->lead + (end > f->delay ? end - f->delay : 1);
        f->delay += (size_t)s->delay;
        if (end == SIZE_MAX || !f->taps) continue;
        if (f->n > kept) f->n = kept;
        for (size_t k = f->lead; k < f->n; k++)
            f->taps[k] *= taps_fade(f->delay - (size_t)s->delay + k - f->lead, end, fade);
    }
}

// Lists the paths that there are, unless these are all or the diagonal. The lead is that of the
// response that begins first.
static bool layout_taps(struct taps *t, const struct matrix *m, struct fault *fault)
{
    size_t n_diagonal = 0;
    t->paths = calloc(count_firs(m), sizeof *t->paths);
    if (!t->paths) return fault_set(fault, "out of memory");
    for (size_t i = 0; i < count_firs(m); i++) {
        const struct fir *f = &m->firs[i];
        if (!f->taps) continue;
        const struct taps_path path = {i / m->in_channels, i % m->in_channels};
        const size_t end = f->delay + f->n - 2 * f->lead;
        t->paths[t->n_paths++] = path;
        n_diagonal += path.out == path.in;
        if (end > t->length) t->length = end;
        if (f->lead > t->lead) t->lead = f->lead;
    }
    t->length += 2 * t->lead;
    t->in_channels = m->in_channels;
    t->out_channels = m->out_channels;
    t->groups = 1;
    const bool diagonal = t->n_paths == n_diagonal && n_diagonal == m->in_channels &&
                          m->in_channels == m->out_channels;
    if (diagonal) t->groups = m->in_channels;
    if (!diagonal && t->n_paths < count_firs(m)) return true;
    free(t->paths);
    t->paths = NULL;
    return true;
}

// Writes a response to its row. False if a tap is not finite.
static bool write_row(struct taps *t, size_t row, const struct fir *f)
{
    const size_t first = row * t->length + f->delay + t->lead - f->lead;
    bool finite = true;
    for (size_t k = 0; k < f->n; k++) {
        taps_set(t, first + k, f->taps[k]);
        finite = finite && isfinite(taps_at(t, first + k));
    }
    return finite;
}

// Each response is released as soon as it is written.
static bool fill_taps(struct taps *t, struct matrix *m, const char *name, struct fault *fault)
{
    size_t row = 0;
    if (!taps_allocate(t, fault)) return false;
    for (size_t i = 0; i < count_firs(m); i++) {
        struct fir *f = &m->firs[i];
        if (!f->taps) continue;
        if (!write_row(t, row++, f))
            return fault_set(fault, "%s: the taps from input %zu to output %zu are not finite",
                             name, i % m->in_channels + 1, i / m->in_channels + 1);
        memory_free(f->taps);
        f->taps = NULL;
    }
    return true;
}

bool network_taps_load(struct taps *ret, const struct network *network, enum partita_type type,
                       const struct audio_info *signal, const struct settings *settings,
                       struct fault *fault)
{
    struct taps t = {.type = type};
    struct matrix m;
    if (network->in_channels != signal->channels)
        return fault_set(fault, "%s: is for %zu input channel%s; %s has %zu", network->path,
                         network->in_channels, network->in_channels == 1 ? "" : "s",
                         operand_name(settings, 1), signal->channels);
    if (!(signal->rate > 0) && network->list && network->next)
        return fault_set(fault,
                         "%s: has no sample rate, by which a configuration of %s is chosen; add "
                         "--rate",
                         operand_name(settings, 1), network->list);
    if (!matrix_load(&m, network, signal->rate * (double)settings->up, settings, fault))
        return false;
    scale_matrix(&m, settings->wet);
    shorten_and_delay(&m, settings);
    bool good = add_dry_units(&m, settings, fault);
    scale_matrix(&m, options_gain(settings));
    size_t heard = 0;
    while (heard < count_firs(&m) && !m.firs[heard].taps) heard++;
    if (good && heard == count_firs(&m)) {
        report_warning(settings, "%s: has no path from an input to an output: the result is silent",
                       network->path);
        good = matrix_add_unit(&m, 0, 0, 0, fault);
    }
    good = good && layout_taps(&t, &m, fault);
    good = good && fill_taps(&t, &m, network->path, fault);
    matrix_release(&m);
    if (good) *ret = t;
    else taps_release(&t);
    return good;
}
