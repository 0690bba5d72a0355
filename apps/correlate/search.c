// SPDX-License-Identifier: MIT
// See search.h.
#include "search.h"

#include <math.h>
#include <string.h>

#include "cli/report.h"

bool search_check_usage(const struct settings *settings, struct fault *fault)
{
    const struct settings *s = settings;
    if (s->normalised && s->gain != 0)
        return fault_set(fault, "--gain does not change the result of --normalised; leave it out");
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
    if (s->range && s->operands[2])
        return fault_set(fault, "--range with --peaks or --threshold writes no OUT; leave out %s",
                         s->operands[2]);
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

bool search_open(struct search *search, const struct search_request *request, struct fault *fault)
{
    const struct settings *s = request->settings;
    const bool to_stdout = !s->operands[2] || strcmp(s->operands[2], "-") != 0;
    const struct peaks_request peaks = {.type = request->type,
                                        .channels = request->channels,
                                        .most = (size_t)s->peaks,
                                        .threshold = isnan(s->threshold) ? 0 : s->threshold,
                                        .distance = search_distance(s, request->length),
                                        .first = request->first,
                                        .end = request->end,
                                        .report = peak_report_add,
                                        .context = &search->report};
    if (!options_want_peaks(s)) return true;
    search->report = (struct peak_report){.to = to_stdout ? stdout : stderr,
                                          .json = s->json,
                                          .flush = audio_reader_is_pipe(request->in),
                                          .rate = audio_reader_info(request->in)->rate,
                                          .first_lag = request->first_lag,
                                          .stride = s->stride,
                                          .keep = s->annotate};
    if (!peaks_open(&search->peaks, &peaks, fault)) return false;
    peak_report_begin(&search->report);
    return true;
}

bool search_finish(struct search *search, struct fault *fault)
{
    return !search->peaks || peaks_finish(search->peaks, fault);
}

void search_close(struct search *search)
{
    peaks_close(search->peaks);
    peak_report_release(&search->report);
}
