// SPDX-License-Identifier: MIT
// `partita live`: from the arguments to the exit status, over as many devices lost as it takes.
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/engine_name.h"
#include "cli/report.h"
#include "control.h"
#include "live/console/signals.h"
#include "live/console/terminal.h"
#include "live/measure/measure.h"
#include "live/record/output_names.h"
#include "resume.h"
#include "session.h"
#include "status.h"

// How long PortAudio may take to end a stream, and one that has no device any more; how long to
// wait before asking for a lost device again.
static const double CLOSE_SECONDS = 2, CLOSE_LOST_SECONDS = 0.5;
// A sweep has a quarter of full scale, and no limiter.
static const double MAX_SWEEP_GAIN = 12;
enum { RETRY_MILLISECONDS = 500, LAST_LINE_MILLISECONDS = 500 };

struct live {
    struct settings settings;
    int signals;
    struct resume resume;
};

static bool check_usage(const struct settings *s, struct fault *fault)
{
    if (!s->irs.n && !s->measure_to) return fault_set(fault, "needs --ir IR (or --measure OUT)");
    if (s->irs.n && s->measure_to)
        return fault_set(fault, "--measure plays a sweep; leave out --ir");
    if (s->measure_to && (s->record || s->calls || s->retry))
        return fault_set(fault, "--measure does without --record, --calls and --retry");
    if (s->measure_to && isfinite(s->duration) && (s->duration < 0.1 || s->duration > 600))
        return fault_set(fault, "--duration %g: a sweep takes 0.1 to 600 seconds", s->duration);
    if (s->measure_to && s->gain > MAX_SWEEP_GAIN)
        return fault_set(fault, "--gain %g: a sweep of more than %g dB is beyond full scale",
                         s->gain, MAX_SWEEP_GAIN);
    if (s->quiet && s->verbose)
        return fault_set(fault, "--quiet and --verbose contradict each other");
    if (s->record && strcmp(s->record, "-") == 0)
        return fault_set(fault, "--record -: names a file, not a pipe");
    return device_check_latency(s->audio_latency, fault) && engine_check(s, fault);
}

// Waits a moment. False: the user wants no more. There is no filter to read again.
static bool wait_for_device(const struct live *live)
{
    struct pollfd file = {.fd = live->signals, .events = POLLIN};
    poll(&file, 1, RETRY_MILLISECONDS);
    for (int number; (number = signals_next(live->signals)) != 0;)
        if (number != SIGHUP || terminal_has_gone()) return false;
    return true;
}

// Beside a call that hangs PortAudio cannot be used again, and nothing that it knows be released.
static void leave_session(struct session *session)
{
    device_close(session->host, true, CLOSE_SECONDS);
    if (device_hangs()) session_discard_files(session);
    else session_close(session);
}

// Opens everything; with --retry, waits for the device. EXIT_DONE, or why not.
static int open_session(struct live *live, struct session *session, struct fault *fault)
{
    struct resume *r = &live->resume;
    for (;;) {
        *session = (struct session){.gain = r->gain, .mute = r->mute, .bypass = r->bypass};
        if (device_initialize(live->settings.verbose, fault) &&
            session_open(session, &live->settings, r->take, fault)) {
            r->waiting = false;
            return EXIT_DONE;
        }
        bool wait = live->settings.retry && (session->no_device || device_hangs());
        leave_session(session);
        if (!wait) return device_hangs() ? EXIT_LOST : EXIT_FAILED;
        if (!r->waiting) report_warning(&live->settings, "%s; waiting for it", fault->text);
        r->waiting = true;
        if (!wait_for_device(live)) {
            fault_set(fault, "interrupted while there was no device");
            return EXIT_FAILED;
        }
        if (device_hangs()) resume_as_new(r, live->settings.argc, live->settings.argv);
    }
}

static void say_what_runs(const struct session *s)
{
    const struct settings *settings = s->settings;
    if (settings->quiet || settings->json) return;
    bool one = s->in.index == s->out.index;
    fprintf(stderr, "partita live: %s%s%s (%s), %g Hz, %zu in, %zu out; %s, %zu taps\n", s->in.name,
            one ? "" : " to ", one ? "" : s->out.name, s->out.api, s->format.rate,
            filter_set_in_channels(s->bank), filter_set_out_channels(s->bank),
            partita_plan_engine(filter_set_plan(s->bank)),
            filter_set_filter(s->bank, filter_set_current(s->bank)).taps);
    if (s->format.in_latency < 0 || s->format.out_latency < 0)
        report_warning(settings,
                       "the device tells of a latency that cannot be; measure it with --measure");
}

