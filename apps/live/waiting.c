// SPDX-License-Identifier: MIT
#include "waiting.h"

#include <math.h>
#include <poll.h>
#include <signal.h>

#include "../../lib/base/clock.h"
#include "live/console/terminal.h"

static void serve(struct waiting *w, double seconds)
{
    struct pollfd files[1 + REMOTES_MAX_FILES] = {{.fd = w->signals, .events = POLLIN}};
    const nfds_t n = remotes_files(&w->remotes, clock_seconds(), files + 1);
    poll(files, 1 + n, (int)ceil(1e3 * seconds));
    for (int number; (number = signals_next(w->signals)) != 0;)
        if (number != SIGHUP || terminal_has_gone()) w->steer.ended = true;
    remotes_serve(&w->remotes, clock_seconds(), steer_run_waiting, &w->steer);
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
