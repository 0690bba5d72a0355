// SPDX-License-Identifier: MIT
#include "channel.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/sample_type.h"
#include "convolve/taps.h"

enum { MAX_UP = 1 << 16, MAX_STRIDE = 1 << 24 };
static const double ATTENUATION = 80, TRANSITION = 0.1; // dB; of the bandwidth

const struct channel *channel_like(const struct channel *channel)
{
    return channel->like ? channel->like : channel;
}

static bool choose_rate(struct channel *c, const struct channel_source *source, struct fault *fault)
{
    const double in = source->in->rate, rate = c->row->value[COLUMN_RATE];
    const struct fraction f = fraction_of(rate, in, MAX_UP, MAX_STRIDE);
    const double nearest = f.n && f.d ? in * (double)f.n / (double)f.d : in;
    c->settings.up = f.n;
    c->settings.stride = f.d;
    if (rates_agree(nearest, rate)) return true;
    return table_fault(source->table, c->row, COLUMN_RATE, fault,
                       "is no fraction n/d of the %.12g Hz of IN with n up to %d and d up to %d; "
                       "%.12g is",
                       in, MAX_UP, MAX_STRIDE, nearest);
}

static bool choose_centre(struct channel *c, const struct channel_source *source,
                          struct fault *fault)
{
    const double *value = c->row->value, half = source->in->rate / 2, middle = source->middle;
    const bool relative = !isnan(value[COLUMN_CENTRE]);
    const enum table_column at = relative ? COLUMN_CENTRE : COLUMN_FREQUENCY;
    if (!relative && isnan(middle))
        return table_fault(source->table, c->row, at, fault,
                           "the frequency of the middle of IN is unknown; add --frequency, or use "
                           "the column centre");
    const double begin = relative ? 0 : middle;
    c->settings.tune = value[at] - begin;
    if (fabs(c->settings.tune) <= half) return true;
    return table_fault(source->table, c->row, at, fault,
                       "is outside the band of IN, %.12g to %.12g Hz; leave the channel out",
                       begin - half, begin + half);
}

static bool is_like(const struct channel *a, const struct channel *b)
{
    enum { FIRST = COLUMN_BANDWIDTH, N = N_COLUMNS - FIRST };
    const char *x = a->row->taps, *y = b->row->taps;
    return a->settings.up == b->settings.up && a->settings.stride == b->settings.stride &&
           memcmp(a->row->value + FIRST, b->row->value + FIRST, N * sizeof *a->row->value) == 0 &&
           (x && y ? strcmp(x, y) == 0 : x == y);
}

static bool load_taps(struct channel *c, const struct channel_source *source, struct fault *fault)
{
    struct settings *s = &c->settings;
    struct audio_reader *reader = NULL;
    struct fault why = {0};
    enum partita_type type = type_is_double(source->type) ? PARTITA_F64 : PARTITA_F32;
    const double rate = source->in->rate * (double)s->up;
    bool good = taps_open(&reader, s, &why);
    if (good) {
        const struct audio_info *info = audio_reader_info(reader);
        if (info->encoding.is_complex) type = type_is_double(type) ? PARTITA_CF64 : PARTITA_CF32;
        if (info->channels != 1)
            good = fault_set(&why, "has %zu channels; taps have one", info->channels);
        else if (info->rate > 0 && !rates_agree(info->rate, rate))
            good = fault_set(&why,
                             "has %.12g Hz; those of this channel are at %.12g Hz, %lld "
                             "times the rate of IN",
                             info->rate, rate, (long long)s->up);
    }
    good = good && taps_load(&c->taps, &reader, type, source->in, s, &why);
    audio_reader_close(reader);
    c->bandwidth = isnan(c->row->value[COLUMN_BANDWIDTH]) ? 0 : c->row->value[COLUMN_BANDWIDTH];
    return good || table_fault(source->table, c->row, COLUMN_TAPS, fault, "%s", why.text);
}

// A low pass that ends at the edges of the bandwidth, whose gain makes up for the zeros of up.
static bool design_taps(struct channel *c, const struct channel_source *source, struct fault *fault)
{
    const double *value = c->row->value, rate = value[COLUMN_RATE], in = source->in->rate;
    const double band = isnan(value[COLUMN_BANDWIDTH]) ? fmin(rate, in) : value[COLUMN_BANDWIDTH];
    const double width =
        isnan(value[COLUMN_TRANSITION]) ? TRANSITION * band : value[COLUMN_TRANSITION];
    const double up = (double)c->settings.up;
    const struct partita_design design = {
        .rate = in * up,
        .cutoff = {(band - width) / 2},
        .width = width,
        .attenuation = isnan(value[COLUMN_ATTENUATION]) ? ATTENUATION : value[COLUMN_ATTENUATION],
    };
    if (width >= band)
        return table_fault(source->table, c->row, COLUMN_TRANSITION, fault,
                           "leaves nothing of the bandwidth of %.12g Hz; use less", band);
    if (band - width > rate)
        return table_fault(source->table, c->row, COLUMN_BANDWIDTH, fault,
                           "is not held by the rate of %.12g Hz; use a higher rate, or at most "
                           "%.12g",
                           rate, rate + width);
    const enum partita_type type = type_is_double(source->type) ? PARTITA_F64 : PARTITA_F32;
    struct fault why;
    c->bandwidth = band;
    return taps_design(&c->taps, &design, type, up, c->settings.command, &why) ||
           table_fault(source->table, c->row, COLUMN_BANDWIDTH, fault, "%s", why.text);
}

bool channel_plan(struct channel *channels, size_t i, const struct channel_source *source,
                  struct fault *fault)
{
    struct channel *c = &channels[i];
    if (!choose_centre(c, source, fault) || !choose_rate(c, source, fault)) return false;
    for (size_t k = 0; k < i && !c->like; k++)
        if (is_like(&channels[k], c)) c->like = channel_like(&channels[k]);
    if (c->like) c->bandwidth = c->like->bandwidth;
    return c->like || (c->row->taps ? load_taps(c, source, fault) : design_taps(c, source, fault));
}

bool channel_name_output(struct channel *c, struct fault *fault)
{
    const char *out = c->settings.operands[2], *mark = strstr(out, CHANNEL_MARK);
    char *path = NULL;
    const int n = mark ? asprintf(&path, "%.*s%s%s", (int)(mark - out), out, c->row->name,
                                  mark + sizeof CHANNEL_MARK - 1)
                       : asprintf(&path, "%s/%s.sigmf-data", out, c->row->name);
    c->settings.operands[2] = c->path = n < 0 ? NULL : path;
    return c->path || fault_set(fault, "out of memory");
}
