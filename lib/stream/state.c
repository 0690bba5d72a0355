// SPDX-License-Identifier: MIT
// The state of a stream as bytes: a header that says which streams it fits, then the engine's
// region as it is.
#include <stddef.h>
#include <string.h>

#include "base/hash.h"
#include "stream.h"

// A hash of all that is equal in two plans whose streams can exchange states.
static uint64_t fingerprint(const struct partita_stream *stream)
{
    const struct partita_plan *plan = stream->plan;
    const struct shape *shape = &plan->shape;
    const struct axis *axis = &shape->axis[0];
    const struct stream_ops *ops = &plan->engine->stream;
    const uint64_t parts[] = {shape->signal,
                              shape->taps,
                              shape->in_channels,
                              shape->out_channels,
                              shape->groups,
                              axis->kernel,
                              axis->stride,
                              axis->dilation,
                              shape->flip,
                              shape->up.branches,
                              shape->up.stride,
                              shape->up.tap_step,
                              plan->choice.resamples,
                              ops->region_key ? ops->region_key(plan) : 0,
                              plan->isa,
                              plan->choice.hop,
                              plan->choice.transform,
                              plan->choice.latency};
    const uint64_t name = hash_bytes(HASH_BEGIN, plan->engine->name, strlen(plan->engine->name));
    return hash_bytes(name, parts, sizeof parts);
}

struct header {
    char magic[8];
    uint64_t fingerprint, bytes, phase, arrays;
    uint64_t sum; // of the fields before it and the region
};

static const char magic[8] = "PARTIT2";

static uint64_t state_sum(const struct header *header, const void *region)
{
    const uint64_t hash = hash_words(HASH_BEGIN, header, offsetof(struct header, sum));
    return hash_words(hash, region, (size_t)header->bytes);
}

// Copies the region out, or in if `out` is NULL.
static void copy_region(struct partita_stream *stream, void *out, const void *in)
{
    const struct stream_ops *ops = &stream->plan->engine->stream;
    const struct region region = ops->region(stream);
    if (ops->pause) ops->pause(stream);
    if (!region.data && out) ops->copy_out(stream, out);
    else if (!region.data) ops->copy_in(stream, in);
    else memcpy(out ? out : region.data, out ? region.data : in, region.bytes);
    if (ops->resume) ops->resume(stream);
}

static enum partita_status copy_state(struct partita_stream *from, struct partita_stream *to)
{
    void *copy = mem_reserve(&from->plan->allocator, from->plan->engine->stream.region(from).bytes);
    if (!copy) return PARTITA_ERR_NOMEM;
    copy_region(from, copy, NULL);
    if (atomic_load(&from->status) == PARTITA_OK) copy_region(to, NULL, copy);
    mem_release(&from->plan->allocator, copy);
    return PARTITA_OK;
}

size_t stream_state_bytes(const struct partita_stream *stream)
{
    // The region's place is asked for; nothing is changed.
    struct partita_stream *changeable = (struct partita_stream *)(uintptr_t)stream;
    return sizeof(struct header) + stream->plan->engine->stream.region(changeable).bytes;
}

static enum partita_status status_of(const struct partita_stream *stream)
{
    return (enum partita_status)atomic_load(&stream->status);
}

enum partita_status stream_state_save(struct partita_stream *stream, void *state)
{
    const struct region region = stream->plan->engine->stream.region(stream);
    struct header header = {.fingerprint = fingerprint(stream),
                            .bytes = region.bytes,
                            .phase = stream->phase,
                            .arrays = stream->arrays};
    memcpy(header.magic, magic, sizeof magic);
    copy_region(stream, (char *)state + sizeof header, NULL);
    header.sum = state_sum(&header, (char *)state + sizeof header);
    memcpy(state, &header, sizeof header);
    return status_of(stream);
}

enum partita_status stream_state_restore(struct partita_stream *stream, const void *state,
                                         size_t size)
{
    struct header header;
    const struct partita_log *log = &stream->plan->log;
    const size_t bytes = stream_state_bytes(stream);
    if (size != bytes)
        return log_error(log, PARTITA_ERR_STATE, "state: %zu bytes, but this stream's has %zu",
                         size, bytes);
    memcpy(&header, state, sizeof header);
    if (memcmp(header.magic, magic, sizeof magic) != 0 ||
        header.fingerprint != fingerprint(stream) || header.bytes != bytes - sizeof header ||
        header.phase >= shape_output_step(&stream->plan->shape) ||
        header.sum != state_sum(&header, (const char *)state + sizeof header))
        return log_error(log, PARTITA_ERR_STATE, "state: of a stream of another plan, or damaged");
    stream->phase = (size_t)header.phase;
    stream->arrays = (enum stream_arrays)header.arrays;
    copy_region(stream, NULL, (const char *)state + sizeof header);
    return status_of(stream);
}

enum partita_status stream_clone(struct partita_stream *stream, struct partita_stream **ret_stream)
{
    struct partita_stream *clone;
    enum partita_status status = stream_open(stream->plan, stream->filter, &clone);
    if (status != PARTITA_OK) return status;
    clone->phase = stream->phase;
    clone->arrays = stream->arrays;
    status = copy_state(stream, clone);
    if (status == PARTITA_OK) status = status_of(stream);
    if (status == PARTITA_OK) status = status_of(clone);
    if (status == PARTITA_OK) *ret_stream = clone;
    else stream_close(clone);
    return status;
}
