// SPDX-License-Identifier: MIT
// osc.h in a build without liblo.
#include <stddef.h>

#include "osc.h"

bool osc_open(struct osc **ret, const char *address, struct fault *fault)
{
    *ret = NULL;
    return fault_usage(
        fault,
        "--osc %s: this program was built without liblo; install liblo-dev and build "
        "it again",
        address);
}

void osc_close(struct osc *osc)
{
    (void)osc;
}

int osc_file(const struct osc *osc)
{
    (void)osc;
    return -1;
}

void osc_serve(struct osc *osc, osc_line_fn *run, void *user)
{
    (void)osc, (void)run, (void)user;
}

void osc_send(struct osc *osc, const char *path, const char *types, ...)
{
    (void)osc, (void)path, (void)types;
}
