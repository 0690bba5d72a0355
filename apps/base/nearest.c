// SPDX-License-Identifier: MIT
#include "nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "../../lib/base/sizes.h"

enum { MAX_WORD = 32, MAX_EDITS = 2, MIN_BEGINNING = 3 };

static bool same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

// The number of characters to insert, remove, replace or exchange with the next one (optimal string
// alignment); MAX_WORD for longer words.
static size_t edit_distance(const char *a, const char *b)
{
    const size_t n = strlen(a), m = strlen(b);
    size_t rows[3][MAX_WORD + 1]; // of the characters i, i - 1 and i - 2 of a
    if (n > MAX_WORD || m > MAX_WORD) return MAX_WORD;
    for (size_t j = 0; j <= m; j++) rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *row = rows[i % 3];
        const size_t *before = rows[(i + 2) % 3], *earlier = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            row[j] = size_min(before[j - 1] + !same(a[i - 1], b[j - 1]),
                              1 + size_min(before[j], row[j - 1]));
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
                row[j] = size_min(row[j], earlier[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

struct nearest nearest_to(const char *word)
{
    return (struct nearest){.word = word, .edits = MAX_EDITS + 1};
}

void nearest_try(struct nearest *nearest, const char *known)
{
    const size_t length = strlen(nearest->word);
    const bool begins = length >= MIN_BEGINNING && strncasecmp(known, nearest->word, length) == 0;
    const size_t edits = begins ? 1 : edit_distance(nearest->word, known);
    if (edits >= nearest->edits || 2 * edits > length) return;
    nearest->edits = edits;
    nearest->known = known;
}

const char *nearest_hint(const struct nearest *nearest, const char *prefix,
                         char text[NEAREST_HINT_SIZE])
{
    *text = 0;
    if (nearest->known)
        snprintf(text, NEAREST_HINT_SIZE, " (did you mean %s%s?)", prefix, nearest->known);
    return text;
}

int nearest_find(const char *name, const void *rows, size_t n, size_t size,
                 char hint[NEAREST_HINT_SIZE])
{
    struct nearest nearest = nearest_to(name);
    for (size_t i = 0; i < n; i++) {
        const char *const *known = (const void *)((const char *)rows + i * size);
        if (strcmp(*known, name) == 0) return (int)i;
        nearest_try(&nearest, *known);
    }
    nearest_hint(&nearest, "", hint);
    return -1;
}

const char *nearest_list(const void *rows, size_t n, size_t size, char text[NAME_LIST_SIZE])
{
    size_t length = 0;
    for (size_t i = 0; i < n && length < NAME_LIST_SIZE; i++) {
        const char *const *known = (const void *)((const char *)rows + i * size);
        length +=
            (size_t)snprintf(text + length, NAME_LIST_SIZE - length, "%s%s", i ? ", " : "", *known);
    }
    return text;
}
