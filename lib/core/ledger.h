// SPDX-License-Identifier: MIT
// The ledger of a bounded problem: engines count the work of a call, and the cost model has the
// seconds of each kind (cost_model.h). No engine turns work into seconds by itself.
#ifndef PARTITA_LEDGER_H
#define PARTITA_LEDGER_H

#include "engine.h"

struct ledger {
    struct work work;   // of a call, but for reading and writing the arrays in memory
    struct work reads;  // of taps, which are prefetched during the multiply-adds: the longer counts
    struct work filter; // of packing a filter
    bool waits;         // the call waits for the arrays; else they move during its work
};

// The figure by which layouts are compared: request_cost of their estimates.
double ledger_cost(const struct request *request, const struct ledger *ledger);

// Sets the estimate's seconds of a call and of packing a filter.
void ledger_price(const struct request *request, const struct ledger *ledger, struct estimate *ret);

// Seconds of moving a bounded signal and its result through memory; 0 if they fit the cache, and of
// streams.
double memory_seconds(const struct cost_model *model, const struct shape *shape);

// Whether the filter and the workspace serve one call: a lone signal is convolved once, unless the
// options say that its filter is used more often.
static inline bool request_used_once(const struct request *request, const struct shape *shape)
{
    return shape_lone(shape) && request->filter_uses <= 1;
}

// Seconds of clearing and fetching newly allocated memory for one call; 0 if there are more, and if
// the memory fits the cache.
double fresh_seconds(const struct request *request, const struct shape *shape, size_t bytes);

#endif
