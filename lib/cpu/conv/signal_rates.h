// SPDX-License-Identifier: MIT
// The CPU's rates for the searches of partitions and blocks, from the cost model, and the
// transforms of plans.
#ifndef PARTITA_CPU_SIGNAL_RATES_H
#define PARTITA_CPU_SIGNAL_RATES_H

#include "core/plan.h"
#include "fft/fft.h"
#include "geometry/signal_rates.h"

// The result refers to the request, which must live longer.
struct signal_rates cpu_signal_rates(const struct request *request);

// Makes the transform of n samples of the plan's signals.
enum partita_status plan_fft(const struct partita_plan *plan, size_t n, struct fft **ret);

#endif
