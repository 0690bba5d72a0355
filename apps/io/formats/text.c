// SPDX-License-Identifier: MIT
// Taps as text: one decimal number a line, always in the C locale. Empty lines, comments from '#'
// on, CR and a byte order mark are ignored; anything else is an error with its line number, but for
// the header of an impulse response that Room EQ Wizard exports. Written numbers have as many
// digits as their type needs to be read back unchanged.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "formats.h"

enum { TEXT_BUFFER = 65536, MAX_LINE = 256 };
enum { REMARK = '*' }; // begins most lines of a header of Room EQ Wizard

struct text {
    char line[MAX_LINE];
    size_t n_line;
    uint64_t line_number;
    size_t at, n;
    char buffer[TEXT_BUFFER];
};

static int text_next_byte(struct audio_reader *r, struct text *t)
{
    if (t->at == t->n) {
        t->n = source_read_some(&r->source, t->buffer, sizeof t->buffer);
        t->at = 0;
    }
    return t->n ? (unsigned char)t->buffer[t->at++] : -1;
}

// Reads the next line without its line break; *ret_end at the end of the file.
static bool text_next_line(struct audio_reader *r, struct text *t, bool *ret_end,
                           struct fault *fault)
{
    size_t n = 0;
    bool comment = false;
    int c;
    while ((c = text_next_byte(r, t)) >= 0 && c != '\n') {
        comment = comment || c == '#' || (n + 1 == sizeof t->line && *t->line == REMARK);
        if (comment) continue;
        if (n + 1 == sizeof t->line)
            return fault_set(fault, "%s: line %llu: longer than %d characters", r->source.name,
                             (unsigned long long)t->line_number + 1, MAX_LINE - 1);
        t->line[n++] = (char)c;
    }
    t->line_number++;
    t->line[n] = 0;
    t->n_line = n;
    *ret_end = c < 0 && n == 0;
    if (r->source.error)
        return fault_set(fault, "%s: cannot read: %s", r->source.name, strerror(r->source.error));
    return true;
}

static bool is_blank(const char *s)
{
    return s[strspn(s, " \t\r")] == 0;
}

static bool text_parse_value(struct audio_reader *r, struct text *t, const char *line,
                             double *ret_value, struct fault *fault)
{
    const char *why = NULL;
    char *end;
    double value = strtod(line, &end);
    if (strlen(line) != t->n_line - (size_t)(line - t->line)) why = "holds a zero byte";
    else if (end == line || !is_blank(end))
        why = strchr(line, ',') ? "is not one number; decimals are written with a point"
                                : "is not one number";
    else if (isnan(value)) why = "is not a number";
    else if (isinf(value)) why = "is infinite or too large";
    if (why)
        return fault_set(fault, "%s: line %llu: '%.40s' %s", r->source.name,
                         (unsigned long long)t->line_number, line, why);
    *ret_value = value;
    return true;
}

static bool text_read(struct audio_reader *reader, bool as_double, void *scalars, size_t n,
                      size_t *ret_n, struct fault *fault)
{
    struct text *t = reader->state;
    *ret_n = 0;
    while (*ret_n < n) {
        bool end = false;
        double value = 0;
        if (!text_next_line(reader, t, &end, fault)) return false;
        if (end) break;
        const char *line = t->line;
        if (t->line_number == 1 && strncmp(line, "\xEF\xBB\xBF", 3) == 0) line += 3;
        if (is_blank(line) && strlen(line) == t->n_line - (size_t)(line - t->line)) continue;
        if (!text_parse_value(reader, t, line, &value, fault)) return false;
        if (as_double) ((double *)scalars)[*ret_n] = value;
        else ((float *)scalars)[*ret_n] = (float)value;
        ++*ret_n;
    }
    reader->position += *ret_n;
    return true;
}

static bool text_skip(struct audio_reader *reader, uint64_t n, struct fault *fault)
{
    double value;
    for (size_t got = 1; n && got; n -= got)
        if (!text_read(reader, true, &value, 1, &got, fault)) return false;
    return true;
}

static const struct reader_ops text_reader = {.read = text_read, .skip = text_skip};

static bool skip_lines_of_text(struct audio_reader *r, uint64_t n, struct fault *fault)
{
    struct text *t = r->state;
    for (int c = 0; n && c >= 0; n--) {
        while ((c = text_next_byte(r, t)) >= 0 && c != '\n') continue;
        t->line_number++;
    }
    return !r->source.error ||
           fault_set(fault, "%s: cannot read: %s", r->source.name, strerror(r->source.error));
}

// Reads remarks and lines such as "2.0833E-5 // Sample interval (seconds)", after which samples
// follow. A rate that rounding of the interval to seven digits explains is whole.
static bool read_header(struct audio_reader *r, struct fault *fault)
{
    static const char LAST[] = "* Data start", INTERVAL[] = "// Sample interval";
    struct text *t = r->state;
    for (bool end = false; !end && strncmp(t->line, LAST, strlen(LAST)) != 0;) {
        if (!text_next_line(r, t, &end, fault)) return false;
        if (!strstr(t->line, INTERVAL)) continue;
        char *rest;
        const double rate = 1 / strtod(t->line, &rest);
        if (!(rate > 0 && rate < INFINITY) || strstr(rest, INTERVAL) != rest + strspn(rest, " \t"))
            return fault_set(
                fault,
                "%s: line %llu: '%.*s': must be the seconds between samples, such as 2.08E-5",
                r->source.name, (unsigned long long)t->line_number, (int)strcspn(t->line, " /"),
                t->line);
        r->info.rate = fabs(rate - rint(rate)) < 1e-6 * rate ? rint(rate) : rate;
    }
    return *t->line == REMARK ||
           fault_set(fault, "%s: no line '%s', with which the header of Room EQ Wizard ends",
                     r->source.name, LAST);
}

bool text_open(struct audio_reader *reader, uint64_t skip_lines, struct fault *fault)
{
    reader->state = memory_allocate_zeros(sizeof(struct text));
    if (!reader->state) return memory_fault(fault, "%s", reader->source.name);
    reader->ops = &text_reader;
    reader->info = (struct audio_info){
        .container = CONTAINER_TEXT,
        .encoding = {.kind = ENCODING_FLOAT, .bytes = 4},
        .channels = 1,
        .frames = SIZE_UNKNOWN,
        .rank = 1,
    };
    struct text *const t = reader->state;
    if (!skip_lines_of_text(reader, skip_lines, fault)) return false;
    const bool has_header = text_next_byte(reader, t) == REMARK;
    if (t->at) t->at--;
    return !has_header || read_header(reader, fault);
}

static bool text_write(struct audio_writer *w, bool as_double, const void *scalars, size_t n,
                       struct fault *fault)
{
    const bool stored_double = w->info.encoding.bytes == 8;
    char line[40];
    for (size_t i = 0; i < n; i++) {
        const double x =
            as_double ? ((const double *)scalars)[i] : (double)((const float *)scalars)[i];
        const int length = stored_double ? snprintf(line, sizeof line, "%.17g\n", x)
                                         : snprintf(line, sizeof line, "%.9g\n", (double)(float)x);
        if (!isfinite(x)) w->counts.nonfinite++;
        if (!sink_write(&w->sink, line, (size_t)length)) return sink_fault(&w->sink, fault);
    }
    w->frames += n;
    return true;
}

const struct writer_ops text_writer = {.write = text_write};
