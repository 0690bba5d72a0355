// SPDX-License-Identifier: MIT
// See output_names.h.
#include "output_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "io/bytes/temp.h"
#include "live/filters/response.h"

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

char *output_names_take(const char *path, int take)
{
    const char *dot = strrchr(base_of(path), '.');
    int n_stem = (int)(dot ? (size_t)(dot - path) : strlen(path));
    char *name = NULL;
    if (take < 2) return strdup(path);
    return asprintf(&name, "%.*s-%d%s", n_stem, path, take, path + n_stem) < 0 ? NULL : name;
}

// The folder of a file that may not exist yet.
static bool identify_folder(const char *path, struct stat *st)
{
    const char *base = base_of(path);
    char *folder = base > path ? strndup(path, (size_t)(base - path)) : strdup(".");
    bool good = folder && stat(folder, st) == 0;
    free(folder);
    return good;
}

// Whether both paths, of files that may not exist yet, name one file. temp_differs compares
// existing files.
static bool is_same_path(const char *a, const char *b)
{
    struct stat of_a, of_b;
    if (strcmp(base_of(a), base_of(b)) != 0) return false;
    return identify_folder(a, &of_a) && identify_folder(b, &of_b) && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

static bool check_names(const struct settings *s, const char *record, struct fault *fault)
{
    const char *irs[MAX_WORDS];
    bool matrix;
    for (int i = 0; i < s->irs.n; i++) irs[i] = response_path(s->irs.words[i], &matrix);
    if (record && !temp_differs(record, irs, s->irs.n, fault)) return false;
    if (s->calls && !temp_differs(s->calls, irs, s->irs.n, fault)) return false;
    if (!record || !s->calls || temp_is_special(record)) return true;
    if (temp_differs(record, &s->calls, 1, fault) && !is_same_path(record, s->calls)) return true;
    return fault_set(fault, "%s: both --record and --calls name this file; use two files", record);
}

bool output_names_check(const struct settings *settings, int take, struct fault *fault)
{
    char *record = settings->record ? output_names_take(settings->record, take) : NULL;
    bool good = settings->record && !record ? fault_set(fault, "out of memory")
                                            : check_names(settings, record, fault);
    free(record);
    return good;
}
