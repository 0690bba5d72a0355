// SPDX-License-Identifier: MIT
// A pair of a SOFA file, checked.
#include <math.h>

#include "base/memory.h"
#include "io/bytes/temp.h"
#include "sofa.h"

bool sofa_is_named(const char *path)
{
    return path_ends_with(path, ".sofa");
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
