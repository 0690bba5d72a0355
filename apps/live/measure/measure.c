// SPDX-License-Identifier: MIT
#include "measure.h"

#include <math.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../../lib/base/clock.h"
#include "base/json_values.h"
#include "base/memory.h"
#include "cli/report.h"
#include "deconvolve/deconvolve.h"
#include "io/bytes/temp.h"
#include "live/console/terminal.h"
#include "live/device/device.h"
#include "live/device/heartbeat.h"
#include "live/device/timed_call.h"

// The sweep has a quarter of full scale, changed by --gain, and follows a pause in which devices
// settle.
static const double LEVEL = 0.25, PAUSE_SECONDS = 0.5, SWEEP_SECONDS = 3, RESPONSE_SECONDS = 1;

static const double MIN_HZ = 20, MAX_HZ_PER_RATE = 0.45, RISE_SECONDS = 0.05, FALL_SECONDS = 0.005;

enum { SILENT_SECONDS = 2, START_SECONDS = 5, CLOSE_SECONDS = 2 };

struct measure {
    struct settings *settings;
    struct audio_device in, out;
    struct device_stream *stream;
    struct device_format format;
    struct deconvolve d; // signal: pause and sweep
    size_t n_pause;
    atomic_ullong at, losses;
};

static bool measure_callback(void *user, float *const *out, const float *const *in, size_t n,
                             unsigned losses)
{
    struct measure *m = user;
    const struct measured *signal = &m->d.signal, *recording = &m->d.recording;
    const size_t at = (size_t)atomic_load_explicit(&m->at, memory_order_relaxed);
    const size_t now = recording->frames - at < n ? recording->frames - at : n;
    for (size_t i = 0; i < n; i++)
        out[0][i] = at + i < signal->frames ? (float)signal->samples[at + i] : 0;
    for (size_t c = 0; in && c < recording->channels; c++)
        for (size_t i = 0; i < now; i++)
            recording->samples[c * recording->frames + at + i] = (double)in[c][i];
    // Losses before the sweep are ignored: starting and connecting may cause xruns.
    atomic_fetch_add_explicit(&m->losses, losses != 0 && at > m->n_pause, memory_order_relaxed);
    atomic_store_explicit(&m->at, at + now, memory_order_release);
    return at + now < recording->frames;
}

// Checks before playing that the result can be written.
static bool check_output(const struct settings *s, struct fault *fault)
{
    struct temp temp;
    struct audio_info info = {.channels = s->channels == 1 ? 1 : 2};
    if (!measured_choose_format(&info, s, s->measure_to, fault)) return false;
    const int fd = temp_open(&temp, s->measure_to, false, fault);
    if (fd < 0) return false;
    close(fd);
    temp_discard(&temp);
    return true;
}

static bool measure_choose_devices(struct measure *m, struct fault *fault)
{
    const struct settings *s = m->settings;
    bool any;
    if (!device_choose_pair(&m->in, &m->out, s, &any, fault)) return false;
    m->d.recording.channels = m->in.in_channels < 2 ? m->in.in_channels : 2;
    if (s->channels) m->d.recording.channels = (size_t)s->channels;
    if (m->d.recording.channels <= m->in.in_channels) return true;
    return fault_set(fault, "--channels %zu: %s has %zu inputs", m->d.recording.channels,
                     m->in.name, m->in.in_channels);
}

// Rises from 0 to 1 within `seconds`.
static double raised_cosine(double t, double seconds)
{
    return t >= seconds ? 1 : 0.5 - 0.5 * cos(M_PI * t / seconds);
}

// Farina's sweep ("Simultaneous measurement of impulse response and distortion with a swept-sine
// technique", AES 108, 2000), x(t) = sin(w1 L (exp(t / L) - 1)), L = T / ln(w2 / w1), faded in and
// out. Each octave lasts equally long, and harmonic distortion appears before the response.
static void make_sweep(double *sweep, size_t n, double rate, double amplitude)
{
    const double constant = (double)n / rate / log(MAX_HZ_PER_RATE * rate / MIN_HZ);
    for (size_t i = 0; i < n; i++) {
        const double t = (double)i / rate, left = (double)(n - 1 - i) / rate;
        sweep[i] = amplitude * sin(2 * M_PI * MIN_HZ * constant * expm1(t / constant)) *
                   raised_cosine(t, RISE_SECONDS) * raised_cosine(left, FALL_SECONDS);
    }
}

