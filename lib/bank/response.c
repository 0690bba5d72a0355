// SPDX-License-Identifier: MIT
// The response of a filter at any frequency, from its values at the frequencies of the bins. Taps
// that are moved by half their length, so that they lie around time 0, have a response that is
// band-limited in frequency: within `overlap` samples of the N of a transform. Values between the
// bins are sums of neighbours times a sinc with a window; the window's error is below that of
// double (INTERPOLATED).
#include <math.h>

#include "base/scalar.h"
#include "base/sizes.h"
#include "channelizer.h"

// exp(-INTERPOLATED): the window in the stop band.
static const double INTERPOLATED = 40;
enum { MAX_RADIUS = 1280 };

// Neighbours on each side. The taps take the share `used` of the transform. The sinc passes |t| <=
// used/2 and stops t >= 1 - used/2, in units of the transform; a window of the length 2 radius
// that falls to exp(-beta) has a transition of beta / (pi radius) between them.
static size_t radius_of(const struct partita_channel_filter *filter)
{
    const double used = (double)filter->n_taps / ((double)filter->owner->n * (double)filter->up);
    const double radius = ceil(INTERPOLATED / (M_PI * (1 - fmin(used, 0.99))));
    return size_min((size_t)radius + 1, MAX_RADIUS);
}

// e^(2 pi i k d / (N up)), where d is half the length of the taps: moves a response in time.
static void moved_root(const struct partita_channel_filter *filter, ptrdiff_t k, double shift,
                       double ret[2])
{
    const ptrdiff_t length = (ptrdiff_t)(2 * filter->owner->n * filter->up);
    const ptrdiff_t delay = (ptrdiff_t)filter->n_taps - 1;
    const ptrdiff_t whole = k * (delay % length) % length;
    const double angle = 2 * M_PI * ((double)whole + shift * (double)delay) / (double)length;
    ret[0] = cos(angle);
    ret[1] = sin(angle);
}

static void add_rotated_value(double sum[2], const double a[2], const double b[2])
{
    sum[0] += a[0] * b[0] - a[1] * b[1];
    sum[1] += a[0] * b[1] + a[1] * b[0];
}

static bool is_complex_type(enum partita_type type)
{
    return type == PARTITA_CF32 || type == PARTITA_CF64;
}

// The taps of one branch, as samples of the transform.
static void read_branch(const struct partita_channel *given, size_t branch, double (*x)[2],
                        size_t n)
{
    const bool f64 = given->taps_type == PARTITA_F64 || given->taps_type == PARTITA_CF64;
    const bool pairs = is_complex_type(given->taps_type);
    for (size_t i = 0; i < n; i++) {
        const size_t tap = i * given->up + branch;
        x[i][0] = x[i][1] = 0;
        if (tap >= given->n_taps) continue;
        x[i][0] = scalar_get(f64, given->taps, pairs ? 2 * tap : tap);
        if (pairs) x[i][1] = scalar_get(f64, given->taps, 2 * tap + 1);
    }
}

// Adds the share of a branch to all values: its spectrum, delayed by `branch` samples at the rate
// of the taps.
static void add_branch(struct partita_channel_filter *filter, size_t branch, const double *spectrum)
{
    const struct partita_channelizer *owner = filter->owner;
    const size_t n = owner->n, all = n * filter->up;
    for (size_t i = 0; i < filter->count; i++) {
        const ptrdiff_t g = filter->first + (ptrdiff_t)i;
        const size_t bin = (size_t)(g - floor_div(g, n) * (ptrdiff_t)n);
        const size_t index = owner->exact_bins.index[bin];
        const size_t cycle = (size_t)(g - floor_div(g, all) * (ptrdiff_t)all) * branch % all;
        const double angle = -2 * M_PI * (double)cycle / (double)all;
        const double value[] = {spectrum[index], spectrum[index + bins_lanes(true)]};
        add_rotated_value(filter->values[i], value, (double[]){cos(angle), sin(angle)});
    }
}

static bool fill_response(struct partita_channel_filter *filter,
                          const struct partita_channel *given)
{
    const struct fft *fft = filter->owner->exact;
    const struct partita_allocator *allocator = &filter->owner->options.allocator;
    struct arena arena = {0};
    void *x = NULL, *spectrum = NULL, *scratch = NULL;
    for (int pass = 0; pass < 2; pass++) {
        x = arena_take(&arena, fft->n * sizeof(double[2]));
        spectrum = arena_take(&arena, fft->spectrum_bytes);
        scratch = arena_take(&arena, fft->scratch_bytes);
        if (pass == 0 && !arena_reserve(&arena, allocator)) return false;
    }
    for (size_t branch = 0; branch < size_min(given->up, given->n_taps); branch++) {
        read_branch(given, branch, x, fft->n);
        fft_forward(fft, spectrum, x, scratch);
        add_branch(filter, branch, spectrum);
    }
    for (size_t i = 0; i < filter->count; i++) {
        double root[2], value[2] = {0};
        moved_root(filter, filter->first + (ptrdiff_t)i, 0, root);
        add_rotated_value(value, filter->values[i], root);
        filter->values[i][0] = value[0];
        filter->values[i][1] = value[1];
    }
    mem_release(allocator, arena.base);
    return true;
}

