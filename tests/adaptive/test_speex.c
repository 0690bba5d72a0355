// SPDX-License-Identifier: MIT
// SpeexDSP's echo canceller beside ours, at the same block and length: noise and speech at the far
// end, a voice at the near end, a path that changes. Ours removes at least as much of the echo.
// Lines of half seconds are drawn by bench/convergence.py.
#include "echo.h"

#include <speex/speex_echo.h>
#include <stdio.h>

enum { RATE = 16000, TAPS = 2048, BLOCK = 256, SECONDS = 16, FRAMES = SECONDS * RATE, ROUNDS = 3 };

static spx_int16_t to_int16(double x)
{
    return (spx_int16_t)lrint(fmax(fmin(x, 0.99), -0.99) * 32768);
}

// State space, NLMS, SpeexDSP.
enum { OURS, NLMS, SPEEX, CANCELLERS };

static void run_speex(double *residual, const double *far_end, const double *near_end)
{
    SpeexEchoState *echo = speex_echo_state_init(BLOCK, TAPS);
    int rate = RATE;
    speex_echo_ctl(echo, SPEEX_ECHO_SET_SAMPLING_RATE, &rate);
    for (size_t at = 0; at < FRAMES; at += BLOCK) {
        spx_int16_t near_samples[BLOCK], far_samples[BLOCK], out[BLOCK];
        for (size_t i = 0; i < BLOCK; i++) {
            near_samples[i] = to_int16(near_end[at + i]);
            far_samples[i] = to_int16(far_end[at + i]);
        }
        speex_echo_cancellation(echo, near_samples, far_samples, out);
        for (size_t i = 0; i < BLOCK; i++) residual[at + i] = out[i] / 32768.;
    }
    speex_echo_state_destroy(echo);
}

static void run_ours(double *residual, const double *far_end, const double *near_end,
                     enum partita_adaptive_control control)
{
    const struct partita_adaptive_options options = {.type = PARTITA_F64,
                                                     .control = control,
                                                     .taps = TAPS,
                                                     .block = BLOCK,
                                                     .whole_blocks = true};
    struct partita_adaptive *adaptive;
    assert_ok(partita_adaptive_create(&options, &adaptive));
    partita_adaptive_process(adaptive, residual, near_end, &far_end, FRAMES);
    partita_adaptive_destroy(adaptive);
}

// How much of the echo is removed within half seconds first .. end-1, dB: what is left is the
// difference of residual and near end without echo.
static double removed(const double *residual, const double *echo, const double *voice,
                      const size_t halves[2])
{
    const size_t first = halves[0] * RATE / 2, end = halves[1] * RATE / 2;
    double left = 0;
    for (size_t i = first; i < end; i++) left += pow(residual[i] - voice[i], 2);
    return in_db(power_of(echo + first, end - first) / left);
}

static void removes_as_much(void **state)
{
    static const char *const phases[] = {"2nd second",    "4th second",
                                         "with a voice",  "2nd second after it",
                                         "of a new path", "6th second of it"};
    static const size_t halves[][2] = {{2, 4}, {6, 8}, {8, 16}, {18, 20}, {22, 24}, {30, 32}};
    enum { PHASES = sizeof halves / sizeof *halves };
    const bool speech = *(const bool *)*state;
    double *x = malloc(FRAMES * sizeof *x), *voice = malloc(FRAMES * sizeof *x);
    double *near_end = malloc(FRAMES * sizeof *x), *residual = malloc(FRAMES * sizeof *x);
    double means[PHASES][CANCELLERS] = {{0}}, curves[2 * SECONDS][CANCELLERS] = {{0}};
    double sums[CANCELLERS] = {0};
    for (int round = 0; round < ROUNDS; round++) {
        char name[32];
        snprintf(name, sizeof name, "speex %d", round);
        struct random random = random_start(name);
        double h[2][TAPS], *echo = calloc(FRAMES, sizeof *x);
        if (speech) make_speech(&random, x, FRAMES, 0.1);
        else make_noise(&random, x, FRAMES, 0.1);
        for (int k = 0; k < 2; k++) make_room(&random, h[k], TAPS, 4000, 0.25);
        add_echo(echo, x, h[0], TAPS, 0, 10 * RATE);
        add_echo(echo, x, h[1], TAPS, 10 * RATE, FRAMES);
        make_speech(&random, voice, FRAMES, 0.04);
        for (size_t i = 0; i < FRAMES; i++) {
            if (i < 4 * RATE || i >= 8 * RATE) voice[i] = 0;
            voice[i] += 0.001 * normal(&random);
            near_end[i] = echo[i] + voice[i];
        }
        for (int k = 0; k < CANCELLERS; k++) {
            if (k == SPEEX) run_speex(residual, x, near_end);
            else
                run_ours(residual, x, near_end,
                         k == NLMS ? PARTITA_ADAPTIVE_NLMS : PARTITA_ADAPTIVE_STATE_SPACE);
            for (size_t p = 0; p < PHASES; p++)
                means[p][k] += removed(residual, echo, voice, halves[p]) / ROUNDS;
            for (size_t i = 0; i < 2 * SECONDS; i++)
                curves[i][k] += removed(residual, echo, voice, (const size_t[]){i, i + 1}) / ROUNDS;
        }
        free(echo);
    }
    for (size_t p = 0; p < PHASES; p++) {
        printf("# %s: %.1f dB, NLMS %.1f dB, SpeexDSP %.1f dB\n", phases[p], means[p][OURS],
               means[p][NLMS], means[p][SPEEX]);
        for (int k = 0; k < CANCELLERS; k++) sums[k] += means[p][k] / PHASES;
    }
    printf("# mean: %.1f dB, NLMS %.1f dB, SpeexDSP %.1f dB\n", sums[OURS], sums[NLMS],
           sums[SPEEX]);
    for (size_t i = 0; i < 2 * SECONDS; i++)
        printf("# curve %s %zu %.2f %.2f %.2f\n", speech ? "speech" : "noise", i, curves[i][OURS],
               curves[i][NLMS], curves[i][SPEEX]);
    assert_true(sums[OURS] >= sums[SPEEX] && means[2][OURS] >= means[2][SPEEX]);
    free(x);
    free(voice);
    free(near_end);
    free(residual);
}

int main(void)
{
    static const bool kinds[] = {false, true};
    const struct CMUnitTest tests[] = {named_test(removes_as_much, &kinds[0], "noise"),
                                       named_test(removes_as_much, &kinds[1], "speech")};
    return run_all(tests);
}
