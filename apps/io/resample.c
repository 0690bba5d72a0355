// SPDX-License-Identifier: MIT
// Resamples impulse responses with libsoxr at its best quality. The interpolation pulse starts
// before its peak, so a response that begins with its peak gets frames before time 0. Silence is
// inserted in front, as long as a whole number of frames at both rates; the part of it that the
// pulses reach is kept as the lead.
#include <soxr.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "base/sample_type.h"
#include "frames.h"

// Length of the lead in frames of the lower rate: soxr's pulses are below -140 dB before it.
enum { RISE = 512 };

// Bounds the memory for long responses and absurd rates.
static const size_t MAX_FRAMES = (size_t)1 << 28;

// The lead grows with the ratio of the rates: at this one it has half a million frames.
enum { MAX_RATIO = 1000 };

// Terms of the fraction that is the ratio of the rates: one without such a fraction is wrong by
// less than a frame in as many steps.
static const double MAX_STEP = 1 << 22;

static bool call_soxr(const struct frames *x, double rate_in, struct frames *y, double rate_out,
                      const char *name, struct fault *fault)
{
    const soxr_datatype_t type = type_is_double(x->type) ? SOXR_FLOAT64_I : SOXR_FLOAT32_I;
    const unsigned channels = (unsigned)x->channels * (type_is_complex(x->type) ? 2 : 1);
    soxr_io_spec_t io = soxr_io_spec(type, type);
    soxr_quality_spec_t quality = soxr_quality_spec(SOXR_VHQ, 0);
    soxr_runtime_spec_t runtime = soxr_runtime_spec(1);
    size_t used, made;
    soxr_error_t error = soxr_oneshot(rate_in, rate_out, channels, x->data, x->n, &used, y->data,
                                      y->n, &made, &io, &quality, &runtime);
    return !error || fault_set(fault, "%s: resampling from %.12g to %.12g Hz failed: %s", name,
                               rate_in, rate_out, error);
}

bool frames_resample(struct frames *frames, double rate_in, double rate_out, size_t *ret_lead,
                     const char *name, struct fault *fault)
{
    const double in = rate_in, out = rate_out, slower = in < out ? in : out;
    const size_t n = frames->n, frame_bytes = partita_type_size(frames->type) * frames->channels;
    if (in / slower >= MAX_RATIO || out / slower >= MAX_RATIO)
        return fault_set(
            fault,
            "%s: resampling from %.12g to %.12g Hz: the rates differ by a factor of %d or more",
            name, in, out, (int)MAX_RATIO);
    // Frames at both rates that take the same time.
    const struct fraction step = fraction_of(in, out, MAX_STEP, MAX_STEP);
    const size_t step_in = (size_t)step.n, step_out = (size_t)step.d;
    const size_t rise_in = (size_t)(RISE * in / slower), rise_out = (size_t)(RISE * out / slower);
    const size_t steps = (rise_in + step_in - 1) / step_in;
    const size_t n_silence = steps * step_in, skip = steps * step_out - rise_out;
    struct frames x = *frames, y = *frames;
    x.n = n + 2 * n_silence;
    y.n = (size_t)((double)x.n * out / in) + 2;
    if (x.n > MAX_FRAMES || y.n > MAX_FRAMES)
        return fault_set(fault, "%s: resampling from %.12g to %.12g Hz would take %zu frames", name,
                         in, out, x.n > y.n ? x.n : y.n);
    x.data = memory_allocate_zeros(x.n * frame_bytes);
    y.data = x.data ? memory_allocate_zeros(y.n * frame_bytes) : NULL;
    bool good = y.data || memory_fault(fault, "%s: resampling %zu frames", name, n);
    if (good) {
        memcpy((char *)x.data + n_silence * frame_bytes, frames->data, n * frame_bytes);
        good = call_soxr(&x, in, &y, out, name, fault);
    }
    if (good) {
        frames_release(frames);
        y.n = 2 * rise_out + (n * step_out + step_in - 1) / step_in;
        memmove(y.data, (char *)y.data + skip * frame_bytes, y.n * frame_bytes);
        samples_scale(y.data, frames_count_scalars(&y), type_is_double(y.type), in / out);
        *frames = y;
        *ret_lead = rise_out;
    } else {
        frames_release(&y);
    }
    frames_release(&x);
    return good;
}
