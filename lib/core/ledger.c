// SPDX-License-Identifier: MIT
#include "ledger.h"

#include <math.h>

double memory_seconds(const struct cost_model *model, const struct shape *shape)
{
    if (shape->stream) return 0;
    const size_t inputs = shape->in_channels * shape_inputs(shape);
    const size_t outputs = shape->out_channels * shape_outputs(shape);
    const size_t scalars = shape->batch * (inputs + outputs) * (shape->complex_signal ? 2 : 1);
    if (scalars * shape->scalar_bytes <= model->cache_bytes) return 0;
    return (double)scalars / 2 * model->costs[shape->f64].work.copy_far;
}

double fresh_seconds(const struct request *request, const struct shape *shape, size_t bytes)
{
    const struct cost_model *model = request->model;
    if (!request_used_once(request, shape) || bytes <= model->cache_bytes) return 0;
    return (double)bytes / (double)shape->scalar_bytes * model->costs[shape->f64].work.copy_far;
}

static double call_seconds(const struct request *request, const struct ledger *ledger)
{
    const struct cost_model *model = request->model;
    const struct cost_rates *costs = &model->costs[request->shape->f64];
    const double products =
        ledger->work.fma * costs->work.fma + ledger->work.product * costs->work.product;
    // A read takes 0.7 of the time of a copy from and to memory, which the rates have; measured.
    const double reads = 0.7 * work_seconds(&ledger->reads, costs) - products;
    const double seconds = work_seconds(&ledger->work, costs) + fmax(0, reads);
    const double memory = memory_seconds(model, request->shape);
    return ledger->waits ? seconds + memory : fmax(seconds, memory);
}

static double pack_seconds(const struct request *request, const struct ledger *ledger)
{
    return work_seconds(&ledger->filter, &request->model->costs[request->shape->f64]);
}

double ledger_cost(const struct request *request, const struct ledger *ledger)
{
    const unsigned uses = request->filter_uses;
    const double share = uses ? pack_seconds(request, ledger) / uses : 0;
    return call_seconds(request, ledger) + share;
}

void ledger_price(const struct request *request, const struct ledger *ledger, struct estimate *ret)
{
    ret->seconds = call_seconds(request, ledger);
    ret->filter_seconds = pack_seconds(request, ledger);
}
