// SPDX-License-Identifier: MIT
// Resamples impulse responses with libsoxr at its best quality. The interpolation pulse starts
// before its peak, so a response that begins with its peak gets frames before time 0. Silence is
// inserted in front, as long as a whole number of frames at both rates; the part of it that the
// pulses reach is kept as the lead.
#include "resample.h"

#include <math.h>
#include <soxr.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "base/sample_type.h"
#include "io/samples/samples.h"

// Length of the lead in frames of the lower rate: soxr's pulses are below -140 dB before it.
enum { RISE = 512 };

// Bounds the memory for long responses and absurd rates.
static const size_t MAX_FRAMES = (size_t)1 << 28;

// The lead grows with the ratio of the rates: at this one it has half a million frames.
enum { MAX_RATIO = 1000 };

// Terms of the fraction that is the ratio of the rates: one without such a fraction is wrong by
// less than a frame in as many steps.
static const double MAX_STEP = 1 << 22;

struct resample_buffers {
    unsigned char *x, *y;
    size_t n_x, n_y; // frames
};

static bool call_soxr(const struct resample_buffers *b, const struct resample_request *q,
                      struct fault *fault)
{
    const soxr_datatype_t type = type_is_double(q->type) ? SOXR_FLOAT64_I : SOXR_FLOAT32_I;
    const unsigned channels = (unsigned)q->channels * (type_is_complex(q->type) ? 2 : 1);
    soxr_io_spec_t io = soxr_io_spec(type, type);
    soxr_quality_spec_t quality = soxr_quality_spec(SOXR_VHQ, 0);
    soxr_runtime_spec_t runtime = soxr_runtime_spec(1);
    size_t used, made;
    soxr_error_t error = soxr_oneshot(q->rate_in, q->rate_out, channels, b->x, b->n_x, &used, b->y,
                                      b->n_y, &made, &io, &quality, &runtime);
    if (!error) return true;
    return fault_set(fault, "resampling from %.12g to %.12g Hz failed: %s", q->rate_in, q->rate_out,
                     error);
}

bool resample_taps(struct resampled *ret, const struct resample_request *request,
                   const void *frames, size_t n, struct fault *fault)
{
    const struct resample_request *q = request;
    const double in = q->rate_in, out = q->rate_out, slower = in < out ? in : out;
    const size_t frame_bytes = partita_type_size(q->type) * q->channels;
    if (in / slower >= MAX_RATIO || out / slower >= MAX_RATIO)
        return fault_set(
            fault, "resampling from %.12g to %.12g Hz: the rates differ by a factor of %d or more",
            in, out, (int)MAX_RATIO);
    // Frames at both rates that take the same time.
    const struct fraction step = fraction_of(in, out, MAX_STEP, MAX_STEP);
    const size_t step_in = (size_t)step.n, step_out = (size_t)step.d;
    const size_t rise_in = (size_t)(RISE * in / slower), rise_out = (size_t)(RISE * out / slower);
    const size_t steps = (rise_in + step_in - 1) / step_in;
    const size_t n_silence = steps * step_in, skip = steps * step_out - rise_out;
    struct resample_buffers b = {.n_x = n + 2 * n_silence};
    b.n_y = (size_t)((double)b.n_x * out / in) + 2;

    if (b.n_x > MAX_FRAMES || b.n_y > MAX_FRAMES)
        return fault_set(fault, "resampling from %.12g to %.12g Hz would take %zu frames", in, out,
                         b.n_x > b.n_y ? b.n_x : b.n_y);

    b.x = memory_allocate_zeros(b.n_x * frame_bytes);
    b.y = b.x ? memory_allocate_zeros(b.n_y * frame_bytes) : NULL;
    bool good = b.y || memory_fault(fault, "resampling %zu frames", n);
    if (good) {
        memcpy(b.x + n_silence * frame_bytes, frames, n * frame_bytes);
        good = call_soxr(&b, q, fault);
    }
    if (good) {
        const size_t kept = 2 * rise_out + (n * step_out + step_in - 1) / step_in;
        *ret = (struct resampled){.frames = b.y, .n = kept, .lead = rise_out};
        memmove(b.y, b.y + skip * frame_bytes, kept * frame_bytes);
        samples_scale(b.y, kept * frame_bytes / (type_is_double(q->type) ? 8 : 4),
                      type_is_double(q->type), in / out);
        b.y = NULL;
    }
    memory_free(b.x);
    memory_free(b.y);
    return good;
}
