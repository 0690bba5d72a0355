// SPDX-License-Identifier: MIT
// channels_conv, for every instruction set of this machine, against the contract of kernels.h: sums
// in twice the precision, no access outside the rows, and the same bits wherever a row is split.
#include "support/kernel_check.h"

#include <math.h>

enum { MAX_ROWS = 5 };

struct data {
    struct channels_conv call;
    const void *rows[MAX_ROWS];
    size_t n_x, n_w, n_y; // reals of all rows, of the taps, of the outputs
    void *x, *w, *y, *bias;
};

static struct data data_make(bool f64, size_t i, struct random *random)
{
    const size_t bytes = scalar_size(f64), block = CONV_BLOCK_BYTES / bytes;
    struct data d = {.call = {.rows = random_below(random, MAX_ROWS + 1),
                              .channels = block + random_below(random, 2 * block),
                              .axis = {.size = 1 + random_below(random, 50),
                                       .count = 14 + i % 37,
                                       .taps = 3 + i % 3 * 2,
                                       .step = 1 + random_below(random, 2),
                                       .first = (ptrdiff_t)random_below(random, 24) - 16}}};
    struct channels_conv *call = &d.call;
    call->w_pitch = (call->channels + block - 1) / block * block;
    d.n_x = call->rows * call->axis.size * call->channels;
    d.n_w = call->rows * call->axis.taps * call->w_pitch;
    d.n_y = call->axis.count * call->channels;
    d.x = guarded_alloc(d.n_x * bytes, bytes), d.w = guarded_alloc(d.n_w * bytes, bytes);
    d.y = guarded_alloc(d.n_y * bytes, bytes);
    d.bias = guarded_alloc(call->channels * bytes, bytes);
    fill_random(random, f64, d.x, d.n_x);
    fill_random(random, f64, d.w, d.n_w);
    fill_random(random, f64, d.bias, call->channels);
    call->w = d.w, call->y = d.y, call->bias = i % 3 ? d.bias : NULL;
    // What is prefetched is no memory.
    call->next_x = (const void *)(uintptr_t)random_below(random, 1 << 20);
    call->next_rows = i % 5 ? 0 : 1 + i % 3;
    return d;
}

// Rows of x in reverse order, since they need not follow one another.
static void data_point(struct data *d, const void *x, size_t bytes)
{
    const size_t row = d->call.axis.size * d->call.channels * bytes;
    for (size_t r = 0; r < d->call.rows; r++)
        d->rows[r] = (const char *)x + (d->call.rows - 1 - r) * row;
    d->call.x = d->rows;
}

static void data_free(struct data *d)
{
    void *all[] = {d->x, d->w, d->y, d->bias};
    for (size_t k = 0; k < 4; k++) guarded_free(all[k]);
}

static void check_output(const struct data *d, bool f64, size_t i)
{
    const struct channels_conv *call = &d->call;
    const struct plane_axis *axis = &call->axis;
    const size_t c = i % call->channels;
    struct sum sum = {0};
    sum_product(&sum, 1, call->bias ? scalar_get(f64, call->bias, c) : 0);
    for (size_t r = 0; r < call->rows; r++)
        for (size_t t = 0; t < axis->taps; t++) {
            const ptrdiff_t at = (ptrdiff_t)(i / call->channels * axis->step + t) + axis->first;
            if (at < 0 || (size_t)at >= axis->size) continue;
            sum_product(&sum, scalar_get(f64, call->w, (r * axis->taps + t) * call->w_pitch + c),
                        scalar_get(f64, call->x[r], (size_t)at * call->channels + c));
        }
    if (!agrees(&sum, f64, scalar_get(f64, d->y, i), call->rows * axis->taps + 1))
        fail_msg("%zu channels, %zu outputs, %zu taps: output %zu", call->channels, axis->count,
                 axis->taps, i);
}

// x begins and ends at the edges of pages, in turn. With relu the same results, but 0 where they
// are negative.
static void any_row(void **state)
{
    const struct kernel_subject *s = *state;
    const bool f64 = s->kernels->f64;
    const size_t bytes = scalar_size(f64);
    struct random random = random_start(s->name);
    for (size_t i = 0; i < 400; i++) {
        struct data d = data_make(f64, i, &random);
        struct fence fence = fence_open(d.n_x * bytes);
        data_point(&d, fence_put(&fence, d.x, d.n_x * bytes, i % 2 ? EDGE_END : EDGE_START), bytes);
        void *positive = guarded_alloc(d.n_y * bytes, bytes);
        d.call.y = positive, d.call.relu = true;
        s->kernels->channels_conv(&d.call);
        d.call.y = d.y, d.call.relu = false;
        s->kernels->channels_conv(&d.call);
        for (size_t k = 0; k < d.n_y; k++) {
            const double v = scalar_get(f64, d.y, k);
            check_output(&d, f64, k);
            if (scalar_get(f64, positive, k) != (v > 0 ? v : 0)) fail_msg("output %zu: relu", k);
        }
        guarded_free(positive);
        fence_close(&fence);
        data_free(&d);
    }
}

static void split_anywhere_same_bits(void **state)
{
    const struct kernel_subject *s = *state;
    const bool f64 = s->kernels->f64;
    const size_t bytes = scalar_size(f64);
    struct random random = random_start(s->name);
    for (size_t i = 0; i < 100; i++) {
        struct data d = data_make(f64, i, &random);
        data_point(&d, d.x, bytes);
        void *whole = guarded_alloc(d.n_y * bytes, bytes);
        d.call.y = whole;
        s->kernels->channels_conv(&d.call);
        const struct plane_axis axis = d.call.axis;
        const size_t cut = 7 + random_below(&random, axis.count - 13);
        d.call.y = d.y, d.call.axis.count = cut;
        s->kernels->channels_conv(&d.call);
        d.call.y = scalar_at(f64, d.y, cut * d.call.channels);
        d.call.axis.count = axis.count - cut;
        d.call.axis.first = axis.first + (ptrdiff_t)(cut * axis.step);
        s->kernels->channels_conv(&d.call);
        assert_memory_equal(d.y, whole, d.n_y * bytes);
        guarded_free(whole);
        data_free(&d);
    }
}

int main(void)
{
    static const struct promise promises[] = {
        {"channels_conv, any row", any_row},
        {"channels_conv, split anywhere", split_anywhere_same_bits},
    };
    return test_all_isas(promises, sizeof promises / sizeof *promises);
}
