// SPDX-License-Identifier: MIT
// zita-convolver (Adriaensen) as a contender. Its smallest partition is the call, so that it adds
// no delay; FFTW's plans are measured; the partition partition, vector mode and the density hint
// are those that are fastest here.
//
// What is measured: zita has one thread for each size of partitions but the first. process(true)
// waits for a thread when its result is due, so nothing is late, but much work is done between
// calls. In rows of one thread this program and all those threads are therefore bound to one
// processor during a pass: the time of the pass is then the work of all of them, on one core as for
// other contenders. In rows of two threads nothing is bound. The time of a single call is then its
// own work, its waiting and what the scheduler ran meanwhile: the minimum over several passes
// excludes work that fell into other calls, which favours the threads. Real-time priorities would
// move their work, not reduce it.
extern "C" {
#include "peers/peers.h"
}

#include <cstring>
#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>
#include <zita-convolver.h>

// Replaces the C library's function. zita-convolver requests stacks of 64 KiB, which also hold the
// thread-local data of all libraries; that of libavfilter's dependencies leaves nothing. Its
// threads would then not start, and it would not notice.
extern "C" int pthread_attr_setstacksize(pthread_attr_t *attributes, size_t size)
{
    void *next = dlsym(RTLD_NEXT, "pthread_attr_setstacksize");
    return reinterpret_cast<int (*)(pthread_attr_t *, size_t)>(next)(
        attributes, size < 1 << 20 ? 1 << 20 : size);
}

namespace {

struct Settings {
    size_t max_partition;
    uint32_t options; // of Convproc
    float density;    // share of paths in use, which controls how partitions grow
};

struct Zita {
    Convproc engine;
    bool bound;
};

// Binds the calling thread, and those it starts meanwhile, to the processor it runs on.
class Bound {
  public:
    explicit Bound(bool wanted) : wanted(wanted)
    {
        if (!wanted) return;
        sched_getaffinity(0, sizeof before, &before);
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(sched_getcpu(), &one);
        sched_setaffinity(0, sizeof one, &one);
    }
    ~Bound()
    {
        if (wanted) sched_setaffinity(0, sizeof before, &before);
    }

  private:
    bool wanted;
    cpu_set_t before;
};

void zita_call(void *state, const workload *w, size_t at)
{
    Zita *z = static_cast<Zita *>(state);
    const float *x = reinterpret_cast<const float *>(w->x) + at;
    float *y = reinterpret_cast<float *>(w->y) + at;
    for (uint32_t c = 0; c < w->in_channels; c++)
        memcpy(z->engine.inpdata(c), x + c * w->n_frames, w->block * sizeof(float));
    z->engine.process(true);
    for (uint32_t c = 0; c < w->out_channels; c++)
        memcpy(y + c * w->n_out, z->engine.outdata(c), w->block * sizeof(float));
}

// Starting clears all history. It waits until the threads run, because zita computes their work in
// the calling thread before that.
void zita_start(Zita *z)
{
    z->engine.start_process(0, SCHED_OTHER);
    usleep(20000);
}

void zita_stop(Zita *z)
{
    z->engine.stop_process();
    while (!z->engine.check_stop()) usleep(1000);
}

double zita_pass(void *state, const workload *w, double *calls)
{
    Zita *z = static_cast<Zita *>(state);
    Bound bound(z->bound);
    zita_start(z);
    double seconds = bench_calls(w, calls, zita_call, z);
    zita_stop(z);
    return seconds;
}

void zita_close(void *state)
{
    delete static_cast<Zita *>(state);
}

// NULL if zita-convolver refuses.
Zita *zita_open(const workload *w, const Settings &settings, bool bound)
{
    Zita *z = new Zita;
    uint32_t block = static_cast<uint32_t>(w->block), in = static_cast<uint32_t>(w->in_channels),
             out = static_cast<uint32_t>(w->out_channels),
             n_taps = static_cast<uint32_t>(w->n_taps);
    z->bound = bound;
    z->engine.set_options(settings.options);
    int error =
        z->engine.configure(in, out, n_taps, block, block,
                            static_cast<uint32_t>(settings.max_partition), settings.density);
    float *taps = reinterpret_cast<float *>(w->h);
    for (uint32_t path = 0; path < in * out && error == 0; path++)
        error = z->engine.impdata_create(path % in, path / in, 1, taps + path * w->n_taps, 0,
                                         static_cast<int32_t>(n_taps));
    if (error == 0) return z;
    delete z;
    return NULL;
}

// Seconds of four partitions of the maximum size.
double zita_trial(const workload *w, const Settings &settings, bool bound)
{
    Zita *z = zita_open(w, settings, bound);
    if (z == NULL) return 1e9;
    Bound binding(bound);
    zita_start(z);
    double before = bench_now();
    for (size_t at = 0; at < 4 * Convproc::MAXPART; at += w->block)
        zita_call(z, w, at % w->n_frames);
    double seconds = bench_now() - before;
    zita_stop(z);
    delete z;
    return seconds;
}

// Tries one setting after the other and keeps what is faster.
Settings zita_fastest(const workload *w, bool bound)
{
    const uint32_t vectors = Convproc::OPT_FFTW_MEASURE | Convproc::OPT_VECTOR_MODE;
    Settings best = {Convproc::MAXPART, vectors, 1};
    double min_seconds = zita_trial(w, best, bound);
    auto try_settings = [&](const Settings &settings) {
        double seconds = zita_trial(w, settings, bound);
        if (seconds < min_seconds) best = settings;
        if (seconds < min_seconds) min_seconds = seconds;
    };
    for (size_t partition = Convproc::MAXPART / 2; partition >= 1024 && partition >= w->block;
         partition /= 2)
        try_settings(Settings{partition, vectors, 1});
    try_settings(Settings{best.max_partition, Convproc::OPT_FFTW_MEASURE, 1});
    if (w->in_channels * w->out_channels > 1)
        try_settings(Settings{best.max_partition, best.options, 0});
    return best;
}

bool zita_applies(const workload *w)
{
    return w->block > 0 && w->stride == 1 && w->groups == 1 && w->signal == PARTITA_F32 &&
           w->taps == PARTITA_F32 && w->in_channels <= Convproc::MAXINP &&
           w->out_channels <= Convproc::MAXOUT && w->block <= Convproc::MAXPART &&
           (w->block & (w->block - 1)) == 0;
}

} // namespace

extern "C" bool peer_zita(struct contender *contender, const struct workload *w)
{
    if (!zita_applies(w) || (contender->threads > 1 && w->in_channels * w->out_channels == 1))
        return false;
    if (w->block < Convproc::MINPART) {
        snprintf(contender->reason, sizeof contender->reason,
                 "calls below %d frames would be delayed", static_cast<int>(Convproc::MINPART));
        return false;
    }
    bool bound = contender->threads == 1;
    Zita *z = zita_open(w, zita_fastest(w, bound), bound);
    if (z == NULL) return false;
    contender->state = z;
    contender->pass = zita_pass;
    contender->close = zita_close;
    contender->gate = gate_peer(w);
    return true;
}
