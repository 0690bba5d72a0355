// SPDX-License-Identifier: MIT
#include "words.h"

#include <stddef.h>
#include <string.h>

char *lines_next(struct lines *lines)
{
    if (!lines->rest || !*lines->rest) return NULL;
    lines->number++;
    return strsep(&lines->rest, "\n");
}

char *words_next(char **rest, bool *ret_good)
{
    char *from = *rest + strspn(*rest, WORD_SPACES), *word = from, *to = from;
    const char quote = *from == '"' ? '"' : 0;
    if (ret_good) *ret_good = true;
    *rest = from;
    if (!*from || *from == '#') return NULL;
    if (quote) from++;
    while (*from && (quote ? *from != quote : !strchr(WORD_SPACES, *from))) {
        if (*from == '\\' && from[1]) from++;
        *to++ = *from++;
    }
    if (ret_good) *ret_good = !quote || *from == quote;
    *rest = *from ? from + 1 : from;
    *to = 0;
    return word;
}

char *words_trim(char *line)
{
    line += strspn(line, WORD_SPACES);
    for (size_t n = strlen(line); n && strchr(WORD_SPACES, line[n - 1]); n--) line[n - 1] = 0;
    return line;
}
