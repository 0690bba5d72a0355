// SPDX-License-Identifier: MIT
// Equiripple taps by the Remez exchange of Parks and McClellan. The response of n symmetric or
// antisymmetric taps, without its linear phase, is a factor that depends on the symmetry,
//   1 (odd n), cos(w/2) (even n), sin(w) (antisymmetric, odd n),
// times a polynomial of degree m in x = cos(w). The polynomial whose largest weighted error is
// smallest has m + 2 extrema of equal size and alternating signs. The exchange starts with any
// m + 2 frequencies, finds the polynomial whose errors there are equal and alternate, and takes the
// extrema of its error as the next frequencies, until all are equal. Polynomials are evaluated by
// the barycentric formula. For many taps the exchange first runs with few, and then with more
// extrema, spread as those before: with evenly spread ones the first error may be so uneven
// that rounding hides extrema (Filip, A robust and scalable implementation of the Parks-McClellan
// algorithm, ACM Trans. Math. Softw. 43, 2016).
#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "design.h"

enum { GROUP = 8, GRID_DENSITY = 14, MAX_EXCHANGES = 60, MAX_FIRST_REFERENCE = 4 };
// Relative difference of the smallest and the largest extremum, of the last exchange and of those
// with fewer extrema.
#define CONVERGED 1e-5
#define NEARLY_CONVERGED 1e-1

// A frequency, and the wanted value of the polynomial there.
struct point {
    double frequency, x;
    int band;
    double wanted, weight;
    double error; // weighted
};

struct exchange {
    const struct design_spec *spec;
    size_t n_taps, n_reference, n_grid;
    struct point *grid;
    size_t band_ends[DESIGN_MAX_BANDS]; // indices of the grid behind each band's last point
    struct point *reference, *extrema;  // extrema: up to n_grid
    double *nodes, *factors, *values;   // of the barycentric formula: x of the reference
    double *amplitudes, *waves;         // n_taps and 2 n_taps, for the taps
    double deviation;                   // of the polynomial at the reference, weighted
    bool searching;                     // only whether the deviation exceeds 1 is wanted
};

// The formula of Herrmann, Rabiner and Chan.
double design_equiripple_count(const struct design_spec *spec, double width)
{
    const double stop = spec->stop_deviation;
    const double pass = spec->kind == PARTITA_DESIGN_HILBERT ? stop : spec->pass_deviation;
    const double p = log10(fmax(pass, stop)), s = log10(fmin(pass, stop));
    const double length =
        ((0.005309 * p + 0.07114) * p - 0.4761) * s - ((0.00266 * p + 0.5941) * p + 0.4278);
    return fmax(length, 0.1) / width + 1;
}

// 3 % more than the formula's, which is that much too small for some.
double design_equiripple_width(const struct design_spec *spec, double count)
{
    return 1.03 * (design_equiripple_count(spec, 1) - 1) / (count - 1);
}

// The factor that the symmetry of the taps implies.
static double symmetry_factor(const struct exchange *e, double frequency)
{
    if (design_is_odd(e->spec)) return sin(2 * DESIGN_PI * frequency);
    return e->n_taps % 2 ? 1 : cos(DESIGN_PI * frequency);
}

static double polynomial_at(const struct exchange *e, double x)
{
    double sum = 0, weights = 0;
    for (size_t i = 0; i < e->n_reference; i++) {
        const double distance = x - e->nodes[i];
        if (distance == 0) return e->values[i];
        const double weight = e->factors[i] / distance;
        sum += weight * e->values[i];
        weights += weight;
    }
    return sum / weights;
}

static struct point point_at(const struct exchange *e, int band, double frequency)
{
    const struct design_spec *spec = e->spec;
    const double factor = symmetry_factor(e, frequency);
    struct point point = {
        .frequency = frequency, .x = cos(2 * DESIGN_PI * frequency), .band = band};
    if (spec->bands[band].pass) {
        const double gain = design_wanted_gain(spec, frequency);
        point.wanted = gain / factor;
        point.weight = factor / (spec->pass_deviation * design_largest_gain(spec));
    } else {
        point.weight = factor / (spec->stop_deviation * design_largest_gain(spec));
    }
    return point;
}

static void find_error(const struct exchange *e, struct point *point)
{
    point->error = point->weight * (point->wanted - polynomial_at(e, point->x));
}

