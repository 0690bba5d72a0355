// SPDX-License-Identifier: MIT
#include "waiting.h"

#include <math.h>
#include <poll.h>
#include <signal.h>

#include "../../lib/base/clock.h"
#include "live/console/terminal.h"

static void run_socket_line(void *user, char *line, struct control_reply *reply)
{
    struct fault fault; // is a part of the answer
    struct waiting *w = user;
    steer_run_waiting(&w->steer, line, reply, &fault);
}

static void run_osc_line(void *user, char *line)
{
    struct waiting *w = user;
    steer_run_osc_waiting(&w->steer, w->osc, line);
}

static void serve(struct waiting *w, double seconds)
{
    struct pollfd files[3 + CONTROL_MAX_FILES] = {{.fd = w->signals, .events = POLLIN},
                                                  {.fd = osc_file(w->osc), .events = POLLIN},
                                                  {.fd = web_file(w->web), .events = POLLIN}};
    const nfds_t n = control_socket_files(w->socket, clock_seconds(), files + 3);
    poll(files, 3 + n, (int)ceil(1e3 * seconds));
    for (int number; (number = signals_next(w->signals)) != 0;)
        if (number != SIGHUP || terminal_has_gone()) w->steer.ended = true;
    control_socket_serve(w->socket, clock_seconds(), run_socket_line, w);
    osc_serve(w->osc, run_osc_line, w);
    web_serve(w->web, run_socket_line, w);
}

bool waiting_pause(struct waiting *waiting, double seconds)
{
    const double end = clock_seconds() + seconds;
    for (double left = seconds; left > 0 && !waiting->steer.ended; left = end - clock_seconds())
        serve(waiting, left);
    return !waiting->steer.ended;
}

bool waiting_serve(void *waiting)
{
    struct waiting *w = waiting;
    serve(w, 0);
    return !w->steer.ended;
}
