// SPDX-License-Identifier: MIT
// The CPU's rates for the searches of partitions and blocks, from the cost model.
#ifndef PARTITA_CPU_SIGNAL_RATES_H
#define PARTITA_CPU_SIGNAL_RATES_H

#include "core/engine.h"
#include "geometry/signal_rates.h"

// The result refers to the request, which must live longer.
struct signal_rates cpu_signal_rates(const struct request *request);

#endif
