// SPDX-License-Identifier: MIT
// Resampling of impulse responses by libsoxr at its best quality. A band-limited pulse starts
// before its peak, so a response that begins with its peak needs frames before time 0: silence is
// put in front, as long as makes a whole number of frames at both rates, and what the pulses leave
// there is kept as the lead.
#include "resample.h"

#include <soxr.h>
#include <stdlib.h>
#include <string.h>

// What is kept of the rise, in frames of the slower rate: soxr's pulses are below -140 dB there.
enum { RISE = 512 };

// Rates without a common divisor need silence of a whole second; this bounds what absurd rates may
// ask for.
static const size_t MAX_FRAMES = (size_t)1 << 28;

static uint32_t common_divisor(uint32_t a, uint32_t b)
{
    while (b) {
        uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void scale(void *x, size_t n, bool is_double, double factor)
{
    float *f = x;
    double *d = x;
    for (size_t i = 0; i < n; i++) {
        if (is_double) d[i] *= factor;
        else f[i] = (float)((double)f[i] * factor);
    }
}

static bool run_soxr(void *y, size_t n_y, const void *x, size_t n_x, unsigned channels,
                     bool is_double, double rate_in, double rate_out, struct fault *fault)
{
    soxr_datatype_t type = is_double ? SOXR_FLOAT64_I : SOXR_FLOAT32_I;
    soxr_io_spec_t io = soxr_io_spec(type, type);
    soxr_quality_spec_t quality = soxr_quality_spec(SOXR_VHQ, 0);
    soxr_runtime_spec_t runtime = soxr_runtime_spec(1);
    size_t used, made;
    soxr_error_t error = soxr_oneshot(rate_in, rate_out, channels, x, n_x, &used, y, n_y, &made,
                                      &io, &quality, &runtime);
    if (!error) return true;
    return fault_set(fault, "resampling from %.0f to %.0f Hz failed: %s", rate_in, rate_out, error);
}

bool resample_taps(struct resampled *ret, enum partita_type type, const void *frames, size_t n,
                   size_t channels, uint32_t rate_in, uint32_t rate_out, struct fault *fault)
{
    bool is_double = type == PARTITA_F64 || type == PARTITA_CF64;
    size_t frame_bytes = partita_type_size(type) * channels, scalar_bytes = is_double ? 8 : 4;
    uint32_t divisor = common_divisor(rate_in, rate_out);
    size_t step_in = rate_in / divisor, step_out = rate_out / divisor;
    uint32_t slower = rate_in < rate_out ? rate_in : rate_out;
    size_t rise_in = (size_t)((uint64_t)RISE * rate_in / slower),
           rise_out = (size_t)((uint64_t)RISE * rate_out / slower);
    size_t steps = (rise_in + step_in - 1) / step_in;
    size_t n_silence = steps * step_in, skip = steps * step_out - rise_out;
    size_t n_x = n + 2 * n_silence, n_y = (size_t)((double)n_x * rate_out / rate_in) + 2;

    if (n_x > MAX_FRAMES || n_y > MAX_FRAMES)
        return fault_set(fault, "resampling from %u to %u Hz would take %zu frames", rate_in,
                         rate_out, n_x > n_y ? n_x : n_y);

    unsigned char *x = calloc(n_x, frame_bytes), *y = calloc(n_y, frame_bytes);
    bool good = (x && y) || fault_set(fault, "out of memory for resampling %zu frames", n);
    if (good) {
        memcpy(x + n_silence * frame_bytes, frames, n * frame_bytes);
        good = run_soxr(y, n_y, x, n_x, (unsigned)(frame_bytes / scalar_bytes), is_double, rate_in,
                        rate_out, fault);
    }
    if (good) {
        size_t kept = 2 * rise_out + (size_t)(((uint64_t)n * rate_out + rate_in - 1) / rate_in);
        *ret = (struct resampled){.frames = y, .n = kept, .lead = rise_out};
        memmove(y, y + skip * frame_bytes, ret->n * frame_bytes);
        scale(y, ret->n * frame_bytes / scalar_bytes, is_double, (double)rate_in / rate_out);
        y = NULL;
    }
    free(x);
    free(y);
    return good;
}
