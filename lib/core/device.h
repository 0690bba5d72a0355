// SPDX-License-Identifier: MIT
// Devices other than the CPU. They are found by name; their modules are loaded when first
// requested. A module includes the library's internal headers and works only with the same build of
// the library; the two are installed together.
#ifndef PARTITA_INTERNAL_DEVICE_H
#define PARTITA_INTERNAL_DEVICE_H

#include <partita/plan.h>

struct engine;
struct operands;
struct partita_filter;
struct request;
struct spectrum_backend;

// A device that is open for a plan or for spectra, or the CPU. The module's own struct begins with
// this one.
struct device {
    bool host;       // it is the CPU
    bool queues;     // calls may be queued (call.queue)
    int max_threads; // of the CPU that a call uses if the options do not say how many; 0: all
    char name[160];  // for people: "NVIDIA H200, compute capability 9.0, ..."
    char key[64];    // one word, for keys of remembered choices
    char rates[192]; // for people: the basis of the engines' estimates
    const struct engine *const *engines; // NULL-terminated
    const struct spectrum_backend *spectra;
    // Before any estimate of a plan that measures: replaces the rates of this device by measured
    // ones, the same in every plan of the process. They stay as they are if there is no memory to
    // measure with. NULL: nothing. Errors: PARTITA_ERR_DEVICE.
    enum partita_status (*measure)(struct device *device, const struct partita_log *log);
    // Called after plan_create: makes all that `run` needs in addition to the engine's plan. NULL:
    // nothing.
    enum partita_status (*plan_begin)(struct partita_plan *plan, const struct request *request);
    // Bounded problems on arrays in any memory: engine->bounded.run, with the memory and the
    // repairs that it needs; or with operands->queue.
    enum partita_status (*run)(const struct partita_plan *plan, const struct partita_filter *filter,
                               const struct operands *operands, void *workspace);
    // Memory of the device. Errors: PARTITA_ERR_NOMEM, PARTITA_ERR_DEVICE. NULL may be released.
    enum partita_status (*reserve)(const struct partita_plan *plan, size_t bytes, void **ret);
    void (*release)(const struct partita_plan *plan, void *memory);
    // Packs from[0], taps, and from[1], a bias or NULL, into a filter of a bounded problem, for all
    // its directions, from any memory; or with operands->queue.
    enum partita_status (*filter_update)(struct partita_filter *filter,
                                         const struct operands *operands, void *workspace);
    // The gradient of the bias, `to` [out_channels] from gy, for a plan of this device.
    enum partita_status (*backward_bias)(const struct partita_plan *plan,
                                         const struct operands *operands);
    // Makes all that cannot be made during a capture, for all directions of a caller's plan.
    enum partita_status (*prepare)(const struct partita_plan *plan); // NULL: nothing
    // Called when a plan of the device is destroyed, before its engine's plan_destroy: releases
    // the results of plan_begin and all that calls kept.
    void (*plan_end)(struct partita_plan *plan); // NULL: nothing
    void (*close)(struct device *device);
};

enum { DEVICE_MODULE_VERSION = 10, DEVICE_STRUCTS = 8 };

// The export of a module under DEVICE_MODULE_SYMBOL. `version`, which identifies this struct,
// `sources` and `struct_bytes` must equal the library's own values: then every internal struct, and
// every function that both have, is the same in both.
struct device_module {
    unsigned version;
    const char *sources;                   // device_source_hash
    unsigned struct_bytes[DEVICE_STRUCTS]; // as the module's compiler lays them out
    // Opens device `index`. Errors: PARTITA_ERR_DEVICE, text says why; PARTITA_ERR_NOMEM.
    enum partita_status (*open)(size_t index, char *text, size_t size, struct device **ret_device);
};

#define DEVICE_MODULE_SYMBOL "partita_device_module"

// A hash of all sources that a build was made from, without those of the module alone
// (source_hash.sh).
extern const char device_source_hash[];

// Initial value of struct_bytes, where core/plan.h and core/spectrum.h are included.
#define DEVICE_STRUCT_BYTES                                                                        \
    {                                                                                              \
        sizeof(struct device), sizeof(struct engine), sizeof(struct estimate),                     \
            sizeof(struct request), sizeof(struct operands), sizeof(struct partita_plan),          \
            sizeof(struct partita_filter), sizeof(struct partita_spectrum)                         \
    }

// Opens a device by name; *ret_device stays as it is, the CPU, for NULL and "cpu".
// Errors: PARTITA_ERR_DEVICE, text says why; PARTITA_ERR_NOMEM.
enum partita_status device_open(const char *name, char *text, size_t size,
                                struct device **ret_device);

// The same for the device that the options name; reports failures to the options' log.
enum partita_status device_of_options(const struct partita_options *options,
                                      struct device **ret_device);

// NULL and the CPU are allowed.
void device_close(struct device *device);

#endif
