// SPDX-License-Identifier: MIT
#include "pass_threads.h"

#include "base/thread_start.h"

enum { BUFFERS_IN = RELAY_MOST, BUFFERS_OUT = 4 };

static void *read_ahead(void *context)
{
    struct pass_input *in = context;
    uint64_t left = in->wanted;
    while (left) {
        void *room = relay_room(&in->relay);
        size_t n = left < in->chunk ? (size_t)left : in->chunk;
        if (!room) break;
        in->failed = !audio_read(in->reader, in->type, room, n, &n, &in->fault);
        if (in->failed || !n) break;
        if (left != SIZE_UNKNOWN) left -= n;
        relay_send(&in->relay, room, n);
    }
    relay_end(&in->relay);
    return NULL;
}

bool pass_input_begin(struct pass_input *input, size_t frame_bytes)
{
    if (!relay_open(&input->relay, BUFFERS_IN, input->chunk * frame_bytes)) return false;
    input->running = thread_start(&input->thread, read_ahead, input);
    if (!input->running) relay_close(&input->relay);
    return input->running;
}

bool pass_input_next(struct pass_input *input, void **ret_frames, size_t *ret_n,
                     struct fault *fault)
{
    if (*ret_frames) relay_done(&input->relay);
    *ret_frames = relay_next(&input->relay, ret_n);
    if (*ret_frames) return true;
    *ret_n = 0;
    if (input->failed) *fault = input->fault; // said before the end was
    return !input->failed;
}

void pass_input_end(struct pass_input *input)
{
    if (!input->running) return;
    relay_stop(&input->relay);
    pthread_join(input->thread, NULL);
    input->running = false;
    relay_close(&input->relay);
}

static void *write_behind(void *context)
{
    struct pass_output *out = context;
    size_t n = 0;
    for (void *frames; (frames = relay_next(&out->relay, &n)); relay_done(&out->relay)) {
        out->written += n;
        out->failed = !audio_write(out->writer, out->type, frames, n, &out->fault) ||
                      !share_note(out->share, out->writer, out->written, &out->fault);
        if (out->failed) break;
    }
    if (out->failed) relay_stop(&out->relay);
    return NULL;
}

bool pass_output_begin(struct pass_output *output, size_t frame_bytes, size_t capacity)
{
    if (!relay_open(&output->relay, BUFFERS_OUT, capacity * frame_bytes)) return false;
    output->running = thread_start(&output->thread, write_behind, output);
    if (!output->running) relay_close(&output->relay);
    return output->running;
}

void *pass_output_room(struct pass_output *output)
{
    return relay_room(&output->relay);
}

void pass_output_send(struct pass_output *output, void *frames, size_t n)
{
    relay_send(&output->relay, frames, n);
}

bool pass_output_end(struct pass_output *output, bool good, struct fault *fault)
{
    if (!output->running) return good;
    relay_end(&output->relay);
    pthread_join(output->thread, NULL);
    output->running = false;
    relay_close(&output->relay);
    // The output's failure is why the pass ended, if it did.
    if (output->failed) *fault = output->fault;
    return good && !output->failed;
}
