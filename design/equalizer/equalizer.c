// SPDX-License-Identifier: MIT
// The public functions for sections in series.
#include "equalizer.h"

#include <math.h>
#include <string.h>

#include "api/sized.h"
#include "core/arguments.h"

#define TOLERANCE 1e-7 // of gains, dB

enum { MAX_SECTIONS = 4096, MAX_ROUNDS = 500 };

// Appends all sections, or all peaks.
static bool append_all(const struct taps_job *job, const struct partita_section *sections, size_t n,
                       bool peaks, struct biquad_chain *chain)
{
    for (size_t i = 0; i < n; i++) {
        char name[64];
        text_print(name, sizeof name, "sections[%zu]", i);
        if (peaks && sections[i].kind != PARTITA_SECTION_PEAK) continue;
        if (!section_append(&job->log, name, &sections[i], job->rate, chain)) return false;
    }
    return true;
}

// Changes the gains of peaks so that the response of all peaks passes through them. Each round adds
// half of the missing gain to a peak. Peaks have up to the threefold of their gain where all others
// help, and a third of it where neighbours have opposite signs: a round leaves at most 5/6 of it.
static enum partita_status solve_gains(const struct taps_job *job,
                                       const struct partita_section *given,
                                       struct partita_section *sections, size_t n)
{
    for (int round = 0; round < MAX_ROUNDS; round++) {
        struct biquad_chain chain = {job->chain->biquads, 0};
        double worst = 0;
        if (!append_all(job, sections, n, true, &chain))
            return round ? PARTITA_ERR_UNSUPPORTED : PARTITA_ERR_ARG;
        for (size_t i = 0; i < n; i++) {
            const double gain = chain_gain(&chain, sections[i].frequency / job->rate);
            const double missing = given[i].gain - 20 * log10(gain);
            if (sections[i].kind != PARTITA_SECTION_PEAK) continue;
            worst = fmax(worst, fabs(missing));
            sections[i].gain += missing / 2;
        }
        if (worst <= TOLERANCE) return PARTITA_OK;
    }
    return log_error(&job->log, PARTITA_ERR_UNSUPPORTED,
                     "equalizer.exact_gains: no peaks have these gains together; use narrower or "
                     "fewer ones, or smaller differences");
}

// Reads the caller's equalizer. The caller releases the biquads.
static enum partita_status equalizer_open(struct taps_job *job,
                                          const struct partita_equalizer *given, size_t bytes)
{
    struct partita_equalizer e;
    const struct partita_log log = LOG_GIVEN(given);
    if (!sized_read(&e, sizeof e, given, bytes, &log, "equalizer")) return PARTITA_ERR_UNSUPPORTED;
    *job = (struct taps_job){"equalizer", e.rate,      e.tail, e.taps,       e.phase,
                             log,         e.allocator, 1,      .factor = {1}};
    if (!job_resolve(job)) return PARTITA_ERR_ARG;
    if (e.n_sections > MAX_SECTIONS || (e.n_sections && !e.sections))
        return log_error(&log, PARTITA_ERR_ARG, "equalizer.n_sections = %zu: must be at most %d%s",
                         e.n_sections, MAX_SECTIONS, e.sections ? "" : ", and sections not NULL");
    const size_t count = SECTION_MAX_BIQUADS * (e.n_sections + 1);
    const size_t section_bytes = e.n_sections * sizeof *e.sections;
    struct biquad_chain *chain = job->chain;
    chain->biquads = mem_reserve(&e.allocator, count * sizeof *chain->biquads + section_bytes);
    if (!chain->biquads) return PARTITA_ERR_NOMEM;
    struct partita_section *sections = (struct partita_section *)(chain->biquads + count);
    if (section_bytes) memcpy(sections, e.sections, section_bytes);
    enum partita_status status = PARTITA_OK;
    if (e.exact_gains) status = solve_gains(job, e.sections, sections, e.n_sections);
    if (status == PARTITA_OK && !append_all(job, sections, e.n_sections, false, chain))
        status = PARTITA_ERR_ARG;
    if (status) mem_release(&e.allocator, chain->biquads);
    return status;
}

enum partita_status partita_equalizer_biquads_sized(const struct partita_equalizer *equalizer,
                                                    size_t equalizer_bytes,
                                                    struct partita_biquad *biquads,
                                                    size_t *ret_count)
{
    struct taps_job job;
    const struct partita_log log = LOG_GIVEN(equalizer);
    if (!arguments_given(log, equalizer, biquads, ret_count)) return PARTITA_ERR_ARG;
    const enum partita_status status = equalizer_open(&job, equalizer, equalizer_bytes);
    if (status) return status;
    *ret_count = job.chain->n;
    memcpy(biquads, job.chain->biquads, job.chain->n * sizeof *biquads);
    mem_release(&job.allocator, job.chain->biquads);
    return PARTITA_OK;
}

enum partita_status partita_equalizer_taps_sized(const struct partita_equalizer *equalizer,
                                                 size_t equalizer_bytes, double *taps, size_t n,
                                                 struct partita_equalizer_result *ret_result,
                                                 size_t result_bytes)
{
    struct taps_job job;
    const struct partita_log log = LOG_GIVEN(equalizer);
    if (!arguments_given(log, equalizer, ret_result)) return PARTITA_ERR_ARG;
    enum partita_status status = equalizer_open(&job, equalizer, equalizer_bytes);
    if (status) return status;
    status = job_run(&job, taps, n, ret_result, result_bytes);
    mem_release(&job.allocator, job.chain->biquads);
    return status;
}
