// SPDX-License-Identifier: MIT
#include "taps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/number.h"
#include "base/sample_type.h"
#include "cli/report.h"
#include "config/matrix.h"
#include "io/frames.h"
#include "route/route.h"

size_t taps_count_rows(const struct taps *taps)
{
    return taps->paths ? taps->n_paths : taps->out_channels * (taps->in_channels / taps->groups);
}

size_t taps_find_row(const struct taps *taps, size_t out, size_t in)
{
    for (size_t i = 0; taps->paths && i < taps->n_paths; i++)
        if (taps->paths[i].out == out && taps->paths[i].in == in) return i;
    if (!taps->paths && taps->groups == 1) return out * taps->in_channels + in;
    return !taps->paths && out == in ? out : SIZE_MAX;
}

static size_t reals_of(const struct taps *t)
{
    return type_is_complex(t->type) ? 2 : 1;
}

// Where the responses end by --ir-length, and how many frames before it --ir-fade begins. SIZE_MAX:
// they stay as they are.
static size_t choose_end(const struct settings *s, size_t length, size_t *ret_fade)
{
    size_t end = length;
    *ret_fade = (size_t)s->ir_fade;
    if (s->ir_length && (size_t)s->ir_length < length) end = (size_t)s->ir_length;
    else if (!s->ir_fade) return SIZE_MAX;
    if (*ret_fade <= end) return end;
    report_warning(s,
                   "--ir-fade: %zu frames are more than the %zu of %s, which fades from its "
                   "beginning",
                   *ret_fade, end, operand_name(s, 0));
    *ret_fade = end;
    return end;
}

// The factor of a frame of a response that fades, a raised cosine.
static double fade_at(size_t at, size_t end, size_t fade)
{
    if (at + fade < end) return 1;
    const double phase = (double)(at + fade - end + 1) / (double)(fade + 1);
    return at < end ? 0.5 + 0.5 * cos(M_PI * phase) : 0;
}

void taps_keep(struct taps *taps, size_t first, size_t n)
{
    const size_t bytes = partita_type_size(taps->type);
    for (size_t r = 0; r < taps_count_rows(taps); r++)
        memmove((char *)taps->data + r * n * bytes,
                (char *)taps->data + (r * taps->length + first) * bytes, n * bytes);
    taps->length = n;
}

// --ir-length and --ir-fade. What a resampled response has after its end goes.
static void shorten(struct taps *t, const struct settings *s)
{
    const size_t reals = reals_of(t), bytes = partita_type_size(t->type);
    size_t fade;
    const size_t end = choose_end(s, t->length - 2 * t->lead, &fade);
    if (end == SIZE_MAX) return;
    taps_keep(t, 0, end + 2 * t->lead);
    for (size_t r = 0; r < taps_count_rows(t); r++)
        for (size_t i = t->lead + end - fade; i < t->length; i++)
            samples_scale((char *)t->data + (r * t->length + i) * bytes, reals,
                          type_is_double(t->type), fade_at(i - t->lead, end, fade));
}

bool taps_allocate(struct taps *taps, struct fault *fault)
{
    const size_t rows = taps_count_rows(taps), length = taps->length;
    taps->data = NULL;
    if (length > FRAMES_MAX_SAMPLES / rows)
        return fault_set(fault, "a filter of %zu taps for each of %zu paths is too long", length,
                         rows);
    taps->data = memory_allocate_zeros(rows * length * partita_type_size(taps->type));
    return taps->data || memory_fault(fault, "a filter of %zu taps", rows * length);
}

// Delays all rows.
static bool prepend_zeros(struct taps *t, size_t n, struct fault *fault)
{
    const size_t bytes = partita_type_size(t->type), old = t->length * bytes;
    struct taps longer = *t;
    if (!n) return true;
    longer.length += n;
    if (!taps_allocate(&longer, fault)) return false;
    for (size_t r = 0; r < taps_count_rows(t); r++)
        memcpy((char *)longer.data + (r * longer.length + n) * bytes,
               (const char *)t->data + r * old, old);
    memory_free(t->data);
    *t = longer;
    return true;
}

