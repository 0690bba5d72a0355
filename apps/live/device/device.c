// SPDX-License-Identifier: MIT
#include "device.h"

#include <math.h>
#include <pa_jack.h>
#include <portaudio.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "cli/options.h"
#include "libraries.h"
#include "timed_call.h"

// Larger latencies are errors of the host API: PipeWire's JACK emulation has reported a day.
static const double MAX_LATENCY = 10;

// Time limit for finding, opening and starting devices.
static const double CALL_SECONDS = 5;

enum device_direction { DEVICE_IN = 1, DEVICE_OUT = 2 };

struct device_stream {
    PaStream *stream;
    struct device_request request;
    PaError error; // of the last timed call
    // Of the audio thread, set by its callback.
    _Atomic pthread_t thread;
    atomic_bool has_thread;
};

static bool portaudio_fault(const char *what, PaError error, struct fault *fault)
{
    const PaHostErrorInfo *host = Pa_GetLastHostErrorInfo();
    if (error == paUnanticipatedHostError && host && host->errorText && *host->errorText)
        return fault_set(fault, "%s: %s", what, host->errorText);
    return fault_set(fault, "%s: %s", what, Pa_GetErrorText(error));
}

static bool timeout_fault(struct fault *fault)
{
    return fault_set(fault, timed_call_hangs() ? "the audio server does not answer"
                                               : "cannot start a thread for PortAudio");
}

bool device_check_name(const char *name, struct fault *fault)
{
    if (!*name || strchr(name, ':'))
        return fault_set(fault, "--name %s: must be a name without a colon", name);
    return PaJack_SetClientName(name) == paNoError ||
           fault_set(fault, "--name %s: is too long for JACK", name);
}

static void call_initialize(void *argument)
{
    PaError *error = argument;
    *error = Pa_Initialize();
}

// A JACK program that is killed can leave the database of JACK's metadata locked. From then on
// every JACK program waits for it without end, with or without a server.
static bool database_fault(struct fault *fault)
{
    char folder[64];
    (void)snprintf(folder, sizeof folder, "/dev/shm/jack_db-%u", (unsigned)getuid());
    if (!timed_call_hangs() || access(folder, F_OK)) return timeout_fault(fault);
    return fault_set(
        fault,
        "the audio server does not answer (if no JACK server runs, delete %s, which a killed JACK "
        "program left locked)",
        folder);
}

bool device_initialize(const struct settings *settings, struct fault *fault)
{
    static PaError error; // static: in use for ever if PortAudio hangs
    // Of `live` it is about the program's own decisions.
    const bool verbose = settings->command == COMMAND_DEVICES && settings->verbose;
    if (!verbose) libraries_silence();
    if (settings->no_connect) jack_connections_forbid();
    PaJack_SetClientName(settings->name ? settings->name : "partita");
    if (!timed_call(call_initialize, &error, CALL_SECONDS)) return database_fault(fault);
    if (!verbose) libraries_silence(); // PortAudio replaces JACK's handlers
    return error == paNoError || portaudio_fault("cannot start PortAudio", error, fault);
}

size_t device_count(void)
{
    int n = Pa_GetDeviceCount();
    return n > 0 ? (size_t)n : 0;
}

struct audio_device device_at(size_t i)
{
    const PaDeviceInfo *info = Pa_GetDeviceInfo((int)i);
    const PaHostApiInfo *api = Pa_GetHostApiInfo(info->hostApi);
    struct audio_device device = {
        .index = (int)i,
        .in_channels = (size_t)info->maxInputChannels,
        .out_channels = (size_t)info->maxOutputChannels,
        .rate = info->defaultSampleRate,
        .low_in = info->defaultLowInputLatency,
        .high_in = info->defaultHighInputLatency,
        .low_out = info->defaultLowOutputLatency,
        .high_out = info->defaultHighOutputLatency,
        .is_default_in = api->defaultInputDevice == (int)i,
        .is_default_out = api->defaultOutputDevice == (int)i,
        .is_jack = api->type == paJACK,
        .is_alsa = api->type == paALSA,
    };
    snprintf(device.name, sizeof device.name, "%s", info->name);
    snprintf(device.api, sizeof device.api, "%s", api->name);
    return device;
}

