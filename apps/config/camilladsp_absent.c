// SPDX-License-Identifier: MIT
// The parser of CamillaDSP's configurations in a build without libyaml.
#include "network.h"

bool camilladsp_parse(struct network *network, char *text, struct fault *fault)
{
    (void)text;
    return fault_set(fault,
                     "%s: this program was built without libyaml; install libyaml-dev and build it "
                     "again",
                     network->path);
}
