// SPDX-License-Identifier: MIT
#include "cufft.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static struct cufft functions;
static bool complete;

static void *load(void)
{
    static const char *const names[] = {"libcufft.so.12", "libcufft.so.11"};
    const int mode = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
    const char *wish = secure_getenv("PARTITA_CUFFT");
    if (wish) return dlopen(wish, mode);
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
        library = dlopen(names[i], mode);
    return library;
}

// A pointer to a function is of another kind than dlsym returns: copied, as POSIX asks.
static bool find(void *library, const char *name, void *ret_function)
{
    void *symbol = dlsym(library, name);
    memcpy(ret_function, &symbol, sizeof symbol);
    return symbol;
}

static void open_once(void)
{
    void *library = load();
    if (!library) return;
    complete = find(library, "cufftCreate", &functions.create) &&
               find(library, "cufftSetAutoAllocation", &functions.auto_allocation) &&
               find(library, "cufftMakePlanMany64", &functions.make_plan) &&
               find(library, "cufftSetStream", &functions.set_stream) &&
               find(library, "cufftSetWorkArea", &functions.set_area) &&
               find(library, "cufftExecC2C", &functions.c2c) &&
               find(library, "cufftExecZ2Z", &functions.z2z) &&
               find(library, "cufftDestroy", &functions.destroy);
}

const struct cufft *cufft_open(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_once);
    return complete ? &functions : NULL;
}
