// SPDX-License-Identifier: MIT
// What --device may name for everything but live audio.
#ifndef PARTITA_APPS_COMPUTE_H
#define PARTITA_APPS_COMPUTE_H

#include <jansson.h>
#include <stdbool.h>

// Prints a line for each device, or what is missing for there to be one.
void devices_to_compute(void);

// Prints the list as JSON, with objects of the kind "compute" for the same behind what it holds,
// and releases it. False if it cannot be written.
bool devices_print_json(json_t *list);

#endif
