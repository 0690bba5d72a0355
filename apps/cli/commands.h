// SPDX-License-Identifier: MIT
// The subcommands, each defined in a file of its own (convolve/convolve.c, live/live.c and so on).
// They return the program's exit status. If they fail, main.c reports the fault; without a text it
// has been reported.
#ifndef PARTITA_APPS_COMMANDS_H
#define PARTITA_APPS_COMMANDS_H

#include "options.h"

typedef int command_fn(const struct settings *settings, struct fault *fault);
#define COMMAND_MAIN(name, word) extern command_fn word##_main;
EACH_COMMAND(COMMAND_MAIN)

// Prints the help of one command on standard output.
void help_print(enum command command);

// Calls `item` with an option and what it does, and with each of the commands of `partita live`
// while it runs.
typedef void help_item_fn(const char *term, const char *text);
void help_option(const struct option_row *row, enum command command, help_item_fn *item);
void help_controls(help_item_fn *item);

// Prints the help of the program on standard output.
void help_print_overview(void);

// Prints partita(1) in roff on standard output.
void manual_print(void);

// Prints the completions for a shell on standard output.
void completion_print(enum shell shell);

// Which channel of a matrix of filters leads from which input to which output.
extern const char matrix_drawing[];

#endif
