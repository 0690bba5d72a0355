// SPDX-License-Identifier: MIT
#include "cufft.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LIBRARIES = 4 };

static struct cuda_cufft_library libraries[MAX_LIBRARIES];
static size_t n_libraries;

// False: it cannot be loaded, or lacks a function.
static bool open_library(const char *name, struct cuda_cufft_library *ret)
{
    const struct {
        const char *name;
        void *function;
    } wanted[] = {
        {"cufftCreate", &ret->create},
        {"cufftSetAutoAllocation", &ret->auto_allocation},
        {"cufftMakePlanMany64", &ret->make_plan},
        {"cufftSetStream", &ret->set_stream},
        {"cufftSetWorkArea", &ret->set_work_area},
        {"cufftExecC2C", &ret->c2c},
        {"cufftExecZ2Z", &ret->z2z},
        {"cufftDestroy", &ret->destroy},
    };
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted && library; i++) {
        void *symbol = dlsym(library, wanted[i].name);
        memcpy(wanted[i].function, &symbol, sizeof symbol); // POSIX: a function as an object
        if (!symbol) return false;
    }
    return library;
}

static void open_once(void)
{
    const char *names = secure_getenv("PARTITA_CUFFT");
    if (!names) names = "libcufft.so.12:libcufft.so.11";
    while (*names && n_libraries < MAX_LIBRARIES) {
        const int length = (int)strcspn(names, ":");
        struct cuda_cufft_library *library = &libraries[n_libraries];
        char name[4096];
        if (snprintf(name, sizeof name, "%.*s", length, names) < (int)sizeof name &&
            open_library(name, library)) {
            if (n_libraries) libraries[n_libraries - 1].next = library;
            n_libraries++;
        }
        names += length;
        if (*names) names++;
    }
}

const struct cuda_cufft_library *cuda_cufft_libraries(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_once);
    return n_libraries ? libraries : NULL;
}
