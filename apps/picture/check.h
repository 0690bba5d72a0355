// SPDX-License-Identifier: MIT
// --plot before work is done in vain.
#ifndef PARTITA_APPS_CHECK_H
#define PARTITA_APPS_CHECK_H

#include "cli/options.h"

// False, with a fault, in a program without cairo, and if the name of the picture does not end with
// .png or is that of an operand.
bool picture_check(const struct settings *settings, struct fault *fault);

#endif