// Weights of the neighbours of a frequency that is `shift` above a value's: a sinc with a window
// that falls to exp(-INTERPOLATED) at the radius.
static void fill_weights(double *weights, size_t radius, double shift)
{
    const double sine = sin(M_PI * shift) / M_PI;
    for (size_t j = 0; j < 2 * radius + 1; j++) {
        const double x = shift + ((double)radius - (double)j), at = x / ((double)radius + 0.5);
        const double below = at * at / (1 + sqrt(fmax(1 - at * at, 0))); // 1 - sqrt(..)
        const double sign = (radius + j) % 2 ? -1 : 1;
        weights[j] = x == 0 ? 1 : sign * sine / x * exp(-INTERPOLATED * below);
    }
}

void response_read(const struct partita_channel_filter *filter, ptrdiff_t first, double shift,
                   size_t count, double (*ret)[2])
{
    const size_t radius = radius_of(filter), width = 2 * radius + 1;
    double weights[2 * MAX_RADIUS + 1];
    fill_weights(weights, radius, shift);
    for (size_t i = 0; i < count; i++) {
        const ptrdiff_t g = first + (ptrdiff_t)i, from = g - (ptrdiff_t)radius - filter->first;
        double sum[2] = {0}, root[2];
        assert(from >= 0 && (size_t)from + width <= filter->count);
        for (size_t j = 0; j < width; j++) {
            sum[0] += weights[j] * filter->values[(size_t)from + j][0];
            sum[1] += weights[j] * filter->values[(size_t)from + j][1];
        }
        moved_root(filter, -g, -shift, root);
        ret[i][0] = ret[i][1] = 0;
        add_rotated_value(ret[i], sum, root);
    }
}

static void inverse_release(const struct partita_allocator *allocator, struct inverse *inverse)
{
    bins_release(inverse->fft, &inverse->bins);
    fft_destroy(inverse->fft);
    mem_release(allocator, inverse->scratch);
    mem_release(allocator, inverse);
}

static enum partita_status inverse_create(struct partita_channelizer *owner, size_t length,
                                          struct inverse **ret)
{
    enum { MAX_STEP = 128 }; // with it the native transform has every length without other factors
    const struct partita_allocator *allocator = &owner->options.allocator;
    struct inverse *inverse = mem_allocate(allocator, sizeof *inverse);
    enum partita_status status = PARTITA_ERR_UNSUPPORTED;
    if (!inverse) return PARTITA_ERR_NOMEM;
    inverse->length = length;
    while (status == PARTITA_ERR_UNSUPPORTED && inverse->step < MAX_STEP) {
        const struct fft_request request = {
            .n = length * ++inverse->step, .f64 = owner->f64, .complex = true, .isa = cpu_detect()};
        status = fft_create(&request, allocator, &inverse->fft);
    }
    if (status == PARTITA_OK) status = bins_find(inverse->fft, &inverse->bins);
    if (status == PARTITA_OK) {
        const struct fft *fft = inverse->fft;
        const size_t samples = mem_round(fft->n * 2 * (owner->f64 ? 8 : 4));
        inverse->scratch_bytes = fft->spectrum_bytes + samples + mem_round(fft->scratch_bytes);
        inverse->scratch = mem_allocate(
            allocator, size_mul((size_t)owner->options.threads, inverse->scratch_bytes));
        if (!inverse->scratch) status = PARTITA_ERR_NOMEM;
    }
    if (status != PARTITA_OK) {
        inverse_release(allocator, inverse);
        return status;
    }
    inverse->next = owner->inverses;
    *ret = owner->inverses = inverse;
    return PARTITA_OK;
}

void inverses_release(struct partita_channelizer *owner)
{
    while (owner->inverses) {
        struct inverse *inverse = owner->inverses;
        owner->inverses = inverse->next;
        inverse_release(&owner->options.allocator, inverse);
    }
}

static enum partita_status inverse_of(struct partita_channelizer *owner, size_t length,
                                      struct inverse **ret)
{
    for (struct inverse *at = owner->inverses; at; at = at->next)
        if (at->length == length) {
            *ret = at;
            return PARTITA_OK;
        }
    return inverse_create(owner, length, ret);
}

enum partita_status response_create(struct partita_channelizer *owner,
                                    const struct partita_channel *given,
                                    struct partita_channel_filter **ret)
{
    const struct partita_allocator *allocator = &owner->options.allocator;
    struct partita_channel_filter made = {
        .owner = owner, .up = given->up, .stride = given->stride, .n_taps = given->n_taps};
    const double band =
        given->bandwidth > 0 ? given->bandwidth / owner->options.sample_rate : (double)given->up;
    made.half_band = band * (double)owner->n / 2;
    const size_t side = (size_t)ceil(made.half_band) + radius_of(&made) + 1;
    made.first = -(ptrdiff_t)side;
    made.count = 2 * side + 1;
    struct partita_channel_filter *filter = mem_allocate(
        allocator, size_add(mem_round(sizeof *filter), size_mul(made.count, sizeof *made.values)));
    if (!filter) return PARTITA_ERR_NOMEM;
    made.values = (void *)((char *)filter + mem_round(sizeof *filter));
    *filter = made;
    enum partita_status status = fill_response(filter, given) ? PARTITA_OK : PARTITA_ERR_NOMEM;
    if (status == PARTITA_OK)
        status = inverse_of(owner, owner->n * given->up / given->stride, &filter->inverse);
    if (status == PARTITA_OK) *ret = filter;
    else mem_release(allocator, filter);
    return status;
}
