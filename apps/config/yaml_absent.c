// SPDX-License-Identifier: MIT
// The parsers of YAML in a build without libyaml.
#include "network.h"
#include "scenes.h"

#pragma GCC diagnostic ignored "-Wunused-parameter" // of functions that do nothing

static bool refuse(const char *path, struct fault *fault)
{
    return fault_set(fault,
                     "%s: this program was built without libyaml; install libyaml-dev and build it "
                     "again",
                     path);
}

bool camilladsp_parse(struct network *network, char *text, struct fault *fault)
{
    return refuse(network->path, fault);
}

bool scenes_parse(struct scenes *ret, const char *path, const char *text, struct fault *fault)
{
    return refuse(path, fault);
}
