// SPDX-License-Identifier: MIT
#include "frames.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/sample_type.h"
#include "io/formats/sigmf.h"

enum { READ_SAMPLES = 65536 };

static bool too_long(const struct frames *f, const char *name, struct fault *fault)
{
    return fault_set(fault, "%s: more than %zu frames of %zu channels, too long to be a filter",
                     name, FRAMES_MAX_SAMPLES / f->channels, f->channels);
}

static bool reserve_frames(struct frames *f, size_t *capacity, size_t n, const char *name,
                           struct fault *fault)
{
    size_t max = FRAMES_MAX_SAMPLES / f->channels, wanted = 2 * *capacity > n ? 2 * *capacity : n;
    if (n <= *capacity) return true;
    if (n > max) return too_long(f, name, fault);
    if (wanted > max) wanted = max;
    void *data = memory_resize(f->data, wanted * f->channels * partita_type_size(f->type));
    if (!data) return memory_fault(fault, "%s: %zu frames", name, wanted);
    f->data = data;
    *capacity = wanted;
    return true;
}

static bool read_all(struct frames *f, struct audio_reader *reader, const char *name,
                     struct fault *fault)
{
    size_t capacity = 0, got, chunk = READ_SAMPLES / f->channels + 1;
    size_t frame_bytes = f->channels * partita_type_size(f->type);
    uint64_t known = audio_reader_info(reader)->frames;
    if (known != SIZE_UNKNOWN && known > FRAMES_MAX_SAMPLES / f->channels)
        return too_long(f, name, fault);
    do {
        if (!reserve_frames(f, &capacity, f->n + chunk, name, fault)) return false;
        if (!audio_read(reader, f->type, (char *)f->data + f->n * frame_bytes, chunk, &got, fault))
            return false;
        f->n += got;
    } while (got);
    if (f->n) return true;
    return fault_set(fault, "%s: holds no samples", name);
}

size_t frames_count_scalars(const struct frames *frames)
{
    return frames->n * frames->channels * (type_is_complex(frames->type) ? 2 : 1);
}

static bool check_finite(const struct frames *f, const char *name, struct fault *fault)
{
    size_t n = frames_count_scalars(f), per_frame = n / f->n;
    for (size_t i = 0; i < n; i++) {
        double v = type_is_double(f->type) ? ((double *)f->data)[i] : (double)((float *)f->data)[i];
        if (!isfinite(v))
            return fault_set(fault, "%s: frame %zu is %f; taps must be finite", name, i / per_frame,
                             v);
    }
    return true;
}

bool frames_read(struct frames *ret, struct audio_reader *reader, enum partita_type type,
                 const char *name, struct fault *fault)
{
    struct frames f = {.channels = audio_reader_info(reader)->channels, .type = type};
    const struct sigmf_use whole = {.end = INT64_MAX, .up = 1};
    if (sigmf_check_captures(audio_reader_recording(reader), &whole,
                             audio_reader_info(reader)->frames, fault) &&
        read_all(&f, reader, name, fault) && check_finite(&f, name, fault)) {
        *ret = f;
        return true;
    }
    frames_release(&f);
    return false;
}

void frames_copy_channel(const struct frames *frames, size_t channel, void *row)
{
    const size_t bytes = partita_type_size(frames->type);
    const char *from = (const char *)frames->data + channel * bytes;
    for (size_t i = 0; i < frames->n; i++)
        memcpy((char *)row + i * bytes, from + i * frames->channels * bytes, bytes);
}

size_t frames_peak(const double *x, size_t n)
{
    size_t peak = 0;
    for (size_t i = 1; i < n; i++)
        if (fabs(x[i]) > fabs(x[peak])) peak = i;
    return peak;
}

double frames_energy(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i] * x[i];
    return sum;
}

void frames_release(struct frames *frames)
{
    memory_free(frames->data);
    frames->data = NULL;
}

size_t rows_first_above(const struct rows *rows, float share, size_t end)
{
    const size_t length = rows->length, n = rows->n * length;
    float peak = 0;
    for (size_t i = 0; i < n; i++) peak = fmaxf(peak, fabsf(rows->samples[i]));
    for (size_t i = 0; i < n; i++)
        if (i % length < end && fabsf(rows->samples[i]) >= share * peak) end = i % length;
    return end;
}

size_t rows_omitted_lead(const struct rows *rows, size_t lead)
{
    return rows_first_above(rows, 0.01f, lead);
}
