// SPDX-License-Identifier: MIT
// A CUDA module of another build, which the library must not call: made from other sources
// (FOREIGN_SOURCES), or by a compiler that lays out a struct in another way.
#include <stdlib.h>

#include "core/plan.h"
#include "core/spectrum.h"

static enum partita_status open_device(size_t index, char *text, size_t size, struct device **ret)
{
    (void)index;
    (void)text;
    (void)size;
    (void)ret;
    abort();
}

struct device_module partita_device_module PARTITA_API = {
    .version = DEVICE_MODULE_VERSION,
    .sources = device_source_hash,
    .struct_bytes = DEVICE_STRUCT_BYTES,
    .open = open_device,
};

__attribute__((constructor)) static void change(void)
{
#ifdef FOREIGN_SOURCES
    partita_device_module.sources = "0123456789abcdef0123456789abcdef";
#else
    partita_device_module.struct_bytes[DEVICE_STRUCTS - 1] += 8;
#endif
}
