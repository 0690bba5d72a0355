// SPDX-License-Identifier: MIT
// `partita deconvolve`: the impulse response of what lies between a signal that was played, usually
// a sweep, and its recording.
#include "deconvolve.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json_values.h"
#include "base/memory.h"
#include "base/number.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "io/formats/sigmf.h"
#include "io/frames.h"

// A response is found if its peak is at least this many times its RMS; noise has a lower ratio. Of
// fewer frames than its square no peak has that ratio.
enum { MIN_CREST_FACTOR = 20, MIN_AFTER = MIN_CREST_FACTOR * MIN_CREST_FACTOR };

// The noise is that of the last part of a response, where reverberation has decayed.
enum { NOISE_PART = 10 };

// Samples of this magnitude are counted as clipped by the recorder.
static const double CLIPPED = 0.99996; // of 16 bits, the largest has 0.99997

static bool load_files(struct deconvolve *d, struct fault *fault)
{
    const struct settings *s = &d->settings;
    if (!measured_load(&d->signal, s, s->operands[0], fault) ||
        !measured_load(&d->recording, s, s->operands[1], fault))
        return false;
    const double rate = d->signal.rate, rate_2 = d->recording.rate;
    if (rate > 0 && rate_2 > 0 && !rates_agree(rate, rate_2))
        return fault_set(fault,
                         "%s: sample rate %.12g Hz differs from the %.12g Hz of %s; convert one "
                         "of them to the rate of the other",
                         operand_name(s, 0), rate, rate_2, operand_name(s, 1));
    d->response.rate = rate_2 > 0 ? rate_2 : rate;
    return options_resolve_times(&d->settings, d->response.rate, fault);
}

// As long as the recording goes on after a sweep that it would begin with.
static bool choose_length(struct deconvolve *d, struct fault *fault)
{
    const struct settings *s = &d->settings;
    const size_t all = d->recording.frames;
    if (d->signal.channels != 1)
        return fault_set(fault, "%s: %zu channels; the signal that was played has 1",
                         operand_name(s, 0), d->signal.channels);
    if (all < d->signal.frames + MIN_AFTER)
        return fault_set(fault,
                         "%s: %zu frames, but %s has %zu; name the sweep first, and record it and "
                         "what follows it, at least %d frames",
                         operand_name(s, 1), all, operand_name(s, 0), d->signal.frames, MIN_AFTER);
    const size_t first = s->first == NOT_GIVEN ? 0 : (size_t)s->first;
    if (first >= all)
        return fault_set(fault, "--first %zu: %s has %zu frames", first, operand_name(s, 1), all);
    const size_t whole = all - d->signal.frames + 1;
    struct measured *r = &d->response;
    d->first = (int64_t)first;
    r->frames = first < whole ? whole - first : 1;
    if (s->ir_length) r->frames = (size_t)s->ir_length;
    if (r->frames > all - first) r->frames = all - first;
    return deconvolve_allocate(d, fault);
}

bool deconvolve_allocate(struct deconvolve *d, struct fault *fault)
{
    struct measured *r = &d->response;
    r->channels = d->recording.channels;
    r->samples = memory_allocate(r->frames * r->channels * sizeof *r->samples);
    d->channel = memory_allocate(d->recording.frames * sizeof *d->channel);
    return (r->samples && d->channel) || memory_fault(fault, "%zu frames", r->frames);
}

static void warn_of_clipping(const struct deconvolve *d)
{
    const double *x = d->recording.samples;
    const size_t n = d->recording.frames * d->recording.channels;
    const double peak = fabs(x[frames_peak(x, n)]);
    size_t clipped = 0;
    for (size_t i = 0; i < n; i++) clipped += fabs(x[i]) >= CLIPPED;
    // A float recording may exceed full scale, and a normalized one reaches it once.
    if (clipped > 1 && peak <= 1)
        report_warning(&d->settings, "%s: %zu samples at full scale; record at a lower level",
                       operand_name(&d->settings, 1), clipped);
}

struct found deconvolve_peak(const struct deconvolve *d, const double *response, size_t n)
{
    struct found found = {.latency = frames_peak(response, n)};
    const double peak = fabs(response[found.latency]);
    const size_t n_noise = n / NOISE_PART + 1;
    const double noise = frames_energy(response + n - n_noise, n_noise);
    if (peak < MIN_CREST_FACTOR * sqrt(frames_energy(response, n) / (double)n)) return found;
    found.level = peak / d->unit_peak;
    found.noise = sqrt(noise / (double)n_noise) / peak;
    return found;
}

void deconvolve_print(struct deconvolve *d, size_t channel, int64_t latency, json_t *fields,
                      const char *text)
{
    const double seconds = d->response.rate > 0 ? (double)latency / d->response.rate : NAN;
    const bool any = latency != NOT_GIVEN;
    json_t *row = json_pack("{s:I, s:o, s:o}", "channel", (json_int_t)channel + 1, "latency_frames",
                            any ? json_integer((json_int_t)latency) : json_null(),
                            "latency_seconds", json_finite(any ? seconds : NAN));
    json_object_update_new(row, fields);
    json_array_append_new(d->list, row);
    d->any = d->any || any;
    if (d->settings.json || d->settings.quiet) return;
    fprintf(d->to, "channel %zu: ", channel + 1);
    if (any) fprintf(d->to, "latency %lld frames", (long long)latency);
    if (any && d->response.rate > 0) fprintf(d->to, ", %.3f ms", 1e3 * seconds);
    fprintf(d->to, any ? "; %s\n" : "no response\n", text);
}

