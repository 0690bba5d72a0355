// SPDX-License-Identifier: MIT
// The known word that a user may have meant: "did you mean X?".
#ifndef PARTITA_APPS_NEAREST_H
#define PARTITA_APPS_NEAREST_H

#include <stddef.h>

struct nearest {
    const char *word;  // as it was written
    const char *known; // the nearest known word so far; NULL: none is near
    size_t edits;      // between both
};

struct nearest nearest_to(const char *word);

// Compares another known word. It is near if it begins with the word, of at least three characters,
// or differs from it by at most two characters and at most half of them; case does not matter.
void nearest_try(struct nearest *nearest, const char *known);

// " (did you mean PREFIXknown?)", or nothing if no word is near. Returns `text`.
enum { NEAREST_HINT_SIZE = 64 };
const char *nearest_hint(const struct nearest *nearest, const char *prefix,
                         char text[NEAREST_HINT_SIZE]);

// The index of the row that begins with a pointer to this name; -1, with a hint: there is none.
// size: bytes of a row.
int nearest_find(const char *name, const void *rows, size_t n, size_t size,
                 char hint[NEAREST_HINT_SIZE]);

// The names of such rows with commas between them. Returns `text`.
enum { NAME_LIST_SIZE = 256 };
const char *nearest_list(const void *rows, size_t n, size_t size, char text[NAME_LIST_SIZE]);

#endif
