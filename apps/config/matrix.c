// SPDX-License-Identifier: MIT
#include "matrix.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "cli/report.h"
#include "io/frames.h"

struct matrix_loader {
    const struct network *network;
    const struct settings *settings;
    double rate;
    struct impulse_file file;
    struct fir impulse; // of number `loaded`
    size_t loaded;
    size_t samples; // of all responses of the stage that is computed
    struct fault *fault;
};

static size_t nominal_length(const struct fir *f)
{
    return f->n - 2 * f->lead;
}

static void fir_release(struct fir *f)
{
    memory_free(f->taps);
    *f = (struct fir){0};
}

// Adds gain * f, delayed, to *sum.
static bool fir_add(struct fir *sum, const struct fir *f, double gain, size_t delay,
                    struct fault *fault)
{
    const size_t begin = f->delay + delay, end = begin + nominal_length(f);
    struct fir total = {.delay = begin, .lead = f->lead};
    sum->recursive |= f->recursive;
    size_t total_end = end;
    if (begin > FRAMES_MAX_SAMPLES)
        return fault_set(fault, "a delay of %zu frames is too long", begin);
    if (sum->taps) {
        const size_t sum_end = sum->delay + nominal_length(sum);
        total.delay = begin < sum->delay ? begin : sum->delay;
        total.lead = f->lead > sum->lead ? f->lead : sum->lead;
        total_end = end > sum_end ? end : sum_end;
    }
    total.n = total_end - total.delay + 2 * total.lead;
    if (!sum->taps || total.n != sum->n || total.delay != sum->delay) {
        if (total.n > FRAMES_MAX_SAMPLES)
            return fault_set(fault, "a response of %zu taps is too long", total.n);
        total.taps = memory_allocate_zeros(total.n * sizeof *total.taps);
        if (!total.taps) return memory_fault(fault, "a response of %zu taps", total.n);
        const size_t at = sum->delay - total.delay + total.lead - sum->lead;
        if (sum->taps) memcpy(total.taps + at, sum->taps, sum->n * sizeof *sum->taps);
        total.recursive = sum->recursive;
        fir_release(sum);
        *sum = total;
    }
    double *to = sum->taps + (begin - sum->delay + sum->lead - f->lead);
    for (size_t i = 0; i < f->n; i++) to[i] += gain * f->taps[i];
    return true;
}

// Leaves out the end of what is endless, but the lead.
static void fir_cut(struct fir *f, double tail)
{
    double energy = 0, left = 0;
    if (!f->recursive) return;
    for (size_t i = 0; i < f->n; i++) energy += f->taps[i] * f->taps[i];
    while (f->n > 2 * f->lead + 1) {
        const double last = f->taps[f->n - 1];
        left += last * last;
        if (!(left <= energy * pow(10, -tail / 10))) return;
        f->n--;
    }
}

static bool fir_convolve(struct fir *ret, const struct fir *a, const struct fir *b,
                         struct fault *fault)
{
    struct fir y = {.n = a->n + b->n - 1, .delay = a->delay + b->delay, .lead = a->lead + b->lead};
    if (y.n > FRAMES_MAX_SAMPLES)
        return fault_set(fault, "a response of %zu taps is too long", y.n);
    y.taps = memory_allocate(y.n * sizeof *y.taps);
    if (!y.taps) return memory_fault(fault, "a response of %zu taps", y.n);
    const enum partita_status status =
        partita_convolve(PARTITA_F64, y.taps, a->taps, a->n, b->taps, b->n, NULL, NULL);
    y.recursive = a->recursive || b->recursive;
    fir_cut(&y, INNER_TAIL);
    *ret = y;
    return !status || fault_set(fault, "%s", partita_status_string(status));
}

// For all inputs of the network.
static bool matrix_allocate(const struct matrix_loader *l, struct matrix *ret, size_t out_channels)
{
    const size_t in_channels = l->network->in_channels;
    *ret = (struct matrix){.out_channels = out_channels,
                           .in_channels = in_channels,
                           .firs = calloc(out_channels * in_channels, sizeof(struct fir))};
    return ret->firs || fault_set(l->fault, "%s: out of memory", l->network->path);
}

static struct fir *matrix_fir(const struct matrix *m, size_t out, size_t in)
{
    return &m->firs[out * m->in_channels + in];
}

