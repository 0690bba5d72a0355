// SPDX-License-Identifier: MIT
// See wisdom_file.h. The file is $XDG_CACHE_HOME/partita/wisdom or ~/.cache/partita/wisdom (XDG
// Base Directory).
#include "wisdom_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool wisdom_file_path(char path[PATH_MAX])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n;
    if (cache && cache[0] == '/') // the specification says to ignore relative paths
        n = snprintf(path, PATH_MAX, "%s/partita/wisdom", cache);
    else if (home && *home) n = snprintf(path, PATH_MAX, "%s/.cache/partita/wisdom", home);
    else return false;
    return n > 0 && n < PATH_MAX;
}

struct partita_wisdom *wisdom_file_load(void)
{
    struct partita_wisdom *wisdom;
    char path[PATH_MAX];
    if (partita_wisdom_create(&wisdom)) return NULL;
    if (wisdom_file_path(path))
        (void)partita_wisdom_load(
            wisdom,
            path); // without the file, or with one of another machine, plan without measurements
    return wisdom;
}

// Creates all folders of the path.
static bool make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        int failed = mkdir(path, 0700) && errno != EEXIST;
        *slash = '/';
        if (failed) return false;
    }
    return true;
}

bool wisdom_file_save(const struct partita_wisdom *wisdom, char *ret_path, struct fault *fault)
{
    if (!wisdom_file_path(ret_path))
        return fault_set(
            fault, "neither XDG_CACHE_HOME nor HOME names a folder to store the measurements in");
    if (!make_folders(ret_path))
        return fault_set(fault, "%s: cannot create its folder: %s", ret_path, strerror(errno));
    enum partita_status status = partita_wisdom_save(wisdom, ret_path);
    return !status || fault_set(fault, "%s: %s", ret_path, partita_status_string(status));
}
