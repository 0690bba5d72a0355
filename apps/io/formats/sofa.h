// SPDX-License-Identifier: MIT
// Head-related impulse responses of a SOFA file (AES69): for each measured direction a pair for the
// left and the right ear.
#ifndef PARTITA_APPS_SOFA_H
#define PARTITA_APPS_SOFA_H

#include <stddef.h>

#include "base/fault.h"
#include "io/bytes/temp.h"

struct sofa;

enum { SOFA_EARS = 2 }; // channels of a pair, the left ear first

// In degrees: azimuth from the front to the left, elevation upwards.
struct sofa_direction {
    double azimuth, elevation;
};

// Whether the name of a file is that of a SOFA file.
static inline bool sofa_is_named(const char *path)
{
    return path_ends_with(path, ".sofa");
}

// The sample rate of a file; 0, with a fault, if it cannot be read, or if the program was built
// without libmysofa.
double sofa_rate(const char *path, struct fault *fault);

// Reads a file and resamples it to the rate. False: see sofa_rate.
bool sofa_open(struct sofa **ret, const char *path, double rate, struct fault *fault);

// Accepts NULL.
void sofa_close(struct sofa *sofa);

// The length of every pair, with the longest delay.
size_t sofa_length(const struct sofa *sofa);

// The number of the pair that was measured nearest to the direction; -1 if libmysofa finds none,
// for want of memory or in a damaged file.
int sofa_nearest(const struct sofa *sofa, const struct sofa_direction *direction);

// The pair that was measured nearest to the direction: SOFA_EARS rows of sofa_length taps, to be
// released with memory_free. NULL, with a fault: there is none, it is not finite, or no memory.
float *sofa_pair(const struct sofa *sofa, const char *path, const struct sofa_direction *direction,
                 int *ret_number, struct fault *fault);

#endif
