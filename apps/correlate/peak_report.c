// SPDX-License-Identifier: MIT
#include "peak_report.h"

#include <inttypes.h>

#include "base/json_values.h"
#include "base/memory.h"
#include "cli/options.h"

void peak_report_begin(const struct peak_report *report)
{
    if (!report->json)
        fprintf(report->to,
                "#       sample         position         seconds   magnitude    phase  %s\n",
                report->names ? "template" : "channel");
}

static void print_line(const struct peak_report *r, const struct match *m)
{
    char seconds[32] = "-";
    if (r->rate > 0) snprintf(seconds, sizeof seconds, "%.9f", m->position / r->rate);
    fprintf(r->to, "%14" PRId64 " %16.3f %15s %11.6g %8.4f ", m->sample, m->position, seconds,
            m->magnitude, m->phase);
    if (r->names) fprintf(r->to, " %s\n", r->names[m->channel]);
    else fprintf(r->to, "%8zu\n", m->channel);
}

static void print_object(const struct peak_report *r, const struct match *m)
{
    json_t *j = json_report("partita-peak/1", command_rows[COMMAND_CORRELATE].name);
    json_object_set_new(j, "kind", json_string("peak"));
    json_object_set_new(j, "channel", json_integer(r->names ? 0 : (json_int_t)m->channel));
    if (r->names) json_object_set_new(j, "template", json_text(r->names[m->channel]));
    json_object_set_new(j, "sample", json_integer(m->sample));
    json_object_set_new(j, "position", json_real(m->position));
    json_object_set_new(j, "seconds", r->rate > 0 ? json_real(m->position / r->rate) : json_null());
    json_object_set_new(j, "magnitude", json_real(m->magnitude));
    json_object_set_new(j, "phase", json_real(m->phase));
    json_dumpf(j, r->to, JSON_COMPACT);
    fputc('\n', r->to);
    json_decref(j);
}

bool peak_report_add(void *context, const struct peak *peak, struct fault *fault)
{
    struct peak_report *r = context;
    const int64_t lag = r->first_lag + (int64_t)peak->index * r->stride;
    const struct match match = {.sample = lag,
                                .position = (double)lag + peak->shift * (double)r->stride,
                                .magnitude = peak->magnitude,
                                .phase = peak->phase,
                                .channel = peak->channel};
    struct match *grown =
        r->keep ? memory_append(r->matches, r->n, &r->capacity, sizeof *grown) : NULL;
    if (r->keep && !grown)
        return fault_set(fault, "out of memory for %zu peaks; name fewer with --peaks", r->n);
    if (grown) (r->matches = grown)[r->n] = match;
    r->n++;
    if (r->json) print_object(r, &match);
    else print_line(r, &match);
    if (r->flush) fflush(r->to);
    return true;
}