static bool device_supports(const struct audio_device *d, unsigned directions)
{
    return (!(directions & DEVICE_IN) || d->in_channels) &&
           (!(directions & DEVICE_OUT) || d->out_channels);
}

static const char *direction_name(unsigned directions)
{
    static const char *const words[] = {"", "input", "output", "input and output"};
    return words[directions & 3];
}

// Says which APIs were searched and how many devices they have.
static bool no_device_fault(unsigned directions, struct fault *fault)
{
    char apis[160] = "";
    size_t n = 0;
    for (int a = 0; a < Pa_GetHostApiCount() && n < sizeof apis; a++) {
        const PaHostApiInfo *info = Pa_GetHostApiInfo(a);
        n += (size_t)snprintf(apis + n, sizeof apis - n, "%s%s: %d", a ? ", " : "", info->name,
                              info->deviceCount);
    }
    if (!*apis) return fault_set(fault, "no audio device: neither ALSA nor a JACK server responds");
    return fault_set(fault,
                     "no audio device for %s (devices of %s; JACK is listed when its server runs)",
                     direction_name(directions), apis);
}

static bool device_choose_default(struct audio_device *ret, unsigned directions,
                                  struct fault *fault)
{
    for (int a = 0; a < Pa_GetHostApiCount(); a++) {
        const PaHostApiInfo *api = Pa_GetHostApiInfo(a);
        int index = directions & DEVICE_OUT ? api->defaultOutputDevice : api->defaultInputDevice;
        if (index == paNoDevice) continue;
        *ret = device_at((size_t)index);
        if (device_supports(ret, directions)) return true;
    }
    for (size_t i = 0; i < device_count(); i++) {
        *ret = device_at(i);
        if (device_supports(ret, directions)) return true;
    }
    return no_device_fault(directions, fault);
}

// Finds the device `name`: an index, or part of "name, API" that matches a single device or is
// exactly its name. NULL: the default of the first API that has one. directions: bits of enum
// device_direction that it must have. A device that lacks a direction may have it later: the
// direction may be in use. *ret_may_come is false for an ambiguous name.
static bool device_choose(struct audio_device *ret, const char *name, unsigned directions,
                          bool *ret_may_come, struct fault *fault)
{
    struct audio_device unable = {.index = -1};
    size_t n_found = 0, n_exact = 0, used = 0;
    char found[320] = "", number[24];
    *ret_may_come = true;
    if (!name) return device_choose_default(ret, directions, fault);
    const bool is_index = *name && name[strspn(name, "0123456789")] == 0;
    for (size_t i = 0; i < device_count(); i++) {
        struct audio_device d = device_at(i);
        char full[512];
        snprintf(full, sizeof full, "%s, %s", d.name, d.api);
        snprintf(number, sizeof number, "%zu", i);
        bool exact = strcmp(is_index ? number : d.name, name) == 0 || strcmp(full, name) == 0;
        if (!exact && (is_index || !strcasestr(full, name))) continue;
        if (!device_supports(&d, directions)) {
            unable = d;
            continue;
        }
        if (used < sizeof found)
            used += (size_t)snprintf(found + used, sizeof found - used, "%s%zu %s",
                                     n_found ? "; " : "", i, full);
        n_found++;
        n_exact += exact;
        if (n_found == 1 || (exact && n_exact == 1)) *ret = d;
    }
    if (n_found == 1 || n_exact == 1) return true;
    *ret_may_come = n_found == 0;
    if (n_found)
        return fault_set(fault, "device %s: is ambiguous: %s; use the index or the full name", name,
                         found);
    if (unable.index < 0)
        return fault_set(fault, "device %s: no such device; `partita devices` lists them", name);
    return fault_set(fault, "device %s: %s has %zu input and %zu output channels; %s is needed",
                     name, unable.name, unable.in_channels, unable.out_channels,
                     direction_name(directions));
}

