// SPDX-License-Identifier: MIT
// A swap of filters: its states, and the fade of the outputs.
#include "kernels/kernels.h"
#include "stream.h"

// Enters the states that follow those without frames left.
static void swap_enter_states(struct partita_stream *stream)
{
    struct swap *swap = &stream->swap;
    if (swap->state == SWAP_WAITING && swap->left == 0) {
        swap->state = SWAP_FADING;
        swap->left = swap->fade;
    }
    if (swap->state == SWAP_FADING && swap->left == 0) {
        stream->filter = swap->incoming;
        swap->incoming = NULL;
        swap->state = SWAP_SETTLING;
        swap->left = stream->plan->engine->stream.swap_end(stream);
    }
    if (swap->state == SWAP_SETTLING && swap->left == 0) {
        swap->state = SWAP_NONE;
        swap_queue_settle(&stream->swap_queue);
    }
}

void swap_begin(struct partita_stream *stream)
{
    if (stream->swap.state != SWAP_NONE) return;
    const struct pending_swap *pending = swap_queue_take(&stream->swap_queue);
    if (!pending) return;
    stream->swap =
        (struct swap){.state = SWAP_WAITING, .incoming = pending->filter, .fade = pending->fade};
    assert(pending->filter);
    stream->swap.left = stream->plan->engine->stream.swap_begin(stream);
    swap_enter_states(stream);
}

void swap_advance(struct partita_stream *stream, size_t n)
{
    assert(n <= stream->swap.left);
    stream->swap.left -= n;
    swap_enter_states(stream);
}

void swap_end(struct partita_stream *stream)
{
    struct swap *swap = &stream->swap;
    if (swap->incoming) stream->filter = swap->incoming;
    if (swap->state != SWAP_NONE) swap_queue_settle(&stream->swap_queue);
    *swap = (struct swap){.state = SWAP_NONE};
}

void swap_fade(const struct partita_stream *stream, void *y, const void *y_new, size_t n,
               size_t first, size_t stride)
{
    const struct swap *swap = &stream->swap;
    const struct shape *shape = &stream->plan->shape;
    const size_t reals = shape->complex_signal ? 2 : 1, each = stride == 1 ? n : 1;
    const double slope = 1 / ((double)swap->fade + 1);
    assert(swap->state == SWAP_FADING);
    // Weights are of whole frames, which a double holds exactly wherever a call begins.
    for (size_t i = 0; i < n; i += each)
        stream->plan->kernels->blend(
            (char *)y + i * shape->sample_bytes, (const char *)y_new + i * shape->sample_bytes,
            each * reals, reals, (double)(swap->fade - swap->left + first + i * stride + 1), slope);
}
