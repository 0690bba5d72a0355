// SPDX-License-Identifier: MIT
// See taps.h.
#include "taps.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sample_type.h"
#include "cli/report.h"
#include "resample.h"

// An impulse response is in memory several times. This many samples are 46 minutes at 48 kHz; more
// must be a mistake.
static const size_t MAX_SAMPLES = (size_t)1 << 27;

enum { READ_SAMPLES = 65536 };

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

static bool reserve_frames(struct frames *f, size_t *capacity, size_t n, const char *name,
                           struct fault *fault)
{
    size_t max = MAX_SAMPLES / f->channels, wanted = 2 * *capacity > n ? 2 * *capacity : n;
    if (n <= *capacity) return true;
    if (n > max) return too_long(f, name, fault);
    if (wanted > max) wanted = max;
    void *data = realloc(f->data, wanted * f->channels * partita_type_size(f->type));
    if (!data) return fault_set(fault, "%s: out of memory for %zu frames", name, wanted);
    f->data = data;
    *capacity = wanted;
    return true;
}

static bool read_all(struct frames *f, struct audio_reader *reader, const char *name,
                     struct fault *fault)
{
    size_t capacity = 0, got, chunk = READ_SAMPLES / f->channels + 1;
    size_t frame_bytes = f->channels * partita_type_size(f->type);
    uint64_t known = audio_reader_info(reader)->frames;
    if (known != SIZE_UNKNOWN && known > MAX_SAMPLES / f->channels) return too_long(f, name, fault);
    do {
        if (!reserve_frames(f, &capacity, f->n + chunk, name, fault)) return false;
        if (!audio_read(reader, f->type, (char *)f->data + f->n * frame_bytes, chunk, &got, fault))
            return false;
        f->n += got;
    } while (got);
    if (f->n) return true;
    return fault_set(fault, "%s: holds no samples", name);
}

static size_t count_scalars(const struct frames *f)
{
    return f->n * f->channels * (type_is_complex(f->type) ? 2 : 1);
}

static bool check_finite(const struct frames *f, const char *name, struct fault *fault)
{
    size_t n = count_scalars(f), per_frame = n / f->n;
    for (size_t i = 0; i < n; i++) {
        double v = type_is_double(f->type) ? ((double *)f->data)[i] : (double)((float *)f->data)[i];
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
    for (size_t i = 0; i < count_scalars(f); i++) {
        if (type_is_double(f->type)) ((double *)f->data)[i] *= factor;
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
    const struct resample_request request = {f->type, f->channels, rate, signal->rate};
    struct resampled resampled;
    if (!resample_taps(&resampled, &request, f->data, f->n, fault)) return false;
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

// Channels and frames; for an array also the order of axes, a frequent mistake.
static void describe_shape(const struct audio_info *info, char shape[SHAPE_SIZE])
{
    int n = snprintf(shape, SHAPE_SIZE, "%zu channels", info->channels);
    if (info->frames == SIZE_UNKNOWN) return;
    snprintf(shape + n, (size_t)(SHAPE_SIZE - n), " of %llu frames%s",
             (unsigned long long)info->frames,
             info->container == CONTAINER_NPY ? " ([channels, frames])" : "");
}

// Which channel of IR filters which channel of IN into which channel of OUT.
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

// Deinterleaves frames to one row of taps per path from an input to an output; a mono response is
// repeated for every channel.
static bool taps_deinterleave(struct taps *t, const struct frames *f, struct fault *fault)
{
    size_t paths = t->out_channels * (t->in_channels / t->groups),
           bytes = partita_type_size(f->type);
    if (f->n > MAX_SAMPLES / paths)
        return fault_set(fault, "a filter of %zu taps for each of %zu paths is too long", f->n,
                         paths);
    t->data = malloc(paths * f->n * bytes);
    if (!t->data) return fault_set(fault, "out of memory for %zu taps", paths * f->n);
    t->length = f->n;
    t->type = f->type;
    for (size_t c = 0; c < paths; c++) {
        char *row = (char *)t->data + c * f->n * bytes;
        const char *from = (const char *)f->data + c % f->channels * bytes;
        for (size_t i = 0; i < f->n; i++)
            memcpy(row + i * bytes, from + i * f->channels * bytes, bytes);
    }
    return true;
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
        good = check_finite(&f, name, fault) && taps_deinterleave(&t, &f, fault);
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
