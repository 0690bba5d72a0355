// SPDX-License-Identifier: MIT
#include "pass_stats.h"

#include <math.h>
#include <stdlib.h>

#include "base/json_values.h"
#include "cli/report.h"
#include "io/audio.h"

enum { LANES = 8, CHUNK = 512 };

// Squared magnitudes of n samples; wide and is_complex are constants where this is called.
static inline void square(double *v, const void *x, size_t n, bool wide, bool is_complex)
{
    const float *f = x;
    const double *d = x;
    for (size_t i = 0; i < n; i++) {
        const size_t at = is_complex ? 2 * i : i, imaginary = is_complex ? at + 1 : at;
        const double a = wide ? d[at] : (double)f[at],
                     b = wide ? d[imaginary] : (double)f[imaginary];
        v[i] = is_complex ? a * a + b * b : a * a;
    }
}

void pass_stats_measure(struct pass_stats *stats, enum partita_type type, const void *x, size_t n)
{
    double top[LANES] = {0}, sum[LANES] = {0}; // independent sums hide the latency of additions
    for (size_t at = 0; at < n; at += CHUNK) {
        const size_t m = n - at < CHUNK ? n - at : CHUNK;
        const void *from = (const char *)x + at * partita_type_size(type);
        double v[CHUNK] = {0};
        if (type == PARTITA_F64) square(v, from, m, true, false);
        else if (type == PARTITA_CF64) square(v, from, m, true, true);
        else if (type == PARTITA_CF32) square(v, from, m, false, true);
        else square(v, from, m, false, false);
        for (size_t i = 0; i < CHUNK; i += LANES)
            for (size_t k = 0; k < LANES; k++) {
                top[k] = v[i + k] > top[k] ? v[i + k] : top[k];
                sum[k] += v[i + k];
            }
    }
    double peak = stats->peak * stats->peak;
    for (size_t k = 0; k < LANES; k++) {
        peak = top[k] > peak ? top[k] : peak;
        stats->energy += sum[k];
    }
    stats->peak = sqrt(peak);
}

static double pass_stats_rms(const struct pass_stats *s)
{
    double n = (double)s->frames_out * (double)s->out_channels;
    return n > 0 ? sqrt(s->energy / n) : 0;
}

static double times_real_time(const struct pass_stats *s)
{
    return s->rate > 0 && s->seconds > 0 ? (double)s->frames_in / s->rate / s->seconds : 0;
}

static void print_calls(const struct pass_stats *s, FILE *to)
{
    const struct partita_stream_stats *calls = &s->calls;
    fprintf(to, "calls       %llu of up to %zu frames", (unsigned long long)calls->calls,
            s->call_frames);
    if (s->rate > 0) fprintf(to, ", %llu longer than real time", (unsigned long long)calls->missed);
    fprintf(to,
            "\ncall time   mean %.3g us, 50 %% below %.3g, 99 %% below %.3g, 99.9 %% below %.3g, "
            "max %.3g us\n",
            calls->mean * 1e6, calls->p50 * 1e6, calls->p99 * 1e6, calls->p999 * 1e6,
            calls->max * 1e6);
}

void pass_stats_print(const struct pass_stats *s, FILE *to)
{
    fprintf(to, "engine      %s, %s, %zu taps, %zu -> %zu channels\n", s->engine, s->type, s->taps,
            s->in_channels, s->out_channels);
    fprintf(to, "frames      %llu in, %llu out, tail %llu", (unsigned long long)s->frames_in,
            (unsigned long long)s->frames_out, (unsigned long long)s->tail);
    if (s->delayed) fprintf(to, ", latency removed %zu", s->latency);
    fprintf(to, "\n");
    fprintf(to, "peak        %.6g (%.2f dBFS)\n", s->peak, 20 * log10(s->peak));
    fprintf(to, "rms         %.6g (%.2f dBFS)\n", pass_stats_rms(s), 20 * log10(pass_stats_rms(s)));
    if (s->written.clipped)
        fprintf(to, "clipped     %llu samples\n", (unsigned long long)s->written.clipped);
    if (s->replaced || s->written.nonfinite)
        fprintf(to, "not finite  %llu samples read, set to 0; %llu written\n",
                (unsigned long long)s->replaced, (unsigned long long)s->written.nonfinite);
    fprintf(to, "time        %.3g s", s->seconds);
    if (s->rate > 0) fprintf(to, ", %.1f times real time", times_real_time(s));
    fprintf(to, "\n");
    if (s->calls.calls && s->delayed) print_calls(s, to);
}

static json_t *calls_object(const struct pass_stats *s)
{
    const struct partita_stream_stats *calls = &s->calls;
    if (!calls->calls) return json_null();
    return json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "count", (json_int_t)calls->calls,
                     "frames", (json_int_t)s->call_frames, "missed",
                     s->rate > 0 ? json_integer((json_int_t)calls->missed) : json_null(), "mean",
                     json_finite(calls->mean), "p50", json_finite(calls->p50), "p99",
                     json_finite(calls->p99), "p999", json_finite(calls->p999), "max",
                     json_finite(calls->max));
}

