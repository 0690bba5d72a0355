// SPDX-License-Identifier: MIT
// `partita deconvolve` in a build without FFTW.
#include "cli/commands.h"
#include "cli/report.h"

int deconvolve_main(const struct settings *settings)
{
    struct fault fault;
    (void)settings;
    fault_set(&fault, "this program was built without FFTW; install libfftw3-dev and build it "
                      "without -Dfft=native");
    return report_fault(COMMAND_DECONVOLVE, &fault, EXIT_FAILED);
}
