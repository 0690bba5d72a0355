// SPDX-License-Identifier: MIT
// The compute devices, which --device may name.
#ifndef PARTITA_APPS_COMPUTE_DEVICES_H
#define PARTITA_APPS_COMPUTE_DEVICES_H

#include <jansson.h>
#include <stdbool.h>

// Appends an object of the kind "compute" for each device to `list`, prints it as JSON and releases
// it; NULL: prints a line for each device. Without a CUDA device it says why. False if the JSON
// cannot be written.
bool compute_devices_print(json_t *list);

#endif
