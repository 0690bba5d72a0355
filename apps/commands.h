// SPDX-License-Identifier: MIT
// The subcommands. Each takes its own name as argv[0] and returns the program's exit status.
#ifndef PARTITA_APPS_COMMANDS_H
#define PARTITA_APPS_COMMANDS_H

#include "options.h"

int convolve_main(enum command command, int argc, char **argv);
int live_main(enum command command, int argc, char **argv);
int devices_main(enum command command, int argc, char **argv);
int plan_main(enum command command, int argc, char **argv);
int join_main(enum command command, int argc, char **argv);
int layer_main(enum command command, int argc, char **argv);
int help_main(enum command command, int argc, char **argv);

// The help of one command, on standard output.
void help_print(enum command command);

// The help of the program, on standard output.
void help_print_overview(void);

#endif