// The same for a group of points, in loops that compilers turn into vectors. At a point of the
// reference it divides infinity by infinity.
static void find_errors(const struct exchange *e, struct point points[GROUP])
{
    double sums[GROUP] = {0}, weights[GROUP] = {0}, x[GROUP];
    for (size_t k = 0; k < GROUP; k++) x[k] = points[k].x;
    for (size_t i = 0; i < e->n_reference; i++) {
        const double node = e->nodes[i], factor = e->factors[i], value = e->values[i];
        for (size_t k = 0; k < GROUP; k++) {
            const double weight = factor / (x[k] - node);
            sums[k] += weight * value;
            weights[k] += weight;
        }
    }
    for (size_t k = 0; k < GROUP; k++) {
        points[k].error = points[k].weight * (points[k].wanted - sums[k] / weights[k]);
        if (isnan(points[k].error)) find_error(e, &points[k]);
    }
}

// Where the factor is 0, taps have no influence: the bands keep a distance.
static struct design_band reachable_band(const struct exchange *e, int band)
{
    struct design_band b = e->spec->bands[band];
    const double least = fmin(0.5 / (double)(GRID_DENSITY * e->n_reference), (b.end - b.begin) / 4);
    const bool odd = design_is_odd(e->spec);
    if (odd) b.begin = fmax(b.begin, least);
    if (odd || e->n_taps % 2 == 0) b.end = fmin(b.end, 0.5 - least);
    return b;
}

static double all_bands(const struct exchange *e)
{
    double all = 0;
    for (int band = 0; band < e->spec->n_bands; band++)
        all += e->spec->bands[band].end - e->spec->bands[band].begin;
    return all;
}

// Points of the grid in a band: their share of all, and enough to see an extremum.
static size_t band_points(const struct exchange *e, int band)
{
    const struct design_band *b = &e->spec->bands[band];
    const double share = (b->end - b->begin) / all_bands(e);
    return GRID_DENSITY + (size_t)(share * (double)(GRID_DENSITY * e->n_reference));
}

// Points lie close to each other at the ends of a band, as extrema do there.
static void lay_out_grid(struct exchange *e)
{
    size_t at = 0;
    e->n_grid = 0;
    for (int band = 0; band < e->spec->n_bands; band++) e->n_grid += band_points(e, band);
    for (int band = 0; band < e->spec->n_bands; band++) {
        const struct design_band b = reachable_band(e, band);
        const size_t n = band_points(e, band);
        for (size_t i = 0; i < n; i++) {
            const double share = 0.5 - 0.5 * cos(DESIGN_PI * (double)i / (double)(n - 1));
            e->grid[at++] = point_at(e, band, b.begin + (b.end - b.begin) * share);
        }
        e->band_ends[band] = at;
    }
    for (size_t i = 1; i < GROUP; i++) e->grid[at + i - 1] = e->grid[at - 1]; // of the last group
}

// Spreads `before` frequencies of the reference to n_reference: in every band their share, at
// positions between the old ones, or evenly if there is one.
static void stretch_reference(struct exchange *e, size_t before)
{
    struct point *const old = e->extrema;
    size_t at = 0, made = 0;
    memcpy(old, e->reference, before * sizeof *old);
    for (int band = 0; band < e->spec->n_bands; band++) {
        const struct design_band b = reachable_band(e, band);
        const size_t first = at;
        while (at < before && old[at].band == band) at++;
        const size_t had = at - first, end = at * e->n_reference / before, more = end - made;
        for (size_t i = 0; i < more; i++) {
            const double share = more > 1 ? (double)i / (double)(more - 1) : 0;
            const double position = share * (double)(had - 1);
            const size_t k = size_min((size_t)position, had - 1), next = size_min(k + 1, had - 1);
            const double low = old[first + k].frequency, high = old[first + next].frequency;
            double frequency = low + (position - (double)k) * (high - low);
            if (had == 1) frequency = b.begin + share * (b.end - b.begin);
            e->reference[made++] = point_at(e, band, fmin(fmax(frequency, b.begin), b.end));
        }
    }
}

// The factors 1 / product of (x - x_j), up to a common factor. Distances are doubled, as the
// product of those to the points of an interval of length 2 then neither grows nor shrinks much;
// the rest is kept in separate exponents.
static void find_factors(struct exchange *e)
{
    double *exponents = e->values;
    double max = -INFINITY;
    for (size_t i = 0; i < e->n_reference; i++) e->nodes[i] = e->reference[i].x;
    for (size_t i = 0; i < e->n_reference; i++) {
        double product = 1;
        int exponent = 0;
        for (size_t j = 0; j < e->n_reference; j++) {
            int more = 0;
            if (j != i) product *= 2 * (e->nodes[i] - e->nodes[j]);
            if (j % 16 == 15) product = frexp(product, &more);
            exponent -= more;
        }
        e->factors[i] = 1 / product;
        exponents[i] = exponent;
        max = fmax(max, exponents[i]);
    }
    for (size_t i = 0; i < e->n_reference; i++)
        e->factors[i] = ldexp(e->factors[i], (int)(exponents[i] - max));
}

