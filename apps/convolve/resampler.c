// SPDX-License-Identifier: MIT
#include "taps.h"

#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "base/sample_type.h"
#include "cli/option_words.h"
#include "cli/report.h"
#include "io/frames.h"

// Like soxr's high quality: what aliases is 120 dB lower (20 bits), and 0.913 of the band of the
// lower rate passes. With larger terms of the ratio the design would exceed its 2^18 taps.
static const double ATTENUATION = 120, PASSED = 0.913;
enum { MAX_TERM = 1400 };

bool taps_design(struct taps *ret, const struct partita_design *design, enum partita_type type,
                 double gain, enum command command, struct fault *fault)
{
    struct fault log = {0};
    struct partita_design d = *design;
    struct taps t = {.type = type, .in_channels = 1, .out_channels = 1, .groups = 1};
    double *taps = NULL;
    d.log = (struct partita_log){option_words_log, &log};
    d.allocator = memory_allocator();
    enum partita_status status = partita_design_taps_count(&d, &t.length);
    if (!status) {
        taps = memory_allocate(t.length * sizeof *taps);
        t.data = memory_allocate(t.length * partita_type_size(type));
        status = taps && t.data ? partita_design_taps(&d, taps, t.length) : PARTITA_ERR_NOMEM;
    }
    for (size_t i = 0; !status && i < t.length; i++) taps_set(&t, i, gain * taps[i]);
    memory_free(taps);
    if (!status) *ret = t;
    else taps_release(&t);
    return option_words_of_status(fault, command, status, &log);
}

// Of one part, real or imaginary, of a row: convolves it with every branch of the low pass, the
// taps that meet samples and not the zeros of --up between them.
static bool convolve_row(struct taps *to, const struct taps *from, const struct taps *low_pass,
                         size_t up, size_t row, size_t part)
{
    const size_t reals = type_is_complex(to->type) ? 2 : 1, m = from->length,
                 longest = low_pass->length / up + 1;
    double *x = memory_allocate((m + longest + m + longest) * sizeof *x);
    if (!x) return false;
    double *branch = x + m, *y = branch + longest;
    enum partita_status status = PARTITA_OK;
    for (size_t k = 0; k < m; k++) x[k] = taps_at(from, (row * m + k) * reals + part);
    for (size_t p = 0; !status && p < up && p < low_pass->length; p++) {
        size_t n = 0;
        for (size_t i = p; i < low_pass->length; i += up) branch[n++] = taps_at(low_pass, i);
        status = partita_convolve(PARTITA_F64, y, x, m, branch, n, NULL, NULL);
        for (size_t k = 0; !status && k < m + n - 1; k++)
            taps_set(to, (row * to->length + k * up + p) * reals + part, y[k]);
    }
    memory_free(x);
    return !status;
}

static bool combine(struct taps *taps, const struct taps *low_pass, size_t up, struct fault *fault)
{
    const size_t rows = taps_count_rows(taps), reals = type_is_complex(taps->type) ? 2 : 1;
    struct taps t = *taps;
    t.length = (taps->length - 1) * up + low_pass->length;
    t.lead = taps->lead * up;
    t.centre = (low_pass->length - 1) / 2;
    if (t.length > FRAMES_MAX_SAMPLES / rows)
        return fault_set(
            fault,
            "--rate-out: IR has %zu frames, too many for one filter at %zu times their "
            "rate; filter first, and change the rate in a second run",
            taps->length, up);
    if (!taps_allocate(&t, fault)) return false;
    bool good = true;
    for (size_t r = 0; good && r < rows * reals; r++)
        good = convolve_row(&t, taps, low_pass, up, r / reals, r % reals);
    if (!good) {
        memory_free(t.data);
        return memory_fault(fault, "--rate-out: a filter of %zu taps", rows * t.length);
    }
    memory_free(taps->data);
    *taps = t;
    return true;
}

bool resampler_apply(struct taps *taps, struct settings *s, double rate, struct fault *fault)
{
    const double out = s->rate_out, band = fmin(rate, out) / 2;
    struct taps low_pass;
    if (!(out > 0)) return true;
    if (!(rate > 0))
        return fault_usage(fault, "--rate-out %.12g: the sample rate of %s is unknown; add --rate",
                           out, operand_name(s, 1));
    const struct fraction f = fraction_of(out, rate, MAX_TERM, MAX_TERM);
    const double nearest = f.n && f.d ? rate * (double)f.n / (double)f.d : rate;
    if (!rates_agree(nearest, out))
        return fault_usage(
            fault,
            "--rate-out %.12g: is no fraction n/d of the %.12g Hz of %s with n and d "
            "up to %d; %.12g is",
            out, rate, operand_name(s, 1), MAX_TERM, nearest);
    s->up = f.n;
    s->stride = f.d;
    if (f.n == f.d) return true;
    const struct partita_design design = {.rate = rate * (double)f.n,
                                          .cutoff = {band * (1 + PASSED) / 2},
                                          .width = band * (1 - PASSED),
                                          .attenuation = ATTENUATION};
    if (!taps_design(&low_pass, &design, PARTITA_F64, (double)f.n, s->command, fault)) return false;
    report_detail(s,
                  "--rate-out: --up %lld --stride %lld with a low pass of %zu taps, from %.6g Hz "
                  "on 120 dB lower",
                  f.n, f.d, low_pass.length, band);
    const bool good = combine(taps, &low_pass, (size_t)f.n, fault);
    taps_release(&low_pass);
    return good;
}
