// SPDX-License-Identifier: MIT
// The spectrum is the transform of the correlations of IN with itself at the lags up to
// SPECTRUM_LAGS (Blackman and Tukey 1958), under a Gaussian, whose own is positive.
#include <math.h>
#include <stdlib.h>

#include "../../lib/base/scalar.h"
#include "base/memory.h"
#include "base/sample_type.h"
#include "channel.h"
#include "picture/picture.h"

enum { WIDTH = 1400, HEIGHT = 640, MARGIN = 90, POINTS = 2 * SPECTRUM_LAGS };
enum { MAX_NAMES = 12, DENSE = 256 }; // DENSE: calls that use all frames; later ones skip some
static const struct colour band_colours[] = {{0.88, 0.94, 0.88}, {0.80, 0.89, 0.95}};

// Frames are tapered by a raised cosine, so that their ends leave no skirts.
bool spectrum_add(struct spectrum *spectrum, enum partita_type type, const void *x, size_t n,
                  struct fault *fault)
{
    const size_t reals = type_is_complex(type) ? 2 : 1;
    const uint64_t call = spectrum->calls++;
    if (call % (1 + call / DENSE)) return true;
    const struct partita_options options = {.threads = 1, .allocator = memory_allocator()};
    double part[2 * SPECTRUM_LAGS], *tapered = memory_allocate(n * reals * sizeof *tapered);
    for (size_t i = 0; tapered && i < n * reals; i++)
        tapered[i] = scalar_get(type_is_double(type), x, i) *
                     (1 - cos(2 * M_PI * ((double)(i / reals) + 0.5) / (double)n));
    const bool good =
        tapered &&
        !partita_correlate(reals > 1 ? PARTITA_CF64 : PARTITA_F64, part, tapered, n, tapered, n,
                           &(struct partita_slice){PARTITA_RANGE, 0, SPECTRUM_LAGS}, &options);
    for (size_t i = 0; good && i < SPECTRUM_LAGS * reals; i++)
        spectrum->sums[i % reals][i / reals] += isfinite(part[i]) ? part[i] : 0;
    memory_free(tapered);
    return good || memory_fault(fault, "the spectrum of IN");
}

// Decibels below the largest, over the frequencies of the axis, whose middle is `middle`.
static bool fill_curve(struct curve *ret, struct spectrum *spectrum, const struct axis *axis,
                       double middle, double rate)
{
    double h[2][2], max = -INFINITY;
    if (!curve_open(ret, POINTS)) return false;
    for (size_t k = 0; k < SPECTRUM_LAGS; k++) {
        const double share = (double)k / SPECTRUM_LAGS, window = exp(-20 * share * share);
        for (int i = 0; i < 2; i++) // lags below 0 are conjugates
            spectrum->sums[i][k] *= k ? 2 * window : window;
    }
    for (size_t i = 0; i < POINTS; i++) {
        ret->x[i] = axis->low + (axis->high - axis->low) * (double)i / (POINTS - 1);
        for (int k = 0; k < 2; k++)
            partita_design_response(spectrum->sums[k], SPECTRUM_LAGS, (ret->x[i] - middle) / rate,
                                    h[k]);
        ret->y[i] = 10 * log10(fabs(h[0][0] - h[1][1]) + 1e-300);
        max = fmax(max, ret->y[i]);
    }
    for (size_t i = 0; i < POINTS; i++) ret->y[i] = fmax(ret->y[i] - max, -140);
    return true;
}

bool spectrum_write(struct spectrum *spectrum, const struct channel_source *source,
                    const struct channel *channels, size_t n, const char *path, struct fault *fault)
{
    const double rate = source->in->rate, middle = isnan(source->middle) ? 0 : source->middle,
                 low = middle - (type_is_complex(source->type) ? rate / 2 : 0);
    const double scale = rate / 2 + fabs(middle) >= 1e6 ? 1e-6 : 1e-3;
    const struct axis x = {low * scale, (middle + rate / 2) * scale, false,
                           scale < 1e-3 ? "frequency in MHz" : "frequency in kHz"};
    struct curve curve;
    struct picture picture;
    double range[2];
    if (!fill_curve(&curve, spectrum, &x, middle * scale, rate * scale))
        return fault_set(fault, "out of memory");
    curve_range(&curve, range);
    picture_open(&picture, WIDTH, HEIGHT);
    picture_heading(&picture, MARGIN, "Spectrum and channels", channels->settings.operands[1]);
    const struct axis y = {fmin(10 * floor(range[0] / 10), -10), 5, false, "power density in dB"};
    const struct panel panel = {picture.cairo, MARGIN, 120, WIDTH - MARGIN - 40,
                                HEIGHT - 200,  x,      y,   ""};
    for (const struct channel *c = channels; c < channels + n; c++) {
        const double half = (c->bandwidth > 0 ? c->bandwidth : c->outcome->rate) / 2 * scale,
                     centre = (middle + c->settings.tune) * scale,
                     share = (centre - x.low) / (x.high - x.low);
        panel_fill(&panel, centre - half, fmin(centre + half, x.high),
                   band_colours[(c - channels) % 2]);
        cairo_set_source_rgb(picture.cairo, panel_ink.red, panel_ink.green, panel_ink.blue);
        if (n <= MAX_NAMES)
            panel_text(picture.cairo, c->row->name, 14, panel.left + panel.width * share,
                       panel.top - 8, 0);
    }
    panel_frame(&panel);
    panel_curve(&panel, &curve, panel_curve_colour, false);
    free(curve.x);
    return picture_close(&picture, true, path, fault);
}
