// SPDX-License-Identifier: MIT
// `partita live`: checks the arguments, plays until the end, and restarts after the loss of a
// device with --retry.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/engine_name.h"
#include "cli/report.h"
#include "control.h"
#include "live/console/terminal.h"
#include "live/device/libraries.h"
#include "live/device/timed_call.h"
#include "live/measure/measure.h"
#include "restart.h"
#include "route/route.h"
#include "scene.h"
#include "session.h"
#include "status.h"
#include "steer.h"

// Time limits for closing a stream, and one whose device is lost.
static const double CLOSE_SECONDS = 2, CLOSE_LOST_SECONDS = 0.5;
// A sweep has a quarter of full scale and no limiter.
static const double MAX_SWEEP_GAIN = 12;
// Pause before a lost device is tried again; time for writing the last line before a restart.
static const double RETRY_SECONDS = 0.5;
enum { LAST_LINE_MILLISECONDS = 500 };

struct live {
    struct settings settings;
    struct restart restart;
    struct scenes scenes;   // without a path: there are none
    struct waiting waiting; // with the descriptors that it shares with sessions
};

static bool live_check_usage(const struct settings *s, struct fault *fault)
{
    if (s->measure_to &&
        (s->irs.n || s->record || s->calls || s->retry || s->cancel || options_are_steered(s)))
        return fault_set(fault, "--measure plays a sweep without a filter; leave out --ir, "
                                "--record, --calls, --retry, --cancel, --control, --osc, --scene "
                                "and --web");
    if (!s->irs.n && !s->measure_to)
        return fault_set(fault, "needs --ir IR, --config FILE, --scene FILE or --cancel FRAMES (or "
                                "--measure OUT)");
    if (s->far_end && !s->cancel)
        return fault_set(fault, "--far-end is for --cancel; add it, or leave out --far-end");
    if (s->measure_to && isfinite(s->duration) && (s->duration < 0.1 || s->duration > 600))
        return fault_set(fault, "--duration %g: a sweep must last 0.1 to 600 seconds", s->duration);
    if (s->measure_to && s->gain > MAX_SWEEP_GAIN)
        return fault_set(fault, "--gain %g: a sweep with more than %g dB exceeds full scale",
                         s->gain, MAX_SWEEP_GAIN);
    if (s->quiet && s->verbose)
        return fault_set(fault, "--quiet and --verbose contradict each other");
    if (s->record && strcmp(s->record, "-") == 0)
        return fault_set(fault, "--record -: must be a file, not a pipe");
    bool has_sofa = options_are_steered(s); // whose `load` may name one
    for (int i = 0; i < s->irs.n; i++) {
        has_sofa = has_sofa || sofa_is_named(s->irs.words[i]);
        if (!route_check(s, s->irs.words[i], fault)) return false;
    }
    if (!has_sofa && !(isnan(s->azimuth) && isnan(s->elevation)))
        return fault_set(fault, "--azimuth and --elevation are for a SOFA file (.sofa); name one "
                                "with --ir or leave them out");
    return engine_check(s, fault);
}

// What --cancel implies: one input of the far end, and without a filter one microphone, whose
// residual is the output. A filter without a name has the tap 1.
static void complete_cancel(struct settings *s)
{
    if (!s->cancel || s->measure_to) return;
    if (!s->far_end) s->far_end = 1;
    if (s->irs.n) return;
    s->irs.words[s->irs.n++] = "";
    if (!s->channels) s->channels = 1;
}

// Values that the table of options does not check. Without --rate the number of frames that a time
// has is known only when the device is open.
static bool live_check_values(struct settings *s, struct fault *fault)
{
    return (!s->name || device_check_name(s->name, fault)) &&
           device_check_latency(s->audio_latency, fault) &&
           (s->rate == 0 || options_resolve_times(s, s->rate, fault));
}

// Opens --osc, --web and --control, or continues with the socket of the process before. The socket
// is last: who sees its path may use all.
static bool open_control(struct live *live, bool continues, struct fault *fault)
{
    const struct settings *s = &live->settings;
    struct remotes *r = &live->waiting.remotes;
    if (s->osc && !osc_open(&r->others[0], s->osc, fault)) return false;
    if (s->web && !web_open(&r->others[1], s->web, fault)) return false;
    if (!s->control) return true;
    return (continues && control_socket_adopt(&r->socket, s->control, &live->restart.socket)) ||
           control_socket_open(&r->socket, s->control, fault);
}

