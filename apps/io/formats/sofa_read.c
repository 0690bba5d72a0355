// SPDX-License-Identifier: MIT
// A pair of a SOFA file: checked, and read as a signal of two channels at the file's own rate.
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "formats.h"
#include "sofa.h"

bool sofa_is_named(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && strcasecmp(dot, ".sofa") == 0;
}

float *sofa_pair(const struct sofa *sofa, const char *path, const struct sofa_direction *direction,
                 int *ret_number, struct fault *fault)
{
    const size_t length = sofa_length(sofa);
    const int number = *ret_number = sofa_nearest(sofa, direction);
    if (number < 0) {
        fault_set(fault, "%s: libmysofa finds no pair for azimuth %g and elevation %g", path,
                  direction->azimuth, direction->elevation);
        return NULL;
    }
    float *taps = memory_allocate(SOFA_EARS * length * sizeof *taps);
    if (!taps) {
        memory_fault(fault, "%s: the taps of a pair", path);
        return NULL;
    }
    for (int ear = 0; ear < SOFA_EARS; ear++)
        sofa_taps(sofa, number, ear, taps + (size_t)ear * length);
    for (size_t i = 0; i < SOFA_EARS * length; i++) {
        if (isfinite(taps[i])) continue;
        fault_set(fault, "%s: pair %d is not finite; taps must be", path, number);
        memory_free(taps);
        return NULL;
    }
    return taps;
}

static bool sofa_skip(struct audio_reader *r, uint64_t n, struct fault *fault)
{
    (void)fault;
    const uint64_t left = r->info.frames - r->position;
    r->position += n < left ? n : left;
    return true;
}

static bool sofa_read(struct audio_reader *r, bool as_double, void *scalars, size_t n,
                      size_t *ret_n, struct fault *fault)
{
    const uint64_t first = r->position;
    if (!sofa_skip(r, n, fault)) return false;
    *ret_n = (size_t)(r->position - first);
    for (size_t i = 0; i < *ret_n; i++) {
        for (size_t ear = 0; ear < SOFA_EARS; ear++) {
            const float x = ((const float *)r->state)[ear * r->info.frames + first + i];
            if (as_double) ((double *)scalars)[i * SOFA_EARS + ear] = (double)x;
            else ((float *)scalars)[i * SOFA_EARS + ear] = x;
        }
    }
    return true;
}

static void sofa_close_reader(struct audio_reader *r)
{
    memory_free(r->state);
}

static const struct reader_ops sofa_reader = {
    .read = sofa_read, .skip = sofa_skip, .close = sofa_close_reader};

bool sofa_open_reader(struct audio_reader *reader, const struct sofa_direction *direction,
                      struct fault *fault)
{
    const char *path = reader->source.name;
    struct sofa *sofa;
    int number;
    if (!direction)
        return fault_set(fault,
                         "%s: is a SOFA file, whose responses are filters: it can only be IR of "
                         "convolve and live",
                         path);
    if (!reader->source.seekable || reader->source.fd < 0)
        return fault_set(fault, "%s: is not a regular file, as a SOFA file must be", path);
    const double rate = sofa_rate(path, fault);
    if (!(rate > 0)) return false;
    if (!sofa_open(&sofa, path, rate, fault)) return false;
    reader->info = (struct audio_info){
        .container = CONTAINER_SOFA,
        .encoding = {.kind = ENCODING_FLOAT, .bytes = 4},
        .channels = SOFA_EARS,
        .rate = rate,
        .frames = sofa_length(sofa),
        .rank = 2,
    };
    reader->state = sofa_pair(sofa, path, direction, &number, fault);
    reader->ops = &sofa_reader;
    sofa_close(sofa);
    return reader->state != NULL;
}
