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
        swap->left = stream->plan->engine->swap_end(stream);
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
    stream->swap.left = stream->plan->engine->swap_begin(stream);
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
    const size_t reals = stream->plan->shape.complex_signal ? 2 : 1;
    const double slope = (double)stride / ((double)swap->fade + 1);
    const double begin = (double)(swap->fade - swap->left + first + 1) / (double)stride;
    assert(swap->state == SWAP_FADING);
    stream->plan->kernels->blend(y, y_new, n * reals, reals, begin, slope);
}
