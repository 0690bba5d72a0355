// SPDX-License-Identifier: MIT
#include "plan.h"

#include <dlfcn.h>
#include <partita/plan.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "arguments.h"
#include "base/log.h"
#include "spectrum.h"

static const char *const MODULE = "libpartita-cuda.so";
static const char *const ABSENT = "there is no libpartita-cuda.so; it is built with -Dcuda=enabled";

// Beside the library itself, then where the system looks; PARTITA_CUDA_MODULE names another file.
// A loaded module stays loaded: a driver's threads may run in it. The name of a program that the
// library is linked into is given by its caller (argv[0]), so a name is not used where the caller
// must not choose code, nor if it is relative to a folder that may have changed.
static void *load_module(void)
{
    const int mode = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
    const char *wish = secure_getenv("PARTITA_CUDA_MODULE");
    if (wish) return dlopen(wish, mode);
    static const char anchor; // an address within the library
    Dl_info self;
    char path[4096];
    if (!getauxval(AT_SECURE) && dladdr(&anchor, &self) && self.dli_fname &&
        self.dli_fname[0] == '/') {
        const int folder = (int)(strrchr(self.dli_fname, '/') - self.dli_fname) + 1;
        const int length = snprintf(path, sizeof path, "%.*s%s", folder, self.dli_fname, MODULE);
        if (length < (int)sizeof path && access(path, R_OK) == 0) return dlopen(path, mode);
    }
    return dlopen(MODULE, mode);
}

// `version` is at the same place in every module.
static bool is_of_this_build(const struct device_module *module)
{
    static const unsigned bytes[DEVICE_STRUCTS] = DEVICE_STRUCT_BYTES;
    return module && module->version == DEVICE_MODULE_VERSION &&
           !strcmp(module->sources, device_source_hash) &&
           !memcmp(module->struct_bytes, bytes, sizeof bytes);
}

static enum partita_status open_cuda(size_t index, char *text, size_t size,
                                     struct device **ret_device)
{
    void *library = load_module();
    if (!library) {
        const char *error = dlerror();
        const bool absent =
            !strncmp(error, MODULE, strlen(MODULE)) && strstr(error, "No such file");
        snprintf(text, size, "no CUDA device: module not loaded: %s", absent ? ABSENT : error);
        return PARTITA_ERR_DEVICE;
    }
    const struct device_module *module = dlsym(library, DEVICE_MODULE_SYMBOL);
    if (!is_of_this_build(module)) {
        snprintf(
            text, size,
            "no CUDA device: %s was not built from the sources of this library (" PARTITA_VERSION
            ", %.8s): install both from one build",
            MODULE, device_source_hash);
        return PARTITA_ERR_DEVICE;
    }
    return module->open(index, text, size, ret_device);
}

// The number behind "cuda:"; false if it is none.
static bool parse_index(const char *digits, size_t *ret_index)
{
    const size_t n = strspn(digits, "0123456789");
    if (n == 0 || n > 4 || digits[n]) return false;
    *ret_index = strtoul(digits, NULL, 10);
    return true;
}

enum partita_status device_open(const char *name, char *text, size_t size,
                                struct device **ret_device)
{
    size_t index = 0;
    if (!name || !strcmp(name, "cpu")) return PARTITA_OK;
    if (!strcmp(name, "cuda") || (!strncmp(name, "cuda:", 5) && parse_index(name + 5, &index)))
        return open_cuda(index, text, size, ret_device);
    snprintf(text, size, "no such device; there are \"cpu\", \"cuda\" and \"cuda:N\"");
    return PARTITA_ERR_DEVICE;
}

enum partita_status device_of_options(const struct partita_options *options,
                                      struct device **ret_device)
{
    char text[256] = "";
    const enum partita_status status = device_open(options->device, text, sizeof text, ret_device);
    if (status != PARTITA_OK)
        log_line(&options->log, "options.device = \"%s\": %s", options->device, text);
    return status;
}

void device_close(struct device *device)
{
    if (device && device->close) device->close(device);
}

enum partita_status partita_device_describe(const char *device, char *text, size_t size)
{
    if (!arguments_given(log_default(), device, text)) return PARTITA_ERR_ARG;
    struct device *opened = NULL;
    const enum partita_status status = device_open(device, text, size, &opened);
    if (status == PARTITA_OK)
        snprintf(text, size, "%s", opened ? opened->name : "the processors of this machine");
    device_close(opened);
    return status;
}
