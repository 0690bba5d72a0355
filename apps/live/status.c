// SPDX-License-Identifier: MIT
#include "status.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json_values.h"
#include "cli/report.h"

static const char *const loss_names[N_CHAIN_LOSSES] = {
    "in_underflows", "in_overflows", "out_underflows", "out_overflows", "several"};

static double decibels(double factor)
{
    return factor > 0 ? 20 * log10(factor) : -INFINITY;
}

static json_t *levels_array(const struct session *s, bool out)
{
    const size_t n = out ? filter_set_view(s->filters).out_channels : session_inputs(s);
    json_t *list = json_array();
    for (size_t c = 0; c < n; c++) {
        struct level l = chain_level(s->chain, out, c);
        json_array_append_new(list,
                              json_pack("{s:o, s:o}", "peak", json_finite(decibels((double)l.peak)),
                                        "rms", json_finite(decibels((double)l.rms))));
    }
    return list;
}

static json_t *load_object(const struct session *s)
{
    struct partita_stream_stats load = chain_load(s->chain);
    return json_pack("{s:I, s:I, s:f, s:f, s:f, s:f}", "calls", (json_int_t)load.calls, "late",
                     (json_int_t)load.missed, "mean", load.mean, "p99", load.p99, "p999", load.p999,
                     "worst", load.max);
}

static json_t *latency_object(const struct session *s)
{
    const struct filter_set_view f = filter_set_view(s->filters);
    double in = s->format.in_latency, out = s->format.out_latency;
    size_t engine = partita_plan_latency(f.plan);
    return json_pack("{s:o, s:o, s:f, s:f}", "in", in < 0 ? json_null() : json_real(in), "out",
                     out < 0 ? json_null() : json_real(out), "engine",
                     (double)engine / s->format.rate, "onset",
                     (double)f.info.onset / s->format.rate);
}

static json_t *cancel_object(const struct session *s)
{
    if (!s->settings->cancel) return json_null();
    json_t *microphones = json_array();
    for (size_t c = 0; c < filter_set_view(s->filters).in_channels; c++)
        json_array_append_new(microphones,
                              json_pack("{s:f}", "erle", (double)chain_erle(s->chain, c)));
    return json_pack("{s:o, s:I, s:I, s:f}", "microphones", microphones, "far_end",
                     (json_int_t)s->settings->far_end, "taps", (json_int_t)s->settings->cancel,
                     "latency", CHAIN_CANCEL_BLOCK / s->format.rate);
}

static json_t *losses_object(const struct chain_counts *counts)
{
    json_t *lost = json_object();
    for (int i = 0; i < N_CHAIN_LOSSES; i++)
        json_object_set_new(lost, loss_names[i], json_integer((json_int_t)counts->lost[i]));
    return lost;
}

static void put_count(json_t *j, const char *name, uint64_t count)
{
    json_object_set_new(j, name, json_integer((json_int_t)count));
}

void status_put_settings(json_t *object, const struct session *s)
{
    json_t *j = object;
    const struct filter_set_view f = filter_set_view(s->filters);
    json_object_set_new(j, "filter", json_text(f.info.path));
    json_object_set_new(j, "filter_number", json_integer(f.current + 1));
    json_object_set_new(j, "scene",
                        s->scene < 0 ? json_null() : json_text(s->scenes->list[s->scene].name));
    json_object_set_new(j, "gain", json_real(s->state.gain));
    json_object_set_new(j, "wet", json_finite(s->state.wet));
    json_object_set_new(j, "dry", json_finite(s->state.dry));
    json_object_set_new(j, "input_gain", json_real(s->state.input_gain));
    json_object_set_new(j, "azimuth", json_real(s->state.direction.azimuth));
    json_object_set_new(j, "elevation", json_real(s->state.direction.elevation));
    json_object_set_new(j, "fade", json_real(s->state.fade));
    json_object_set_new(j, "mute", json_boolean(s->state.mute));
    json_object_set_new(j, "bypass", json_boolean(s->state.bypass));
}

