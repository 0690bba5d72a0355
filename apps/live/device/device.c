// SPDX-License-Identifier: MIT
// See host.h.
#include "device.h"

#include <errno.h>
#include <pa_jack.h>
#include <portaudio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library_log.h"
#include "timed_call.h"

// Latencies outside are a host's mistake: PipeWire's stand-in for JACK has told of a day.
static const double MAX_LATENCY = 10;

// How long the host may take to find its devices, to open and to start them.
static const double ANSWER_SECONDS = 5;

struct device_stream {
    PaStream *stream;
    device_callback *callback;
    void *user;
    // Of the call that opens it.
    PaStreamParameters in, out;
    double rate;
    unsigned long block;
    PaError error;
};

static bool failed(const char *what, PaError error, struct fault *fault)
{
    const PaHostErrorInfo *host = Pa_GetLastHostErrorInfo();
    if (error == paUnanticipatedHostError && host && host->errorText && *host->errorText)
        return fault_set(fault, "%s: %s", what, host->errorText);
    return fault_set(fault, "%s: %s", what, Pa_GetErrorText(error));
}

static bool unanswered(struct fault *fault)
{
    return fault_set(fault, timed_call_hangs() ? "the audio server does not answer"
                                               : "cannot start a thread for PortAudio");
}

static void initialize(void *argument)
{
    PaError *error = argument;
    *error = Pa_Initialize();
}

bool device_initialize(bool verbose, struct fault *fault)
{
    static PaError error; // for good if PortAudio hangs
    if (!verbose) library_log_silence();
    PaJack_SetClientName("partita");
    if (!timed_call(initialize, &error, ANSWER_SECONDS)) return unanswered(fault);
    if (!verbose) library_log_silence(); // PortAudio sets JACK's hook itself
    return error == paNoError || failed("cannot start PortAudio", error, fault);
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
    };
    snprintf(device.name, sizeof device.name, "%s", info->name);
    snprintf(device.api, sizeof device.api, "%s", api->name);
    return device;
}

static bool can(const struct audio_device *d, unsigned directions)
{
    return (!(directions & DEVICE_IN) || d->in_channels) &&
           (!(directions & DEVICE_OUT) || d->out_channels);
}

static const char *words_of(unsigned directions)
{
    static const char *const words[] = {"", "input", "output", "input and output"};
    return words[directions & 3];
}

// What was looked through, for those who wonder why theirs is not there.
static bool none_found(unsigned directions, struct fault *fault)
{
    char apis[160] = "";
    size_t n = 0;
    for (int a = 0; a < Pa_GetHostApiCount() && n < sizeof apis; a++) {
        const PaHostApiInfo *info = Pa_GetHostApiInfo(a);
        n += (size_t)snprintf(apis + n, sizeof apis - n, "%s%s: %d", a ? ", " : "", info->name,
                              info->deviceCount);
    }
    if (!*apis) return fault_set(fault, "no audio device: neither ALSA nor a JACK server answers");
    return fault_set(fault,
                     "no audio device for %s (devices of %s; JACK is listed when its server runs)",
                     words_of(directions), apis);
}

static bool choose_default(struct audio_device *ret, unsigned directions, struct fault *fault)
{
    for (int a = 0; a < Pa_GetHostApiCount(); a++) {
        const PaHostApiInfo *api = Pa_GetHostApiInfo(a);
        int index = directions & DEVICE_OUT ? api->defaultOutputDevice : api->defaultInputDevice;
        if (index == paNoDevice) continue;
        *ret = device_at((size_t)index);
        if (can(ret, directions)) return true;
    }
    for (size_t i = 0; i < device_count(); i++) {
        *ret = device_at(i);
        if (can(ret, directions)) return true;
    }
    return none_found(directions, fault);
}

static bool choose_index(struct audio_device *ret, const char *wish, unsigned directions,
                         struct fault *fault)
{
    size_t n = device_count();
    errno = 0;
    unsigned long i = strtoul(wish, NULL, 10);
    if (errno || i >= n)
        return fault_set(fault, "device %s: there are %zu; `partita devices` lists them", wish, n);
    *ret = device_at(i);
    if (can(ret, directions)) return true;
    return fault_set(fault, "device %s, %s: has %zu input and %zu output channels; %s is needed",
                     wish, ret->name, ret->in_channels, ret->out_channels, words_of(directions));
}

