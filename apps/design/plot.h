// SPDX-License-Identifier: MIT
// A picture of a filter: magnitude, impulse response and group delay, as PNG.
#ifndef PARTITA_APPS_PLOT_H
#define PARTITA_APPS_PLOT_H

#include "achieved.h"
#include "picture/check.h"

// Writes settings->plot, which appears only when it is complete.
#ifdef HAVE_CAIRO
bool plot_write(const struct achieved *achieved, struct fault *fault);
#else
static inline bool plot_write(const struct achieved *achieved, struct fault *fault)
{
    return picture_check(&achieved->settings, fault);
}
#endif

#endif
