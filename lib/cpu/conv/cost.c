// SPDX-License-Identifier: MIT
// Costs by counting, see conv_cost.h.
#include "cost.h"

#include <math.h>

enum {
    ROW_SAMPLES = 64, // a packed row costs as much as moving so many samples, besides its own: the
                      // calls. Typed.
    FEWEST_SUMS = 4,  // in flight that keep one unit of multiply-adds busy: its latency
    MOST_SEGMENT = 512, // terms summed before a sum is rounded into memory
};

double conv_cost_channels(size_t out, size_t width, double loads)
{
    double cost = 0;
    for (size_t left = out, rows; left; left -= rows) {
        rows = left >= CONV_CHANNELS ? CONV_CHANNELS : left >= 4 ? 4 : left >= 2 ? 2 : 1;
        const double sums = (double)(rows * width),
                     times = rows == CONV_CHANNELS ? (double)(left / rows) : 1;
        const double bound = fmax(sums, fmax((double)width * loads + (double)rows, FEWEST_SUMS));
        cost += times * (double)rows * bound / sums;
        if (rows == CONV_CHANNELS) rows = left / rows * rows;
    }
    return cost;
}

void conv_cost_add(struct conv_work *work, const struct conv_work *one, double n)
{
    work->sums += n * one->sums;
    work->moved += n * one->moved;
    work->rows += n * one->rows;
}

void conv_cost_pack(struct conv_work *work, const struct conv_pass *pass, double n, double times)
{
    const struct conv_axis *axis = pass->axis;
    const double phases = (double)axis[0].phases * (double)axis[1].phases * (double)axis[2].phases;
    work->moved += times * n * (double)pass->box.channel;
    work->rows += times * n * phases * (double)(pass->box.volume / pass->box.extent[2]);
}

void conv_cost_estimate(const struct request *request, double terms, const struct conv_work *work,
                        struct estimate *ret)
{
    const struct shape *shape = request->shape;
    const struct cost_rates *costs = &request->model->costs[shape->f64];
    ret->applicable = true;
    ret->flops = 2 * (double)shape->batch * (double)shape->out_channels *
                 (double)shape_outputs(shape) * (double)shape->group_in * (double)shape_taps(shape);
    ret->seconds = work->sums * costs->fma + (work->moved + ROW_SAMPLES * work->rows) * costs->copy;
    ret->seconds = fmax(ret->seconds, memory_seconds(request->model, shape));
    // The rounding walk of one segment's terms, then of the segments.
    const double segment = fmin(terms, MOST_SEGMENT);
    ret->error = shape_roundoff(shape) * 0.3 * sqrt(segment + terms / segment);
    if (shape->half) ret->error += shape->signal == PARTITA_F16 ? 0x1p-11 : 0x1p-8;
}
