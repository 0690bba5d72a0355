// SPDX-License-Identifier: MIT
// cpu/gemm: layers as products of taps and panels (decision 17).
#include "cpu/conv/products.h"

static void gemm_estimate(const struct request *request, struct estimate *ret)
{
    if (request->transform) estimate_refuse(ret, "has no transform");
    else products_estimate(request, &products_by_panels, ret);
}

static void *gemm_build(const struct partita_plan *plan, const struct request *request,
                        struct arena *arena)
{
    return products_build(plan, request, &products_by_panels, arena);
}

const struct engine engine_gemm = {
    .name = "cpu/gemm",
    .max_rank = PARTITA_MAX_RANK,
    .half = true,
    .real = true,
    .channels_last = true,
    .layers = true,
    .estimate = gemm_estimate,
    .build = gemm_build,
    .directions = PARTITA_FORWARD | PARTITA_BACKWARD_DATA | PARTITA_BACKWARD_WEIGHT,
    .filter = {.bytes = conv_passes_filter_bytes, .pack = conv_passes_filter_pack},
    .bounded = {.run = products_run},
};
