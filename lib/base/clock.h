// SPDX-License-Identifier: MIT
#ifndef PARTITA_CLOCK_H
#define PARTITA_CLOCK_H

// Seconds of a clock that never goes back.
double clock_seconds(void);

#endif
