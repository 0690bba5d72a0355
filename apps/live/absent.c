// SPDX-License-Identifier: MIT
// What `partita live` and `partita devices` are in a build without PortAudio.
#include "../commands.h"
#include "../report.h"

static int say_absent(enum command command, int argc, char **argv)
{
    struct settings settings;
    struct fault fault;
    if (!options_parse(&settings, command, argc, argv, &fault)) return report_usage(command, &fault);
    if (settings.help) {
        help_print(command);
        return report_close(command, EXIT_DONE);
    }
    fault_set(&fault,
              "this program was built without PortAudio; install portaudio19-dev and build with -Dlive=enabled");
    return report_fault(command, &fault, EXIT_FAILED);
}

int live_main(enum command command, int argc, char **argv)
{
    return say_absent(command, argc, argv);
}

int devices_main(enum command command, int argc, char **argv)
{
    return say_absent(command, argc, argv);
}
