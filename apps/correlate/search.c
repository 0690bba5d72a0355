// SPDX-License-Identifier: MIT
#include "search.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_values.h"
#include "base/memory.h"
#include "cli/report.h"

bool search_check_usage(const struct settings *s, struct fault *fault)
{
    if (s->normalised && s->gain != 0)
        return fault_set(fault, "--gain does not change the result of --normalised; leave it out");
    if (s->normalised == NORMALISED_ZERO_MEAN && s->precision == PRECISION_F32)
        return fault_set(fault,
                         "--precision f32: the errors of float are as large as a signal on a "
                         "large mean; --normalised=zero-mean computes in double: leave out "
                         "--precision f32");
    if (!options_want_peaks(s)) {
        if (!s->min_distance && !s->annotate) return true;
        return fault_set(fault, "%s is about peaks: add --peaks or --threshold",
                         s->annotate ? "--annotate" : "--min-distance");
    }
    if (s->threshold < 0)
        return fault_set(fault, "--threshold %g: is not a magnitude, which is 0 or more",
                         s->threshold);
    if (s->resume)
        return fault_set(fault, "--resume does not keep the peaks of the run that was stopped; "
                                "leave out --resume, or --peaks and --threshold");
    if (options_sharded_by(s) && s->operands[2])
        return fault_set(fault, "%s with --peaks or --threshold writes no OUT; leave out %s",
                         options_sharded_by(s), s->operands[2]);
    if (s->output_format && !s->operands[2])
        return fault_set(fault, "--output-format %s: there is no OUT", s->output_format);
    return true;
}

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

// For struct peaks_request; context: the report.
static bool peak_report_add(void *context, const struct peak *peak, struct fault *fault)
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

uint64_t search_distance(const struct settings *settings, uint64_t length)
{
    const uint64_t distance = settings->min_distance ? (uint64_t)settings->min_distance : length,
                   stride = (uint64_t)settings->stride;
    return (distance + stride - 1) / stride;
}

bool search_collect(void *context, const struct peak *peak, struct fault *fault)
{
    struct search *s = context;
    struct peak *grown = memory_append(s->found, s->n_found, &s->capacity, sizeof *grown);
    if (!grown)
        return fault_set(fault, "out of memory for %zu peaks; name fewer with --peaks", s->n_found);
    s->found = grown;
    s->found[s->n_found] = *peak;
    s->found[s->n_found++].index += s->offset;
    return true;
}

bool search_open(struct search *search, const struct search_request *request, struct fault *fault)
{
    const struct settings *s = request->settings;
    const struct processes *p = request->processes;
    const bool to_stdout = !s->operands[2] || strcmp(s->operands[2], "-") != 0;
    const struct peaks_request peaks = {.type = request->type,
                                        .channels = request->channels,
                                        .max_count = (size_t)s->peaks,
                                        .threshold = isnan(s->threshold) ? 0 : s->threshold,
                                        .distance = search_distance(s, request->length),
                                        .first = request->first,
                                        .end = request->end,
                                        .continues = request->continues,
                                        .report = p->n ? search_collect : peak_report_add,
                                        .context = p->n ? (void *)search : &search->report};
    if (!options_want_peaks(s)) return true;
    search->report = (struct peak_report){.to = to_stdout ? stdout : stderr,
                                          .json = s->json,
                                          .flush = audio_reader_is_pipe(request->in),
                                          .rate = audio_reader_info(request->in)->rate,
                                          .first_lag = request->first_lag,
                                          .stride = s->stride,
                                          .keep = s->annotate};
    search->offset = request->offset;
    const bool again = search->peaks;
    peaks_close(search->peaks);
    if (!peaks_open(&search->peaks, &peaks, fault)) return false;
    if (!p->rank && !again) peak_report_begin(&search->report);
    return true;
}

bool search_finish(struct search *search, struct fault *fault)
{
    if (!search->peaks) return true;
    search->largest = peaks_largest(search->peaks);
    return peaks_finish(search->peaks, fault);
}

bool search_combine(struct search *search, const struct search_request *request,
                    struct fault *fault)
{
    struct processes *p = request->processes;
    struct peak *all = search->found;
    double *largest = NULL;
    size_t n = search->n_found, n_largest = 0;
    if (!search->report.to) return true;
    bool good =
        !p->n || (processes_gather(p, &search->largest, 1, sizeof *largest, (void **)&largest,
                                   &n_largest, fault) &&
                  processes_gather(p, search->found, n, sizeof *all, (void **)&all, &n, fault));
    for (size_t i = 0; i < n_largest; i++)
        search->largest = largest[i] > search->largest ? largest[i] : search->largest;
    if (good) n = peaks_select(all, n, (size_t)request->settings->peaks);
    for (size_t i = 0; good && i < n; i++) good = peak_report_add(&search->report, &all[i], fault);
    free(largest);
    if (all != search->found) free(all);
    return good;
}

void search_close(struct search *search)
{
    peaks_close(search->peaks);
    free(search->found);
    free(search->report.matches);
}
