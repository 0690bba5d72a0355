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
#include "io/frames.h"

static void amplify(struct frames *f, double decibels)
{
    double factor = pow(10, decibels / 20);
    if (decibels == 0) return;
    for (size_t i = 0; i < frames_count_scalars(f); i++) {
        if (type_is_double(f->type)) ((double *)f->data)[i] *= factor;
        else ((float *)f->data)[i] = (float)((double)((float *)f->data)[i] * factor);
    }
}

static bool fit_rate(struct frames *f, size_t *ret_lead, uint32_t rate,
                     const struct audio_info *signal, const struct settings *settings,
                     struct fault *fault)
{
    const uint64_t wanted = (uint64_t)signal->rate * (uint64_t)settings->up;
    char times[32] = "";
    *ret_lead = 0;
    if (!rate || !signal->rate || rate == wanted) return true;
    if (settings->up > 1) snprintf(times, sizeof times, " times %lld", (long long)settings->up);
    if (!settings->resample_ir || wanted > UINT32_MAX)
        return fault_set(
            fault, "%s: sample rate %u Hz differs from the %u Hz of %s%s; use --resample-ir",
            operand_name(settings, 0), rate, signal->rate, operand_name(settings, 1), times);
    const size_t before = f->n;
    if (!frames_resample(f, rate, (uint32_t)wanted, ret_lead, operand_name(settings, 0), fault))
        return false;
    report_detail(settings, "%s: resampled from %u Hz to the %u Hz of %s%s, %zu frames to %zu",
                  operand_name(settings, 0), rate, signal->rate, operand_name(settings, 1), times,
                  before, f->n - 2 * *ret_lead);
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
    if (f->n > FRAMES_MAX_SAMPLES / paths)
        return fault_set(fault, "a filter of %zu taps for each of %zu paths is too long", f->n,
                         paths);
    t->data = malloc(paths * f->n * bytes);
    if (!t->data) return fault_set(fault, "out of memory for %zu taps", paths * f->n);
    t->length = f->n;
    t->type = f->type;
    for (size_t c = 0; c < paths; c++)
        frames_copy_channel(f, c % f->channels, (char *)t->data + c * f->n * bytes);
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
    struct frames f = {0};
    struct taps t = {0};
    bool good = map_channels(&t, info, signal->channels, settings, fault) &&
                check_memory(info, type, settings, fault) &&
                frames_read(&f, reader, type, name, fault) &&
                fit_rate(&f, &t.lead, info->rate, signal, settings, fault);
    if (good) {
        amplify(&f, settings->gain);
        good = frames_check_finite(&f, name, fault) && taps_deinterleave(&t, &f, fault);
    }
    frames_release(&f);
    if (good) *ret = t;
    return good;
}

double taps_delay(const struct taps *taps)
{
    const size_t reals = type_is_complex(taps->type) ? 2 : 1,
                 n = taps->out_channels * (taps->in_channels / taps->groups) * taps->length * reals;
    double energy = 0, moment = 0;
    for (size_t i = 0; i < n; i++) {
        const double v = type_is_double(taps->type) ? ((const double *)taps->data)[i]
                                                    : (double)((const float *)taps->data)[i];
        energy += v * v;
        moment += v * v * (double)(i / reals % taps->length);
    }
    return energy > 0 && isfinite(moment) ? moment / energy - (double)(taps->lead + taps->zeros)
                                          : 0;
}

bool taps_align(struct taps *taps, int64_t first, int64_t stride, struct fault *fault)
{
    const int64_t beyond = (first + (int64_t)taps->lead) % stride;
    const size_t delay = (size_t)(beyond > 0 ? stride - beyond : -beyond);
    const size_t bytes = partita_type_size(taps->type), old = taps->length * bytes;
    const size_t paths = taps->out_channels * (taps->in_channels / taps->groups);
    const size_t length = taps->length + delay;
    if (!delay) return true;
    char *rows = length > FRAMES_MAX_SAMPLES / paths ? NULL : calloc(paths, length * bytes);
    if (!rows) return fault_set(fault, "out of memory for %zu taps", length);
    for (size_t c = 0; c < paths; c++)
        memcpy(rows + (c * length + delay) * bytes, (const char *)taps->data + c * old, old);
    free(taps->data);
    taps->data = rows;
    taps->length = length;
    taps->zeros = delay;
    return true;
}

void taps_release(struct taps *taps)
{
    free(taps->data);
    taps->data = NULL;
}