void status_put_all(json_t *object, const struct session *s, bool final)
{
    const char *now = s->ending ? "ending" : "running", *end = s->lost ? "lost" : "ended";
    json_t *j = object, *filters = json_array(), *scenes = json_array();
    struct chain_counts counts = chain_counts(s->chain);
    const struct filter_set_view f = filter_set_view(s->filters);
    json_object_set_new(j, "state", json_string(final ? end : now));
    json_object_set_new(j, "seconds", json_real((double)counts.frames / s->format.rate));
    put_count(j, "frames", counts.frames);
    json_object_set_new(j, "rate", json_real(s->format.rate));
    json_object_set_new(j, "in_device", json_text(s->in.name));
    json_object_set_new(j, "out_device", json_text(s->out.name));
    status_put_settings(j, s);
    for (int i = 0; i < f.n; i++)
        json_array_append_new(filters, json_text(filter_set_path(s->filters, i)));
    json_object_set_new(j, "filters", filters);
    for (int i = 0; i < s->scenes->n; i++)
        json_array_append_new(scenes, json_text(s->scenes->list[i].name));
    json_object_set_new(j, "scenes", scenes);
    put_count(j, "taps", f.info.taps);
    json_object_set_new(j, "engine", json_string(partita_plan_engine(f.plan, PARTITA_FORWARD)));
    json_object_set_new(j, "in", levels_array(s, false));
    json_object_set_new(j, "out", levels_array(s, true));
    json_object_set_new(j, "load", load_object(s));
    json_object_set_new(j, "latency", latency_object(s));
    json_object_set_new(j, "cancel", cancel_object(s));
    put_count(j, "xruns", counts.xruns);
    json_object_set_new(j, "losses", losses_object(&counts));
    put_count(j, "limited", counts.limited);
    put_count(j, "not_finite_in", counts.nonfinite_in);
    put_count(j, "not_finite_out", counts.nonfinite_out);
    put_count(j, "unrecorded", counts.unrecorded);
}

json_t *status_response(const struct session *s)
{
    const struct filter_set_view f = filter_set_view(s->filters);
    const struct chain_levels levels = session_levels(s);
    const double wet = (double)levels.input * (double)levels.wet;
    json_t *frequencies = json_array(), *filters = json_array(), *results = json_array();
    for (int k = 0; k < FILTER_POINTS; k++)
        json_array_append_new(frequencies, json_real(filter_set_frequency(s->filters, k)));
    for (size_t c = 0; f.info.response && c < f.out_channels; c++) {
        const bool has_input = f.in_channels == 1 || c < f.in_channels;
        const double dry = has_input ? (double)levels.input * (double)levels.dry : 0;
        json_t *curve = json_array(), *result = json_array();
        for (int k = 0; k < FILTER_POINTS; k++) {
            const double *h = f.info.response[c][k];
            json_array_append_new(curve, json_finite(decibels(hypot(h[0], h[1]))));
            json_array_append_new(result,
                                  json_finite(decibels(hypot(wet * h[0] + dry, wet * h[1]))));
        }
        json_array_append_new(filters, curve);
        json_array_append_new(results, result);
    }
    return json_pack("{s:o, s:o, s:o}", "frequency", frequencies, "filter", filters, "result",
                     results);
}

char *status_dump(json_t *object)
{
    char *dump = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(6)), *line = NULL;
    if (dump && asprintf(&line, "%s\n", dump) < 0) line = NULL;
    free(dump);
    json_decref(object);
    return line;
}

char *status_compose_json(const struct session *session, bool final)
{
    json_t *j = json_report("partita-live/1", command_rows[COMMAND_LIVE].name);
    status_put_all(j, session, final);
    return status_dump(j);
}

static void warn_losses(const struct session *s, const struct chain_counts *counts)
{
    if (counts->xruns)
        report_warning(s->settings,
                       "xruns: %llu, of which %llu input underflows, %llu input overflows, %llu "
                       "output underflows, %llu output overflows, %llu of several kinds at once",
                       (unsigned long long)counts->xruns, (unsigned long long)counts->lost[0],
                       (unsigned long long)counts->lost[1], (unsigned long long)counts->lost[2],
                       (unsigned long long)counts->lost[3],
                       (unsigned long long)counts->lost[CHAIN_SEVERAL]);
    if (counts->unrecorded)
        report_warning(s->settings, "%s: %llu frames are missing because the disk was too slow",
                       s->settings->record, (unsigned long long)counts->unrecorded);
    if (s->recorded.clipped)
        report_warning(s->settings, "%s: %llu samples clipped", s->settings->record,
                       (unsigned long long)s->recorded.clipped);
}

void status_conclude(const struct session *s)
{
    struct chain_counts counts = chain_counts(s->chain);
    struct partita_stream_stats load = chain_load(s->chain);
    warn_losses(s, &counts);
    if (counts.nonfinite_in + counts.nonfinite_out)
        report_warning(
            s->settings,
            "NaN or infinite samples were played as 0: %llu of the input, %llu of the output",
            (unsigned long long)counts.nonfinite_in, (unsigned long long)counts.nonfinite_out);
    if (counts.limited)
        report_warning(s->settings, "the limiter attenuated %llu frames; use a lower --gain",
                       (unsigned long long)counts.limited);
    if (s->settings->quiet || s->settings->json) return;
    fprintf(stderr,
            "partita live: %.1f s in %llu calls; load mean %.1f %%, p99 %.1f %%, worst %.1f %% of "
            "the deadline\n",
            (double)counts.frames / s->format.rate, (unsigned long long)counts.calls,
            100 * load.mean, 100 * load.p99, 100 * load.max);
}
