// SPDX-License-Identifier: MIT
// web_open in a build without libmicrohttpd.
#include <stddef.h>

#include "remote.h"

bool web_open(struct remote **ret, const char *address, struct fault *fault)
{
    *ret = NULL;
    return fault_usage(fault,
                       "--web %s: this program was built without libmicrohttpd; install "
                       "libmicrohttpd-dev and build with -Dweb=enabled",
                       address);
}
