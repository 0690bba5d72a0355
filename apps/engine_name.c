// SPDX-License-Identifier: MIT
// See engine_name.h. The one list of engines in the program; a test holds it against what `partita plan` shows.
#include "engine_name.h"

#include <stdio.h>
#include <string.h>

static const char *const engines[] = {"cpu/direct",      "cpu/gemm",        "cpu/winograd",
                                      "cpu/tiles",       "cpu/depthwise",   "cpu/overlap-save",
                                      "cpu/overlap-add", "cpu/partitioned", "cpu/blocks"};

enum { N_ENGINES = sizeof engines / sizeof *engines };

const char *engine_name(const char *wish, char name[ENGINE_NAME_SIZE])
{
    if (!wish) return NULL;
    const char *slash = strchr(wish, '/'), *stem = slash ? slash + 1 : wish;
    int n_device = slash ? (int)(stem - wish) : 4;
    if (strcmp(stem, "overlap-discard") == 0) stem = "overlap-save";
    snprintf(name, ENGINE_NAME_SIZE, "%.*s%s", n_device, slash ? wish : "cpu/", stem);
    return name;
}

bool engine_check(const char *wish, struct fault *fault)
{
    char name[ENGINE_NAME_SIZE], all[N_ENGINES * ENGINE_NAME_SIZE] = "";
    if (!wish) return true;
    engine_name(wish, name);
    if (strncmp(name, "cuda/", 5) == 0) return true; // the device's module knows
    for (int i = 0; i < N_ENGINES; i++) {
        if (strcmp(name, engines[i]) == 0) return true;
        if (i) strcat(all, ", ");
        strcat(all, engines[i]);
    }
    return fault_set(fault, "--engine %.80s: there are %s", wish, all);
}
