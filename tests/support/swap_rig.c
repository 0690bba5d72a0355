// SPDX-License-Identifier: MIT
// A run with several filters, see swap_rig.h.

#include "support/swap_rig.h"

#include <math.h>

static double larger_part(double complex value)
{
    return fmax(fabs(creal(value)), fabs(cimag(value)));
}

void swapped_alone(struct swapped *s, size_t f, struct random *random)
{
    struct partita_stream *stream;
    assert_ok(partita_stream_open(s->run.plan, s->filters[f], &stream));
    run_feed(&s->run, stream, s->alone[f], &cut_whole, random);
    partita_stream_close(stream);
    for (size_t i = 0; i < s->run.out * s->run.n_outputs; i++)
        s->peak =
            fmax(s->peak, larger_part(reference_sample(s->run.problem.signal, s->alone[f], i)));
}

void swapped_open(struct swapped *s, const struct stream_case *c,
                  const struct partita_problem *problem, const struct partita_options *options,
                  size_t least_frames, struct random *random)
{
    struct partita_problem relaxed = *problem;
    if (strcmp(c->engine, "cpu/overlap-save") == 0) relaxed.latency = 2000;
    struct run probe;
    const size_t unit = problem->whole_blocks ? problem->block : 1;
    run_open_exactly(&probe, c, &relaxed, options, 1, random);
    assert_ok(partita_plan_load(probe.plan, &s->load));
    run_close(&probe);
    *s = (struct swapped){.load = s->load};
    const size_t frames = least_frames + 4 * s->load.swap_delay;
    run_open_exactly(&s->run, c, &relaxed, options, (frames + unit - 1) / unit * unit, random);
    s->filters[0] = s->run.filter;
    for (size_t f = 0; f < N_FILTERS; f++) {
        if (f > 0) {
            random_samples(random, s->run.problem.taps, s->run.w, s->run.n_taps);
            assert_ok(partita_filter_create(s->run.plan, s->run.w, &s->filters[f]));
        }
        s->alone[f] = run_output(&s->run);
        swapped_alone(s, f, random);
    }
}

void swapped_close(struct swapped *s)
{
    for (size_t f = 0; f < N_FILTERS; f++) {
        guarded_free(s->alone[f]);
        if (f > 0) partita_filter_destroy(s->filters[f]);
    }
    run_close(&s->run);
}

struct partita_stream *swapped_run(struct swapped *s, void *y, const struct handover *handovers,
                                   size_t n, const struct cut *cut, struct random *random)
{
    struct partita_stream *stream;
    assert_ok(partita_stream_open(s->run.plan, s->filters[0], &stream));
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        run_feed_part(&s->run, stream, y, at, handovers[i].at, cut, random);
        at = handovers[i].at;
        assert_ok(partita_stream_swap(stream, s->filters[handovers[i].filter], handovers[i].fade));
        assert_true(partita_stream_swapping(stream));
    }
    run_feed_part(&s->run, stream, y, at, s->run.n_frames, cut, random);
    return stream;
}

// The difference and the sum of the blend, its factor and product round once each, on values up to
// twice the peak.
static double blend_limit(const struct swapped *s)
{
    return 8 * (type_is_f64(s->run.problem.signal) ? 0x1p-53 : 0x1p-24) * s->peak;
}

static double complex sample_of(const struct swapped *s, const void *y, size_t channel, size_t i)
{
    return reference_sample(s->run.problem.signal, y, channel * s->run.n_outputs + i);
}

// What the header promises for output i, if the fade from filter a to b begins at output `begin`.
static double complex blend(const struct swapped *s, size_t a, size_t b, size_t channel, size_t i,
                            size_t begin, size_t fade)
{
    double weight = i < begin          ? 0
                    : i < begin + fade ? (double)(i - begin + 1) / (double)(fade + 1)
                                       : 1;
    double complex old = sample_of(s, s->alone[a], channel, i),
                   new = sample_of(s, s->alone[b], channel, i);
    return old + (new - old) * weight;
}

size_t first_off(const struct swapped *s, const void *y, size_t a, size_t b, size_t begin,
                 size_t fade, size_t first, size_t end)
{
    double limit = blend_limit(s);
    for (size_t i = first; i < end; i++) {
        for (size_t k = 0; k < s->run.out; k++) {
            if (!(larger_part(sample_of(s, y, k, i) - blend(s, a, b, k, i, begin, fade)) <= limit))
                return i;
        }
    }
    return end;
}

size_t check_fade(const struct swapped *s, const void *y, size_t a, size_t b, size_t fade,
                  size_t first, size_t from, size_t end)
{
    // Where the old one's output ends the fade begins, or began a little before with too little of
    // the new to tell.
    size_t heard = first_off(s, y, a, a, end, 0, first, end), worst = 0, begin;
    size_t least = heard > 64 ? heard - 64 : 0;
    for (begin = heard; begin + 1 > least; begin--) {
        size_t off = first_off(s, y, a, b, begin, fade, first, end);
        if (off == end) break;
        worst = off > worst ? off : worst;
        if (begin == 0) break;
    }
    if (first_off(s, y, a, b, begin, fade, first, end) != end)
        fail_msg("fade of %zu: no blend from output %zu on; off at %zu", fade, heard, worst);
    if (begin < from || begin - from > s->load.swap_delay)
        fail_msg("fade begins at %zu, handed over at %zu, swap_delay %zu", begin, from,
                 s->load.swap_delay);
    return begin;
}