bool deconvolve_divide(struct deconvolve *d, size_t n, const double *signal, size_t n_signal,
                       struct fault *fault)
{
    const struct partita_allocator allocator = memory_allocator();
    const enum partita_status status =
        partita_deconvolve(d->channel, d->channel, n, signal, n_signal, &allocator);
    if (status == PARTITA_OK) return true;
    if (status == PARTITA_ERR_NOMEM)
        return memory_fault(fault, "transforms of %zu frames", n + n_signal);
    return fault_set(fault, "%s: %zu frames, which with those of %s are too many for a transform",
                     operand_name(&d->settings, 1), d->recording.frames,
                     operand_name(&d->settings, 0));
}

bool deconvolve_compute(struct deconvolve *d, struct fault *fault)
{
    const struct measured *sweep = &d->signal;
    const size_t all = d->recording.frames, n = all - sweep->frames + 1;
    // The peak of the recording that is the sweep itself. Its transform has the size of the others.
    memset(d->channel, 0, all * sizeof *d->channel);
    memcpy(d->channel, sweep->samples, sweep->frames * sizeof *d->channel);
    if (!deconvolve_divide(d, all, sweep->samples, sweep->frames, fault)) return false;
    d->unit_peak = d->channel[0];
    for (size_t c = 0; c < d->recording.channels; c++) {
        memcpy(d->channel, d->recording.samples + c * all, all * sizeof *d->channel);
        if (!deconvolve_divide(d, all, sweep->samples, sweep->frames, fault)) return false;
        const size_t end = (size_t)d->first + d->response.frames;
        const struct found found = deconvolve_peak(d, d->channel, n > end ? n : end);
        const double level = 20 * log10(found.level), noise = 20 * log10(found.noise);
        char text[64];
        snprintf(text, sizeof text, "level %.1f dB; noise %.1f dB below the peak", level, -noise);
        deconvolve_print(
            d, c, found.level > 0 ? (int64_t)found.latency : NOT_GIVEN,
            json_pack("{s:o, s:o}", "level_db", json_finite(level), "noise_db", json_finite(noise)),
            text);
        memcpy(d->response.samples + c * d->response.frames, d->channel + d->first,
               d->response.frames * sizeof *d->channel);
    }
    return true;
}

static bool print_json(const struct deconvolve *d)
{
    const struct settings *s = &d->settings;
    json_t *j = json_report("partita-deconvolve/1", command_rows[s->command].name);
    json_object_set_new(j, "sweep", json_text(s->operands[0]));
    json_object_set_new(j, "recording", json_text(s->operands[1]));
    json_object_set_new(j, "out", json_text(s->operands[2]));
    json_object_set_new(j, "rate", json_rate(d->response.rate));
    json_object_set_new(j, "first", json_integer((json_int_t)d->first));
    json_object_set_new(j, "frames", json_integer((json_int_t)d->response.frames));
    json_object_set(j, "channels", d->list);
    return json_print(j, d->to);
}

static bool run(struct deconvolve *d, const struct deconvolve_method *method, struct fault *fault)
{
    const struct settings *s = &d->settings;
    if (strcmp(s->operands[0], "-") == 0 && strcmp(s->operands[1], "-") == 0)
        return fault_usage(fault, "the signal and its recording are both standard input");
    if (!sigmf_differs(s->operands[2], (const char *const *)s->operands, 2, fault) ||
        !load_files(d, fault) || !method->choose_length(d, fault))
        return false;
    d->list = json_array();
    if (!method->compute(d, fault)) return false;
    if (s->json && !print_json(d)) return fault_set(fault, "cannot write the JSON");
    if (!d->any)
        return fault_set(fault, "%s: no response to %s was found in it", operand_name(s, 1),
                         operand_name(s, 0));
    measured_warn(&d->signal, s);
    measured_warn(&d->recording, s);
    warn_of_clipping(d);
    return measured_write(&d->response, s, s->operands[2], fault);
}

void deconvolve_release(struct deconvolve *d)
{
    json_decref(d->list);
    measured_release(&d->signal);
    measured_release(&d->recording);
    measured_release(&d->response);
    memory_free(d->channel);
}

int deconvolve_run(const struct settings *settings, const struct deconvolve_method *method,
                   struct fault *fault)
{
    struct deconvolve d = {.settings = *settings,
                           .to = strcmp(settings->operands[2], "-") == 0 ? stderr : stdout};
    const bool good = run(&d, method, fault);
    deconvolve_release(&d);
    return good ? EXIT_DONE : EXIT_FAILED;
}

int deconvolve_main(const struct settings *settings, struct fault *fault)
{
    static const struct deconvolve_method method = {choose_length, deconvolve_compute};
    return deconvolve_run(settings, &method, fault);
}
