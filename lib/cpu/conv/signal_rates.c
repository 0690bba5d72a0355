// SPDX-License-Identifier: MIT
#include "signal_rates.h"

#include <string.h>

static size_t cpu_good_size(const struct signal_rates *rates, size_t n)
{
    (void)rates;
    // The cost model interpolates between powers of two.
    size_t size = fft_good_size(n);
    while (size && !fft_interpolates(size)) size = fft_good_size(size + 1);
    return size;
}

static double cpu_transform_seconds(const struct signal_rates *rates, size_t n, double count)
{
    const struct request *request = rates->context;
    const struct shape *shape = request->shape;
    return count * (cost_model_fft(request->model, shape->f64, shape->complex_signal, n) / 2);
}

struct signal_rates cpu_signal_rates(const struct request *request)
{
    const struct cost_rates *costs = &request->model->costs[request->shape->f64];
    struct signal_rates rates = {
        .context = request,
        .good_size = cpu_good_size,
        .transforms = cpu_transform_seconds,
        .work = costs->work,
        .fast_bytes = request->model->cache_bytes,
        .shared_bytes = request->model->shared_bytes,
    };
    memcpy(rates.product, costs->product, sizeof rates.product);
    return rates;
}

enum partita_status plan_fft(const struct partita_plan *plan, size_t n, struct fft **ret)
{
    const struct fft_request request = {.n = n,
                                        .f64 = plan->shape.f64,
                                        .complex = plan->shape.complex_signal,
                                        .measure = plan->measure,
                                        .isa = plan->isa};
    return fft_create(&request, &plan->allocator, ret);
}
