// SPDX-License-Identifier: MIT
// Linked instead of liquid.c where liquid-dsp is not installed.
#include "runner/runner.h"

static bool absent(struct contender *contender)
{
    snprintf(contender->reason, sizeof contender->reason, "liquid-dsp was not there when this was built");
    return false;
}

bool peer_liquid_fir(struct contender *contender, const struct workload *w)
{
    (void)w;
    return absent(contender);
}

bool peer_liquid_fft(struct contender *contender, const struct workload *w)
{
    (void)w;
    return absent(contender);
}
