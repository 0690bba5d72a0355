// SPDX-License-Identifier: MIT
// ffmpeg's afir filter inside this process, through libavfilter: each call filters its frames
// without delay, and its input is not copied. The smallest partition is the call; the largest is
// the one that is fastest here. Automatic gain is off (irgain undoes the factor of 2 that version
// 5.1 then has), and there is one thread. The filter cannot be reset, so every pass builds a new
// graph; timing starts after the taps are transformed.
#include "peers/peers.h"

#include <libavfilter/avfilter.h>
#include <libavfilter/buffersink.h>
#include <libavfilter/buffersrc.h>
#include <libavutil/channel_layout.h>
#include <libavutil/frame.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RATE = 192000 }; // afir takes taps of 60 s at most

struct afir {
    AVFilterGraph *graph;
    AVFilterContext *signal, *taps, *sink;
    AVFrame *in, *out;
    AVBufferRef *samples; // of the workload's input, which owns them
    float *h;             // a copy, which the filter scales in place
    size_t max_partition;
    bool failed;
};

static void afir_keep_buffer(void *user, uint8_t *data)
{
    (void)user;
    (void)data;
}

// Makes `frame` refer to n samples that belong to `buffer`.
static bool afir_set_frame(AVFrame *frame, AVBufferRef *buffer, const float *samples, size_t n)
{
    frame->format = AV_SAMPLE_FMT_FLTP;
    frame->sample_rate = RATE;
    frame->nb_samples = (int)n;
    frame->linesize[0] = (int)(n * sizeof(float));
    frame->buf[0] = av_buffer_ref(buffer);
    frame->data[0] = (uint8_t *)samples;
    frame->extended_data = frame->data;
    return frame->buf[0] != NULL &&
           av_channel_layout_copy(&frame->ch_layout, &(AVChannelLayout)AV_CHANNEL_LAYOUT_MONO) == 0;
}

static AVFilterContext *afir_source(struct afir *a, const char *name)
{
    AVFilterContext *context = NULL;
    char text[64];
    snprintf(text, sizeof text, "sample_rate=%d:sample_fmt=fltp:channel_layout=mono", RATE);
    avfilter_graph_create_filter(&context, avfilter_get_by_name("abuffer"), name, text, NULL,
                                 a->graph);
    return context;
}

static bool afir_build_graph(struct afir *a, const struct workload *w)
{
    AVFilterContext *filter = NULL;
    char text[96];
    snprintf(text, sizeof text, "gtype=none:irgain=0.5:maxir=60:minp=%zu:maxp=%zu", w->block,
             a->max_partition);
    a->graph = avfilter_graph_alloc();
    if (a->graph == NULL) return false;
    a->graph->nb_threads = 1;
    a->signal = afir_source(a, "signal");
    a->taps = afir_source(a, "taps");
    avfilter_graph_create_filter(&filter, avfilter_get_by_name("afir"), "afir", text, NULL,
                                 a->graph);
    avfilter_graph_create_filter(&a->sink, avfilter_get_by_name("abuffersink"), "sink", NULL, NULL,
                                 a->graph);
    return a->signal != NULL && a->taps != NULL && filter != NULL && a->sink != NULL &&
           avfilter_link(a->signal, 0, filter, 0) == 0 &&
           avfilter_link(a->taps, 0, filter, 1) == 0 && avfilter_link(filter, 0, a->sink, 0) == 0 &&
           avfilter_graph_config(a->graph, NULL) >= 0;
}

// Makes a new graph that has read its taps; the first request for output transforms them.
static bool afir_renew_graph(struct afir *a, const struct workload *w)
{
    avfilter_graph_free(&a->graph);
    memcpy(a->h, w->h, w->n_taps * sizeof(float));
    AVBufferRef *taps = av_buffer_create((uint8_t *)a->h, w->n_taps * sizeof(float),
                                         afir_keep_buffer, NULL, AV_BUFFER_FLAG_READONLY);
    bool ok =
        taps != NULL && afir_build_graph(a, w) && afir_set_frame(a->in, taps, a->h, w->n_taps) &&
        av_buffersrc_add_frame(a->taps, a->in) == 0 && av_buffersrc_add_frame(a->taps, NULL) == 0 &&
        av_buffersink_get_frame(a->sink, a->out) == AVERROR(EAGAIN);
    av_buffer_unref(&taps);
    return ok;
}

static void afir_call(void *state, const struct workload *w, size_t at)
{
    struct afir *a = state;
    const float *x = (const float *)w->x + at;
    float *y = (float *)w->y + at;
    if (!afir_set_frame(a->in, a->samples, x, w->block) ||
        av_buffersrc_add_frame(a->signal, a->in) != 0 ||
        av_buffersink_get_frame(a->sink, a->out) < 0 || a->out->nb_samples != (int)w->block) {
        a->failed = true;
        return;
    }
    memcpy(y, a->out->data[0], w->block * sizeof(float));
    av_frame_unref(a->out);
}

static double afir_pass(void *state, const struct workload *w, double *calls)
{
    struct afir *a = state;
    a->failed = !afir_renew_graph(a, w);
    double seconds = a->failed ? NAN : bench_calls(w, calls, afir_call, a);
    return a->failed ? NAN : seconds;
}

static void afir_close(void *state)
{
    struct afir *a = state;
    avfilter_graph_free(&a->graph);
    av_frame_free(&a->in);
    av_frame_free(&a->out);
    av_buffer_unref(&a->samples);
    free(a->h);
    free(a);
}

// Seconds of the first frames with partitions up to `max_partition`.
static double afir_trial(struct afir *a, const struct workload *w, size_t max_partition)
{
    struct workload part = *w;
    part.n_frames = w->n_frames < 131072 ? w->n_frames : 131072;
    part.warm = 0;
    a->max_partition = max_partition;
    return afir_pass(a, &part, NULL);
}

bool peer_afir(struct contender *contender, const struct workload *w)
{
    if (w->block == 0 || w->stride > 1 || w->in_channels * w->out_channels > 1 ||
        w->signal != PARTITA_F32 || w->taps != PARTITA_F32)
        return false;
    struct afir *a = bench_allocate(sizeof *a);
    double best = INFINITY;
    size_t max_partition = w->block;
    a->h = bench_allocate(w->n_taps * sizeof(float));
    a->in = av_frame_alloc();
    a->out = av_frame_alloc();
    a->samples = av_buffer_create((uint8_t *)w->x, w->n_frames * sizeof(float), afir_keep_buffer,
                                  NULL, AV_BUFFER_FLAG_READONLY);
    for (size_t n = w->block > 1024 ? w->block : 1024; n <= 32768 && n < 2 * w->n_taps; n *= 2) {
        double seconds = a->samples == NULL ? NAN : afir_trial(a, w, n);
        if (seconds < best) max_partition = n;
        best = fmin(best, seconds);
    }
    a->max_partition = max_partition;
    contender->state = a;
    contender->pass = afir_pass;
    contender->close = afir_close;
    contender->gate = gate_peer(w);
    if (best < INFINITY) return true;
    snprintf(contender->reason, sizeof contender->reason, "libavfilter's afir does not run");
    afir_close(a);
    return false;
}