// The polynomial whose weighted errors at the reference are equal and alternate.
static void fit(struct exchange *e)
{
    double sum = 0, weights = 0;
    find_factors(e);
    for (size_t i = 0; i < e->n_reference; i++) {
        const double sign = i % 2 ? -1 : 1;
        sum += e->factors[i] * e->reference[i].wanted;
        weights += sign * e->factors[i] / e->reference[i].weight;
    }
    e->deviation = sum / weights;
    for (size_t i = 0; i < e->n_reference; i++) {
        const double error = i % 2 ? -e->deviation : e->deviation;
        e->values[i] = e->reference[i].wanted - error / e->reference[i].weight;
    }
}

// The extremum near a point of the grid that lies inside a band: that of the parabola through it
// and its neighbours.
static struct point refine(const struct exchange *e, int band, const struct point *at)
{
    const double before = at->frequency - at[-1].frequency, after = at[1].frequency - at->frequency;
    const double fall_before = before * (at->error - at[1].error);
    const double fall_after = after * (at->error - at[-1].error);
    const double bend = fall_before + fall_after;
    if (bend == 0) return *at;
    const double shift = 0.5 * (before * fall_before - after * fall_after) / bend;
    struct point refined = point_at(e, band, at->frequency - shift);
    find_error(e, &refined);
    return fabs(refined.error) > fabs(at->error) ? refined : *at;
}

// Adds an extremum; of adjacent ones with the same sign the largest stays.
static size_t add_extremum(struct exchange *e, size_t n, const struct point *point)
{
    struct point *last = n ? &e->extrema[n - 1] : NULL;
    if (!last || last->error * point->error < 0) e->extrema[n++] = *point;
    else if (fabs(point->error) > fabs(last->error)) *last = *point;
    return n;
}

// Finds the extrema of the error whose signs alternate. At the reference the errors are as large as
// the deviation, so that smaller extrema are not needed.
static size_t find_extrema(struct exchange *e)
{
    const double least = fabs(e->deviation) * (1 - 1e-3);
    size_t n = 0, begin = 0;
    for (size_t i = 0; i < e->n_grid; i += GROUP) find_errors(e, &e->grid[i]);
    for (int band = 0; band < e->spec->n_bands; band++) {
        const size_t end = e->band_ends[band];
        for (size_t i = begin; i < end; i++) {
            const struct point *at = &e->grid[i];
            const double sign = at->error < 0 ? -1 : 1, size = sign * at->error;
            const bool first = i == begin, last = i + 1 == end;
            if (!first && size < sign * at[-1].error) continue;
            if (!last && size <= sign * at[1].error) continue;
            const struct point found = first || last ? *at : refine(e, band, at);
            if (fabs(found.error) >= least) n = add_extremum(e, n, &found);
        }
        begin = end;
    }
    return n;
}

static size_t remove_extrema(struct exchange *e, size_t n, size_t at, size_t count)
{
    memmove(&e->extrema[at], &e->extrema[at + count], (n - at - count) * sizeof *e->extrema);
    return n - count;
}

// Removes the smallest extrema, at the ends by themselves, else with a neighbour, so that signs
// still alternate.
static size_t remove_surplus(struct exchange *e, size_t n)
{
    while (n > e->n_reference) {
        const struct point *x = e->extrema;
        size_t least = fabs(x[n - 1].error) < fabs(x[0].error) ? n - 1 : 0;
        for (size_t i = 1; n > e->n_reference + 1 && i + 1 < n; i++)
            if (fabs(x[i].error) < fabs(x[least].error)) least = i;
        if (least == 0 || least == n - 1) {
            n = remove_extrema(e, n, least, 1);
            continue;
        }
        const bool before = fabs(x[least - 1].error) < fabs(x[least + 1].error);
        n = remove_extrema(e, n, before ? least - 1 : least, 2);
    }
    return n;
}

// Exchanges references until all extrema are equal. False if that fails.
static bool exchange_references(struct exchange *e, bool last, double *ret_deviation)
{
    for (int i = 0; i < MAX_EXCHANGES; i++) {
        const double before = fabs(e->deviation);
        fit(e);
        if (!isfinite(e->deviation)) return false;
        // It grows up to that of the best polynomial.
        *ret_deviation = fabs(e->deviation);
        if (last && e->searching && *ret_deviation > 1 && *ret_deviation < 1.01 * before)
            return true;
        const size_t n = find_extrema(e);
        if (n < e->n_reference) return false;
        remove_surplus(e, n);
        double max = 0;
        for (size_t k = 0; k < e->n_reference; k++) max = fmax(max, fabs(e->extrema[k].error));
        if (!isfinite(max)) return false;
        *ret_deviation = max;
        if (max - fabs(e->deviation) <= (last ? CONVERGED : NEARLY_CONVERGED) * max) return true;
        memcpy(e->reference, e->extrema, e->n_reference * sizeof *e->reference);
    }
    return false;
}