void matrix_release(struct matrix *matrix)
{
    for (size_t i = 0; matrix->firs && i < matrix->out_channels * matrix->in_channels; i++)
        fir_release(&matrix->firs[i]);
    free(matrix->firs);
    *matrix = (struct matrix){0};
}

bool matrix_add_unit(struct matrix *matrix, size_t out, size_t in, double gain, struct fault *fault)
{
    double one = 1;
    const struct fir unit = {.taps = &one, .n = 1};
    return fir_add(matrix_fir(matrix, out, in), &unit, gain, 0, fault);
}

enum { RATE_TEXT = 400 };

// The rate that responses need, from that of the signal.
static const char *name_rate(const struct settings *s, double rate, char text[RATE_TEXT])
{
    char times[32] = "";
    const int64_t up = s->up > 1 ? s->up : 1;
    if (up > 1) snprintf(times, sizeof times, " times %lld", (long long)up);
    snprintf(text, RATE_TEXT, "%.12g Hz of %.300s%s", rate / (double)up, operand_name(s, 1), times);
    return text;
}

bool matrix_fit_rate(struct frames *frames, size_t *ret_lead, const double rates[2],
                     const char *name, const struct settings *settings, struct fault *fault)
{
    const double from = rates[0], to = rates[1];
    const size_t before = frames->n;
    char text[RATE_TEXT];
    *ret_lead = 0;
    if (!(from > 0) || !(to > 0) || rates_agree(from, to)) return true;
    name_rate(settings, to, text);
    if (!settings->resample_ir)
        return fault_set(fault, "%s: sample rate %.12g Hz differs from the %s; use --resample-ir",
                         name, from, text);
    if (!frames_resample(frames, from, to, ret_lead, name, fault)) return false;
    report_detail(settings, "%s: resampled from %.12g Hz to the %s, %zu frames to %zu", name, from,
                  text, before, frames->n - 2 * *ret_lead);
    return true;
}

static bool load_impulse(struct matrix_loader *l, size_t index)
{
    const struct impulse *impulse = &l->network->impulses[index];
    const double known = l->network->rate > 0 ? l->network->rate : l->rate;
    struct frames f = {0};
    double rate;
    size_t lead;
    if (l->loaded == index) return true;
    fir_release(&l->impulse);
    l->loaded = IMPULSE_UNIT;
    if (!impulse_file_read(&l->file, l->network, impulse, &f, &rate, l->fault)) return false;
    char *note = l->file.notes.note;
    if (*note && !l->file.may_be_short) {
        report_warning(l->settings, "%s", note);
        *note = 0;
    }
    if (impulse->note)
        report_warning(l->settings, "%s:%d: %s", l->network->path, impulse->line, impulse->note);
    if (!(rate > 0)) rate = known;
    const double rates[] = {rate, l->rate};
    struct fault said;
    if (!matrix_fit_rate(&f, &lead, rates, impulse->path ? impulse->path : l->network->path,
                         l->settings, &said)) {
        frames_release(&f);
        return network_fault(l->network, impulse->line, l->fault, "%s", said.text);
    }
    l->impulse = (struct fir){f.data, f.n, 0, lead, impulse->source == IMPULSE_SECTIONS};
    l->loaded = index;
    return true;
}

// Leaves out what /convolver/new has no room for.
static bool truncate_response(const struct matrix_loader *l, const struct network_term *term,
                              struct fir *f, size_t delay)
{
    const size_t max = l->network->max_length, length = nominal_length(f);
    if (!max || f->delay + delay + length <= max) return true;
    const size_t kept = f->delay + delay < max ? max - f->delay - delay : 0;
    report_warning(l->settings,
                   "%s:%d: %zu frames of the response are beyond the maximum length of %zu frames "
                   "and are left out",
                   l->network->path, term->line, length - kept, max);
    f->n -= length - kept;
    return kept > 0;
}

// Adds to the response from an input of the network to the output of a term what the term makes of
// `from`, which leads to its input.
static bool apply_term(struct matrix_loader *l, const struct network_term *term, struct fir *sum,
                       const struct fir *from)
{
    const bool is_unit = term->impulse == IMPULSE_UNIT;
    const double known = l->network->rate; // of the delays
    size_t delay = (size_t)llround(term->delay * (known > 0 && l->rate > 0 ? l->rate / known : 1));
    double gain = term->gain;
    struct fir product = {0}, part = *from;
    bool good = true;
    if (from->n == 1 && !is_unit) { // the impulse itself, without a copy
        gain *= from->taps[0];
        delay += from->delay;
        part = l->impulse;
    } else if (!is_unit) {
        good = fir_convolve(&product, from, &l->impulse, l->fault);
        part = product;
    }
    const size_t before = sum->n;
    if (good && truncate_response(l, term, &part, delay))
        good = fir_add(sum, &part, gain, delay, l->fault);
    l->samples += sum->n - before;
    fir_release(&product);
    return good;
}