static bool measure_prepare(struct measure *m, double rate, struct fault *fault)
{
    struct measured *signal = &m->d.signal, *recording = &m->d.recording;
    const struct settings *s = m->settings;
    const size_t n_sweep =
        (size_t)lrint((isfinite(s->duration) ? s->duration : SWEEP_SECONDS) * rate);
    m->n_pause = (size_t)(PAUSE_SECONDS * rate);
    signal->frames = m->n_pause + n_sweep;
    m->d.response.frames =
        s->max_taps > 0 ? (size_t)s->max_taps : (size_t)(RESPONSE_SECONDS * rate);
    recording->frames = signal->frames + m->d.response.frames;
    signal->samples = memory_allocate_zeros(signal->frames * sizeof *signal->samples);
    recording->samples =
        memory_allocate_zeros(recording->channels * recording->frames * sizeof *recording->samples);
    if (!signal->samples || !recording->samples)
        return fault_set(fault, "out of memory for %zu frames", recording->frames);
    make_sweep(signal->samples + m->n_pause, n_sweep, rate, LEVEL * pow(10, s->gain / 20));
    return deconvolve_allocate(&m->d, fault);
}

static bool measure_start(struct measure *m, struct fault *fault)
{
    struct settings *s = m->settings;
    const double rate = s->rate > 0 ? s->rate : m->out.rate;
    if (!options_resolve_times(s, rate, fault)) return false;
    struct device_request request = {
        .in = m->in,
        .out = m->out,
        .in_channels = m->d.recording.channels,
        .out_channels = 1,
        .rate = rate,
        .block = (size_t)s->block,
        .latency = s->audio_latency,
        .callback = measure_callback,
        .user = m,
    };
    bool any;
    return measure_prepare(m, rate, fault) &&
           device_open(&m->stream, &request, &m->format, &any, fault) &&
           device_start(m->stream, fault);
}

// Waits for the last frame. Returns EXIT_DONE, or another status with a fault.
static int wait_for_end(struct measure *m, int signals, struct fault *fault)
{
    struct heartbeat heartbeat = {.last_check = clock_seconds()};
    for (uint64_t at;
         (at = atomic_load_explicit(&m->at, memory_order_acquire)) < m->d.recording.frames;) {
        struct pollfd file = {.fd = signals, .events = POLLIN};
        poll(&file, 1, 50);
        if (signals_next(signals)) return fault_set(fault, "interrupted") ? EXIT_DONE : EXIT_FAILED;
        if (heartbeat_check(&heartbeat, at, clock_seconds(), at ? SILENT_SECONDS : START_SECONDS))
            continue;
        fault_set(fault, "%s: the audio device is lost", m->out.name);
        return EXIT_LOST;
    }
    return EXIT_DONE;
}

static bool print_json(const struct measure *m)
{
    json_t *j = json_report("partita-measure/1", command_rows[COMMAND_LIVE].name);
    json_object_set_new(j, "rate", json_real(m->format.rate));
    json_object_set_new(j, "in_device", json_text(m->in.name));
    json_object_set_new(j, "out_device", json_text(m->out.name));
    json_object_set(j, "channels", m->d.list);
    return json_print(j, stdout);
}

static bool evaluate(struct measure *m, struct fault *fault)
{
    struct deconvolve *d = &m->d;
    d->settings = *m->settings;
    d->settings.operands[0] = "the sweep"; // in faults
    d->settings.operands[1] = m->in.name;
    d->response.rate = round(m->format.rate);
    d->to = stdout;
    d->list = json_array();
    if (!deconvolve_compute(d, fault)) return false;
    if (m->settings->json && !print_json(m))
        return fault_set(fault, "standard output: cannot write");
    if (!d->any)
        return fault_set(fault,
                         "no input received the sweep; connect output 1 of %s to an input of %s",
                         m->out.name, m->in.name);
    return measured_write(&d->response, m->settings, m->settings->measure_to, fault);
}

int measure_run(struct settings *settings, int signals, struct fault *fault)
{
    static struct measure m; // static: in use for ever if the device hangs
    int status = EXIT_FAILED;
    m.settings = settings;
    if (!check_output(settings, fault)) return EXIT_FAILED;
    if (device_initialize(settings, fault) && measure_choose_devices(&m, fault) &&
        measure_start(&m, fault))
        status = wait_for_end(&m, signals, fault);
    else if (timed_call_hangs()) status = EXIT_LOST;
    device_close(m.stream, status != EXIT_DONE, CLOSE_SECONDS);
    if (status == EXIT_DONE && !evaluate(&m, fault)) status = EXIT_FAILED;
    if (status == EXIT_DONE && m.losses) {
        report_warning(settings, "samples were lost while the sweep played; measure again");
        status = EXIT_DEGRADED;
    }
    if (!timed_call_hangs()) deconvolve_release(&m.d);
    return status;
}
