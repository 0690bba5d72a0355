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

// Each response is released as soon as it is written.
static bool fill_taps(struct taps *t, struct matrix *m, struct fault *fault)
{
    size_t row = 0;
    if (!taps_allocate(t, fault)) return false;
    for (size_t i = 0; i < count_firs(m); i++) {
        struct fir *f = &m->firs[i];
        const size_t first = row * t->length + f->delay + t->lead - f->lead;
        if (!f->taps) continue;
        for (size_t k = 0; k < f->n; k++) taps_set(t, first + k, f->taps[k]);
        row++;
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
    bool good = true;
    size_t heard = 0;
    for (size_t c = 0; good && isfinite(settings->dry) && c < m.out_channels; c++) // for --dry
        if (m.in_channels == 1 || c < m.in_channels)
            good = matrix_add_unit(&m, c, m.in_channels == 1 ? 0 : c, 0, fault);
    while (heard < count_firs(&m) && !m.firs[heard].taps) heard++;
    if (good && heard == count_firs(&m)) {
        report_warning(settings, "%s: has no path from an input to an output: the result is silent",
                       network->path);
        good = matrix_add_unit(&m, 0, 0, 0, fault);
    }
    good = good && layout_taps(&t, &m, fault);
    good = good && fill_taps(&t, &m, fault);
    t.notes = m.notes;
    matrix_release(&m);
    good = good && taps_finish(&t, settings, network->path, fault);
    if (good) *ret = t;
    else taps_release(&t);
    return good;
}
