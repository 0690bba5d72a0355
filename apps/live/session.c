// SPDX-License-Identifier: MIT
#include "session.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/ir_name.h"
#include "cli/report.h"
#include "live/device/libraries.h"
#include "live/filters/response.h"
#include "scene.h"

enum { RING_CALLS = 1 << 16 };

// --rate, or else that of the first filter, if the devices support it, or else that of the device.
// A rate that the device lacks is better reported before the filters are said not to have it.
static bool choose_rate(const struct session *s, double *ret, struct fault *fault)
{
    const double given = s->settings->rate;
    const struct device_request request = {
        .in = s->in,
        .out = s->out,
        .in_channels = 1,
        .out_channels = 1,
        .rate = given > 0 ? given : response_rate(s->settings, s->settings->irs.words[0])};
    bool refuses;
    const bool supports = request.rate > 0 && device_supports_rate(&request, &refuses);
    *ret = given > 0 || supports ? request.rate : s->out.rate;
    return !(given > 0) || supports || !refuses ||
           fault_set(fault, "%s: does not run at %g Hz; without --rate it runs at %g Hz",
                     s->out.name, given, s->out.rate);
}

static float factor_of(double decibels)
{
    return (float)pow(10, decibels / 20);
}

struct chain_levels session_levels(const struct session *s)
{
    struct chain_levels levels = {.input = factor_of(s->state.input_gain),
                                  .cancel = s->state.bypass ? 0 : 1};
    if (s->state.mute) return levels;
    levels.wet = s->state.bypass ? 0 : factor_of(s->state.gain + s->state.wet);
    levels.dry = s->state.bypass ? 1 : factor_of(s->state.gain + s->state.dry);
    return levels;
}

static bool calls_fault(const struct session *s, struct fault *fault)
{
    return fault_set(fault, "%s: cannot write: %s", s->settings->calls, strerror(errno));
}

// A line for each call of the audio thread; docs/live.md draws them.
static bool write_calls(void *session, const void *items, size_t n, struct fault *fault)
{
    const struct session *s = session;
    const struct call_time *times = items;
    for (size_t i = 0; i < n; i++)
        if (fprintf(s->calls_file, "%llu,%.4g\n", (unsigned long long)times[i].frame,
                    (double)times[i].seconds) < 0)
            return calls_fault(s, fault);
    return true;
}

static bool open_files(struct session *s, double rate, int take, struct fault *fault)
{
    size_t channels = filter_set_view(s->filters).out_channels;
    if (s->settings->record &&
        !recorder_open(&s->recorder, s->settings, channels, rate, take, fault))
        return false;
    if (!s->settings->calls) return true;
    s->calls_file = fopen(s->settings->calls, "we");
    if (!s->calls_file) return calls_fault(s, fault);
    fputs("frame,seconds\n", s->calls_file);
    return ring_open(&s->calls, RING_CALLS, sizeof(struct call_time), write_calls, s, fault);
}

size_t session_inputs(const struct session *session)
{
    return filter_set_view(session->filters).in_channels + (size_t)session->settings->far_end;
}

static bool open_chain(struct session *s, double rate, struct fault *fault)
{
    const double seconds = s->settings->duration;
    const struct filter_set_view f = filter_set_view(s->filters);
    struct chain_request request = {
        .stream = f.stream,
        .in_channels = session_inputs(s),
        .out_channels = f.out_channels,
        .far_channels = (size_t)s->settings->far_end,
        .cancel_taps = (size_t)s->settings->cancel,
        .rate = rate,
        .duration = isfinite(seconds) ? (uint64_t)llrint(seconds * rate) : UINT64_MAX,
        .levels = session_levels(s),
        .limiter = s->settings->limiter == LIMITER_ON,
        .record = s->recorder ? recorder_ring(s->recorder) : NULL,
        .calls = s->calls,
    };
    return chain_open(&s->chain, &request, fault);
}

// The names that the first filter has for the ports of JACK.
static bool name_ports(struct session *s, struct fault *fault)
{
    const char *path = ir_name_path(s->settings->irs.words[0], NULL);
    if (!network_is_named(path)) return true;
    if (!network_read(&s->ports, path, true, fault)) return false;
    if (s->out.is_jack && !jack_connections_check(&s->ports, fault)) return false;
    jack_connections_use(&s->ports);
    return true;
}

static bool open_device(struct session *s, double rate, struct fault *fault)
{
    struct device_request request = {
        .in = s->in,
        .out = s->out,
        .in_channels = session_inputs(s),
        .out_channels = filter_set_view(s->filters).out_channels,
        .rate = rate,
        .block = (size_t)s->settings->block,
        .latency = s->settings->audio_latency,
        .callback = chain_process,
        .user = s->chain,
    };
    return device_open(&s->stream, &request, &s->format, &s->no_device, fault);
}

bool session_open(struct session *s, struct settings *settings, int take, struct fault *fault)
{
    s->settings = settings;
    if (!device_choose_pair(&s->in, &s->out, settings, &s->no_device, fault)) return false;
    s->no_device = false;
    double rate;
    if (!choose_rate(s, &rate, fault)) return false;
    if (!options_resolve_times(settings, rate, fault)) return false;
    const char *ir = NULL;
    const size_t far_end = (size_t)settings->far_end;
    if (s->in.in_channels <= far_end)
        return fault_set(fault,
                         "%s: has %zu input channels; --cancel needs %zu: a microphone, and behind "
                         "it %zu of the far end (--far-end)",
                         s->in.name, s->in.in_channels, far_end + 1, far_end);
    struct filter_set_request request = {
        .max_in = s->in.in_channels - far_end,
        .max_out = s->out.out_channels,
        .rate = rate,
        .direction = s->state.direction,
        .ret_ir = &ir,
    };
    if (!filter_set_open(&s->filters, settings, &request, fault))
        return scene_locate_fault(s->scenes, ir, fault);
    filter_set_fade(s->filters, s->state.fade);
    report_plan_detail(settings, filter_set_view(s->filters).plan);
    if (!open_files(s, rate, take, fault) || !open_chain(s, rate, fault)) return false;
    return name_ports(s, fault) && open_device(s, rate, fault);
}

void session_end(struct session *session)
{
    session->ending = true;
    chain_end(session->chain);
}

double session_latency(const struct session *session)
{
    return fmax(0, session->format.in_latency) + fmax(0, session->format.out_latency);
}

void session_apply_state(struct session *session)
{
    const struct chain_levels levels = session_levels(session);
    chain_set_levels(session->chain, &levels);
    filter_set_fade(session->filters, session->state.fade);
    filter_set_turn(session->filters, &session->state.direction);
}

bool session_finish_files(struct session *s, struct fault *fault)
{
    chain_detach(s->chain);
    bool good = !s->recorder || recorder_finish(s->recorder, &s->recorded, fault);
    if (!s->calls) return good;
    good = ring_stop(s->calls, fault) && good;
    const int not_closed = fclose(s->calls_file);
    s->calls_file = NULL;
    return good && not_closed ? calls_fault(s, fault) : good;
}

void session_close(struct session *session)
{
    recorder_close(session->recorder);
    ring_close(session->calls);
    if (session->calls_file) fclose(session->calls_file);
    chain_close(session->chain);
    filter_set_close(session->filters);
    jack_connections_use(NULL);
    network_release(&session->ports);
}