// --dry: a unit impulse at time 0, from every input to the output of the same number. Being part of
// the filter it has no latency of its own, and is in every shard.
static bool add_dry(struct taps *t, const struct settings *s, struct fault *fault)
{
    const double factor = pow(10, (options_gain(s) + s->dry) / 20);
    if (factor == 0) return true;
    if (t->in_channels > 1 && t->in_channels != t->out_channels)
        return fault_set(fault, "--dry needs as many outputs as inputs, not %zu and %zu",
                         t->out_channels, t->in_channels);
    for (size_t o = 0; o < t->out_channels; o++) {
        const size_t row = taps_find_row(t, o, t->in_channels > 1 ? o : 0),
                     at = (row * t->length + t->lead) * reals_of(t);
        taps_set(t, at, taps_at(t, at) + factor);
    }
    return true;
}

bool taps_finish(struct taps *taps, const struct settings *s, const char *name, struct fault *fault)
{
    shorten(taps, s);
    const size_t reals = reals_of(taps), n = taps_count_rows(taps) * taps->length * reals;
    samples_scale(taps->data, n, type_is_double(taps->type),
                  pow(10, (options_gain(s) + s->wet) / 20));
    for (size_t i = 0; i < n; i++)
        if (!isfinite(taps_at(taps, i)))
            return fault_set(fault, "%s: frame %zu is %f; taps must be finite", name,
                             i / reals % taps->length, taps_at(taps, i));
    return prepend_zeros(taps, (size_t)s->delay, fault) && add_dry(taps, s, fault);
}

// Taps take four times their size: as read, as rows, and as zero-padded spectra.
static bool check_memory(const struct audio_info *info, enum partita_type type,
                         const struct settings *settings, struct fault *fault)
{
    const double gib = 1 << 30,
                 machine = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (info->frames == SIZE_UNKNOWN || machine <= 0) return true;
    const double needed =
        4 * (double)info->frames * (double)info->channels * (double)partita_type_size(type);
    if (needed <= machine) return true;
    return fault_set(fault,
                     "%s: %llu frames are too long: they need about %.0f GiB of memory, this "
                     "machine has %.0f; only %s may be longer%s",
                     operand_name(settings, 0), (unsigned long long)info->frames, needed / gib,
                     machine / gib, operand_name(settings, 1),
                     settings->command == COMMAND_CONVOLVE
                         ? " (the convolution is the same with both exchanged)"
                         : "");
}

// The shape of all readers together.
static bool join_shapes(struct audio_info *ret, struct audio_reader *const *readers,
                        const struct settings *s, struct fault *fault)
{
    *ret = *audio_reader_info(readers[0]);
    for (int i = 1; i < s->n_irs; i++) {
        const struct audio_info *info = audio_reader_info(readers[i]);
        ret->channels += info->channels;
        if (ret->frames < info->frames) ret->frames = info->frames; // SIZE_UNKNOWN is the largest
        ret->outputs = 0;
        if (!rates_agree(info->rate, ret->rate))
            return fault_set(
                fault,
                "%s: sample rate %.12g Hz differs from the %.12g Hz of %s; all files of IR need "
                "the same",
                s->files[i], info->rate, ret->rate, s->files[0]);
    }
    return true;
}

// One row of taps for each path from an input to an output: those of the chosen channels of all
// files, unless that is NULL. The shorter ones get zeros at their end.
static bool fill_rows(struct taps *t, const struct frames *files, const size_t *chosen,
                      const struct route_map *map, struct fault *fault)
{
    const size_t rows = taps_count_rows(t), row_bytes = t->length * partita_type_size(t->type);
    if (!taps_allocate(t, fault)) return false;
    for (size_t r = 0; r < rows; r++) {
        const size_t i =
            map->matrix ? route_channel(map, r / map->in, r % map->in) : route_channel(map, r, r);
        size_t channel = chosen ? chosen[i] : i;
        const struct frames *f = files;
        while (channel >= f->channels) channel -= f++->channels;
        frames_copy_channel(f, channel, (char *)t->data + r * row_bytes);
    }
    return true;
}

bool taps_check_axes(const struct settings *settings, int operand, const struct audio_info *info,
                     struct fault *fault)
{
    static const size_t SUSPICIOUS_CHANNELS = 256, SUSPICIOUS_RATIO = 8;
    if (info->container != CONTAINER_NPY || settings->max_channels != NOT_GIVEN ||
        info->frames == 0 || info->channels <= SUSPICIOUS_CHANNELS ||
        info->frames >= info->channels || info->channels <= SUSPICIOUS_RATIO * info->frames)
        return true;
    if (operand == 0 && (settings->matrix || info->outputs))
        return true; // a matrix may have many channels of single taps
    return fault_set(
        fault,
        "%s: the axes of an .npy array are [channels, frames], so this one has %zu channels of "
        "%llu frames; save its transpose, x.T, or confirm the channels with --max-channels %zu",
        operand_name(settings, operand), info->channels, (unsigned long long)info->frames,
        info->channels);
}