// Files first: they are complete whatever PortAudio does then.
static int conclude(struct live *live, struct session *session)
{
    struct fault fault;
    int status = EXIT_DONE;
    if (session->lost) {
        fault_set(&fault, "%s: the audio device is lost", session->out.name);
        status = report_fault(COMMAND_LIVE, &fault, EXIT_LOST);
    } else {
        device_close(session->host, false,
                     CLOSE_SECONDS + session_latency(session)); // plays what is buffered
        session->host = NULL;
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

// The last line of JSON: waits for its reader, as long as the user lets it; a run that goes on does
// not.
static bool say_last_line(const struct live *live, struct session *s, bool again)
{
    struct fault fault;
    int limit = again ? LAST_LINE_MILLISECONDS : -1;
    if (!s->settings->json || s->lines.error == EPIPE) return true;
    bool good = lines_flush(&s->lines, limit, live->signals);
    if (good) lines_put(&s->lines, status_compose_json(s, true));
    good = good && lines_flush(&s->lines, limit, live->signals);
    if (good || s->lines.error == EPIPE) return true;
    fault_set(&fault, "standard output: cannot write: %s",
              s->lines.error ? strerror(s->lines.error) : "nobody reads it");
    report_fault(COMMAND_LIVE, &fault, EXIT_FAILED);
    return false;
}

static void keep_for_resume(struct live *live, const struct session *s)
{
    live->resume = (struct resume){
        .take = live->resume.take + 1,
        .filter = filter_set_current(s->bank),
        .gain = s->gain,
        .played = live->resume.played + (double)chain_counts(s->chain).frames / s->format.rate,
        .mute = s->mute,
        .bypass = s->bypass,
    };
}

// Plays until the end or the loss of the device.
static int play(struct live *live)
{
    struct session session;
    struct fault fault;
    int status = open_session(live, &session, &fault);
    if (status) return report_fault(COMMAND_LIVE, &fault, (enum exit_status)status);
    if (live->resume.filter && live->resume.filter < filter_set_size(session.bank))
        filter_set_select(session.bank, live->resume.filter);
    bool started = device_start(session.host, &fault);
    if (started) {
        say_what_runs(&session);
        control_run(&session, live->signals);
        status = conclude(live, &session);
    } else {
        session.lost = device_hangs();
        status = report_fault(COMMAND_LIVE, &fault, session.lost ? EXIT_LOST : EXIT_FAILED);
        session_discard_files(&session);
    }
    bool again = session.lost && live->settings.retry && !session.ending;
    if (again) {
        if (started) say_last_line(live, &session, true);
        if (started) keep_for_resume(live, &session);
        resume_as_new(&live->resume, live->settings.argc, live->settings.argv);
    }
    if (session.host)
        device_close(session.host, true, started ? CLOSE_LOST_SECONDS : CLOSE_SECONDS);
    const bool told = !started || again || say_last_line(live, &session, false);
    if (!told && status != EXIT_LOST) status = EXIT_FAILED; // also where samples were lost besides
    if (!device_hangs()) session_close(&session);
    return status;
}

static void take_over(struct live *live)
{
    struct settings *s = &live->settings;
    if (!resume_read(&live->resume)) {
        live->resume.gain = s->gain;
        return;
    }
    s->duration = fmax(0, s->duration - live->resume.played);
}

int live_main(const struct settings *settings)
{
    struct live live = {.settings = *settings};
    struct fault fault;
    int status;
    if (!check_usage(&live.settings, &fault)) return report_usage(COMMAND_LIVE, &fault);
    take_over(&live);
    if (!output_names_check(&live.settings, live.resume.take, &fault))
        return report_fault(COMMAND_LIVE, &fault, EXIT_FAILED);
    live.signals = signals_install();
    terminal_remember();
    if (live.settings.measure_to) status = measure_run(&live.settings, live.signals);
    else status = play(&live);
    status = report_close(COMMAND_LIVE, status);
    // The hanging thread holds locks that ordinary ways out would wait for.
    if (device_hangs()) _exit(status);
    return status;
}
