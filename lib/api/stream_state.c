// SPDX-License-Identifier: MIT
// Saving, restoring and cloning streams: a header that says what the state fits, then the engine's
// region as it is.
#include <string.h>

#include "base/hash.h"
#include "core/engine.h"

// Over what makes two plans' states interchangeable.
static uint64_t fingerprint(const struct partita_stream *stream)
{
    const struct partita_plan *plan = stream->plan;
    const struct shape *shape = &plan->shape;
    const struct axis *axis = &shape->axis[0];
    const uint64_t parts[] = {shape->signal,
                              shape->taps,
                              shape->in_channels,
                              shape->out_channels,
                              shape->groups,
                              axis->kernel,
                              axis->stride,
                              axis->dilation,
                              shape->flip,
                              plan->engine->region_key ? plan->engine->region_key(plan) : 0,
                              plan->level,
                              plan->choice.hop,
                              plan->choice.transform,
                              plan->choice.latency};
    const uint64_t name = hash_bytes(HASH_BEGIN, plan->engine->name, strlen(plan->engine->name));
    return hash_bytes(name, parts, sizeof parts);
}

static void pause_engine(struct partita_stream *stream)
{
    if (stream->plan->engine->stream_pause) stream->plan->engine->stream_pause(stream);
}

static void resume_engine(struct partita_stream *stream)
{
    if (stream->plan->engine->stream_resume) stream->plan->engine->stream_resume(stream);
}

struct header {
    char magic[8];
    uint64_t fingerprint, bytes, phase;
};

static const char magic[8] = "PARTITA";

size_t partita_stream_state_size(const struct partita_stream *stream)
{
    // The region's place is asked for; nothing is changed.
    struct partita_stream *own = (struct partita_stream *)(uintptr_t)stream;
    return sizeof(struct header) + stream->plan->engine->stream_region(own).bytes;
}

enum partita_status partita_stream_save(struct partita_stream *stream, void *state)
{
    if (!stream || !state) return PARTITA_ERR_ARG;
    if (partita_stream_status(stream) != PARTITA_OK) return partita_stream_status(stream);
    if (partita_stream_swapping(stream)) return PARTITA_ERR_STATE;
    const struct region region = stream->plan->engine->stream_region(stream);
    struct header header = {
        .fingerprint = fingerprint(stream), .bytes = region.bytes, .phase = stream->phase};
    memcpy(header.magic, magic, sizeof magic);
    memcpy(state, &header, sizeof header);
    pause_engine(stream);
    memcpy((char *)state + sizeof header, region.data, region.bytes);
    resume_engine(stream);
    return partita_stream_status(stream);
}

enum partita_status partita_stream_restore(struct partita_stream *stream, const void *state,
                                           size_t size)
{
    struct header header;
    if (!stream || !state) return PARTITA_ERR_ARG;
    const struct engine *engine = stream->plan->engine;
    const struct region region = engine->stream_region(stream);
    if (partita_stream_status(stream) != PARTITA_OK) return partita_stream_status(stream);
    if (partita_stream_swapping(stream) || size != sizeof header + region.bytes)
        return PARTITA_ERR_STATE;
    memcpy(&header, state, sizeof header);
    if (memcmp(header.magic, magic, sizeof magic) != 0 ||
        header.fingerprint != fingerprint(stream) || header.bytes != region.bytes)
        return PARTITA_ERR_STATE;
    pause_engine(stream);
    memcpy(region.data, (const char *)state + sizeof header, region.bytes);
    stream->phase = (size_t)header.phase;
    resume_engine(stream);
    return partita_stream_status(stream);
}

enum partita_status partita_stream_clone(struct partita_stream *stream,
                                         struct partita_stream **ret_stream)
{
    struct partita_stream *clone;
    if (!stream || !ret_stream) return PARTITA_ERR_ARG;
    if (partita_stream_status(stream) != PARTITA_OK) return partita_stream_status(stream);
    if (partita_stream_swapping(stream)) return PARTITA_ERR_STATE;
    enum partita_status status = partita_stream_open(stream->plan, stream->filter, &clone);
    if (status != PARTITA_OK) return status;
    const struct engine *engine = stream->plan->engine;
    const struct region from = engine->stream_region(stream), to = engine->stream_region(clone);
    pause_engine(stream);
    pause_engine(clone);
    memcpy(to.data, from.data, from.bytes);
    clone->phase = stream->phase;
    resume_engine(clone);
    resume_engine(stream);
    status = partita_stream_status(stream);
    if (status == PARTITA_OK) status = partita_stream_status(clone);
    if (status == PARTITA_OK) *ret_stream = clone;
    else partita_stream_close(clone);
    return status;
}