// Commands are answered while PortAudio looks for the device.
static void begin_to_wait(struct live *live, const char *reason)
{
    struct waiting *w = &live->waiting;
    snprintf(w->reason, sizeof w->reason, "%s", reason);
    w->seconds = live->restart.played;
    timed_call_meanwhile(waiting_serve, w);
}

// The socket stays open, and the page removes what it has stored.
static void restart(struct live *live)
{
    struct remotes *r = &live->waiting.remotes;
    struct control_socket *const socket = r->socket;
    r->socket = NULL;
    remotes_close(r);
    r->socket = socket;
    restart_exec(&live->restart, socket, live->settings.argv - 1); // from the program's name on
}

// Opens a session; with --retry it waits for the device. False, with the exit status and, unless
// that is EXIT_DONE, a fault: there is none. It is EXIT_DONE if the user ends the program while it
// waits.
static bool open_session(struct live *live, struct session *session, int *ret_status,
                         struct fault *fault)
{
    struct restart *r = &live->restart;
    const int scene = r->filter < live->scenes.n ? r->filter : -1;
    for (;;) {
        *session = (struct session){.state = r->state,
                                    .remotes = &live->waiting.remotes,
                                    .scenes = &live->scenes,
                                    .scene = scene};
        if (device_initialize(&live->settings, fault) &&
            session_open(session, &live->settings, r->take, fault)) {
            r->waiting = false;
            timed_call_meanwhile(NULL, NULL);
            return true;
        }
        bool wait = live->settings.retry && (session->no_device || timed_call_hangs());
        device_close(session->stream, true, CLOSE_SECONDS);
        // If a call of PortAudio hangs, memory that it may access must not be released.
        if (timed_call_hangs()) recorder_discard(session->recorder);
        else session_close(session);
        *ret_status = timed_call_hangs() ? EXIT_LOST : EXIT_FAILED;
        if (!wait) return false;
        if (!r->waiting) report_warning(&live->settings, "%s; waiting for it", fault->text);
        r->waiting = true;
        begin_to_wait(live, fault->text);
        if (!waiting_pause(&live->waiting, RETRY_SECONDS)) {
            report_warning(&live->settings, "ended while there was no audio device");
            *ret_status = EXIT_DONE;
            return false;
        }
        if (timed_call_hangs()) restart(live);
    }
}

static void print_session(const struct session *s)
{
    const struct settings *settings = s->settings;
    if (jack_connections_missing())
        report_warning(settings, "%s: no connection could be made to %s", s->ports.path,
                       jack_connections_missing());
    if (settings->quiet || settings->json) return;
    const struct filter_set_view f = filter_set_view(s->filters);
    bool one = s->in.index == s->out.index;
    fprintf(stderr, "partita live: %s%s%s (%s), %g Hz, %zu in, %zu out; %s, %zu taps\n", s->in.name,
            one ? "" : " to ", one ? "" : s->out.name, s->out.api, s->format.rate,
            session_inputs(s), f.out_channels, partita_plan_engine(f.plan, PARTITA_FORWARD),
            f.info.taps);
    if (settings->cancel)
        fprintf(stderr,
                "partita live: microphones: inputs 1 to %zu; far end: inputs %zu to %zu; echoes up "
                "to %.1f ms\n",
                f.in_channels, f.in_channels + 1, session_inputs(s),
                1e3 * (double)settings->cancel / s->format.rate);
    if (s->format.in_latency < 0 || s->format.out_latency < 0)
        report_warning(settings,
                       "the device reports an impossible latency; measure it with --measure");
}

// Completes the files and prints the summary. A lost device is closed only afterwards, since that
// may hang.
static int live_conclude(struct live *live, struct session *session)
{
    struct fault fault;
    int status = EXIT_DONE;
    if (session->lost) {
        fault_set(&fault, "%s: the audio device is lost", session->out.name);
        status = report_fault(COMMAND_LIVE, &fault, EXIT_LOST);
    } else {
        device_close(session->stream, false,
                     CLOSE_SECONDS + session_latency(session)); // also plays its buffers
        session->stream = NULL;
    }
    if (!session_finish_files(session, &fault)) {
        report_fault(COMMAND_LIVE, &fault, EXIT_FAILED);
        if (!session->lost) status = EXIT_FAILED;
    }
    status_conclude(session);
    struct chain_counts counts = chain_counts(session->chain);
    bool degraded = counts.unrecorded || (live->settings.strict && counts.xruns);
    return status == EXIT_DONE && degraded ? EXIT_DEGRADED : status;
}

