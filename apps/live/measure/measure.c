// SPDX-License-Identifier: MIT
#include "measure.h"

#include <jansson.h>
#include <math.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../../lib/base/clock.h"
#include "base/json_values.h"
#include "base/memory.h"
#include "cli/report.h"
#include "correct/measured.h"
#include "io/audio.h"
#include "io/bytes/temp.h"
#include "io/frames.h"
#include "live/console/terminal.h"
#include "live/device/device.h"
#include "live/device/heartbeat.h"
#include "live/device/timed_call.h"

#include "sweep.h"

// The sweep has a quarter of full scale, changed by --gain, and follows a pause in which devices
// settle.
static const double LEVEL = 0.25, PAUSE_SECONDS = 0.5, SWEEP_SECONDS = 3, RESPONSE_SECONDS = 1;

// A response is accepted if its peak is at least this many times its RMS; noise has a lower ratio.
static const double MIN_CREST_FACTOR = 20;

enum { SILENT_SECONDS = 2, START_SECONDS = 5, CLOSE_SECONDS = 2 };

struct measure {
    struct settings *settings;
    struct audio_device in, out;
    struct device_stream *stream;
    struct device_format format;
    size_t channels, n_pause, n_sweep, n_response, n_frames;
    double *sweep, *template, *input;
    struct measured responses;
    double unit_peak; // of the response of a path of gain 1
    float *played;    // n_frames
    float *recorded;  // [channels][n_frames]
    atomic_ullong at, calls, losses;
};

static bool measure_callback(void *user, float *const *out, const float *const *in, size_t n,
                             unsigned losses)
{
    struct measure *m = user;
    size_t at = (size_t)atomic_load_explicit(&m->at, memory_order_relaxed);
    size_t now = m->n_frames - at < n ? m->n_frames - at : n;
    memcpy(out[0], m->played + at, now * sizeof **out);
    memset(out[0] + now, 0, (n - now) * sizeof **out);
    for (size_t c = 0; in && c < m->channels; c++)
        memcpy(m->recorded + c * m->n_frames + at, in[c], now * sizeof **in);
    // Losses before the sweep are ignored: starting and connecting may cause xruns.
    atomic_fetch_add_explicit(&m->losses, losses != 0 && at > m->n_pause, memory_order_relaxed);
    atomic_fetch_add_explicit(&m->calls, 1, memory_order_relaxed);
    atomic_store_explicit(&m->at, at + now, memory_order_release);
    return at + now < m->n_frames;
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
    m->channels = m->in.in_channels < 2 ? m->in.in_channels : 2;
    if (s->channels) m->channels = (size_t)s->channels;
    if (m->channels <= m->in.in_channels) return true;
    return fault_set(fault, "--channels %zu: %s has %zu inputs", m->channels, m->in.name,
                     m->in.in_channels);
}

static bool measure_prepare(struct measure *m, double rate, struct fault *fault)
{
    double seconds = isfinite(m->settings->duration) ? m->settings->duration : SWEEP_SECONDS;
    double factor = LEVEL * pow(10, m->settings->gain / 20);
    m->n_pause = (size_t)(PAUSE_SECONDS * rate);
    m->n_sweep = (size_t)lrint(seconds * rate);
    m->n_response = m->settings->max_taps > 0 ? (size_t)m->settings->max_taps
                                              : (size_t)(RESPONSE_SECONDS * rate);
    m->n_frames = m->n_pause + m->n_sweep + m->n_response;
    m->sweep = calloc(m->n_sweep, sizeof *m->sweep);
    m->template = calloc(m->n_sweep, sizeof *m->template);
    m->input = calloc(m->n_sweep + m->n_response, sizeof *m->input);
    m->responses = (struct measured){
        .samples = memory_allocate(m->channels * m->n_response * sizeof *m->responses.samples),
        .channels = m->channels,
        .frames = m->n_response};
    m->played = calloc(m->n_frames, sizeof *m->played);
    m->recorded = calloc(m->channels * m->n_frames, sizeof *m->recorded);
    if (!m->sweep || !m->template || !m->input || !m->responses.samples || !m->played ||
        !m->recorded)
        return fault_set(fault, "out of memory for %zu frames", m->n_frames);
    m->unit_peak = sweep_make(m->sweep, m->template, m->n_sweep, rate);
    for (size_t i = 0; i < m->n_sweep; i++)
        m->played[m->n_pause + i] = (float)(factor * m->sweep[i]);
    for (size_t i = 0; i < m->n_sweep; i++) m->template[i] /= factor;
    return true;
}