static bool choose_name(struct audio_device *ret, const char *wish, unsigned directions,
                        bool *ret_may_come, struct fault *fault)
{
    struct audio_device unable = {.index = -1};
    size_t n_found = 0, n_exact = 0, used = 0;
    char found[320] = "";
    for (size_t i = 0; i < device_count(); i++) {
        struct audio_device d = device_at(i);
        char full[512];
        snprintf(full, sizeof full, "%s, %s", d.name, d.api);
        bool exact = strcmp(d.name, wish) == 0 || strcmp(full, wish) == 0;
        if (!strcasestr(full, wish)) continue;
        if (!can(&d, directions)) {
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
        return fault_set(fault, "device %s: could be any of %s; say its index or its full name",
                         wish, found);
    if (unable.index < 0)
        return fault_set(fault, "device %s: no such device; `partita devices` lists them", wish);
    return fault_set(fault, "device %s: %s has %zu input and %zu output channels; %s is needed",
                     wish, unable.name, unable.in_channels, unable.out_channels,
                     words_of(directions));
}

// A device that cannot do what is needed may be in use in that direction.
bool device_choose(struct audio_device *ret, const char *wish, unsigned directions,
                   bool *ret_may_come, struct fault *fault)
{
    *ret_may_come = true;
    if (!wish) return choose_default(ret, directions, fault);
    if (*wish && wish[strspn(wish, "0123456789")] == 0)
        return choose_index(ret, wish, directions, fault);
    return choose_name(ret, wish, directions, ret_may_come, fault);
}

static bool parse_latency(const char *text, double *ret_seconds)
{
    char *end;
    *ret_seconds = strtod(text, &end);
    return end != text && !*end && *ret_seconds > 0 && *ret_seconds <= MAX_LATENCY;
}

static bool is_word(const char *latency)
{
    return !latency || strcmp(latency, "low") == 0 || strcmp(latency, "high") == 0;
}

bool device_check_latency(const char *latency, struct fault *fault)
{
    double seconds;
    if (is_word(latency) || parse_latency(latency, &seconds)) return true;
    return fault_set(fault, "--latency %s: is neither low nor high nor seconds up to %g", latency,
                     MAX_LATENCY);
}

static double latency_of(const char *wish, double low, double high)
{
    double seconds;
    if (is_word(wish)) return wish && *wish == 'h' ? high : low;
    return parse_latency(wish, &seconds) ? seconds : low;
}

// PortAudio's name for our bits is private to this file; its priming flag is no loss.
static unsigned losses_of(PaStreamCallbackFlags flags)
{
    return (flags & paInputUnderflow ? DEVICE_IN_UNDERFLOW : 0u) |
           (flags & paInputOverflow ? DEVICE_IN_OVERFLOW : 0u) |
           (flags & paOutputUnderflow ? DEVICE_OUT_UNDERFLOW : 0u) |
           (flags & paOutputOverflow ? DEVICE_OUT_OVERFLOW : 0u);
}

static int call_back(const void *in, void *out, unsigned long n,
                     const PaStreamCallbackTimeInfo *times, PaStreamCallbackFlags flags, void *user)
{
    const struct device_stream *s = user;
    (void)times;
    return s->callback(s->user, out, in, n, losses_of(flags)) ? paContinue : paComplete;
}

static double sane(double latency)
{
    return latency >= 0 && latency <= MAX_LATENCY ? latency : -1;
}

static void describe(const struct device_request *r, PaStreamParameters *in,
                     PaStreamParameters *out)
{
    *in = (PaStreamParameters){
        .device = r->in.index,
        .channelCount = (int)r->in_channels,
        .sampleFormat = paFloat32 | paNonInterleaved,
        .suggestedLatency = latency_of(r->latency, r->in.low_in, r->in.high_in),
    };
    *out = (PaStreamParameters){
        .device = r->out.index,
        .channelCount = (int)r->out_channels,
        .sampleFormat = paFloat32 | paNonInterleaved,
        .suggestedLatency = latency_of(r->latency, r->out.low_out, r->out.high_out),
    };
}

bool device_supports_rate(const struct device_request *request)
{
    PaStreamParameters in, out;
    describe(request, &in, &out);
    return Pa_IsFormatSupported(&in, &out, request->rate) == paFormatIsSupported;
}

// Errors that do not pass with time.
static bool is_wrong(PaError error)
{
    return error == paInvalidSampleRate || error == paInvalidChannelCount ||
           error == paSampleFormatNotSupported || error == paBadIODeviceCombination;
}

// Clipping and dither are PortAudio's for integers; the limiter has been at work before.
static void open_stream(void *argument)
{
    struct device_stream *s = argument;
    s->error =
        Pa_OpenStream(&s->stream, &s->in, &s->out, s->rate, s->block, paDitherOff, call_back, s);
}

bool device_open(struct device_stream **ret_stream, const struct device_request *request,
                 struct device_format *ret_format, bool *ret_may_come, struct fault *fault)
{
    const struct device_request *r = request;
    struct device_stream *s = calloc(1, sizeof *s);
    if (!s) return fault_set(fault, "out of memory");
    *s = (struct device_stream){
        .callback = r->callback, .user = r->user, .rate = r->rate, .block = r->block};
    describe(r, &s->in, &s->out);
    *ret_may_come = true;
    if (!timed_call(open_stream, s, ANSWER_SECONDS)) return unanswered(fault);
    PaError error = s->error;
    if (error) {
        *ret_may_come = !is_wrong(error);
        char what[sizeof fault->text];
        snprintf(what, sizeof what, "%s and %s: cannot open %zu in and %zu out at %g Hz",
                 r->in.name, r->out.name, r->in_channels, r->out_channels, r->rate);
        free(s);
        return failed(what, error, fault);
    }
    const PaStreamInfo *info = Pa_GetStreamInfo(s->stream);
    ret_format->rate = info->sampleRate;
    ret_format->in_latency = sane(info->inputLatency);
    ret_format->out_latency = sane(info->outputLatency);
    *ret_stream = s;
    return true;
}

static void start(void *argument)
{
    struct device_stream *s = argument;
    s->error = Pa_StartStream(s->stream);
}

bool device_start(struct device_stream *stream, struct fault *fault)
{
    if (!timed_call(start, stream, ANSWER_SECONDS)) return unanswered(fault);
    return stream->error == paNoError ||
           failed("cannot start the audio device", stream->error, fault);
}

bool device_is_active(const struct device_stream *stream)
{
    return Pa_IsStreamActive(stream->stream) == 1;
}

struct closing {
    struct device_stream *stream;
    bool at_once;
};

static void close_all(void *argument)
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
    static struct closing c; // for good if PortAudio hangs
    if (timed_call_hangs()) return false;
    c = (struct closing){stream, at_once};
    if (!timed_call(close_all, &c, seconds)) return false;
    free(stream);
    return true;
}

bool device_hangs(void)
{
    return timed_call_hangs();
}