// Writes the last line of JSON. Before a restart it waits briefly for the reader, else until the
// user interrupts.
static bool write_last_line(const struct live *live, struct session *s, bool again)
{
    struct fault fault;
    int limit = again ? LAST_LINE_MILLISECONDS : -1;
    if (!s->settings->json || s->lines.error == EPIPE) return true;
    bool good = lines_flush(&s->lines, limit, live->waiting.signals);
    if (good) lines_put(&s->lines, status_compose_json(s, true));
    good = good && lines_flush(&s->lines, limit, live->waiting.signals);
    if (good || s->lines.error == EPIPE) return true;
    fault_set(&fault, "standard output: cannot write: %s",
              s->lines.error ? strerror(s->lines.error) : "its reader does not read");
    report_fault(COMMAND_LIVE, &fault, EXIT_FAILED);
    return false;
}

static void store_restart(struct live *live, const struct session *s)
{
    live->restart = (struct restart){
        .take = live->restart.take + 1,
        .filter = s->scenes->n ? s->scene : filter_set_view(s->filters).current,
        .state = s->state,
        .played = live->restart.played + (double)chain_counts(s->chain).frames / s->format.rate,
    };
}

// Plays until the end or the loss of the device.
static int live_play(struct live *live, struct fault *fault)
{
    struct session session;
    int status;
    if (!open_session(live, &session, &status, fault)) return status;
    const int filter = session.scene < 0
                           ? live->restart.filter
                           : filter_set_find(session.filters, live->scenes.list[session.scene].ir);
    if (filter > 0 && filter < filter_set_view(session.filters).n)
        filter_set_select(session.filters, filter);
    bool started = device_start(session.stream, fault);
    if (started) {
        print_session(&session);
        control_run(&session, live->waiting.signals);
        if (!session.lost || !live->settings.retry || session.ending)
            remotes_close(&live->waiting.remotes);
        status = live_conclude(live, &session);
    } else {
        session.lost = timed_call_hangs();
        status = report_fault(COMMAND_LIVE, fault, session.lost ? EXIT_LOST : EXIT_FAILED);
        recorder_discard(session.recorder);
    }
    bool again = session.lost && live->settings.retry && !session.ending;
    if (again) {
        if (started) write_last_line(live, &session, true);
        if (started) store_restart(live, &session);
        restart(live);
    }
    if (session.stream)
        device_close(session.stream, true, started ? CLOSE_LOST_SECONDS : CLOSE_SECONDS);
    const bool written = !started || again || write_last_line(live, &session, false);
    if (!written && status != EXIT_LOST) status = EXIT_FAILED; // overrides EXIT_DEGRADED
    if (!timed_call_hangs()) session_close(&session);
    return status;
}

// Whether this process continues a previous one.
static bool continue_previous(struct live *live)
{
    struct settings *s = &live->settings;
    struct fault warning;
    if (!restart_read(&live->restart)) {
        recorder_report_left(s);
        const struct scenes *scenes = &live->scenes;
        live->restart.filter = scenes->start;
        scene_set_state(&live->restart.state, s, scenes->n ? &scenes->list[scenes->start] : NULL);
        if (steer_doubt_level("--gain", s->gain, &warning)) report_warning(s, "%s", warning.text);
        if (steer_doubt_level("--dry", s->dry, &warning)) report_warning(s, "%s", warning.text);
        return false;
    }
    s->duration = fmax(0, s->duration - live->restart.played);
    return true;
}

int live_main(const struct settings *settings, struct fault *fault)
{
    struct live live = {.settings = *settings};
    int status = EXIT_FAILED;
    live.settings.operands[1] = "the audio device"; // the signal, in messages about filters
    if (!scene_open(&live.scenes, &live.settings, fault)) return EXIT_FAILED;
    complete_cancel(&live.settings);
    if (!live_check_usage(&live.settings, fault) || !live_check_values(&live.settings, fault))
        return EXIT_USAGE;
    const bool continues = continue_previous(&live);
    if (!recorder_check_options(&live.settings, live.restart.take, fault)) return EXIT_FAILED;
    live.waiting.signals = signals_install();
    terminal_remember();
    if (continues) begin_to_wait(&live, "it was lost");
    if (live.settings.measure_to) status = measure_run(&live.settings, live.waiting.signals, fault);
    else if (open_control(&live, continues, fault)) status = live_play(&live, fault);
    remotes_close(&live.waiting.remotes);
    // The hanging thread may hold locks for which exit would wait.
    if (timed_call_hangs()) _exit(report_end(COMMAND_LIVE, fault, status));
    return status;
}
