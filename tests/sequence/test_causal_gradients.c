// SPDX-License-Identifier: MIT
// Gradients of short causal convolution against sums in double.
#include "causal_world.h"

// The gradients of a world: of the extended samples [batch][channels][taps - 1 + frames], of taps
// and of bias, and bounds of their errors.
struct oracle {
    double *gx, *gx_error, *gw, *gw_error, *gbias, *gbias_error;
};

static void add_gradients(const struct world *w, const struct oracle *o, size_t b)
{
    const struct sequence s = sequence_of(w, b);
    const size_t taps = w->call.taps, width = taps - 1 + w->call.frames;
    for (size_t c = 0; c < w->call.channels; c++)
        for (size_t f = 0; f < s.frames; f++) {
            if (is_absent(w, &s, f)) continue;
            double g = *at(&w->gy, s.batch, c, s.first + f), error = 0;
            if (w->call.silu) {
                const struct sum z = sum_of(w, &s, b, c, f);
                const double p = 1 / (1 + exp(-z.value));
                error = fabs(g) * (0.5 * z.error + 8 * u); // the slope's slope is at most 0.5
                g *= p * (1 + z.value * (1 - p));
            }
            o->gbias[c] += g;
            o->gbias_error[c] += error + 2000 * u * fabs(g); // of at most 1600 frames, and tiles
            for (size_t k = 0; k < taps; k++) {
                const size_t back = taps - 1 - k, i = (b * w->call.channels + c) * width + f + k;
                if (!reaches(w, &s, f, back)) continue;
                const double x = *sample_of(w, &s, b, c, (ptrdiff_t)f - (ptrdiff_t)back);
                const double tap = *at(&w->w, 0, c, k);
                o->gx[i] += g * tap;
                o->gx_error[i] += fabs(tap) * (error + 2 * (double)(taps + 1) * u * fabs(g));
                o->gw[c * taps + k] += g * x;
                o->gw_error[c * taps + k] += fabs(x) * (error + 2000 * u * fabs(g));
            }
        }
}

static void check_gx(const struct world *w, const struct oracle *o, size_t b)
{
    const struct partita_causal *call = &w->call;
    const size_t past = call->taps - 1, width = past + call->frames;
    for (size_t c = 0; c < call->channels; c++)
        for (size_t i = 0; i < width; i++) {
            const size_t k = (b * call->channels + c) * width + i;
            double expected = o->gx[k], error = o->gx_error[k];
            if (call->gfinal.data && i >= call->frames) {
                expected += *at(&w->gfinal, b, c, i - call->frames);
                error += u * fabs(expected);
            }
            if (i >= past)
                check(*at(&w->gx, b, c, i - past), expected, error, call->type, "gx", c, i - past);
            else if (call->ginitial.data)
                check(*at(&w->ginitial, b, c, i), expected, error, call->type, "ginitial", c, i);
        }
}

static void check_gradients(const struct world *w)
{
    const struct partita_causal *call = &w->call;
    const size_t taps = call->taps, width = taps - 1 + call->frames;
    const size_t n = call->batch * call->channels * width, n_w = call->channels * taps;
    double *memory = calloc(2 * (n + n_w + call->channels), sizeof *memory);
    struct oracle o = {.gx = memory, .gx_error = memory + n, .gw = memory + 2 * n};
    o.gw_error = o.gw + n_w, o.gbias = o.gw_error + n_w, o.gbias_error = o.gbias + call->channels;
    for (size_t b = 0; b < call->batch; b++) add_gradients(w, &o, b);
    for (size_t b = 0; b < call->batch; b++) check_gx(w, &o, b);
    for (size_t c = 0; c < call->channels; c++) {
        check(w->gbias.exact[c], o.gbias[c], o.gbias_error[c], call->taps_type, "gbias", c, 0);
        for (size_t k = 0; k < taps; k++)
            check(*at(&w->gw, 0, c, k), o.gw[c * taps + k], o.gw_error[c * taps + k],
                  call->taps_type, "gw", c, k);
    }
    free(memory);
}

static void gradients_are_right(void **state)
{
    (void)state;
    for (size_t i = 0; i < 90; i++) {
        char name[32];
        snprintf(name, sizeof name, "backward %zu", i);
        struct random random = random_start(name);
        struct world w = make_world(&random, i % (NUMBERED + 1), true);
        w.call.log = log_into(&w.lines);
        if (partita_causal_backward(&w.call)) fail_msg("%s: %s", name, w.lines.text);
        read_back(&w.gx), read_back(&w.gw), read_back(&w.gbias);
        if (w.call.ginitial.data) read_back(&w.ginitial);
        check_gradients(&w);
        drop_world(&w);
    }
}

static void weight_gradients_do_not_depend_on_threads(void **state)
{
    (void)state;
    struct random random = random_start("threads");
    struct world w = make_world(&random, PLAIN, true);
    assert_ok(partita_causal_backward(&w.call));
    read_back(&w.gw);
    for (w.call.threads = 1; w.call.threads < 4; w.call.threads++) {
        const struct samples again = w.gw;
        assert_ok(partita_causal_backward(&w.call));
        for (size_t i = 0; i < w.call.channels * w.call.taps; i++)
            assert_true(stored(w.call.taps_type, again.array.data, i) == w.gw.exact[i]);
    }
    drop_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_right),
        cmocka_unit_test(weight_gradients_do_not_depend_on_threads),
    };
    return run_all(tests);
}
