// SPDX-License-Identifier: MIT
#include "search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
