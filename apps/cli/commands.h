// SPDX-License-Identifier: MIT
// The subcommands, each defined in a file of its own (convolve/convolve.c, live/live.c and so on).
// They return the program's exit status.
#ifndef PARTITA_APPS_COMMANDS_H
#define PARTITA_APPS_COMMANDS_H

#include "options.h"

int convolve_main(const struct settings *settings);
int correlate_main(const struct settings *settings);
int channelize_main(const struct settings *settings);
int pairs_main(const struct settings *settings);
int live_main(const struct settings *settings);
int control_main(const struct settings *settings);
int devices_main(const struct settings *settings);
int plan_main(const struct settings *settings);
int join_main(const struct settings *settings);
int deconvolve_main(const struct settings *settings);
int layer_main(const struct settings *settings);
int design_main(const struct settings *settings);
int invert_main(const struct settings *settings);
int response_main(const struct settings *settings);
int help_main(const struct settings *settings);

// Prints the help of one command on standard output.
void help_print(enum command command);

// Prints the help of the program on standard output.
void help_print_overview(void);

// Prints partita(1) in roff on standard output.
void manual_print(void);

// Prints the completions for a shell on standard output.
void completion_print(enum shell shell);

// Which channel of a matrix of filters leads from which input to which output.
extern const char matrix_drawing[];

#endif
