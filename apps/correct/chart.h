// SPDX-License-Identifier: MIT
// The picture of a correction: each channel before and after it, and its filter.
#ifndef PARTITA_APPS_CHART_H
#define PARTITA_APPS_CHART_H

#include "measured.h"
#include "picture/check.h"

struct chart {
    const struct partita_correction *correction;
    const double *responses, *taps; // [channels][positions][frames], [channels][taps]
    const struct partita_correction_report *reports; // [channels]
    size_t channels;
};

// Writes the picture `path` of a correction, or of a response with time 0 at frame `origin`. It
// appears only when it is complete.
#ifdef HAVE_CAIRO
bool chart_write(const struct chart *chart, const char *path, struct fault *fault);
bool chart_response(const struct measured *response, size_t origin, const char *path,
                    struct fault *fault);
#else
static inline bool chart_write(const struct chart *chart, const char *path, struct fault *fault)
{
    return chart && fault_set(fault, "%s: built without cairo", path);
}
static inline bool chart_response(const struct measured *response, size_t origin, const char *path,
                                  struct fault *fault)
{
    return response->samples + origin && fault_set(fault, "%s: built without cairo", path);
}
#endif

#endif
