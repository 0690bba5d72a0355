// SPDX-License-Identifier: MIT
// See status.h.
#include "status.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/json_values.h"
#include "cli/report.h"

static const char *const loss_names[N_DEVICE_LOSSES] = {"in_underflows", "in_overflows",
                                                        "out_underflows", "out_overflows"};

static double decibels(double factor)
{
    return factor > 0 ? 20 * log10(factor) : -INFINITY;
}

static json_t *levels_array(struct session *s, bool out)
{
    size_t n = out ? filter_set_out_channels(s->filters) : filter_set_in_channels(s->filters);
    json_t *list = json_array();
    for (size_t c = 0; c < n; c++) {
        struct level l = out ? chain_take_out_level(s->chain, c) : chain_take_in_level(s->chain, c);
        json_array_append_new(list,
                              json_pack("{s:o, s:o}", "peak", json_finite(decibels((double)l.peak)),
                                        "rms", json_finite(decibels((double)l.rms))));
    }
    return list;
}

static json_t *load_object(const struct session *s)
{
    struct chain_load load = chain_load(s->chain);
    return json_pack("{s:I, s:I, s:f, s:f, s:f, s:f}", "calls", (json_int_t)load.calls, "late",
                     (json_int_t)load.late, "mean", load.mean, "p99", load.p99, "p999", load.p999,
                     "worst", load.worst);
}

static json_t *latency_object(const struct session *s)
{
    struct filter_info f = filter_set_info(s->filters, filter_set_current(s->filters));
    double in = s->format.in_latency, out = s->format.out_latency;
    size_t engine = partita_plan_latency(filter_set_plan(s->filters));
    return json_pack("{s:o, s:o, s:f, s:f}", "in", in < 0 ? json_null() : json_real(in), "out",
                     out < 0 ? json_null() : json_real(out), "engine",
                     (double)engine / s->format.rate, "onset", (double)f.onset / s->format.rate);
}

char *status_compose_json(struct session *session, bool final)
{
    struct session *s = session;
    struct chain_counts counts = chain_counts(s->chain);
    json_t *j = json_object(), *lost = json_object();
    for (int i = 0; i < N_DEVICE_LOSSES; i++)
        json_object_set_new(lost, loss_names[i], json_integer((json_int_t)counts.lost[i]));
    json_object_set_new(j, "state", json_string(!final ? "running" : s->lost ? "lost" : "ended"));
    json_object_set_new(j, "seconds", json_real((double)counts.frames / s->format.rate));
    json_object_set_new(j, "frames", json_integer((json_int_t)counts.frames));
    json_object_set_new(j, "rate", json_real(s->format.rate));
    json_object_set_new(j, "in_device", json_text(s->in.name));
    json_object_set_new(j, "out_device", json_text(s->out.name));
    json_object_set_new(
        j, "filter", json_text(filter_set_info(s->filters, filter_set_current(s->filters)).path));
    json_object_set_new(
        j, "taps",
        json_integer((json_int_t)filter_set_info(s->filters, filter_set_current(s->filters)).taps));
    json_object_set_new(
        j, "engine",
        json_string(partita_plan_engine(filter_set_plan(s->filters), PARTITA_FORWARD)));
    json_object_set_new(j, "gain", json_real(s->gain));
    json_object_set_new(j, "mute", json_boolean(s->mute));
    json_object_set_new(j, "bypass", json_boolean(s->bypass));
    json_object_set_new(j, "in", levels_array(s, false));
    json_object_set_new(j, "out", levels_array(s, true));
    json_object_set_new(j, "load", load_object(s));
    json_object_set_new(j, "latency", latency_object(s));
    json_object_set_new(j, "xruns", json_integer((json_int_t)counts.xruns));
    json_object_set_new(j, "losses", lost);
    json_object_set_new(j, "limited", json_integer((json_int_t)counts.limited));
    json_object_set_new(j, "not_finite_in", json_integer((json_int_t)counts.nonfinite_in));
    json_object_set_new(j, "not_finite_out", json_integer((json_int_t)counts.nonfinite_out));
    json_object_set_new(j, "unrecorded", json_integer((json_int_t)counts.unrecorded));
    char *dump = json_dumps(j, JSON_COMPACT | JSON_REAL_PRECISION(6)), *line = NULL;
    if (dump && asprintf(&line, "%s\n", dump) < 0) line = NULL;
    free(dump);
    json_decref(j);
    return line;
}

// "[#######--- ] -12.3 peak -20.1 rms": bars from -60 to 0 dB.
static void draw_meter(const char *name, size_t channel, struct level level)
{
    enum { BAR_CHARACTERS = 30 };
    char bar[BAR_CHARACTERS + 1];
    double peak = decibels((double)level.peak), rms = decibels((double)level.rms);
    for (int i = 0; i < BAR_CHARACTERS; i++) {
        double at = -60 + 60.0 * (i + 1) / BAR_CHARACTERS;
        bar[i] = peak >= at ? '-' : ' ';
        if (rms >= at) bar[i] = '#';
    }
    bar[BAR_CHARACTERS] = 0;
    fprintf(stderr, "\r\033[K%-3s %2zu [%s] peak %6.1f  rms %6.1f dB\n", name, channel + 1, bar,
            fmax(peak, -99.9), fmax(rms, -99.9));
}