bool pass_stats_print_json(const struct pass_stats *s, const struct settings *settings, FILE *to)
{
    const bool one_line = options_want_peaks(settings);
    const char *out = settings->operands[2];
    json_t *j = json_report("partita-filter/1", command_rows[settings->command].name);
    if (one_line) json_object_set_new(j, "kind", json_string("statistics"));
    json_object_set_new(j, "ir", json_text(settings->operands[0]));
    json_object_set_new(j, "in", json_text(settings->operands[1]));
    json_object_set_new(j, "out", out ? json_text(out) : json_null());
    json_object_set_new(j, "engine", json_text(s->engine));
    json_object_set_new(j, "type", json_text(s->type));
    json_object_set_new(j, "taps", json_integer((json_int_t)s->taps));
    json_object_set_new(j, "filter_peak", json_integer((json_int_t)s->filter_peak));
    json_object_set_new(j, "in_channels", json_integer((json_int_t)s->in_channels));
    json_object_set_new(j, "out_channels", json_integer((json_int_t)s->out_channels));
    json_object_set_new(j, "rate", json_rate(s->rate));
    json_object_set_new(j, "frames_in", json_integer((json_int_t)s->frames_in));
    json_object_set_new(j, "frames_out", json_integer((json_int_t)s->frames_out));
    json_object_set_new(j, "tail", json_integer((json_int_t)s->tail));
    json_object_set_new(j, "latency", json_integer((json_int_t)s->latency));
    json_object_set_new(j, "peak", json_finite(s->peak));
    json_object_set_new(j, "rms", json_finite(pass_stats_rms(s)));
    json_object_set_new(j, "clipped", json_integer((json_int_t)s->written.clipped));
    json_object_set_new(j, "not_finite_read", json_integer((json_int_t)s->replaced));
    json_object_set_new(j, "not_finite_written", json_integer((json_int_t)s->written.nonfinite));
    json_object_set_new(j, "truncated", json_boolean(s->truncated));
    json_object_set_new(j, "interrupted", json_boolean(s->interrupted));
    json_object_set_new(j, "seconds", json_finite(s->seconds));
    const bool timed = s->rate > 0 && s->seconds > 0;
    json_object_set_new(j, "times_real_time", json_finite(timed ? times_real_time(s) : NAN));
    json_object_set_new(j, "calls", calls_object(s));
    bool good = j && json_dumpf(j, to, one_line ? JSON_COMPACT : JSON_INDENT(2)) == 0 &&
                fputc('\n', to) != EOF && fflush(to) == 0;
    json_decref(j);
    return good;
}

// Whether the input has no samples. For a pipe this is known at its end, which is not reached if
// the range needs no input.
static bool input_is_empty(const struct pass_stats *stats, uint64_t frames)
{
    if (stats->truncated || stats->interrupted) return false;
    return frames == 0 ||
           (frames == SIZE_UNKNOWN && stats->frames_in == 0 && stats->frames_out == 0);
}

// Whether IR, in place of IN, is probably the long recording: of more than a minute and ten times
// as long as the other.
static bool may_be_exchanged(const struct pass_stats *stats, const struct settings *settings,
                             uint64_t frames)
{
    const double up = (double)settings->up, taps = (double)stats->taps;
    return settings->command == COMMAND_CONVOLVE && !settings->config && frames > 0 &&
           frames != SIZE_UNKNOWN && taps > 10 * up * (double)frames && stats->rate > 0 &&
           taps > 60 * up * stats->rate;
}

void pass_stats_warn(const struct pass_stats *stats, const struct settings *s, uint64_t frames)
{
    if (s->command == COMMAND_CONVOLVE && s->first < 0 && s->first != NOT_GIVEN)
        report_warning(s,
                       "--first %lld: the result begins with %lld frames of silence, which are "
                       "before IN",
                       (long long)s->first, (long long)-s->first);
    if (may_be_exchanged(stats, s, frames))
        report_warning(
            s,
            "%s is more than ten times as long as %s; if they were exchanged by mistake, "
            "IR comes before IN",
            operand_name(s, 0), operand_name(s, 1));
    if (input_is_empty(stats, frames)) report_warning(s, "%s: has no samples", operand_name(s, 1));
    if (stats->interrupted)
        report_warning(s, "interrupted after %llu frames", (unsigned long long)stats->frames_in);
    if (stats->replaced)
        report_warning(s, "%s: %llu NaN or infinite samples were read as 0", operand_name(s, 1),
                       (unsigned long long)stats->replaced);
    if (stats->written.nonfinite)
        report_warning(s, "%s: %llu NaN or infinite samples in the result", operand_name(s, 2),
                       (unsigned long long)stats->written.nonfinite);
}

bool pass_stats_combine(struct pass_stats *stats, struct processes *processes, struct fault *fault)
{
    if (!processes->n) return true;
    struct pass_stats *all = calloc(processes->n, sizeof *all);
    const bool good = processes_agree(processes, all || fault_set(fault, "out of memory"), fault);
    if (good) {
        processes_exchange(processes, stats, sizeof *stats, all);
        stats->energy = 0;
        stats->frames_out = stats->replaced = 0;
        for (size_t i = 0; i < processes->n; i++) {
            if (all[i].peak > stats->peak) stats->peak = all[i].peak;
            if (all[i].seconds > stats->seconds) stats->seconds = all[i].seconds;
            if (all[i].frames_in > stats->frames_in) stats->frames_in = all[i].frames_in;
            stats->energy += all[i].energy;
            stats->frames_out += all[i].frames_out;
            stats->replaced += all[i].replaced;
        }
    }
    free(all);
    return good;
}
