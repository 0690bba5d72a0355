// SPDX-License-Identifier: MIT
// Many instances of zita-convolver as a contender, with the settings that zita.cc finds best for
// one of 65536 taps. An instance has a thread for each size of partitions but the first; all of
// them are bound to the processor of the calling thread, as in rows of one thread there.
extern "C" {
#include "peers/instances.h"
}

#include <cstdio>
#include <cstring>
#include <new>
#include <sched.h>
#include <unistd.h>
#include <vector>
#include <zita-convolver.h>

namespace {

enum { MAX_INSTANCES = 512 }; // of some five threads each

struct Instances {
    std::vector<Convproc *> engines;
    cpu_set_t before;
};

void zita_instances_close(void *state, const struct instances *)
{
    Instances *opened = static_cast<Instances *>(state);
    for (Convproc *engine : opened->engines) engine->stop_process();
    for (Convproc *engine : opened->engines) {
        while (!engine->check_stop()) usleep(1000);
        delete engine;
    }
    sched_setaffinity(0, sizeof opened->before, &opened->before);
    delete opened;
}

bool zita_instances_add(Instances *opened, const struct instances *instances, size_t slot,
                        std::vector<float> &taps)
{
    const uint32_t n_taps = static_cast<uint32_t>(instances->taps);
    const uint32_t block = static_cast<uint32_t>(instances->block);
    Convproc *engine = new Convproc;
    opened->engines.push_back(engine);
    engine->set_options(Convproc::OPT_FFTW_MEASURE | Convproc::OPT_VECTOR_MODE);
    if (engine->configure(1, 1, n_taps, block, block, Convproc::MAXPART, 1)) return false;
    instances_taps(instances, slot, taps.data());
    return engine->impdata_create(0, 0, 1, taps.data(), 0, static_cast<int32_t>(n_taps)) == 0 &&
           engine->start_process(0, SCHED_OTHER) == 0;
}

void *zita_instances_open(const struct instances *instances)
{
    if (instances->slots > MAX_INSTANCES) {
        fprintf(stderr, "%s: zita-convolver left out: too many threads\n", instances->name);
        return NULL;
    }
    Instances *opened = new Instances;
    std::vector<float> taps(instances->taps);
    cpu_set_t one;
    sched_getaffinity(0, sizeof opened->before, &opened->before);
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    for (size_t i = 0; i < instances->slots; i++)
        if (!zita_instances_add(opened, instances, i, taps)) {
            fprintf(stderr, "%s: zita-convolver refuses instance %zu\n", instances->name, i);
            zita_instances_close(opened, instances);
            return NULL;
        }
    usleep(200000); // until the threads run
    return opened;
}

float *zita_instances_input(void *state, const struct instances *, size_t slot)
{
    return static_cast<Instances *>(state)->engines[slot]->inpdata(0);
}

const float *zita_instances_output(void *state, const struct instances *, size_t slot)
{
    return static_cast<Instances *>(state)->engines[slot]->outdata(0);
}

void zita_instances_process(void *state, const struct instances *)
{
    for (Convproc *engine : static_cast<Instances *>(state)->engines) engine->process(true);
}

} // namespace

extern "C" const struct instances_contender instances_zita = {
    "zita-convolver",       zita_instances_open,   zita_instances_input,
    zita_instances_process, zita_instances_output, zita_instances_close,
};
