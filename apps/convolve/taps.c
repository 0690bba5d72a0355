// SPDX-License-Identifier: MIT
// See taps.h.
#include "taps.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/report.h"
#include "resample.h"

// An impulse response lies in memory several times over. This many samples are 46 minutes at 48
// kHz; more is a mistake.
static const size_t MAX_SAMPLES = (size_t)1 << 27;

enum { PIECE = 65536 };

struct frames {
    void *data; // interleaved
    size_t n, channels;
    enum partita_type type;
};

static bool too_long(const struct frames *f, const char *name, struct fault *fault)
{
    return fault_set(fault, "%s: more than %zu frames of %zu channels, too long to be a filter",
                     name, MAX_SAMPLES / f->channels, f->channels);
}

static bool grow(struct frames *f, size_t *capacity, size_t n, const char *name,
                 struct fault *fault)
{
    size_t most = MAX_SAMPLES / f->channels, wanted = 2 * *capacity > n ? 2 * *capacity : n;
    if (n <= *capacity) return true;
    if (n > most) return too_long(f, name, fault);
    if (wanted > most) wanted = most;
    void *data = realloc(f->data, wanted * f->channels * partita_type_size(f->type));
    if (!data) return fault_set(fault, "%s: out of memory for %zu frames", name, wanted);
    f->data = data;
    *capacity = wanted;
    return true;
}

static bool read_all(struct frames *f, struct audio_reader *reader, const char *name,
                     struct fault *fault)
{
    size_t capacity = 0, got, piece = PIECE / f->channels + 1;
    size_t frame_bytes = f->channels * partita_type_size(f->type);
    uint64_t known = audio_reader_info(reader)->frames;
    if (known != SIZE_UNKNOWN && known > MAX_SAMPLES / f->channels) return too_long(f, name, fault);
    do {
        if (!grow(f, &capacity, f->n + piece, name, fault)) return false;
        if (!audio_read(reader, f->type, (char *)f->data + f->n * frame_bytes, piece, &got, fault))
            return false;
        f->n += got;
    } while (got);
    if (f->n) return true;
    return fault_set(fault, "%s: holds no samples", name);
}

static size_t scalars(const struct frames *f)
{
    return f->n * f->channels * (f->type == PARTITA_CF32 || f->type == PARTITA_CF64 ? 2 : 1);
}

static bool is_double(enum partita_type type)
{
    return type == PARTITA_F64 || type == PARTITA_CF64;
}

static bool check_finite(const struct frames *f, const char *name, struct fault *fault)
{
    size_t n = scalars(f), per_frame = n / f->n;
    for (size_t i = 0; i < n; i++) {
        double v = is_double(f->type) ? ((double *)f->data)[i] : (double)((float *)f->data)[i];
        if (!isfinite(v))
            return fault_set(fault, "%s: frame %zu is %f; taps must be finite", name, i / per_frame,
                             v);
    }
    return true;
}

static void amplify(struct frames *f, double decibels)
{
    double factor = pow(10, decibels / 20);
    if (decibels == 0) return;
    for (size_t i = 0; i < scalars(f); i++) {
        if (is_double(f->type)) ((double *)f->data)[i] *= factor;
        else ((float *)f->data)[i] = (float)((double)((float *)f->data)[i] * factor);
    }
}

static bool fit_rate(struct frames *f, size_t *ret_lead, uint32_t rate,
                     const struct audio_info *signal, const struct settings *settings,
                     struct fault *fault)
{
    *ret_lead = 0;
    if (!rate || !signal->rate || rate == signal->rate) return true;
    if (!settings->resample_ir)
        return fault_set(fault,
                         "%s: sample rate %u Hz differs from the %u Hz of %s; use --resample-ir",
                         operand_name(settings, 0), rate, signal->rate, operand_name(settings, 1));
    struct resampled resampled;
    if (!resample_taps(&resampled, f->type, f->data, f->n, f->channels, rate, signal->rate, fault))
        return false;
    report_detail(settings, "%s: resampled from %u Hz to the %u Hz of %s, %zu frames to %zu",
                  operand_name(settings, 0), rate, signal->rate, operand_name(settings, 1), f->n,
                  resampled.n - 2 * resampled.lead);
    free(f->data);
    f->data = resampled.frames;
    f->n = resampled.n;
    *ret_lead = resampled.lead;
    return true;
}

