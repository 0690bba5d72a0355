// SPDX-License-Identifier: MIT
// For LD_PRELOAD with interpose.c: the whole program runs, and its audio thread is watched while it
// is in the program's callback. The file that WATCHED_AUDIO names is created when the first call
// has returned, so that a test knows that calls were watched.
#include <dlfcn.h>
#include <fcntl.h>
#include <portaudio.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/interpose.h"

static PaStreamCallback *watched;
static atomic_bool called;

static int watch(const void *in, void *out, unsigned long n, const PaStreamCallbackTimeInfo *time,
                 PaStreamCallbackFlags flags, void *user)
{
    watch_this_thread(true);
    const int result = watched(in, out, n, time, flags, user);
    watch_this_thread(false);
    if (!atomic_exchange(&called, true))
        close(open(getenv("WATCHED_AUDIO"), O_CREAT | O_WRONLY, 0600));
    return result;
}

PaError Pa_OpenStream(PaStream **stream, const PaStreamParameters *in,
                      const PaStreamParameters *out, double rate, unsigned long frames,
                      PaStreamFlags flags, PaStreamCallback *callback, void *user)
{
    __typeof__(&Pa_OpenStream) next;
    *(void **)&next = dlsym(RTLD_NEXT, "Pa_OpenStream");
    watched = callback;
    return next(stream, in, out, rate, frames, flags, watch, user);
}
