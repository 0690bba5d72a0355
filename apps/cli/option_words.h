// SPDX-License-Identifier: MIT
// What the library says of a problem, in the words of the command line.
#ifndef PARTITA_APPS_OPTION_WORDS_H
#define PARTITA_APPS_OPTION_WORDS_H

#include "options.h"

// Puts the command's option in the place of each field of struct partita_options and struct
// partita_problem that the sentence names: `options.engine = "x"` becomes `--engine x`. Fields that
// no option fills lose the structure's name. Returns false, as fault_set does.
bool option_words(enum command command, struct fault *fault);

#endif