enum { SHAPE_SIZE = 96 };

// Channels and frames; of an array also which axis is which, for that is what goes wrong.
static void describe_shape(const struct audio_info *info, char shape[SHAPE_SIZE])
{
    int n = snprintf(shape, SHAPE_SIZE, "%zu channels", info->channels);
    if (info->frames == SIZE_UNKNOWN) return;
    snprintf(shape + n, (size_t)(SHAPE_SIZE - n), " of %llu frames%s",
             (unsigned long long)info->frames,
             info->container == CONTAINER_NPY ? " ([channels, frames])" : "");
}

// Which channel of IN goes through which channel of IR to which channel of OUT.
static bool map_channels(struct taps *t, const struct audio_info *info, size_t n_in,
                         const struct settings *settings, struct fault *fault)
{
    const char *ir = operand_name(settings, 0), *in = operand_name(settings, 1);
    char shape[SHAPE_SIZE];
    size_t n_ir = info->channels;
    describe_shape(info, shape);
    t->in_channels = t->out_channels = t->groups = n_in;
    if (settings->matrix) {
        t->out_channels = n_ir / n_in;
        t->groups = 1;
        if (n_ir % n_in == 0) return true;
        return fault_set(fault, "%s: %s; %s has %zu channels: --matrix needs a multiple of %zu", ir,
                         shape, in, n_in, n_in);
    }
    if (n_ir == n_in || n_ir == 1) return true;
    t->out_channels = n_ir;
    t->groups = 1;
    if (n_in == 1) return true;
    return fault_set(
        fault,
        "%s: %s; %s has %zu channels: the filter needs 1 or %zu, or a multiple with --matrix", ir,
        shape, in, n_in, n_in);
}

// Interleaved frames become one row of taps a cell; a mono response is repeated for every channel.
static bool lay_out(struct taps *t, const struct frames *f, struct fault *fault)
{
    size_t cells = t->out_channels * (t->in_channels / t->groups),
           bytes = partita_type_size(f->type);
    if (f->n > MAX_SAMPLES / cells)
        return fault_set(fault, "a filter of %zu taps for each of %zu paths is too long", f->n,
                         cells);
    t->data = malloc(cells * f->n * bytes);
    if (!t->data) return fault_set(fault, "out of memory for %zu taps", cells * f->n);
    t->length = f->n;
    t->type = f->type;
    for (size_t c = 0; c < cells; c++) {
        char *row = (char *)t->data + c * f->n * bytes;
        const char *from = (const char *)f->data + c % f->channels * bytes;
        for (size_t i = 0; i < f->n; i++)
            memcpy(row + i * bytes, from + i * f->channels * bytes, bytes);
    }
    return true;
}

// Taps are read whole: as they lie in the file, as rows, and as spectra with as many zeros, four
// times their size.
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
                     "%s: %llu frames are too long: they take about %.0f GiB of memory, this "
                     "machine has %.0f; only %s may be longer%s",
                     operand_name(settings, 0), (unsigned long long)info->frames, needed / gib,
                     machine / gib, operand_name(settings, 1),
                     settings->command == COMMAND_CONVOLVE
                         ? " (a convolution is the same with both exchanged)"
                         : "");
}

bool taps_load(struct taps *ret, struct audio_reader *reader, enum partita_type type,
               const struct audio_info *signal, const struct settings *settings,
               struct fault *fault)
{
    const struct audio_info *info = audio_reader_info(reader);
    const char *name = operand_name(settings, 0);
    struct frames f = {.channels = info->channels, .type = type};
    struct taps t = {0};
    bool good = map_channels(&t, info, signal->channels, settings, fault) &&
                check_memory(info, type, settings, fault) && read_all(&f, reader, name, fault) &&
                check_finite(&f, name, fault) &&
                fit_rate(&f, &t.lead, info->rate, signal, settings, fault);
    if (good) {
        amplify(&f, settings->gain);
        good = check_finite(&f, name, fault) && lay_out(&t, &f, fault);
    }
    free(f.data);
    if (good) *ret = t;
    return good;
}

void taps_release(struct taps *taps)
{
    free(taps->data);
    taps->data = NULL;
}
