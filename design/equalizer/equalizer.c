// SPDX-License-Identifier: MIT
// The public functions: sections in series, and crossovers.
//
// With the low pass L and the high pass H of a crossing and a sign s, L + s H is an all pass A for
// Linkwitz-Riley filters of any order and for Butterworth filters of odd ones. A band has the high
// passes of all crossings below it, its low pass, and A of all crossings above it: the sum of all
// bands, from the highest two on, is then the product of all A.
#include "equalizer.h"

#include <math.h>
#include <string.h>

#include "api/sized.h"
#include "core/arguments.h"

#define TOLERANCE 1e-7 // of gains, dB

enum { MAX_ROUNDS = 500, MAX_CROSSINGS = PARTITA_MAX_BANDS - 1 };

static bool make_chain(struct taps_job *job, const struct partita_section *sections, size_t n)
{
    job->chain->n = 0;
    for (size_t i = 0; i < n; i++)
        if (!section_append_checked(job, 0, "sections", i, &sections[i])) return false;
    return true;
}

// Changes the gains of peaks so that the response of all peaks passes through them. Each round adds
// half of the missing gain to a peak. Peaks have up to the threefold of their gain where all others
// help, and a third of it where neighbours have opposite signs: a round leaves at most 5/6 of it.
static enum partita_status solve_gains(struct taps_job *job, const struct partita_section *given,
                                       struct partita_section *sections, size_t n)
{
    for (int round = 0; round < MAX_ROUNDS; round++) {
        bool exact = true;
        job->chain->n = 0;
        for (size_t i = 0; i < n; i++)
            if (given[i].kind == PARTITA_SECTION_PEAK)
                section_append(&sections[i], job->given.rate, job->chain);
        for (size_t i = 0; i < n; i++) {
            if (given[i].kind != PARTITA_SECTION_PEAK) continue;
            const double gain = chain_gain(job->chain, given[i].frequency / job->given.rate);
            const double missing = given[i].gain - 20 * log10(gain);
            exact = exact && fabs(missing) <= TOLERANCE;
            sections[i].gain += missing / 2;
        }
        if (exact) return make_chain(job, sections, n) ? PARTITA_OK : PARTITA_ERR_UNSUPPORTED;
    }
    return log_error(&job->given.log, PARTITA_ERR_UNSUPPORTED,
                     "equalizer.exact_gains: no peaks have these gains together; use narrower or "
                     "fewer ones, or smaller differences");
}

// Reads the caller's equalizer and makes its chain. The caller releases the biquads, always.
static enum partita_status equalizer_open(struct taps_job *job,
                                          const struct partita_equalizer *given, size_t bytes)
{
    struct partita_equalizer e;
    const struct partita_log log = log_given(given);
    if (!sized_read(&e, sizeof e, given, bytes, &log, "equalizer")) return PARTITA_ERR_UNSUPPORTED;
    job->given = (struct partita_crossover){e.rate, 1, .taps = e.taps, .tail = e.tail, .log = log};
    job->given.phase = e.phase;
    job->given.allocator = e.allocator;
    if (!job_resolve(job)) return PARTITA_ERR_ARG;
    if (e.n_sections > MAX_SECTIONS || (e.n_sections && !e.sections))
        return log_error(&log, PARTITA_ERR_ARG, "equalizer.n_sections = %zu: must be at most %d%s",
                         e.n_sections, MAX_SECTIONS, e.sections ? "" : ", and sections not NULL");
    struct biquad_chain *chain = job->chain;
    const size_t count = SECTION_MAX_BIQUADS * (e.n_sections + 1);
    const size_t section_bytes = e.n_sections * sizeof *e.sections;
    chain->biquads = mem_reserve(&e.allocator, count * sizeof *chain->biquads + section_bytes);
    if (!chain->biquads) return PARTITA_ERR_NOMEM;
    struct partita_section *sections = (struct partita_section *)(chain->biquads + count);
    if (section_bytes) memcpy(sections, e.sections, section_bytes);
    if (!make_chain(job, sections, e.n_sections)) return PARTITA_ERR_ARG;
    return e.exact_gains ? solve_gains(job, e.sections, sections, e.n_sections) : PARTITA_OK;
}

