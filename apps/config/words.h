// SPDX-License-Identifier: MIT
// Lines and words of a text that is changed while it is read.
#ifndef PARTITA_APPS_WORDS_H
#define PARTITA_APPS_WORDS_H

#include <stdbool.h>

#define WORD_SPACES " \t\r\v\f"

struct lines {
    char *rest;
    int number; // of the last line
};

// The next line, without its line break; NULL at the end.
char *lines_next(struct lines *lines);

// The next word of *rest, which ends at white space, or at a quotation mark if it begins with one;
// a backslash quotes the next character. NULL at the end and before '#', where a comment begins.
// *ret_good is false if a quotation mark is missing; NULL: that does not matter.
char *words_next(char **rest, bool *ret_good);

// The whole line without white space at both ends.
char *words_trim(char *line);

#endif