static bool apply_stage(struct matrix_loader *l, const struct network_stage *stage,
                        const struct matrix *from, struct matrix *ret)
{
    l->samples = 0;
    for (size_t t = 0; t < stage->n_terms; t++) {
        const struct network_term *term = &stage->terms[t];
        if (term->gain == 0) continue;
        if (term->impulse != IMPULSE_UNIT && !load_impulse(l, term->impulse)) return false;
        for (size_t in = 0; in < from->in_channels; in++) {
            const struct fir *fir = matrix_fir(from, term->in, in);
            if (!fir->taps) continue;
            if (!apply_term(l, term, matrix_fir(ret, term->out, in), fir)) {
                const struct fault said = *l->fault;
                return network_fault(l->network, term->line, l->fault, "%.500s", said.text);
            }
            if (l->samples > FRAMES_MAX_SAMPLES)
                return network_fault(l->network, term->line, l->fault,
                                     "more than %d taps in all responses together",
                                     (int)FRAMES_MAX_SAMPLES);
        }
    }
    return true;
}

static bool compute_stages(struct matrix_loader *l, struct matrix *m)
{
    const struct network *n = l->network;
    bool good = matrix_allocate(l, m, n->in_channels);
    for (size_t i = 0; good && i < n->in_channels; i++)
        good = matrix_add_unit(m, i, i, 1, l->fault);
    for (size_t s = 0; good && s < n->n_stages; s++) {
        struct matrix next;
        good = matrix_allocate(l, &next, n->stages[s].out_channels) &&
               apply_stage(l, &n->stages[s], m, &next);
        matrix_release(m);
        *m = next;
    }
    return good;
}

// Cuts off responses of recursive filters, and tells how long they are.
static void cut_responses(const struct matrix_loader *l, struct matrix *m)
{
    size_t longest = 0;
    for (size_t i = 0; i < m->out_channels * m->in_channels; i++) {
        struct fir *f = &m->firs[i];
        fir_cut(f, OUTER_TAIL);
        if (f->recursive && f->delay + nominal_length(f) > longest)
            longest = f->delay + nominal_length(f);
    }
    if (longest)
        report_detail(l->settings,
                      "%s: recursive filters are up to %zu taps, and end at -%d dB of their energy",
                      l->network->path, longest, OUTER_TAIL);
}

bool matrix_load(struct matrix *ret, const struct network *network, double rate,
                 const struct settings *settings, struct fault *fault)
{
    struct matrix_loader l = {.network = network,
                              .settings = settings,
                              .rate = rate,
                              .loaded = IMPULSE_UNIT,
                              .file = {.max_channels = options_max_channels(settings),
                                       .may_be_short = settings->command == COMMAND_LIVE,
                                       .signal_rate = rate},
                              .fault = fault};
    struct matrix m = {0};
    char text[RATE_TEXT];
    const bool other_rate = network->rate > 0 && rate > 0 && !rates_agree(network->rate, rate) &&
                            !settings->resample_ir;
    if (other_rate && network->list)
        return fault_set(fault,
                         "%s: lists no configuration for the %s; add one, or use "
                         "--resample-ir, which takes %s for %.12g Hz",
                         network->list, name_rate(settings, rate, text), network->path,
                         network->rate);
    if (other_rate)
        return fault_set(fault, "%s: is for %.12g Hz, not for the %s; use --resample-ir",
                         network->path, network->rate, name_rate(settings, rate, text));
    const bool good = compute_stages(&l, &m);
    if (good) cut_responses(&l, &m);
    m.notes = l.file.notes;
    fir_release(&l.impulse);
    impulse_file_release(&l.file);
    if (good) *ret = m;
    else matrix_release(&m);
    return good;
}

double matrix_rate(const struct network *network)
{
    struct audio_info info;
    struct fault ignored;
    const bool named = !(network->rate > 0) && network->n_impulses && network->impulses[0].path;
    return named && impulse_file_info(&network->impulses[0], 1024, &info, &ignored) ? info.rate
                                                                                    : network->rate;
}