bool device_choose_pair(struct audio_device *ret_in, struct audio_device *ret_out,
                        const struct settings *settings, bool *ret_may_come, struct fault *fault)
{
    const char *both = settings->audio_device;
    const char *in = settings->audio_input ? settings->audio_input : both;
    const char *out = settings->audio_output ? settings->audio_output : both;
    const bool one = settings->audio_input == NULL && settings->audio_output == NULL;
    const bool found =
        one && device_choose(ret_in, both, DEVICE_IN | DEVICE_OUT, ret_may_come, fault);
    if (found) *ret_out = *ret_in;
    else if (one && both) return false;
    // The default input and output may be two devices of one API.
    else if (!device_choose(ret_in, in, DEVICE_IN, ret_may_come, fault) ||
             !device_choose(ret_out, out, DEVICE_OUT, ret_may_come, fault))
        return false;
    *ret_may_come = false;
    if (strcmp(ret_in->api, ret_out->api) != 0)
        return fault_set(fault, "%s is a device of %s, %s one of %s; both must have the same API",
                         ret_in->name, ret_in->api, ret_out->name, ret_out->api);
    return !settings->no_connect || ret_out->is_jack ||
           fault_set(fault,
                     "--no-connect: %s is a device of %s, which has no connections; leave "
                     "the option out, or choose a JACK device",
                     ret_out->name, ret_out->api);
}

// Seconds; NaN: the text is none of low, high and a time.
static double suggested_latency(const char *text, double low, double high)
{
    struct number number;
    if (!text || strcmp(text, "low") == 0) return low;
    if (strcmp(text, "high") == 0) return high;
    const bool good = number_parse(text, QUANTITY_SECONDS, &number) && number.value > 0 &&
                      number.value <= MAX_LATENCY;
    return good ? number.value : NAN;
}

bool device_check_latency(const char *latency, struct fault *fault)
{
    return !isnan(suggested_latency(latency, 0, 0)) ||
           fault_set(fault, "--latency %s: must be low, high or a time up to %g s, such as 10ms",
                     latency, MAX_LATENCY);
}

// The bits of losses are PortAudio's. Priming of the output is not a loss.
_Static_assert(DEVICE_IN_UNDERFLOW == paInputUnderflow && DEVICE_IN_OVERFLOW == paInputOverflow &&
                   DEVICE_OUT_UNDERFLOW == paOutputUnderflow &&
                   DEVICE_OUT_OVERFLOW == paOutputOverflow,
               "losses");
enum { LOSSES = (1 << N_DEVICE_LOSSES) - 1 };

static int device_portaudio_callback(const void *in, void *out, unsigned long n,
                                     const PaStreamCallbackTimeInfo *times,
                                     PaStreamCallbackFlags flags, void *user)
{
    struct device_stream *s = user;
    (void)times;
    atomic_store_explicit(&s->thread, pthread_self(), memory_order_relaxed);
    atomic_store_explicit(&s->has_thread, true, memory_order_release);
    return s->request.callback(s->request.user, out, in, n, (unsigned)flags & LOSSES) ? paContinue
                                                                                      : paComplete;
}

static double valid_latency(double latency)
{
    return latency >= 0 && latency <= MAX_LATENCY ? latency : -1;
}

static void set_parameters(const struct device_request *r, PaStreamParameters *in,
                           PaStreamParameters *out)
{
    *in = *out = (PaStreamParameters){.sampleFormat = paFloat32 | paNonInterleaved};
    in->device = r->in.index;
    in->channelCount = (int)r->in_channels;
    in->suggestedLatency = suggested_latency(r->latency, r->in.low_in, r->in.high_in);
    out->device = r->out.index;
    out->channelCount = (int)r->out_channels;
    out->suggestedLatency = suggested_latency(r->latency, r->out.low_out, r->out.high_out);
}

