// SPDX-License-Identifier: MIT
// Devices besides the CPU: found by name, served by modules that are loaded when first asked for. A
// module is compiled against the same internal headers as the library and no other build of it; the
// two are installed together.
#ifndef PARTITA_INTERNAL_DEVICE_H
#define PARTITA_INTERNAL_DEVICE_H

#include <partita/plan.h>

struct engine;
struct operands;
struct request;
struct spectrum_backend;

// A device that was opened for a plan, or for spectra. The module's own struct begins with this
// one.
struct device {
    char name[160];                      // in words: "NVIDIA H200, compute capability 9.0, ..."
    char key[64];                        // the same in one word, for remembered choices
    const struct engine *const *engines; // NULL-terminated; bounded problems by engine->run
    const struct spectrum_backend *spectra;
    // Makes what `run` needs besides the engine's plan; after plan_create.
    enum partita_status (*plan_begin)(struct partita_plan *plan, const struct request *request);
    // Bounded problems on arrays in any memory, in place of engine->run.
    enum partita_status (*run)(const struct partita_plan *plan, const struct partita_filter *filter,
                               const struct operands *operands, void *workspace);
    // Memory of the device. Errors: PARTITA_ERR_NOMEM, PARTITA_ERR_DEVICE. NULL may be released.
    enum partita_status (*reserve)(const struct partita_plan *plan, size_t bytes, void **ret);
    void (*release)(const struct partita_plan *plan, void *memory);
    // The gradient of the bias, gb [out_channels] from gy, for a plan of this device.
    enum partita_status (*backward_bias)(const struct partita_plan *plan, void *gb, const void *gy);
    // Before a plan of the device goes, and before its engine's plan_destroy: releases what
    // plan_begin made and what calls kept.
    void (*plan_end)(struct partita_plan *plan);
    void (*close)(struct device *device);
};

enum { DEVICE_MODULE_VERSION = 3 };

// What a module exports under DEVICE_MODULE_SYMBOL. The first two must be the library's own: they
// say that every internal struct is the same on both sides.
struct device_module {
    unsigned version;
    const char *build; // PARTITA_VERSION
    // Opens device `index`. Errors: PARTITA_ERR_DEVICE, text says why; PARTITA_ERR_NOMEM.
    enum partita_status (*open)(size_t index, char *text, size_t size, struct device **ret_device);
};

#define DEVICE_MODULE_SYMBOL "partita_device_module"

// Opens a device by name (NULL: "cpu"); *ret_device is NULL for the CPU.
// Errors: PARTITA_ERR_DEVICE, text says why; PARTITA_ERR_NOMEM.
enum partita_status device_open(const char *name, char *text, size_t size,
                                struct device **ret_device);

// The device that the options name; what is wrong with it goes to their log.
enum partita_status device_of_options(const struct partita_options *options,
                                      struct device **ret_device);

// NULL is allowed.
void device_close(struct device *device);

#endif
