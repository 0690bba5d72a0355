// SPDX-License-Identifier: MIT
#include "scenes.h"

#include <stdlib.h>
#include <string.h>

#include "io/bytes/bytes.h"
#include "network.h"

int scenes_find(const struct scenes *scenes, const char *name, struct fault *fault)
{
    struct nearest nearest = nearest_to(name);
    char hint[NEAREST_HINT_SIZE];
    for (int i = 0; i < scenes->n; i++) {
        if (strcmp(scenes->list[i].name, name) == 0) return i;
        nearest_try(&nearest, scenes->list[i].name);
    }
    fault_set(fault, "%.100s: %s has no such scene%s", name,
              scenes->path ? scenes->path : "a run without --scene",
              nearest_hint(&nearest, "", hint));
    return -1;
}

bool scenes_read(struct scenes *ret, const char *path, struct fault *fault)
{
    char *text = regular_read_text(path, fault); // a pipe could keep a player waiting
    const bool good = text && scenes_parse(ret, path, text, fault);
    free(text);
    return good;
}
