// SPDX-License-Identifier: MIT
// The functions of cuFFT that cufft.c calls, found when the first one is called: a machine without
// cuFFT lacks its rows only, not bench_gpu. PARTITA_CUFFT names another library, as for Partita.
#include <cufft.h>

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    cufftResult (*create)(cufftHandle *);
    cufftResult (*make_plan)(cufftHandle, int, long long *, long long *, long long, long long,
                             long long *, long long, long long, cufftType, long long, size_t *);
    cufftResult (*set_stream)(cufftHandle, cudaStream_t);
    cufftResult (*c2c)(cufftHandle, cufftComplex *, cufftComplex *, int);
    cufftResult (*r2c)(cufftHandle, cufftReal *, cufftComplex *);
    cufftResult (*c2r)(cufftHandle, cufftComplex *, cufftReal *);
    cufftResult (*destroy)(cufftHandle);
} cufft;

// True: all functions are found.
static bool find_functions(void *library)
{
    const struct {
        const char *name;
        void *function;
    } wanted[] = {
        {"cufftCreate", &cufft.create},        {"cufftMakePlanMany64", &cufft.make_plan},
        {"cufftSetStream", &cufft.set_stream}, {"cufftExecC2C", &cufft.c2c},
        {"cufftExecR2C", &cufft.r2c},          {"cufftExecC2R", &cufft.c2r},
        {"cufftDestroy", &cufft.destroy},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        void *symbol = dlsym(library, wanted[i].name);
        if (!symbol) return false;
        memcpy(wanted[i].function, &symbol, sizeof symbol); // POSIX: a function as an object
    }
    return true;
}

static bool open_library(void)
{
    const char *names = getenv("PARTITA_CUFFT");
    if (!names) names = "libcufft.so.12:libcufft.so.11";
    for (; *names; names += *names == ':') {
        const int length = (int)strcspn(names, ":");
        char name[4096];
        snprintf(name, sizeof name, "%.*s", length, names);
        void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (library && find_functions(library)) return true;
        names += length;
    }
    return false;
}

// Handles exist only after this has succeeded, so only this function looks for the library.
cufftResult cufftCreate(cufftHandle *handle)
{
    if (!cufft.destroy && !open_library()) return CUFFT_SETUP_FAILED;
    return cufft.create(handle);
}

cufftResult cufftMakePlanMany64(cufftHandle plan, int rank, long long *n, long long *in_embed,
                                long long in_stride, long long in_distance, long long *out_embed,
                                long long out_stride, long long out_distance, cufftType type,
                                long long batch, size_t *work_bytes)
{
    return cufft.make_plan(plan, rank, n, in_embed, in_stride, in_distance, out_embed, out_stride,
                           out_distance, type, batch, work_bytes);
}

cufftResult cufftSetStream(cufftHandle plan, cudaStream_t stream)
{
    return cufft.set_stream(plan, stream);
}

cufftResult cufftExecC2C(cufftHandle plan, cufftComplex *from, cufftComplex *to, int direction)
{
    return cufft.c2c(plan, from, to, direction);
}

cufftResult cufftExecR2C(cufftHandle plan, cufftReal *from, cufftComplex *to)
{
    return cufft.r2c(plan, from, to);
}

cufftResult cufftExecC2R(cufftHandle plan, cufftComplex *from, cufftReal *to)
{
    return cufft.c2r(plan, from, to);
}

cufftResult cufftDestroy(cufftHandle plan)
{
    return cufft.destroy(plan);
}
