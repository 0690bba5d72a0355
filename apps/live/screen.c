// SPDX-License-Identifier: MIT
// See screen.h. Each byte of a text counts as a column, which is too many for UTF-8, and too few
// only for wide characters.
#include "screen.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "control/table.h"

enum {
    MAX_METERS = 8,      // in each direction
    BAR_CHARACTERS = 30, // at most
    LEVEL_COLUMNS = 21,  // of a meter apart from its bar
    RMS_COLUMNS = 15,
    MIN_COLUMNS_WITH_RMS = 52,
    OTHER_LINES = 7, // apart from the meters and --cancel
    ERLE_SIZE = 128,
};

static double shown_decibels(float factor)
{
    return factor > 0 ? fmax(20 * log10((double)factor), -99.9) : -99.9;
}

// Whether the byte continues a UTF-8 character.
static bool is_inside(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

// How many bytes of a text fit into a line.
static int fitting_start(const struct screen *s, const char *text)
{
    size_t n = strnlen(text, (size_t)s->columns);
    while (n && is_inside(text[n])) n--;
    return (int)n;
}

// The end of a text, as much as fits after `used` columns: the end of a path is its most specific
// part.
static const char *fitting_end(const struct screen *s, const char *text, int used)
{
    size_t n = strlen(text), space = s->columns > used ? (size_t)(s->columns - used) : 0;
    const char *end = n > space ? text + (n - space) : text;
    while (end > text && is_inside(*end)) end++;
    return end;
}

__attribute__((format(printf, 2, 3))) static void draw_line(struct screen *s, const char *format,
                                                            ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\r\033[K%.*s\n", fitting_start(s, line), line);
    s->n_drawn++;
}

// "[#######---   ]": RMS and peak from -60 to 0 dB.
static void draw_meter(struct screen *s, const char *name, size_t channel, struct level level)
{
    char bar[BAR_CHARACTERS + 1], right[32] = "";
    bool with_rms = s->columns >= MIN_COLUMNS_WITH_RMS;
    int n = s->columns - LEVEL_COLUMNS - (with_rms ? RMS_COLUMNS : 0);
    double peak = shown_decibels(level.peak), rms = shown_decibels(level.rms);
    n = n < 0 ? 0 : n < BAR_CHARACTERS ? n : BAR_CHARACTERS;
    for (int i = 0; i < n; i++) {
        double at = -60 + 60.0 * (i + 1) / n;
        bar[i] = rms >= at ? '#' : peak >= at ? '-' : ' ';
    }
    bar[n] = 0;
    if (with_rms) snprintf(right, sizeof right, "  rms %6.1f dB", rms);
    draw_line(s, "%-3s %2zu [%s] peak %6.1f%s", name, channel + 1, bar, peak, right);
}

static void draw_latency(struct screen *s, const struct session *session)
{
    char device[32] = "unknown";
    const struct filter_set_view f = filter_set_view(session->filters);
    double in = session->format.in_latency, out = session->format.out_latency;
    double ms = 1e3 / session->format.rate;
    size_t engine = partita_plan_latency(f.plan);
    if (in >= 0 && out >= 0) snprintf(device, sizeof device, "%.1f ms", 1e3 * (in + out));
    draw_line(s, "latency device %s + engine %.1f ms + onset of the filter %.1f ms", device,
              ms * (double)engine, ms * (double)f.info.onset);
}

static size_t n_meters(size_t channels)
{
    return channels < MAX_METERS ? channels : MAX_METERS;
}

// " ERLE 23.1 18.0 dB" of the microphones; without --cancel an empty text.
static void print_erle(const struct session *s, char *text, size_t size)
{
    size_t used = 0;
    const size_t n = s->settings->cancel ? n_meters(filter_set_view(s->filters).in_channels) : 0;
    *text = 0;
    for (size_t c = 0; c < n; c++)
        used += (size_t)snprintf(text + used, size - used, "%s %.1f%s", c ? "" : " ERLE",
                                 (double)chain_erle(s->chain, c), c + 1 < n ? "" : " dB");
}

static int print_levels(const struct session *s, char *text, size_t size)
{
    char dry[32] = "", wet[32] = "", input[32] = "";
    if (s->state.dry > -INFINITY) snprintf(dry, sizeof dry, ", dry %+.1f dB", s->state.dry);
    if (s->state.wet == -INFINITY) snprintf(wet, sizeof wet, ", wet off");
    else if (s->state.wet != 0) snprintf(wet, sizeof wet, ", wet %+.1f dB", s->state.wet);
    if (s->state.input_gain != 0)
        snprintf(input, sizeof input, ", input %+.1f dB", s->state.input_gain);
    return snprintf(text, size, ", %+.1f dB%s%s%s%s%s", s->state.gain, wet, dry, input,
                    s->state.mute ? ", MUTE" : "", s->state.bypass ? ", BYPASS" : "");
}

static void draw_filter(struct screen *s, const struct session *session)
{
    char number[32 + SCENE_NAME_SIZE], levels[160];
    const struct filter_set_view f = filter_set_view(session->filters);
    const char *scene = session->scene < 0 ? "" : session->scenes->list[session->scene].name;
    int used = snprintf(number, sizeof number, "filter  %d/%d %s%s", f.current + 1, f.n, scene,
                        *scene ? ": " : "") +
               print_levels(session, levels, sizeof levels);
    draw_line(s, "%s%s%s", number, fitting_end(s, f.info.path, used), levels);
}

// Two lines: the beginning of the message, and the end of its rest.
static void draw_message(struct screen *s, const char *message)
{
    int first = fitting_start(s, message);
    draw_line(s, "%.*s", first, message);
    draw_line(s, "%s", fitting_end(s, message + first, 0));
}

static void draw_all(struct screen *s, const struct session *session, const char *message)
{
    struct chain_counts counts = chain_counts(session->chain);
    struct partita_stream_stats load = chain_load(session->chain);
    const struct filter_set_view f = filter_set_view(session->filters);
    const size_t in = n_meters(session_inputs(session)), out = n_meters(f.out_channels);
    const double ms = 1e3 / session->format.rate;
    static const char *const names[] = {"in", "mic", "far"};
    char erle[ERLE_SIZE];
    print_erle(session, erle, sizeof erle);
    for (size_t c = 0; c < in; c++)
        draw_meter(s, names[*erle ? 1 + (c >= f.in_channels) : 0], c,
                   chain_level(session->chain, false, c));
    for (size_t c = 0; c < out; c++) draw_meter(s, "out", c, chain_level(session->chain, true, c));
    draw_line(s, "load    mean %.1f %%  p99 %.1f %%  worst %.1f %% of the deadline, %llu late",
              100 * load.mean, 100 * load.p99, 100 * load.max, (unsigned long long)load.missed);
    draw_line(
        s,
        "xruns   %llu: in %llu under %llu over, out %llu under %llu over, %llu several; limited "
        "%llu, NaN %llu",
        (unsigned long long)counts.xruns, (unsigned long long)counts.lost[0],
        (unsigned long long)counts.lost[1], (unsigned long long)counts.lost[2],
        (unsigned long long)counts.lost[3], (unsigned long long)counts.lost[CHAIN_SEVERAL],
        (unsigned long long)counts.limited,
        (unsigned long long)(counts.nonfinite_in + counts.nonfinite_out));
    draw_latency(s, session);
    if (*erle)
        draw_line(s, "cancel %s, echoes up to %.1f ms, %.1f ms late", erle,
                  ms * (double)session->settings->cancel, ms * CHAIN_CANCEL_BLOCK);
    draw_filter(s, session);
    draw_line(s, "keys    m mute  b bypass  -+ gain  pn filter  ? all  q quit");
    draw_message(s, message);
}

static float loudest(const struct session *s, bool out)
{
    const struct filter_set_view f = filter_set_view(s->filters);
    const size_t n = out ? f.out_channels : f.in_channels; // microphones, with --cancel
    float peak = 0;
    for (size_t c = 0; c < n; c++) peak = fmaxf(peak, chain_level(s->chain, out, c).peak);
    return peak;
}

// The most important first, since the end may not fit. The cursor stays in the line.
static void draw_one_line(struct screen *s, const struct session *session, const char *message)
{
    char line[1024], erle[ERLE_SIZE];
    struct chain_counts counts = chain_counts(session->chain);
    struct filter_info f = filter_set_view(session->filters).info;
    print_erle(session, erle, sizeof erle);
    if (*message) snprintf(line, sizeof line, "%s", message);
    else
        snprintf(line, sizeof line, "%sin %.1f out %.1f dB,%s%s load %.0f %%, xruns %llu, %s",
                 session->state.mute     ? "MUTE "
                 : session->state.bypass ? "BYPASS "
                                         : "",
                 shown_decibels(loudest(session, false)), shown_decibels(loudest(session, true)),
                 erle, *erle ? "," : "", 100 * chain_load(session->chain).mean,
                 (unsigned long long)counts.xruns, f.path);
    fprintf(stderr, "\r\033[K%.*s", fitting_start(s, line), line);
}

// As many lines as needed and as fit above the cursor.
static void draw_keys(struct screen *s)
{
    char line[1024] = "", entry[64];
    size_t used = 0;
    for (size_t i = 0; i <= n_control_keys && s->n_drawn < s->rows - 1; i++) {
        const struct control_key *k = &control_keys[i];
        if (i == n_control_keys) snprintf(entry, sizeof entry, "1 .. 9 filter  ? back");
        else if (k->other) snprintf(entry, sizeof entry, "%c %c %s  ", k->key, k->other, k->help);
        else snprintf(entry, sizeof entry, "%c %s  ", k->key, k->help);
        if (used && used + strlen(entry) > (size_t)s->columns) {
            draw_line(s, "%s", line);
            used = 0;
        }
        used += (size_t)snprintf(line + used, sizeof line - used, "%s", entry);
    }
    if (s->n_drawn < s->rows - 1) draw_line(s, "%s", line);
}

// Moves to the first line. What was drawn for another size or purpose is erased.
static void go_to_start(struct screen *s)
{
    struct winsize size;
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row;
    int columns = known ? size.ws_col : 80, rows = known ? size.ws_row : 24;
    bool resized = s->columns && (columns != s->columns || rows != s->rows);
    if (resized) fprintf(stderr, "\033[H\033[J"); // the terminal may have wrapped lines
    else if (s->n_drawn) fprintf(stderr, "\033[%dA", s->n_drawn);
    if (s->shows_keys != s->showed_keys) fprintf(stderr, "\r\033[J");
    s->columns = columns;
    s->rows = rows;
    s->n_drawn = 0;
    s->showed_keys = s->shows_keys;
}

void screen_draw(struct screen *s, const struct session *session, const char *message)
{
    const struct filter_set_view f = filter_set_view(session->filters);
    const size_t lines = OTHER_LINES + (size_t)(session->settings->cancel > 0) +
                         n_meters(session_inputs(session)) + n_meters(f.out_channels);
    fprintf(stderr, "\033[?7l"); // no line wrap
    go_to_start(s);
    if (s->shows_keys) draw_keys(s);
    else if (lines < (size_t)s->rows) draw_all(s, session, message);
    else draw_one_line(s, session, message);
    fprintf(stderr, "\033[?7h");
}