// The exchange with a growing number of extrema, each time 1 / `share` as many.
static bool run_exchange(struct exchange *e, double share, double *ret_deviation)
{
    const size_t wanted = e->n_reference;
    int steps = 0;
    while ((double)wanted * pow(share, steps) > MAX_FIRST_REFERENCE) steps++;
    size_t before = (size_t)e->spec->n_bands;
    for (size_t band = 0; band < before; band++)
        e->reference[band] = (struct point){.band = (int)band};
    for (;; steps--) {
        e->n_reference = (size_t)((double)wanted * pow(share, steps));
        lay_out_grid(e);
        stretch_reference(e, before);
        const bool converged = exchange_references(e, steps == 0, ret_deviation);
        if (steps == 0) return converged;
        before = e->n_reference;
    }
}

// The taps by the inverse transform of the response at n_taps frequencies.
static void compute_taps(const struct exchange *e, double *taps)
{
    const size_t n = e->n_taps, last = (n - 1) / 2;
    const bool odd = design_is_odd(e->spec);
    // A Hilbert transformer is -i times a positive response, a differentiator +i.
    const double sign = odd && e->spec->kind != PARTITA_DESIGN_HILBERT ? -1 : 1;
    for (size_t k = 0; k <= last; k++) {
        const double frequency = (double)k / (double)n;
        const double x = cos(2 * DESIGN_PI * frequency);
        const double gain = symmetry_factor(e, frequency) * polynomial_at(e, x);
        e->amplitudes[k] = (k ? 2 : 1) * gain / (double)n;
    }
    for (size_t i = 0; i < 2 * n; i++) {
        const double phase = DESIGN_PI * (double)i / (double)n;
        e->waves[i] = odd ? sin(phase) : cos(phase);
    }
    for (size_t i = n / 2; i < n; i++) {
        double sum = 0;
        const size_t step = 2 * i - n + 1;
        for (size_t k = 0, at = 0; k <= last; k++, at = (at + step) % (2 * n))
            sum += e->amplitudes[k] * e->waves[at];
        taps[i] = sign * sum;
        taps[n - 1 - i] = odd ? -taps[i] : taps[i];
    }
}

static void lay_out_exchange(struct exchange *e, struct arena *arena)
{
    e->grid = arena_take(arena, (e->n_grid + GROUP - 1) * sizeof *e->grid);
    e->extrema = arena_take(arena, e->n_grid * sizeof *e->extrema);
    e->reference = arena_take(arena, e->n_reference * sizeof *e->reference);
    e->nodes = arena_take(arena, e->n_reference * sizeof *e->nodes);
    e->factors = arena_take(arena, e->n_reference * sizeof *e->factors);
    e->values = arena_take(arena, e->n_reference * sizeof *e->values);
    e->amplitudes = arena_take(arena, e->n_taps * sizeof *e->amplitudes);
    e->waves = arena_take(arena, 2 * e->n_taps * sizeof *e->waves);
}

enum partita_status design_equiripple(const struct design_spec *spec, double *taps, size_t n,
                                      double *ret_deviation)
{
    struct exchange e = {.spec = spec, .n_taps = n, .searching = !taps};
    struct arena arena = {0};
    e.n_reference = design_is_odd(spec) ? (n - 3) / 2 + 2 : (n - 1) / 2 + 2;
    for (int band = 0; band < spec->n_bands; band++) e.n_grid += band_points(&e, band);
    lay_out_exchange(&e, &arena);
    if (!arena_allocate(&arena, &spec->allocator)) return PARTITA_ERR_NOMEM;
    lay_out_exchange(&e, &arena);
    // Steps of two thirds take longer, but begin closer to the wanted number.
    const bool converged =
        run_exchange(&e, 0.5, ret_deviation) || run_exchange(&e, 2.0 / 3, ret_deviation);
    if (converged && taps) compute_taps(&e, taps);
    if (!converged)
        log_line(&spec->log,
                 "design.method: the exchange for %zu equiripple taps does not converge in double "
                 "precision; use Kaiser's window, a larger width or less attenuation",
                 n);
    mem_release(&spec->allocator, arena.base);
    return converged ? PARTITA_OK : PARTITA_ERR_UNSUPPORTED;
}
