// SPDX-License-Identifier: MIT
#include "report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_failed; // a fault was reported

int report_fault(enum command command, struct fault *fault, int status)
{
    const struct command_row *c = &command_rows[command];
    if (status == EXIT_DONE || status == EXIT_DEGRADED || !*fault->text) return status;
    has_failed = true;
    if (fault->usage && status == EXIT_FAILED) status = EXIT_USAGE;
    fprintf(stderr, "partita %s: %s\n", c->name, fault->text);
    if (status == EXIT_USAGE)
        fprintf(stderr, "usage: partita %s [options]%s%s   (partita %s --help)\n", c->name,
                *c->operands ? " " : "", c->operands, c->name);
    *fault->text = 0;
    return status;
}

void report_line(const struct settings *settings, bool shown, const char *format, ...)
{
    va_list arguments;
    if (!shown) return;
    fprintf(stderr, "partita %s: ", command_rows[settings->command].name);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\n");
}

bool report_input(const struct settings *settings, const struct audio_reader *reader)
{
    const char *note = audio_reader_info(reader)->note, *shortfall = audio_shortfall(reader);
    if (shortfall) report_warning(settings, "%s", shortfall);
    if (*note) report_warning(settings, "%s", note);
    return shortfall;
}

void report_stored_rate(const struct settings *settings, const char *path,
                        const struct audio_info *info)
{
    const double stored = container_rate(info->container, path, info->rate);
    if (stored != info->rate)
        report_warning(settings, "%s: its sample rate of %.12g Hz is stored as %.0f Hz", path,
                       info->rate, stored);
    else if (info->rate > 0 && info->container == CONTAINER_NPY)
        report_detail(settings, "%s: stores no sample rate; it is %.12g Hz", path, info->rate);
}

char *report_plan(const struct partita_plan *plan)
{
    const size_t n = partita_plan_explain(plan, NULL, 0);
    char *text = malloc(n + 1);
    if (text) partita_plan_explain(plan, text, n + 1);
    return text;
}

void report_plan_detail(const struct settings *settings, const struct partita_plan *plan)
{
    char *text = settings->verbose ? report_plan(plan) : NULL;
    if (text) fputs(text, stderr);
    free(text);
}

int report_end(enum command command, struct fault *fault, int status)
{
    status = report_fault(command, fault, status);
    // A fault that was reported may be the same.
    if ((has_failed && status == EXIT_FAILED) || (!ferror(stdout) && fclose(stdout) == 0))
        return status;
    fprintf(stderr, "partita %s: standard output: cannot write: %s\n", command_rows[command].name,
            strerror(errno));
    return status == EXIT_DONE ? EXIT_FAILED : status;
}
