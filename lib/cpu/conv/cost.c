// SPDX-License-Identifier: MIT
#include "cost.h"

#include <math.h>

// Shared by direct sums and matrix products; decisions 12 and 17.
enum {
    MIN_SUMS = 4,      // sums in flight that keep a unit of multiply-adds busy: its latency
    MAX_SEGMENT = 512, // terms summed before a sum is rounded into memory
};

double conv_cost_channels(size_t out, size_t width, double loads)
{
    double cost = 0;
    for (size_t left = out, rows; left; left -= rows) {
        rows = left;
        if (left >= CONV_CHANNELS) rows = CONV_CHANNELS;
        else if (left >= 4) rows = 4;
        const double sums = (double)(rows * width);
        const double vectors = (double)width * loads + (double)rows;
        const double bound = fmax(sums, fmax(vectors, MIN_SUMS));
        const double times = rows == CONV_CHANNELS ? (double)(left / rows) : 1;
        cost += times * (double)rows * bound / sums;
        if (rows == CONV_CHANNELS) rows = left / rows * rows;
    }
    return cost;
}

void conv_cost_pack(struct work *work, const struct conv_pass *pass, double n, double times)
{
    const struct conv_axis *axis = pass->axis;
    const double residues =
        (double)axis[0].residues * (double)axis[1].residues * (double)axis[2].residues;
    work->copy += times * n * (double)pass->box.channel;
    work->row += times * n * residues * (double)(pass->box.volume / pass->box.extent[2]);
}

double conv_cost_error(const struct shape *shape, double terms, double segment)
{
    return shape_roundoff(shape) * 0.3 * sqrt(segment + terms / segment);
}

void conv_cost_estimate(const struct request *request, double terms, const struct ledger *ledger,
                        struct estimate *ret)
{
    const struct shape *shape = request->shape;
    ret->applicable = true;
    ret->flops = 2 * (double)shape->batch * (double)shape->out_channels *
                 (double)shape_outputs(shape) * (double)shape->group_in * (double)shape_taps(shape);
    ledger_price(request, ledger, ret);
    ret->error = conv_cost_error(shape, terms, fmin(terms, MAX_SEGMENT));
    if (shape->half) ret->error += shape->signal == PARTITA_F16 ? 0x1p-11 : 0x1p-8;
}
