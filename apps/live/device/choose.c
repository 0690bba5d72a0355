// SPDX-License-Identifier: MIT
// See choose.h.
#include "choose.h"

#include <string.h>

bool device_initialize_for(const struct settings *settings, struct fault *fault)
{
    const struct device_setup setup = {.client_name = settings->name,
                                       .no_connect = settings->no_connect};
    return device_initialize(&setup, fault);
}

static bool choose_pair(struct audio_device *ret_in, struct audio_device *ret_out,
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

bool device_choose_pair(struct audio_device *ret_in, struct audio_device *ret_out,
                        const struct settings *settings, bool *ret_may_come, struct fault *fault)
{
    if (!choose_pair(ret_in, ret_out, settings, ret_may_come, fault)) return false;
    if (!settings->no_connect || device_is_jack(ret_out)) return true;
    *ret_may_come = false;
    return fault_set(fault,
                     "--no-connect: %s is a device of %s, which has no connections; leave "
                     "the option out, or choose a JACK device",
                     ret_out->name, ret_out->api);
}
