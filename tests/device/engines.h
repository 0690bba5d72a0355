// SPDX-License-Identifier: MIT
// The engines of a device's module, so that engines added to its table are tested automatically.
#ifndef DEVICE_ENGINES_H
#define DEVICE_ENGINES_H

#include <stddef.h>

enum { MAX_DEVICE_ENGINES = 40 };

struct engine_name {
    char text[40];
};

// The names of all engines of cuda:0, each followed by those of its variants; 0 without a device.
size_t list_device_engines(struct engine_name ret[MAX_DEVICE_ENGINES]);

#endif
