// SPDX-License-Identifier: MIT
// `partita live` and `partita devices` in a build without PortAudio.
#include "cli/commands.h"
#include "cli/compute_devices.h"
#include "cli/report.h"

static int report_absent(enum command command)
{
    struct fault fault;
    fault_set(&fault, "this program was built without PortAudio; install portaudio19-dev and build "
                      "with -Dlive=enabled");
    return report_fault(command, &fault, EXIT_FAILED);
}

int live_main(const struct settings *settings)
{
    return report_absent(settings->command);
}

int devices_main(const struct settings *settings)
{
    if (!compute_devices_print(settings->json ? json_array() : NULL)) return EXIT_FAILED;
    return report_absent(settings->command);
}
