// SPDX-License-Identifier: MIT
// Lists of configurations of Convolver, one file in each line, for several sample rates.
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"
#include "io/audio.h"
#include "network.h"
#include "words.h"

enum { MAX_LISTED = 64 };

static bool is_configuration(const char *name, size_t n)
{
    return n > 4 && strncasecmp(name + n - 4, ".cfg", 4) == 0;
}

bool network_is_list(const char *text)
{
    text += strspn(text, WORD_SPACES "\n");
    size_t n = strcspn(text, "\n");
    while (n && strchr(WORD_SPACES, text[n - 1])) n--;
    return is_configuration(text, n);
}

// Reads the configuration that a line names. The network is the first of the list so far.
static bool add_listed(struct network *network, struct network **ret, char *name, int line,
                       struct fault *fault)
{
    struct fault said;
    struct network *added = calloc(1, sizeof *added);
    char *path = network_file_of_windows(network, name);
    bool good = (added && path) || fault_set(&said, "out of memory");
    good = good &&
           (is_configuration(name, strlen(name)) ||
            fault_set(&said, "'%.200s': a list has a configuration (.cfg) in each line", name));
    good = good && audio_check_regular(path, &said) && network_read(added, path, false, &said);
    if (good) {
        added->owned_path = path;
        *ret = added;
        return true;
    }
    network_fault(network, line, fault, "%.500s", said.text);
    if (added) network_release(added);
    free(added);
    free(path);
    return false;
}

bool network_read_list(struct network *ret, const char *path, char *text, struct fault *fault)
{
    struct network list = {.path = path}, *first = NULL, **end = &first;
    struct lines lines = {.rest = text};
    bool good = true;
    int n = 0;
    for (char *line; good && (line = lines_next(&lines));) {
        line = words_trim(line);
        if (!*line) continue;
        good = n++ < MAX_LISTED ||
               network_fault(&list, lines.number, fault, "more than %d configurations", MAX_LISTED);
        good = good && add_listed(&list, end, line, lines.number, fault);
        if (good) end = &(*end)->next;
    }
    if (!first) return good && fault_set(fault, "%s: lists no configuration", path);
    *ret = *first;
    free(first);
    if (good) ret->list = path;
    else network_release(ret);
    return good;
}

void network_select(struct network *network, double rate)
{
    struct network *chosen = network;
    while (chosen && !rates_agree(chosen->rate, rate)) chosen = chosen->next;
    if (!chosen || chosen == network) return;
    const struct network before = *network, other = *chosen;
    *network = other;
    network->list = before.list;
    network->next = before.next;
    *chosen = before;
    chosen->next = other.next;
}
