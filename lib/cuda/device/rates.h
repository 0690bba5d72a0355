// SPDX-License-Identifier: MIT
// The cost of work on a device: rates that the estimates of all its engines share. The model counts
// operations and bytes; their cost is assumed or measured (struct cuda_gpu_rates).
#ifndef PARTITA_CUDA_RATES_H
#define PARTITA_CUDA_RATES_H

#include <assert.h>
#include <math.h>

#include "cuda/kernels/product.h"
#include "device.h"

static const double CUDA_MAX_BLOCKS = 2147483647.; // of one launch

enum { CUDA_FULL_THREADS = 512 }; // of a processor

struct cuda_rates {
    double launch;  // seconds of one more kernel in a queue
    double fma;     // multiply-adds per second, in the problem's precision
    double bytes;   // per second, from and to the device's memory
    double threads; // with fewer threads than this the rate of multiply-adds falls in proportion
};

static inline struct cuda_rates cuda_rates_of(const struct request *request)
{
    const struct cuda_device *device = cuda_device_for(request);
    const double share = request->shape->f64 ? device->gpu->f64_share : 1;
    return (struct cuda_rates){.launch = device->rates.launch,
                               .fma = device->rates.fma / share,
                               .bytes = device->rates.bytes,
                               .threads = (double)device->gpu->processors * CUDA_FULL_THREADS};
}

// Launches of one kernel. slots: multiply-adds of all launches, or work that takes as long; bytes:
// moved by all.
struct cuda_stage {
    double launches, blocks, threads, slots, bytes; // threads of a block
};

static inline double cuda_stage_seconds(const struct cuda_rates *rates,
                                        const struct cuda_stage *stage)
{
    const double busy = fmin(1, stage->blocks * stage->threads / rates->threads);
    assert(busy > 0 || stage->slots == 0); // a gradient may be all zeros
    const double computing = stage->slots > 0 ? stage->slots / (rates->fma * busy) : 0;
    return stage->launches * rates->launch + fmax(computing, stage->bytes / rates->bytes);
}

// Bytes of the samples that a direction reads and writes.
static inline double cuda_sample_bytes(const struct shape *shape)
{
    const double inputs = (double)shape->in_channels * (double)shape_inputs(shape);
    const double outputs = (double)shape->out_channels * (double)shape_outputs(shape);
    return (double)shape->batch * (inputs + outputs) * (double)shape_alignment(shape);
}

// The fastest arithmetic within the error budget; without one (0), within the error of three
// products of TF32. `growth`: by how much the rest of the engine enlarges an error of the products.
// *error is the predicted error of multiply-adds, and becomes that of the arithmetic.
static inline enum cuda_arithmetic cuda_arithmetic_within(const struct request *request,
                                                          double budget, enum cuda_element element,
                                                          double growth, double *error)
{
    const double rate = cuda_device_for(request)->rates.tf32;
    const double left = budget > 0 ? sqrt(fmax(0, budget * budget - *error * *error))
                                   : growth * cuda_product_error(CUDA_TF32_THREE);
    const enum cuda_arithmetic arithmetic = cuda_product_arithmetic(element, rate, left / growth);
    *error = hypot(*error, growth * cuda_product_error(arithmetic));
    return arithmetic;
}

#endif