bool taps_open(struct audio_reader **ret_readers, const struct settings *settings,
               struct fault *fault)
{
    struct encoding raw;
    struct audio_request request = {
        .raw = settings->ir_format && encoding_parse(settings->ir_format, &raw) ? &raw : NULL,
        .max_channels = options_max_channels(settings),
        .wake_fd = -1,
    };
    for (int i = 0; i < settings->n_irs; i++) {
        request.path = settings->files[i];
        if (!audio_open(&ret_readers[i], &request, fault)) return false;
        // A template comes from the radio, too.
        const bool pair = settings->iq && settings->command == COMMAND_CORRELATE &&
                          audio_reader_info(ret_readers[i])->channels == 2;
        if (!audio_pair_channels(ret_readers[i], pair, fault)) return false;
    }
    return true;
}

bool taps_load(struct taps *ret, struct audio_reader *const *readers, enum partita_type type,
               const struct audio_info *signal, const struct settings *settings,
               struct fault *fault)
{
    struct audio_info info;
    struct frames files[MAX_WORDS] = {{.data = NULL}};
    struct taps t = {.type = type};
    struct route_map map = {.from = operand_name(settings, 1), .in = signal->channels};
    size_t chosen[MAX_WORDS];
    bool good = join_shapes(&info, readers, settings, fault) &&
                route_choose_channels(chosen, &info, settings, fault) &&
                route_map_channels(&map, settings, NULL, &info, fault) &&
                check_memory(&info, type, settings, fault);
    const double rates[] = {info.rate, signal->rate * (double)settings->up};
    t.in_channels = map.in;
    t.out_channels = map.out;
    t.groups = map.matrix ? 1 : map.in;
    for (int i = 0; good && i < settings->n_irs; i++) {
        const char *name = i ? settings->files[i] : operand_name(settings, 0);
        good = frames_read(&files[i], readers[i], type, name, fault) &&
               matrix_fit_rate(&files[i], &t.lead, rates, name, settings, fault);
        if (good && files[i].n > t.length) t.length = files[i].n;
    }
    good = good && fill_rows(&t, files, settings->ir_channel ? chosen : NULL, &map, fault);
    for (int i = 0; i < settings->n_irs; i++) frames_release(&files[i]);
    good = good && taps_finish(&t, settings, operand_name(settings, 0), fault);
    if (good) *ret = t;
    else taps_release(&t);
    return good;
}

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

// The energy of all rows in a frame.
static double energy_at(const struct taps *t, size_t frame)
{
    const size_t reals = reals_of(t), n = taps_count_rows(t) * reals;
    double energy = 0;
    for (size_t r = 0; r < n; r++) {
        const size_t i = (r / reals * t->length + frame) * reals + r % reals;
        const double v = taps_at(t, i);
        energy += v * v;
    }
    return energy;
}

int64_t taps_peak(const struct taps *taps)
{
    double peak = 0;
    size_t at = taps->lead + taps->zeros;
    for (size_t k = 0; k < taps->length; k++) {
        const double energy = energy_at(taps, k);
        if (energy > peak) at = k;
        peak = fmax(peak, energy);
    }
    return (int64_t)at - (int64_t)(taps->lead + taps->zeros);
}

double taps_delay(const struct taps *taps)
{
    double energy = 0, moment = 0;
    for (size_t k = 0; k < taps->length; k++) {
        energy += energy_at(taps, k);
        moment += energy_at(taps, k) * (double)k;
    }
    return energy > 0 && isfinite(moment) ? moment / energy - (double)(taps->lead + taps->zeros)
                                          : 0;
}

bool taps_align(struct taps *taps, int64_t first, int64_t stride, struct fault *fault)
{
    const int64_t beyond = (first + (int64_t)taps->lead) % stride;
    const size_t delay = (size_t)(beyond > 0 ? stride - beyond : -beyond);
    if (!prepend_zeros(taps, delay, fault)) return false;
    taps->zeros = delay;
    return true;
}

void taps_release(struct taps *taps)
{
    memory_free(taps->data);
    free(taps->paths);
    taps->data = NULL;
    taps->paths = NULL;
}