enum partita_status partita_equalizer_biquads_sized(const struct partita_equalizer *equalizer,
                                                    size_t equalizer_bytes,
                                                    struct partita_biquad *biquads,
                                                    size_t *ret_count)
{
    struct taps_job job = {.name = "equalizer"};
    if (!arguments_given(log_given(equalizer), equalizer, biquads, ret_count))
        return PARTITA_ERR_ARG;
    const enum partita_status status = equalizer_open(&job, equalizer, equalizer_bytes);
    if (status == PARTITA_OK) {
        *ret_count = job.chain->n;
        memcpy(biquads, job.chain->biquads, job.chain->n * sizeof *biquads);
    }
    mem_release(&job.given.allocator, job.chain->biquads);
    return status;
}

enum partita_status partita_equalizer_taps_sized(const struct partita_equalizer *equalizer,
                                                 size_t equalizer_bytes, double *taps, size_t n,
                                                 struct partita_equalizer_result *ret_result,
                                                 size_t result_bytes)
{
    struct taps_job job = {.name = "equalizer", .taps = taps, .n = taps ? n : 0};
    if (!arguments_given(log_given(equalizer), equalizer, ret_result)) return PARTITA_ERR_ARG;
    enum partita_status status = equalizer_open(&job, equalizer, equalizer_bytes);
    if (status == PARTITA_OK) status = job_run(&job, ret_result, result_bytes);
    mem_release(&job.given.allocator, job.chain->biquads);
    return status;
}

// Appends the parts of each crossing to all bands.
static bool append_crossings(struct taps_job *job)
{
    struct partita_crossover *c = &job->given;
    for (size_t i = 0; i + 1 < c->bands; i++) {
        const struct partita_crossing *at = &c->crossing[i];
        const int order = at->order ? at->order : 4;
        const bool bessel = at->family == PARTITA_FAMILY_BESSEL;
        const bool even = at->family == PARTITA_FAMILY_BUTTERWORTH && order % 2 == 0;
        const bool opposite = bessel ? order >= 2 && order <= 4 : order % 4 == 2;
        struct partita_section pass = {PARTITA_SECTION_LOW_PASS, at->family, order,
                                       .frequency = at->frequency};
        if (!pass.family) pass.family = PARTITA_FAMILY_LINKWITZ_RILEY;
        if (i && at->frequency <= at[-1].frequency)
            return log_line(&c->log, "crossing[%zu].frequency = %g: must be above the one before",
                            i, at->frequency);
        if (!section_append_checked(job, i, "crossing", i, &pass)) return false;
        pass.kind = PARTITA_SECTION_ALL_PASS;
        for (size_t k = 0; k < i && !job->linear && !bessel && !even; k++)
            section_append(&pass, c->rate, &job->chain[k]);
        pass.kind = PARTITA_SECTION_HIGH_PASS;
        for (size_t k = i + 1; k < c->bands; k++) {
            section_append(&pass, c->rate, &job->chain[k]);
            if (opposite && !job->linear) c->inverted[k] = !c->inverted[k];
        }
    }
    return true;
}

enum partita_status partita_crossover_taps_sized(const struct partita_crossover *crossover,
                                                 size_t crossover_bytes, double *taps, size_t n,
                                                 struct partita_equalizer_result *ret_result,
                                                 size_t result_bytes)
{
    struct partita_biquad biquads[PARTITA_MAX_BANDS][MAX_CROSSINGS * SECTION_MAX_BIQUADS];
    struct taps_job job = {.name = "crossover", .taps = taps, .n = taps ? n : 0};
    const struct partita_log log = log_given(crossover);
    if (!arguments_given(log, crossover, ret_result)) return PARTITA_ERR_ARG;
    if (!sized_read(&job.given, sizeof job.given, crossover, crossover_bytes, &log, "crossover"))
        return PARTITA_ERR_UNSUPPORTED;
    job.given.log = log;
    if (job.given.bands < 2 || job.given.bands > PARTITA_MAX_BANDS)
        return log_error(&log, PARTITA_ERR_ARG, "crossover.bands = %zu: must be from 2 to %d",
                         job.given.bands, PARTITA_MAX_BANDS);
    for (size_t i = 0; i < PARTITA_MAX_BANDS; i++) job.chain[i].biquads = biquads[i];
    if (!job_resolve(&job) || !append_crossings(&job)) return PARTITA_ERR_ARG;
    return job_run(&job, ret_result, result_bytes);
}
