// SPDX-License-Identifier: MIT
// What --device may name for everything but live audio.
#ifndef PARTITA_APPS_COMPUTE_H
#define PARTITA_APPS_COMPUTE_H

// Prints a line for each device, or what is missing for there to be one.
void devices_to_compute(void);

#endif
