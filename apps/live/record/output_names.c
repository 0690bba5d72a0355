// SPDX-License-Identifier: MIT
#include "output_names.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/ir_name.h"
#include "io/bytes/temp.h"
#include "io/formats/sigmf.h"
#include "route/route.h"

char *output_names_take(const char *path, int take)
{
    const char *dot = strrchr(path_base(path), '.');
    int n_stem = (int)(dot ? (size_t)(dot - path) : strlen(path));
    char *name = NULL;
    if (take < 2) return strdup(path);
    return asprintf(&name, "%.*s-%d%s", n_stem, path, take, path + n_stem) < 0 ? NULL : name;
}

// The folder of a file that may not exist yet.
static bool identify_folder(const char *path, struct stat *st)
{
    const char *base = path_base(path);
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
    if (strcmp(path_base(a), path_base(b)) != 0) return false;
    return identify_folder(a, &of_a) && identify_folder(b, &of_b) && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

// False if an output is a file that a configuration or a chain names. One that cannot be read is
// reported when it is loaded.
static bool differs_from_files(const struct settings *s, const char *out, const char *ir,
                               struct fault *fault)
{
    struct network network;
    struct fault ignored;
    if (!route_read(&network, s, ir, NULL, &ignored)) return true;
    const char **files = calloc(network_count_files(&network), sizeof *files);
    int n = 0;
    const bool good =
        files ? network_list_files(&network, files, &n, fault) && temp_differs(out, files, n, fault)
              : fault_set(fault, "out of memory");
    free(files);
    network_release(&network);
    return good;
}

// False if an output, which may be NULL, is a file that is read for a filter.
static bool differs_from_filters(const struct settings *s, const char *out, struct fault *fault)
{
    enum ir_layout layout;
    bool good = true;
    char buffer[PATH_MAX];
    for (int i = 0; out && good && i < s->irs.n; i++) {
        const char *path = ir_name_path(s->irs.words[i], &layout);
        good = temp_differs(out, (const char *[]){path, sigmf_samples(path, buffer)}, 2, fault) &&
               (!route_is_named(s, s->irs.words[i]) ||
                differs_from_files(s, out, s->irs.words[i], fault));
    }
    return good;
}

static bool check_names(const struct settings *s, const char *record, struct fault *fault)
{
    if (!differs_from_filters(s, record, fault) || !differs_from_filters(s, s->calls, fault))
        return false;
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