static void print_latency(const struct session *s, FILE *to)
{
    struct filter_info f = filter_set_info(s->filters, filter_set_current(s->filters));
    double in = s->format.in_latency, out = s->format.out_latency,
           onset = (double)f.onset / s->format.rate;
    double engine = (double)partita_plan_latency(filter_set_plan(s->filters)) / s->format.rate;
    if (in < 0 || out < 0) fprintf(to, "device unknown");
    else fprintf(to, "device %.1f ms", 1e3 * (in + out));
    fprintf(to, " + engine %.1f ms + onset of the filter %.1f ms", 1e3 * engine, 1e3 * onset);
}

enum { MAX_METERS = 8 };

static size_t terminal_columns(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

// The end of a text, as much as fits after `used` columns: the end of a path is its most specific
// part. Each byte counts as a column, which is too many for UTF-8, and too few only for wide
// characters.
static const char *fitting_end(const char *text, size_t used)
{
    size_t n = strlen(text), columns = terminal_columns(),
           space = columns > used ? columns - used : 0;
    const char *end = n > space ? text + (n - space) : text;
    while (end > text && (*end & 0xc0) == 0x80) end++; // not within a UTF-8 character
    return end;
}

static void draw_filter(const struct session *s)
{
    char place[32], levels[64];
    int current = filter_set_current(s->filters);
    int used =
        snprintf(place, sizeof place, "filter  %d/%d ", current + 1, filter_set_size(s->filters)) +
        snprintf(levels, sizeof levels, ", %+.1f dB%s%s", s->gain, s->mute ? ", MUTE" : "",
                 s->bypass ? ", BYPASS" : "");
    fprintf(stderr, "\r\033[K%s%s%s\n", place,
            fitting_end(filter_set_info(s->filters, current).path, (size_t)used), levels);
}

// Two lines: the beginning of the message, and the end of its rest.
static void draw_message(const char *message)
{
    size_t columns = terminal_columns(), n = strlen(message), first = n < columns ? n : columns;
    fprintf(stderr, "\r\033[K%.*s\n\r\033[K%s\n", (int)first, message,
            fitting_end(message + first, 0));
}

void status_draw(struct session *session, const char *message)
{
    static int drawn;
    struct session *s = session;
    struct chain_counts counts = chain_counts(s->chain);
    struct chain_load load = chain_load(s->chain);
    size_t in = filter_set_in_channels(s->filters), out = filter_set_out_channels(s->filters);
    int lines = 7;
    // Turns off line wrap, so that each line is one row.
    fprintf(stderr, "\033[?7l");
    if (drawn) fprintf(stderr, "\033[%dA", drawn);
    for (size_t c = 0; c < in && c < MAX_METERS; c++, lines++)
        draw_meter("in", c, chain_take_in_level(s->chain, c));
    for (size_t c = 0; c < out && c < MAX_METERS; c++, lines++)
        draw_meter("out", c, chain_take_out_level(s->chain, c));
    fprintf(stderr,
            "\r\033[Kload    mean %.1f %%  p99 %.1f %%  worst %.1f %% of the deadline, %llu late\n",
            100 * load.mean, 100 * load.p99, 100 * load.worst, (unsigned long long)load.late);
    fprintf(stderr,
            "\r\033[Kxruns   %llu: input %llu under %llu over, output %llu under %llu over; "
            "limited %llu, NaN %llu\n",
            (unsigned long long)counts.xruns, (unsigned long long)counts.lost[0],
            (unsigned long long)counts.lost[1], (unsigned long long)counts.lost[2],
            (unsigned long long)counts.lost[3], (unsigned long long)counts.limited,
            (unsigned long long)(counts.nonfinite_in + counts.nonfinite_out));
    fprintf(stderr, "\r\033[Klatency ");
    print_latency(s, stderr);
    fprintf(stderr, "\n");
    draw_filter(s);
    fprintf(stderr,
            "\r\033[Kkeys    m mute  b bypass  + - gain  n p filter  r read again  q quit\n");
    draw_message(message);
    fprintf(stderr, "\033[?7h");
    drawn = lines;
}

static void warn_losses(const struct session *s, const struct chain_counts *counts)
{
    if (counts->xruns)
        report_warning(s->settings,
                       "xruns: %llu in all; input %llu underflows, %llu overflows; output %llu "
                       "underflows, %llu overflows",
                       (unsigned long long)counts->xruns, (unsigned long long)counts->lost[0],
                       (unsigned long long)counts->lost[1], (unsigned long long)counts->lost[2],
                       (unsigned long long)counts->lost[3]);
    if (counts->unrecorded)
        report_warning(s->settings, "%s: %llu frames are missing because the disk was too slow",
                       s->settings->record, (unsigned long long)counts->unrecorded);
    if (s->recorded.clipped)
        report_warning(s->settings, "%s: %llu samples clipped", s->settings->record,
                       (unsigned long long)s->recorded.clipped);
}

void status_conclude(struct session *session)
{
    struct session *s = session;
    struct chain_counts counts = chain_counts(s->chain);
    struct chain_load load = chain_load(s->chain);
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
            100 * load.mean, 100 * load.p99, 100 * load.worst);
}