static bool measure_start(struct measure *m, struct fault *fault)
{
    struct settings *s = m->settings;
    const double rate = s->rate > 0 ? s->rate : m->out.rate;
    if (!options_resolve_times(s, rate, fault)) return false;
    struct device_request request = {
        .in = m->in,
        .out = m->out,
        .in_channels = m->channels,
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
    while (atomic_load_explicit(&m->at, memory_order_acquire) < m->n_frames) {
        struct pollfd file = {.fd = signals, .events = POLLIN};
        poll(&file, 1, 50);
        uint64_t calls = atomic_load_explicit(&m->calls, memory_order_relaxed);
        if (signals_next(signals)) return fault_set(fault, "interrupted") ? EXIT_DONE : EXIT_FAILED;
        if (heartbeat_check(&heartbeat, calls, clock_seconds(),
                            calls ? SILENT_SECONDS : START_SECONDS))
            continue;
        fault_set(fault, "%s: the audio device is lost", m->out.name);
        return EXIT_LOST;
    }
    return EXIT_DONE;
}

// Computes the response of one input. Lag 0 is the frame at which the sweep started.
static bool deconvolve(struct measure *m, size_t channel, struct fault *fault)
{
    size_t n = m->n_sweep + m->n_response;
    const float *recorded = m->recorded + channel * m->n_frames + m->n_pause;
    struct partita_slice lags = {
        .mode = PARTITA_RANGE, .first = 0, .last = (ptrdiff_t)m->n_response};
    for (size_t i = 0; i < n; i++) m->input[i] = (double)recorded[i];
    enum partita_status status =
        partita_correlate(PARTITA_F64, m->responses.samples + channel * m->n_response, m->input, n,
                          m->template, m->n_sweep, &lags, NULL);
    return !status || fault_set(fault, "%s", partita_status_string(status));
}

struct path {
    size_t latency; // frames
    double level;   // gain of a path with that peak; 0: no response
};

static struct path find_peak(const struct measure *m, size_t channel)
{
    const double *response = m->responses.samples + channel * m->n_response;
    struct path path = {.latency = frames_peak(response, m->n_response)};
    double energy = 0;
    for (size_t i = 0; i < m->n_response; i++) energy += response[i] * response[i];
    const double peak = fabs(response[path.latency]);
    if (peak >= MIN_CREST_FACTOR * sqrt(energy / (double)m->n_response))
        path.level = peak / m->unit_peak;
    return path;
}

static void print_path(const struct measure *m, size_t channel, struct path path, json_t *list)
{
    double seconds = (double)path.latency / m->format.rate;
    if (m->settings->json) {
        const bool found = path.level > 0;
        json_t *j = json_pack("{s:i, s:o, s:o, s:o}", "input", (int)channel + 1, "latency_frames",
                              found ? json_integer((json_int_t)path.latency) : json_null(),
                              "latency_seconds", found ? json_real(seconds) : json_null(),
                              "level_db", json_finite(20 * log10(path.level)));
        json_array_append_new(list, j);
    } else if (path.level > 0) {
        printf("input %zu: round trip %zu frames, %.3f ms, level %.1f dB\n", channel + 1,
               path.latency, 1e3 * seconds, 20 * log10(path.level));
    } else {
        printf("input %zu: no response\n", channel + 1);
    }
}

static bool print_json(const struct measure *m, json_t *list)
{
    json_t *j = json_report("partita-measure/1", command_rows[COMMAND_LIVE].name);
    json_object_set_new(j, "rate", json_real(m->format.rate));
    json_object_set_new(j, "in_device", json_text(m->in.name));
    json_object_set_new(j, "out_device", json_text(m->out.name));
    json_object_set(j, "inputs", list);
    return json_print(j, stdout);
}

static bool evaluate(struct measure *m, struct fault *fault)
{
    json_t *list = json_array();
    bool good = list || fault_set(fault, "out of memory"), any = false;
    for (size_t c = 0; good && c < m->channels; c++) {
        good = deconvolve(m, c, fault);
        if (!good) break;
        struct path path = find_peak(m, c);
        any = any || path.level > 0;
        print_path(m, c, path, list);
    }
    if (good && m->settings->json && !print_json(m, list))
        good = fault_set(fault, "standard output: cannot write");
    if (good && !any)
        good = fault_set(fault,
                         "no input received the sweep; connect output 1 of %s to an input of %s",
                         m->out.name, m->in.name);
    m->responses.rate = round(m->format.rate);
    good = good && measured_write(&m->responses, m->settings, m->settings->measure_to, fault);
    json_decref(list);
    return good;
}

static void measure_release(struct measure *m)
{
    free(m->sweep);
    free(m->template);
    free(m->input);
    measured_release(&m->responses);
    free(m->played);
    free(m->recorded);
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
    if (!timed_call_hangs()) measure_release(&m);
    return status;
}
