// SPDX-License-Identifier: MIT
#include "check.h"

#include <string.h>
#include <strings.h>

#include "io/bytes/temp.h"

bool picture_check(const struct settings *settings, struct fault *fault)
{
    const char *const name = settings->plot, *const end = name ? strrchr(name, '.') : NULL;
    if (!name) return true;
#ifndef HAVE_CAIRO
    return fault_set(fault,
                     "--plot %s: this program was built without cairo; install "
                     "libcairo2-dev and build with -Dplot=enabled",
                     name);
#endif
    if ((end && strcasecmp(end, ".png") == 0) || temp_is_special(name))
        return temp_differs(name, (const char *const *)settings->files, settings->n_operands,
                            fault);
    return fault_set(fault, "--plot %s: the picture is a PNG; use a name that ends with .png",
                     name);
}
