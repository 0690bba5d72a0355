// SPDX-License-Identifier: MIT
#include "sofa.h"

#include <errno.h>
#include <math.h>
#include <mysofa.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

// Longer delays are no distances between ears and must be a mistake.
static const double MAX_DELAY_SECONDS = 1;

struct sofa {
    struct MYSOFA_EASY *file;
    size_t taps, delay; // of a measured response, and the longest delay
};

static bool sofa_fault(const char *path, int error, struct fault *fault)
{
    if (access(path, R_OK)) return fault_set(fault, "%s: %s", path, strerror(errno));
    return fault_set(
        fault, "%s: libmysofa finds no head-related impulse responses in this file (its error %d)",
        path, error);
}

// Whether the arrays have the values that the dimensions promise, which libmysofa does not check.
static bool is_complete(const struct MYSOFA_HRTF *hrtf)
{
    const size_t pairs = hrtf->M;
    return hrtf->R == SOFA_EARS && hrtf->C == 3 && pairs > 0 && hrtf->N > 0 &&
           hrtf->SourcePosition.elements / 3 >= pairs &&
           hrtf->DataIR.elements / SOFA_EARS / hrtf->N >= pairs;
}

static bool incomplete_fault(const char *path, struct fault *fault)
{
    return fault_set(fault,
                     "%s: has fewer positions or taps than pairs of responses; the file is damaged",
                     path);
}

double sofa_rate(const char *path, struct fault *fault)
{
    int error = MYSOFA_OK;
    struct MYSOFA_HRTF *hrtf = mysofa_load(path, &error);
    double rate =
        hrtf && hrtf->DataSamplingRate.elements ? (double)hrtf->DataSamplingRate.values[0] : 0;
    bool complete = hrtf && is_complete(hrtf);
    if (hrtf) mysofa_free(hrtf);
    if (!(rate > 0)) sofa_fault(path, error, fault);
    else if (!complete) incomplete_fault(path, fault);
    return rate > 0 && complete ? rate : 0;
}

// Delays are in samples, as the standard has them.
static bool find_longest_delay(struct sofa *sofa, const char *path, double rate,
                               struct fault *fault)
{
    const struct MYSOFA_ARRAY *delays = &sofa->file->hrtf->DataDelay;
    double longest = 0;
    for (unsigned i = 0; i < delays->elements; i++)
        longest = fmax(longest, (double)delays->values[i]);
    if (longest > MAX_DELAY_SECONDS * rate)
        return fault_set(fault, "%s: has a delay of %g samples, more than a second", path, longest);
    sofa->delay = (size_t)lrint(longest);
    return true;
}

bool sofa_open(struct sofa **ret, const char *path, double rate, struct fault *fault)
{
    int length = 0, error = MYSOFA_OK;
    struct sofa *sofa = calloc(1, sizeof *sofa);
    if (!sofa) return fault_set(fault, "%s: out of memory", path);
    sofa->file = mysofa_open_no_norm(path, (float)rate, &length, &error);
    bool good = (sofa->file && length > 0) || sofa_fault(path, error, fault);
    good = good && (is_complete(sofa->file->hrtf) || incomplete_fault(path, fault));
    good = good && find_longest_delay(sofa, path, rate, fault);
    sofa->taps = (size_t)length;
    if (good) *ret = sofa;
    else sofa_close(sofa);
    return good;
}

void sofa_close(struct sofa *sofa)
{
    if (!sofa) return;
    if (sofa->file) mysofa_close(sofa->file);
    free(sofa);
}

size_t sofa_length(const struct sofa *sofa)
{
    return sofa->taps + sofa->delay;
}

int sofa_nearest(const struct sofa *sofa, const struct sofa_direction *direction)
{
    float at[3] = {(float)direction->azimuth, (float)direction->elevation, 1};
    mysofa_s2c(at);
    return mysofa_lookup(sofa->file->lookup, at);
}

// Delays are common to all pairs or one for each response.
static void sofa_taps(const struct sofa *sofa, int number, int ear, float *taps)
{
    const struct MYSOFA_HRTF *hrtf = sofa->file->hrtf;
    size_t row = (size_t)number * SOFA_EARS + (size_t)ear;
    size_t delays = hrtf->DataDelay.elements;
    float delay = delays > row ? hrtf->DataDelay.values[row]
                  : delays > 1 ? hrtf->DataDelay.values[ear]
                               : 0;
    size_t first = delay > 0 ? (size_t)lrintf(delay) : 0;
    memset(taps, 0, sofa_length(sofa) * sizeof *taps);
    memcpy(taps + first, hrtf->DataIR.values + row * sofa->taps, sofa->taps * sizeof *taps);
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
