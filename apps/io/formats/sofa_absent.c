// SPDX-License-Identifier: MIT
// sofa.h in a build without libmysofa.
#include "sofa.h"

#pragma GCC diagnostic ignored "-Wunused-parameter" // of functions that do nothing

double sofa_rate(const char *path, struct fault *fault)
{
    fault_set(fault,
              "%s: this program was built without libmysofa; install libmysofa-dev and build it "
              "again",
              path);
    return 0;
}

bool sofa_open(struct sofa **ret, const char *path, double rate, struct fault *fault)
{
    *ret = NULL;
    return sofa_rate(path, fault) > 0;
}

void sofa_close(struct sofa *sofa)
{
}

size_t sofa_length(const struct sofa *sofa)
{
    return 0;
}

int sofa_nearest(const struct sofa *sofa, const struct sofa_direction *direction)
{
    return 0;
}

float *sofa_pair(const struct sofa *sofa, const char *path, const struct sofa_direction *direction,
                 int *ret_number, struct fault *fault)
{
    return NULL;
}
