// SPDX-License-Identifier: MIT
// The manual page and the shell completions, generated from the option table.
#ifndef PARTITA_APPS_MANUAL_H
#define PARTITA_APPS_MANUAL_H

#include "options.h"

// Prints partita(1) in roff on standard output.
void manual_print(void);

// Prints the completions for a shell on standard output.
void completion_print(enum shell shell);

// Which channel of a matrix of filters leads from which input to which output.
extern const char matrix_drawing[];

#endif
