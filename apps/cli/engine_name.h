// SPDX-License-Identifier: MIT
// The names of engines as users may write them.
#ifndef PARTITA_APPS_ENGINE_NAME_H
#define PARTITA_APPS_ENGINE_NAME_H

#include "options.h"

enum { ENGINE_NAME_SIZE = 64 };

// An engine's full name: "direct" is cpu/direct, and overlap-discard is another word for
// overlap-save. NULL stays.
const char *engine_name(const char *wish, char name[ENGINE_NAME_SIZE]);

// False for a name that no engine has, and for an engine of another place to compute than --device.
bool engine_check(const struct settings *settings, struct fault *fault);

// Whether the library refused an engine because it takes whole signals only.
bool engine_needs_bounds(const char *said);

#endif
