// SPDX-License-Identifier: MIT
#include "points.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/bytes/bytes.h"
#include "io/bytes/temp.h"

enum { MAX_POINTS = 1 << 20 };

// A table that is read.
struct table_file {
    const char *name;
    char *rest;    // lines that are not read yet
    size_t number; // of the line
    struct points points;
    size_t capacity, degrees_capacity, n_degrees;
};

static bool is_separator(char c)
{
    return c != 0 && strchr(" \t,;\r\n", c) != NULL;
}

// "20,5; -3,1": commas are decimal marks if something else is between the numbers.
static void accept_commas(char *text)
{
    size_t length = strlen(text);
    while (length && is_separator(text[length - 1])) text[--length] = 0;
    const char *gap = strpbrk(text, " \t;");
    if (!gap || gap == text || gap[-1] == ',') return;
    for (char *c = text + 1; (c = strchr(c, ',')) != NULL; c++)
        if (isdigit((unsigned char)c[-1]) && isdigit((unsigned char)c[1])) *c = '.';
}

// The next line that is not left out; NULL at the end.
static char *next_line(struct table_file *table)
{
    for (char *text; (text = strsep(&table->rest, "\n"));) {
        table->number++;
        text[strcspn(text, "#\r")] = 0;
        text += strspn(text, " \t");
        const bool heading = !table->points.n && isalpha((unsigned char)*text);
        if (*text == 0 || *text == '*' || *text == '"' || heading) continue;
        accept_commas(text);
        return text;
    }
    return NULL;
}

// The next number of a line; false if there is none.
static bool parse_column(const char **text, double *ret)
{
    char *end;
    *ret = strtod(*text, &end);
    const bool good = end != *text && (*end == 0 || is_separator(*end));
    while (is_separator(*end)) end++;
    *text = end;
    return good;
}

static bool add_point(struct table_file *table, const char *line, struct fault *fault)
{
    struct points *p = &table->points;
    const char *text = line;
    struct partita_design_point point;
    double degrees;
    if (!parse_column(&text, &point.frequency) || !parse_column(&text, &point.decibels))
        return fault_set(fault,
                         "%s: line %zu: '%.40s' is not a frequency and decibels, such as 1000 -3",
                         table->name, table->number, line);
    if (p->n && !(point.frequency > p->list[p->n - 1].frequency))
        return fault_set(fault, "%s: line %zu: frequency %g is not above that before, %g",
                         table->name, table->number, point.frequency, p->list[p->n - 1].frequency);
    if (p->n == MAX_POINTS)
        return fault_set(fault, "%s: more than %d points", table->name, MAX_POINTS);
    void *const list = memory_append(p->list, p->n, &table->capacity, sizeof *p->list);
    if (list) p->list = list;
    void *const phases =
        memory_append(p->degrees, p->n, &table->degrees_capacity, sizeof *p->degrees);
    if (phases) p->degrees = phases;
    if (!list || !phases) return fault_set(fault, "out of memory");
    table->n_degrees += parse_column(&text, &degrees) && isfinite(degrees);
    p->list[p->n] = point;
    p->degrees[p->n++] = degrees;
    return true;
}

bool points_read(struct points *ret, const char *path, struct fault *fault)
{
    char *text = regular_read_text(path, fault);
    struct table_file table = {.name = path, .rest = text};
    bool good = text;
    for (char *line; good && (line = next_line(&table)) != NULL;)
        good = add_point(&table, line, fault);
    if (good && !table.points.n) good = fault_set(fault, "%s: holds no points", path);
    free(text);
    if (!good || table.n_degrees < table.points.n) {
        free(table.points.degrees);
        table.points.degrees = NULL;
    }
    if (good) *ret = table.points;
    else points_release(&table.points);
    return good;
}

bool points_begin(const char *path)
{
    struct fault ignored;
    char *text = regular_read_text(path, &ignored);
    struct table_file table = {.rest = text};
    double column;
    const char *line = next_line(&table);
    const bool two = line && parse_column(&line, &column) && parse_column(&line, &column);
    free(text);
    return two;
}

bool points_write(const struct points *points, const char *path, struct fault *fault)
{
    const char gap = path_ends_with(path, ".csv") ? ',' : '\t';
    struct temp temp;
    struct sink sink;
    char line[96];
    const int fd = temp_open(&temp, path, false, fault);
    if (fd < 0) return false;
    sink_from_fd(&sink, fd, path);
    int n = snprintf(line, sizeof line, "%s%cSPL(dB)%cPhase(degrees)\n",
                     gap == ',' ? "Freq(Hz)" : "* Freq(Hz)", gap, gap);
    for (size_t i = 0; i <= points->n && sink_write(&sink, line, (size_t)n); i++) {
        if (i == points->n) break;
        n = snprintf(line, sizeof line, "%.9g%c%.6f%c%.5f\n", points->list[i].frequency, gap,
                     points->list[i].decibels, gap, points->degrees[i]);
    }
    const bool good =
        (sink_close(&sink) || sink_fault(&sink, fault)) && temp_commit(&temp, false, fault);
    if (!good) temp_discard(&temp);
    return good;
}

void points_release(struct points *points)
{
    free(points->list);
    free(points->degrees);
    *points = (struct points){0};
}
