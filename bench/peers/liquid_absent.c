// SPDX-License-Identifier: MIT
// Linked instead of liquid.c where liquid-dsp is not installed.
#include "peers/peers.h"

static bool liquid_absent(struct contender *contender)
{
    snprintf(contender->reason, sizeof contender->reason,
             "liquid-dsp was not found when this was built");
    return false;
}

bool peer_liquid_fir(struct contender *contender, const struct workload *w)
{
    (void)w;
    return liquid_absent(contender);
}

bool peer_liquid_fft(struct contender *contender, const struct workload *w)
{
    (void)w;
    return liquid_absent(contender);
}
