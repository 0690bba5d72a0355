// SPDX-License-Identifier: MIT
// osc_open in a build without liblo.
#include <stddef.h>

#include "remote.h"

bool osc_open(struct remote **ret, const char *address, struct fault *fault)
{
    *ret = NULL;
    return fault_usage(
        fault,
        "--osc %s: this program was built without liblo; install liblo-dev and build "
        "it again",
        address);
}
