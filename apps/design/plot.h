// SPDX-License-Identifier: MIT
// A picture of a filter: magnitude, impulse response and group delay, as PNG.
#ifndef PARTITA_APPS_PLOT_H
#define PARTITA_APPS_PLOT_H

#include "achieved.h"

// False, with a fault, in a program without cairo, and if the name of the picture does not end with
// .png: before work is done in vain.
bool plot_check(const struct settings *settings, struct fault *fault);

// Writes settings->plot, which appears only when it is complete.
bool plot_write(const struct achieved *achieved, struct fault *fault);

#endif