bool device_supports_rate(const struct device_request *request, bool *ret_refuses)
{
    PaStreamParameters in, out;
    set_parameters(request, &in, &out);
    const PaError error = Pa_IsFormatSupported(&in, &out, request->rate);
    *ret_refuses = error == paInvalidSampleRate;
    return error == paFormatIsSupported;
}

// Errors that waiting does not change.
static bool is_permanent(PaError error)
{
    return error == paInvalidSampleRate || error == paInvalidChannelCount ||
           error == paSampleFormatNotSupported || error == paBadIODeviceCombination;
}

// No dither for integer devices. PortAudio clips; normally the limiter has already done so.
static void call_open(void *argument)
{
    struct device_stream *s = argument;
    PaStreamParameters in, out;
    set_parameters(&s->request, &in, &out);
    s->error = Pa_OpenStream(&s->stream, &in, &out, s->request.rate, s->request.block, paDitherOff,
                             device_portaudio_callback, s);
}

bool device_open(struct device_stream **ret_stream, const struct device_request *r,
                 struct device_format *ret_format, bool *ret_may_come, struct fault *fault)
{
    struct device_stream *s = calloc(1, sizeof *s);
    if (!s) return fault_set(fault, "out of memory");
    s->request = *r;
    *ret_may_come = true;
    if (!timed_call(call_open, s, CALL_SECONDS)) return timeout_fault(fault);
    PaError error = s->error;
    if (error) {
        *ret_may_come = !is_permanent(error);
        char what[sizeof fault->text];
        snprintf(what, sizeof what, "%s and %s: cannot open %zu in and %zu out at %g Hz",
                 r->in.name, r->out.name, r->in_channels, r->out_channels, r->rate);
        free(s);
        return portaudio_fault(what, error, fault);
    }
    const PaStreamInfo *info = Pa_GetStreamInfo(s->stream);
    ret_format->rate = info->sampleRate;
    ret_format->in_latency = valid_latency(info->inputLatency);
    ret_format->out_latency = valid_latency(info->outputLatency);
    *ret_stream = s;
    return true;
}

static void call_start(void *argument)
{
    struct device_stream *s = argument;
    s->error = Pa_StartStream(s->stream);
}

bool device_start(struct device_stream *stream, struct fault *fault)
{
    if (!timed_call(call_start, stream, CALL_SECONDS)) return timeout_fault(fault);
    return stream->error == paNoError ||
           portaudio_fault("cannot start the audio device", stream->error, fault);
}

bool device_raise_priority(struct device_stream *stream)
{
    // Above ordinary threads and below those of the kernel's interrupts, which have 50.
    const struct sched_param priority = {.sched_priority = 10};
    if (!atomic_load_explicit(&stream->has_thread, memory_order_acquire)) return false;
    pthread_t thread = atomic_load_explicit(&stream->thread, memory_order_relaxed);
    return pthread_setschedparam(thread, SCHED_FIFO, &priority) == 0;
}

bool device_is_active(const struct device_stream *stream)
{
    return Pa_IsStreamActive(stream->stream) == 1;
}

struct closing {
    struct device_stream *stream;
    bool at_once;
};

static void call_close(void *argument)
{
    struct closing *c = argument;
    if (c->stream) {
        if (c->at_once) Pa_AbortStream(c->stream->stream);
        else Pa_StopStream(c->stream->stream);
        Pa_CloseStream(c->stream->stream);
    }
    Pa_Terminate();
}

bool device_close(struct device_stream *stream, bool at_once, double seconds)
{
    static struct closing c; // static: in use for ever if PortAudio hangs
    if (timed_call_hangs()) return false;
    c = (struct closing){stream, at_once};
    if (!timed_call(call_close, &c, seconds)) return false;
    free(stream);
    return true;
}
