// SPDX-License-Identifier: MIT
// See choose.h.
#include "choose.h"

#include <string.h>

bool device_choose_pair(struct audio_device *ret_in, struct audio_device *ret_out,
                        const struct settings *settings, bool *ret_may_come, struct fault *fault)
{
    const char *both = settings->audio_device;
    const char *in = settings->audio_input ? settings->audio_input : both;
    const char *out = settings->audio_output ? settings->audio_output : both;
    bool one = settings->audio_input == NULL && settings->audio_output == NULL;
    if (one && device_choose(ret_in, both, DEVICE_IN | DEVICE_OUT, ret_may_come, fault)) {
        *ret_out = *ret_in;
        return true;
    }
    if (one && both) return false;
    // The default input and output may be two devices of one API.
    if (!device_choose(ret_in, in, DEVICE_IN, ret_may_come, fault) ||
        !device_choose(ret_out, out, DEVICE_OUT, ret_may_come, fault))
        return false;
    if (strcmp(ret_in->api, ret_out->api) == 0) return true;
    *ret_may_come = false;
    return fault_set(fault, "%s is a device of %s, %s one of %s; both must have the same API",
                     ret_in->name, ret_in->api, ret_out->name, ret_out->api);
}
