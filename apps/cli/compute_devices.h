// SPDX-License-Identifier: MIT
// The compute devices, which --device may name.
#ifndef PARTITA_APPS_COMPUTE_DEVICES_H
#define PARTITA_APPS_COMPUTE_DEVICES_H

#include <jansson.h>
#include <stdbool.h>

// Prints a line for each device, and why there is no CUDA device if there is none.
void compute_devices_print(void);

// Appends an object of the kind "compute" for each of them to `list`, prints it as JSON and
// releases it. False if it cannot be written.
bool compute_devices_print_json(json_t *list);

#endif
