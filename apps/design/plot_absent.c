// SPDX-License-Identifier: MIT
// --plot in a build without cairo.
#include "plot.h"

bool plot_check(const struct settings *settings, struct fault *fault)
{
    if (!settings->plot) return true;
    return fault_set(fault,
                     "--plot %s: this program was built without cairo; install "
                     "libcairo2-dev and build with -Dplot=enabled",
                     settings->plot);
}

bool plot_write(const struct achieved *achieved, struct fault *fault)
{
    return plot_check(achieved->settings, fault);
}
