// SPDX-License-Identifier: MIT
// Translates the library's messages to the words of the command line.
#ifndef PARTITA_APPS_OPTION_WORDS_H
#define PARTITA_APPS_OPTION_WORDS_H

#include "options.h"

// Replaces the fields of the structs partita_options, partita_problem and partita_design in a
// message by the command's options: `options.engine = "x"` becomes `--engine "x"`. Fields without
// an option lose the name of the struct. Returns false, as fault_set does.
bool option_words(enum command command, struct fault *fault);

// Whether a call succeeded; if not, with a fault: its status and, if there is one, the line that
// it logged.
bool option_words_of_status(struct fault *fault, enum command command, enum partita_status status,
                            const struct fault *log);

// False, with a fault, if an option that was given does not go with --templates, or with the kind
// of a design.
bool option_words_fit(const struct settings *s, const bool given[MAX_OPTION_ROWS],
                      struct fault *fault);

// Why getopt does not accept an option: it is unknown, the beginning of several names, or a flag
// with a value. Returns false.
bool option_words_unknown(enum command command, const char *written, struct fault *fault);

// A partita_log callback that stores the last line in `user`, a struct fault.
void option_words_log(void *user, const char *text);

#endif
