// SPDX-License-Identifier: MIT
#include "support/swap_rig.h"

#include <math.h>

static double larger_part(double complex value)
{
    return fmax(fabs(creal(value)), fabs(cimag(value)));
}

void swap_rig_run_alone(struct swap_rig *s, size_t f, struct random *random)
{
    struct partita_stream *stream;
    assert_ok(partita_stream_open(s->rig.plan, s->filters[f], &stream));
    stream_rig_feed(&s->rig, stream, s->alone[f], &split_whole, random);
    partita_stream_close(stream);
    for (size_t i = 0; i < s->rig.out * s->rig.n_outputs; i++)
        s->peak =
            fmax(s->peak, larger_part(reference_sample(s->rig.problem.signal, s->alone[f], i)));
}

void swap_rig_open(struct swap_rig *s, const struct stream_case *c,
                   const struct partita_problem *problem, const struct partita_options *options,
                   size_t min_frames, struct random *random)
{
    struct partita_problem relaxed = *problem;
    if (strcmp(c->engine, "cpu/overlap-save") == 0) relaxed.latency = 2000;
    struct stream_rig probe;
    const size_t unit = problem->whole_blocks ? problem->block : 1;
    stream_rig_open_exactly(&probe, c, &relaxed, options, 1, random);
    assert_ok(partita_plan_load(probe.plan, &s->load));
    stream_rig_close(&probe);
    *s = (struct swap_rig){.load = s->load};
    const size_t frames = min_frames + 4 * s->load.swap_delay;
    stream_rig_open_exactly(&s->rig, c, &relaxed, options, (frames + unit - 1) / unit * unit,
                            random);
    s->filters[0] = s->rig.filter;
    for (size_t f = 0; f < N_FILTERS; f++) {
        if (f > 0) {
            random_samples(random, s->rig.problem.taps, s->rig.w, s->rig.n_taps);
            assert_ok(partita_filter_create(s->rig.plan, s->rig.w, &s->filters[f]));
        }
        s->alone[f] = stream_rig_alloc_output(&s->rig);
        swap_rig_run_alone(s, f, random);
    }
}

void swap_rig_close(struct swap_rig *s)
{
    for (size_t f = 0; f < N_FILTERS; f++) {
        guarded_free(s->alone[f]);
        if (f > 0) partita_filter_destroy(s->filters[f]);
    }
    stream_rig_close(&s->rig);
}

struct partita_stream *swap_rig_run(struct swap_rig *s, void *y, const struct swap *swaps, size_t n,
                                    const struct call_split *split, struct random *random)
{
    struct partita_stream *stream;
    assert_ok(partita_stream_open(s->rig.plan, s->filters[0], &stream));
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        stream_rig_feed_span(&s->rig, stream, y, at, swaps[i].at, split, random);
        at = swaps[i].at;
        assert_ok(partita_stream_swap(stream, s->filters[swaps[i].filter], swaps[i].fade));
        assert_true(partita_stream_swapping(stream));
    }
    stream_rig_feed_span(&s->rig, stream, y, at, s->rig.n_frames, split, random);
    return stream;
}

// The difference, the factor, the product and the sum of the blend round once each, on values up to
// twice the peak.
static double blend_limit(const struct swap_rig *s)
{
    return 8 * (type_is_f64(s->rig.problem.signal) ? 0x1p-53 : 0x1p-24) * s->peak;
}

static double complex sample_of(const struct swap_rig *s, const void *y, size_t channel, size_t i)
{
    return reference_sample(s->rig.problem.signal, y, channel * s->rig.n_outputs + i);
}

// The header's formula for output i, if the fade from filter a to b begins at output `begin`.
static double complex blend(const struct swap_rig *s, size_t a, size_t b, size_t channel, size_t i,
                            size_t begin, size_t fade)
{
    double weight = i < begin ? 0 : 1;
    if (i >= begin && i < begin + fade) weight = (double)(i - begin + 1) / (double)(fade + 1);
    double complex old = sample_of(s, s->alone[a], channel, i),
                   new = sample_of(s, s->alone[b], channel, i);
    return old + (new - old) * weight;
}

size_t first_mismatch(const struct swap_rig *s, const void *y, size_t a, size_t b, size_t begin,
                      size_t fade, size_t first, size_t end)
{
    double limit = blend_limit(s);
    for (size_t i = first; i < end; i++) {
        for (size_t k = 0; k < s->rig.out; k++) {
            if (!(larger_part(sample_of(s, y, k, i) - blend(s, a, b, k, i, begin, fade)) <= limit))
                return i;
        }
    }
    return end;
}

size_t check_fade(const struct swap_rig *s, const void *y, size_t a, size_t b, size_t fade,
                  size_t first, size_t from, size_t end)
{
    // The fade begins where the output of the old filter ends, or a little earlier if the part of
    // the new one was still too small.
    size_t changed = first_mismatch(s, y, a, a, end, 0, first, end), last = 0, begin;
    size_t earliest = changed > 64 ? changed - 64 : 0;
    for (begin = changed; begin + 1 > earliest; begin--) {
        size_t mismatch = first_mismatch(s, y, a, b, begin, fade, first, end);
        if (mismatch == end) break;
        last = mismatch > last ? mismatch : last;
        if (begin == 0) break;
    }
    if (first_mismatch(s, y, a, b, begin, fade, first, end) != end)
        fail_msg("fade of %zu: no blend from output %zu on; mismatch at %zu", fade, changed, last);
    if (begin < from || begin - from > s->load.swap_delay)
        fail_msg("fade begins at %zu, swapped at %zu, swap_delay %zu", begin, from,
                 s->load.swap_delay);
    return begin;
}
