// SPDX-License-Identifier: MIT
// See engine_name.h. The program's only list of CPU engines; a test compares it with the output of
// `partita plan`.
#include "engine_name.h"

#include <stdio.h>
#include <string.h>

static const char *const engines[] = {"cpu/gemm",        "cpu/direct",      "cpu/winograd",
                                      "cpu/tiles",       "cpu/depthwise",   "cpu/overlap-save",
                                      "cpu/overlap-add", "cpu/partitioned", "cpu/blocks"};

enum { N_ENGINES = sizeof engines / sizeof *engines };

const char *engine_name(const char *requested, char name[ENGINE_NAME_SIZE])
{
    if (!requested) return NULL;
    const char *slash = strchr(requested, '/'), *stem = slash ? slash + 1 : requested;
    int n_device = slash ? (int)(stem - requested) : 4;
    if (strcmp(stem, "overlap-discard") == 0) stem = "overlap-save";
    snprintf(name, ENGINE_NAME_SIZE, "%.*s%s", n_device, slash ? requested : "cpu/", stem);
    return name;
}

const char *engine_list(char text[NAME_LIST_SIZE])
{
    return nearest_list(engines, N_ENGINES, sizeof *engines, text);
}

bool engine_check(const struct settings *settings, struct fault *fault)
{
    const char *requested = settings->engine, *device = settings->device;
    char name[ENGINE_NAME_SIZE], all[NAME_LIST_SIZE], hint[NEAREST_HINT_SIZE];
    const bool on_cuda = device && strncmp(device, "cuda", 4) == 0;
    if (!requested) return true;
    engine_name(requested, name);
    if (strncmp(name, "cuda/", 5) == 0) // the CUDA module checks the names of its engines itself
        return on_cuda ||
               fault_set(fault, "--engine %.80s: %s", requested,
                         settings->command == COMMAND_LIVE ? "live computes on the CPU only"
                                                           : "needs --device cuda");
    if (on_cuda)
        return fault_set(fault,
                         "--engine %.80s: is not an engine of --device %.20s, whose engines have "
                         "names like cuda/direct",
                         requested, device);
    name[strcspn(name, ":")] = 0; // the library checks the variant
    return nearest_find(name, engines, N_ENGINES, sizeof *engines, hint) >= 0 ||
           fault_set(fault, "--engine %.80s: no such engine%s; choose one of %s", requested, hint,
                     engine_list(all));
}

bool engine_needs_bounds(const char *said)
{
    return strstr(said, "works on bounded signals") != NULL;
}
