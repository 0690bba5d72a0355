// SPDX-License-Identifier: MIT
// The scenes of `partita live --scene FILE`: filters with levels under names, in YAML.
#ifndef PARTITA_APPS_SCENES_H
#define PARTITA_APPS_SCENES_H

#include <limits.h>

#include "cli/options.h"
#include "control/table.h"

enum { SCENE_NAME_SIZE = 64, SCENE_VALUES = 7 };

struct scene {
    char name[SCENE_NAME_SIZE];
    char ir[PATH_MAX];                           // as --ir names it
    struct control_command values[SCENE_VALUES]; // which the file states
    int n_values;
    int line; // of the filter in the file
};

struct scenes {
    const char *path; // of the file; NULL: there is none
    struct scene list[MAX_WORDS];
    int n, start;   // start: the index of the scene that plays first
    double written; // when the file was written that was last read, or found wrong
};

// Reads a file, whose path must outlive the scenes. False, with a fault that names file, line and
// value.
bool scenes_read(struct scenes *ret, const char *path, struct fault *fault);

// The same for a text in memory.
bool scenes_parse(struct scenes *ret, const char *path, const char *text, struct fault *fault);

// The index of a scene; -1, with a fault: there is none of this name.
int scenes_find(const struct scenes *scenes, const char *name, struct fault *fault);

#endif
