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

static FILE *stream_of(const struct search *s)
{
    const char *out = s->settings->operands[2];
    return out && strcmp(out, "-") == 0 ? stderr : stdout;
}

static void print_header(const struct search *s)
{
    if (!s->settings->json)
        fprintf(stream_of(s),
                "#       sample         position         seconds   magnitude    phase  %s\n",
                s->names ? "template" : "channel");
}

static void print_line(const struct search *s, const struct match *m)
{
    const double rate = audio_reader_info(s->in)->rate;
    FILE *const to = stream_of(s);
    char seconds[32] = "-";
    if (rate > 0) snprintf(seconds, sizeof seconds, "%.9f", m->position / rate);
    fprintf(to, "%14" PRId64 " %16.3f %15s %11.6g %8.4f ", m->sample, m->position, seconds,
            m->magnitude, m->phase);
    if (s->names) fprintf(to, " %s\n", s->names[m->channel]);
    else fprintf(to, "%8zu\n", m->channel);
}

static void print_object(const struct search *s, const struct match *m)
{
    const double rate = audio_reader_info(s->in)->rate;
    json_t *j = json_report("partita-peak/1", command_rows[COMMAND_CORRELATE].name);
    json_object_set_new(j, "kind", json_string("peak"));
    json_object_set_new(j, "channel", json_integer(s->names ? 0 : (json_int_t)m->channel));
    if (s->names) json_object_set_new(j, "template", json_text(s->names[m->channel]));
    json_object_set_new(j, "sample", json_integer(m->sample));
    json_object_set_new(j, "position", json_real(m->position));
    json_object_set_new(j, "seconds", rate > 0 ? json_real(m->position / rate) : json_null());
    json_object_set_new(j, "magnitude", json_real(m->magnitude));
    json_object_set_new(j, "phase", json_real(m->phase));
    json_dumpf(j, stream_of(s), JSON_COMPACT);
    fputc('\n', stream_of(s));
    json_decref(j);
}

// For struct peaks_request; context: the search.
static bool report(void *context, const struct peak *peak, struct fault *fault)
{
    struct search *s = context;
    const bool keep = s->settings->annotate;
    const int64_t lag = s->first_lag + (int64_t)peak->index * s->settings->stride;
    const struct match match = {.sample = lag,
                                .position = (double)lag + peak->shift * (double)s->settings->stride,
                                .magnitude = peak->magnitude,
                                .phase = peak->phase,
                                .channel = peak->channel};
    struct match *grown =
        keep ? memory_append(s->matches, s->n, &s->matches_capacity, sizeof *grown) : NULL;
    if (keep && !grown)
        return fault_set(fault, "out of memory for %zu peaks; name fewer with --peaks", s->n);
    if (grown) (s->matches = grown)[s->n] = match;
    s->n++;
    (s->settings->json ? print_object : print_line)(s, &match);
    if (audio_reader_is_pipe(s->in)) fflush(stream_of(s));
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

bool search_open(struct search *search, struct fault *fault)
{
    const struct settings *s = search->settings;
    const struct processes *p = search->processes;
    const struct peaks_request peaks = {.type = search->type,
                                        .channels = search->channels,
                                        .max_count = (size_t)s->peaks,
                                        .threshold = isnan(s->threshold) ? 0 : s->threshold,
                                        .distance = search_distance(s, search->length),
                                        .first = search->first,
                                        .end = search->end,
                                        .continues = search->continues,
                                        .report = p->n ? search_collect : report,
                                        .context = search};
    if (!options_want_peaks(s)) return true;
    const bool again = search->peaks;
    peaks_close(search->peaks);
    if (!peaks_open(&search->peaks, &peaks, fault)) return false;
    if (!p->n && !again) print_header(search);
    return true;
}

bool search_finish(struct search *search, struct fault *fault)
{
    if (!search->peaks) return true;
    search->largest = peaks_largest(search->peaks);
    return peaks_finish(search->peaks, fault);
}

bool search_combine(struct search *search, struct fault *fault)
{
    struct processes *p = search->processes;
    struct peak *all = search->found;
    double *largest = NULL;
    size_t n = search->n_found, n_largest = 0;
    if (!options_want_peaks(search->settings) || (search->peaks && !p->n)) return true;
    bool good =
        !p->n || (processes_gather(p, &search->largest, 1, sizeof *largest, (void **)&largest,
                                   &n_largest, fault) &&
                  processes_gather(p, search->found, n, sizeof *all, (void **)&all, &n, fault));
    for (size_t i = 0; i < n_largest; i++)
        search->largest = largest[i] > search->largest ? largest[i] : search->largest;
    if (good && !p->rank) print_header(search);
    if (good) n = peaks_select(all, n, (size_t)search->settings->peaks);
    for (size_t i = 0; good && i < n; i++) good = report(search, &all[i], fault);
    free(largest);
    if (all != search->found) free(all);
    return good;
}

void search_close(struct search *search)
{
    peaks_close(search->peaks);
    free(search->found);
    free(search->matches);
}
