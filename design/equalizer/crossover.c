// SPDX-License-Identifier: MIT
// Crossovers. With the low pass L and the high pass H of a crossing and a sign s, L + s H is an all
// pass A for Linkwitz-Riley filters of any order and for Butterworth filters of odd ones. A band
// has the high passes of all crossings below it, its low pass, and A of all crossings above it: the
// sum of all bands, from the highest two on, is then the product of all A.
#include <math.h>

#include "api/sized.h"
#include "core/arguments.h"
#include "equalizer.h"

enum { MAX_GAIN = 150, MAX_DELAY = 1 << 16, MAX_CROSSINGS = PARTITA_MAX_BANDS - 1 };

// The sign s, by which both bands add up where they meet.
static double sign_of(const struct partita_section *pass)
{
    const bool bessel = pass->family == PARTITA_FAMILY_BESSEL;
    const bool opposite = bessel ? pass->order >= 2 && pass->order <= 4 : pass->order % 4 == 2;
    return opposite ? -1 : 1;
}

// The sections of A. L + H of a Butterworth filter of odd order n is (1 + s^n) over its poles,
// every second one of which is a zero of it.
static size_t all_passes(const struct partita_section *pass, struct partita_section *ret)
{
    const bool riley = pass->family == PARTITA_FAMILY_LINKWITZ_RILEY;
    const int order = riley ? pass->order / 2 : pass->order;
    struct section_pole poles[SECTION_MAX_BIQUADS];
    size_t n = 0;
    if (!riley && (pass->family != PARTITA_FAMILY_BUTTERWORTH || order % 2 == 0)) return 0;
    const size_t count = section_poles(PARTITA_FAMILY_BUTTERWORTH, order, poles);
    for (size_t i = riley ? 0 : 1; i < count; i += riley ? 1 : 2)
        ret[n++] = (struct partita_section){.kind = PARTITA_SECTION_ALL_PASS,
                                            .order = poles[i].q > 0 ? 2 : 1,
                                            .frequency = pass->frequency,
                                            .q = poles[i].q};
    return n;
}

// Appends the part of a crossing to a band.
static bool append_crossing(struct taps_job *job, size_t band, size_t crossing,
                            const struct partita_section *low_pass)
{
    struct partita_section sections[SECTION_MAX_BIQUADS] = {*low_pass};
    const bool linear = job->phase == PARTITA_EQUALIZER_LINEAR;
    size_t n = 1;
    char name[64];
    text_print(name, sizeof name, "crossing[%zu]", crossing);
    if (band > crossing) sections[0].kind = PARTITA_SECTION_HIGH_PASS;
    if (band > crossing && !linear) job->factor[band] *= sign_of(low_pass);
    if (band < crossing) n = linear ? 0 : all_passes(low_pass, sections);
    for (size_t i = 0; i < n; i++)
        if (!section_append(&job->log, name, &sections[i], job->rate, &job->chain[band]))
            return false;
    return true;
}

static bool resolve_bands(struct taps_job *job, const struct partita_crossover *c)
{
    if (c->bands < 2 || c->bands > PARTITA_MAX_BANDS)
        return log_line(&job->log, "crossover.bands = %zu: must be from 2 to %d", c->bands,
                        PARTITA_MAX_BANDS);
    for (size_t i = 0; i < c->bands; i++) {
        if (!(fabs(c->gain[i]) <= MAX_GAIN) || c->delay[i] > MAX_DELAY)
            return log_line(&job->log,
                            "crossover.gain[%zu] = %g, .delay[%zu] = %zu: must be from "
                            "%d to %d dB, and at most %d frames",
                            i, c->gain[i], i, c->delay[i], -MAX_GAIN, MAX_GAIN, MAX_DELAY);
        job->factor[i] = pow(10, c->gain[i] / 20) * (c->inverted[i] ? -1 : 1);
        job->delay[i] = c->delay[i];
    }
    for (size_t i = 0; i + 1 < c->bands; i++) {
        const struct partita_crossing *at = &c->crossing[i];
        struct partita_section pass = {.kind = PARTITA_SECTION_LOW_PASS,
                                       .order = at->order,
                                       .family = at->family,
                                       .frequency = at->frequency};
        if (!pass.family) pass.family = PARTITA_FAMILY_LINKWITZ_RILEY;
        if (!pass.order) pass.order = 4;
        if (i && at->frequency <= at[-1].frequency)
            return log_line(&job->log, "crossing[%zu].frequency = %g: must be above the one before",
                            i, at->frequency);
        // From the band of the low pass on, with which all fields are checked.
        for (size_t k = 0; k < c->bands; k++)
            if (!append_crossing(job, (i + k) % c->bands, i, &pass)) return false;
    }
    return true;
}

enum partita_status partita_crossover_taps_sized(const struct partita_crossover *crossover,
                                                 size_t crossover_bytes, double *taps, size_t n,
                                                 struct partita_equalizer_result *ret_result,
                                                 size_t result_bytes)
{
    struct partita_biquad biquads[PARTITA_MAX_BANDS][MAX_CROSSINGS * SECTION_MAX_BIQUADS];
    struct partita_crossover c;
    const struct partita_log log = LOG_GIVEN(crossover);
    if (!arguments_given(log, crossover, ret_result)) return PARTITA_ERR_ARG;
    if (!sized_read(&c, sizeof c, crossover, crossover_bytes, &log, "crossover"))
        return PARTITA_ERR_UNSUPPORTED;
    struct taps_job job = {"crossover", c.rate,      c.tail,  c.taps,       c.phase,
                           log,         c.allocator, c.bands, .factor = {1}};
    for (size_t i = 0; i < PARTITA_MAX_BANDS; i++) job.chain[i].biquads = biquads[i];
    if (!job_resolve(&job) || !resolve_bands(&job, &c)) return PARTITA_ERR_ARG;
    return job_run(&job, taps, n, ret_result, result_bytes);
}
