// SPDX-License-Identifier: MIT
// Names of engines, as users may write them.
#ifndef PARTITA_APPS_ENGINE_NAME_H
#define PARTITA_APPS_ENGINE_NAME_H

#include "options.h"

enum { ENGINE_NAME_SIZE = 64 };

// The full name of an engine: "direct" becomes cpu/direct, overlap-discard is a synonym of
// overlap-save. NULL remains NULL.
const char *engine_name(const char *requested, char name[ENGINE_NAME_SIZE]);

// The engines of the CPU, separated by commas. Returns `text`.
const char *engine_list(char text[NAME_LIST_SIZE]);

// False, with a fault, for an unknown engine and for one of another device than --device.
bool engine_check(const struct settings *settings, struct fault *fault);

// Whether the library's message says that an engine works on bounded signals only.
bool engine_needs_bounds(const char *said);

#endif
