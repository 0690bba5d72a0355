// SPDX-License-Identifier: MIT
// One GPU as the process sees it: its properties, which are read once; its context; and a pool of
// its memory that is the library's own. All plans of the GPU share it.
#ifndef PARTITA_CUDA_GPU_H
#define PARTITA_CUDA_GPU_H

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#if CUDART_VERSION < 12000
#error "CUDA 12.0 or later is needed"
#endif

struct CUctx_st;

// Rates of a GPU, by which all engines estimate: assumed, partly from the GPU's
// properties, or measured (measure.h).
struct cuda_gpu_rates {
    double launch;     // seconds of one more kernel in a queue
    double host_graph; // seconds in which the host queues a graph
    double graph;      // seconds of a graph of one small kernel, with the wait for it
    double pass;       // seconds of one pass of f32 transforms that occupy all threads once
    double bytes;      // a second, from and to its memory
    double fma;        // multiply-adds a second, f32
    double tf32; // multiply-adds of TF32 in the time of one of f32, as in cuda_product; 0: tensor
                 // cores are not used
};

struct cuda_gpu {
    int index;
    char name[160], key[64];     // as in struct device
    int processors;              // streaming multiprocessors
    size_t shared_bytes;         // of one thread block, at most
    size_t memory;               // bytes, all of it
    int f64_share;               // f32 operations in the time of one f64 operation
    struct cuda_gpu_rates rates; // of plans that do not measure
    bool listed;                 // they are those of gpu/measured.h
    pthread_mutex_t measuring;   // protects the following two members
    bool is_measured;
    struct cuda_gpu_rates measured;   // in this process
    struct CUctx_st *_Atomic context; // NULL: not used yet
    pthread_mutex_t lock;             // protects the following members
    size_t holders;                   // not closed yet
    cudaMemPool_t pool;               // NULL: not made yet
    struct cuda_gpu *next;            // in the list of the process
};

// Opens GPU `index` of this process, which must exist; cuda_gpu_close must follow. NULL: it cannot
// be used, and text says why; with *text == '\0' for lack of host memory. No context is made.
// cuda_gpu_close of the last holder destroys the pool.
// Threads: any.
struct cuda_gpu *cuda_gpu_open(int index, char *text, size_t size);
void cuda_gpu_close(struct cuda_gpu *gpu);

// The driver's current context is the thread's current device for every CUDA runtime in the
// process. Changing it makes no context, while cudaSetDevice makes one on the device that it sets.
struct cuda_context {
    bool changed;            // the current context,
    struct CUctx_st *before; // which was this one; NULL: none
};

// Makes the GPU's context current for the calling thread until cuda_gpu_leave, which must follow
// whatever was returned; makes the context itself when first called.
cudaError_t cuda_gpu_enter(struct cuda_gpu *gpu, struct cuda_context *ret);
void cuda_gpu_leave(const struct cuda_context *context);

// The pool of the library's own, made if there is none: allocations of others in the process, and
// the attributes of the pools that they use, are not affected. While a holder is left, memory that
// was released stays in the pool, since later calls allocate as much. To be called in the GPU's
// context.
cudaError_t cuda_gpu_pool(struct cuda_gpu *gpu, cudaMemPool_t *ret);

#endif
