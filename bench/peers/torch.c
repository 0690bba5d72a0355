// SPDX-License-Identifier: MIT
// PyTorch as a contender: a process with the environment of the package for Python (tools/bench.sh
// makes it), which runs the same layers on the same samples with as many threads. It is timed with
// plain arrays and with arrays that lie channels last. Memory that it has released stays with the
// process: otherwise the system would clear each large result page by page.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/peers.h"
#include "peers/process.h"
#include "workloads/network.h"

static double torch_pass(void *state, const struct workload *w, double *calls)
{
    (void)w;
    (void)calls;
    return process_ask(state, "run");
}

// One line for each part, as torch_server.py reads them. Layers are square.
static bool torch_write_parts(struct process *process, const struct workload *w)
{
    enum { LINE = 200 };
    char *text = bench_allocate(w->n_parts * LINE);
    size_t n = 0;
    for (size_t i = 0; i < w->n_parts; i++) {
        const struct network_part *part = &w->parts[i];
        const struct partita_problem p = layer_problem(&part->workload);
        n += (size_t)snprintf(text + n, LINE, "%d %u %d %zu %zu %zu %zu %zu %zu %zu %td\n",
                              (int)part->layer.direction, part->depth, p.rank, p.batch,
                              p.in_channels, p.out_channels, p.groups, p.kernel[0], p.stride[0],
                              p.size[0], p.pad_begin[0]);
    }
    const bool ok = process_write(process, "parts", text, n);
    free(text);
    return ok;
}

static bool torch_open(struct contender *contender, const struct workload *w, const char *layout)
{
    struct process *process = process_create();
    char threads[16], gy[32];
    size_t x = 0;
    for (size_t i = 0; i < w->n_parts; i++)
        if (w->parts[i].layer.direction == PARTITA_BACKWARD_WEIGHT)
            x = (size_t)(w->parts[i].workload.h - w->x);
    snprintf(threads, sizeof threads, "%d", contender->threads);
    snprintf(gy, sizeof gy, "%zu", x);
    const char *const words[] = {
        PYTHON, PEERS_FOLDER "/torch_server.py", process_folder(process), threads, layout, gy,
        NULL};
    contender->state = process;
    contender->pass = torch_pass;
    contender->fetch = process_fetch;
    contender->close = process_close;
    contender->gate = fmax(gate_network(w), gate_peer(w));
    if (torch_write_parts(process, w) && process_write(process, "x", w->x, w->x_bytes) &&
        process_write(process, "h", w->h, w->h_bytes) && process_start(process, words) &&
        !isnan(process_ask(process, "load")))
        return true;
    snprintf(contender->reason, sizeof contender->reason, "%s with PyTorch does not answer",
             PYTHON);
    process_close(process);
    return false;
}

bool peer_torch(struct contender *contender, const struct workload *w)
{
    return torch_open(contender, w, "first");
}

bool peer_torch_last(struct contender *contender, const struct workload *w)
{
    return w->network->rank == 2 && torch_open(contender, w, "last");
}
