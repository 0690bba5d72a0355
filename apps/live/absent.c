// SPDX-License-Identifier: MIT
// `partita live` and `partita devices` in a build without PortAudio.
#include "cli/commands.h"
#include "cli/compute_devices.h"
#include "cli/report.h"

int live_main(const struct settings *settings, struct fault *fault)
{
    if (settings->command == COMMAND_DEVICES &&
        !compute_devices_print(settings->json ? json_array() : NULL))
        return EXIT_FAILED;
    fault_set(fault, "this program was built without PortAudio; install portaudio19-dev and build "
                     "with -Dlive=enabled");
    return EXIT_FAILED;
}

int devices_main(const struct settings *settings, struct fault *fault)
{
    return live_main(settings, fault);
}
