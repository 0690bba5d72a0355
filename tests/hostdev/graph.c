// SPDX-License-Identifier: MIT
// Graphs: captured, or made of kernel nodes whose parameters may change. Launches are queued like
// kernels.
#include <stdlib.h>

#include "internal.h"

struct CUgraphExec_st {
    struct operation *first, **last;
    size_t holders;  // handles and queued launches
    size_t launches; // that are queued
};

struct CUgraph_st {
    cudaGraphExec_t recorded;
};

// As in cuda_runtime.h.
struct cudaKernelNodeParams {
    void *func;
    struct hostdev_index gridDim, blockDim;
    unsigned sharedMemBytes;
    void **kernelParams, **extra;
};

// Kernels whose parameters' types are known, because they were loaded.
static struct known_kernel {
    const void *symbol;
    hostdev_bind bind;
    size_t parameter_bytes;
} known[1024];

static size_t n_graphs;

static void *allocate(size_t bytes)
{
    void *made = calloc(1, bytes);
    if (!made) hostdev_abort("out of memory");
    return made;
}

cudaGraphExec_t graph_new(void)
{
    cudaGraphExec_t graph = allocate(sizeof *graph);
    *graph = (struct CUgraphExec_st){.last = &graph->first, .holders = 1};
    n_graphs++;
    return graph;
}

cudaGraph_t graph_of(cudaGraphExec_t recorded)
{
    cudaGraph_t graph = allocate(sizeof *graph);
    graph->recorded = recorded;
    return graph;
}

void graph_append(cudaGraphExec_t graph, struct operation *operation)
{
    *graph->last = operation;
    graph->last = &operation->next;
}

size_t graph_count(void)
{
    return n_graphs;
}

void graph_run(cudaGraphExec_t graph)
{
    graph->launches--;
    for (const struct operation *o = graph->first; o; o = o->next) operation_run(o);
}

void graph_release(cudaGraphExec_t graph)
{
    if (--graph->holders) return;
    while (graph->first) {
        struct operation *o = graph->first;
        graph->first = o->next;
        operation_free(o);
    }
    free(graph);
    n_graphs--;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    const cudaError_t error = call_begin();
    if (flags) return call_end(cudaErrorInvalidValue);
    if (error != cudaSuccess) return call_end(error);
    graph->recorded->holders++;
    *exec = graph->recorded;
    return call_end(cudaSuccess);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
    (void)exec;
    (void)stream;
    return call_end(call_begin());
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    exec->holders++;
    exec->launches++;
    const cudaError_t error = queue(stream, &(struct operation){.kind = GRAPH, .graph = exec});
    if (error != cudaSuccess) exec->holders--, exec->launches--;
    return error;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    const cudaError_t error = call_begin();
    graph_release(graph->recorded);
    free(graph);
    return call_end(error);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    const cudaError_t error = call_begin();
    graph_release(exec);
    return call_end(error);
}

void hostdev_register(const void *symbol, hostdev_bind bind, size_t parameter_bytes)
{
    call_begin_uncounted();
    size_t i = 0;
    while (known[i].symbol && known[i].symbol != symbol)
        if (++i == sizeof known / sizeof *known) hostdev_abort("too many kernels");
    known[i] = (struct known_kernel){symbol, bind, parameter_bytes};
    call_end(cudaSuccess);
}

// A kernel with the values that the parameters have now.
static cudaError_t bind_kernel(const struct cudaKernelNodeParams *parameters,
                               struct hostdev_kernel *ret)
{
    size_t i = 0;
    while (known[i].symbol && known[i].symbol != parameters->func) i++;
    if (!known[i].symbol) hostdev_abort("a node of a kernel that was not loaded");
    *ret = (struct hostdev_kernel){.grid = parameters->gridDim,
                                   .block = parameters->blockDim,
                                   .shared_bytes = parameters->sharedMemBytes};
    const cudaError_t error = launch_check(ret, parameters->func, known[i].parameter_bytes);
    if (error == cudaSuccess) known[i].bind(ret, parameters->func, parameters->kernelParams);
    return error;
}

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned flags)
{
    const cudaError_t error = call_begin();
    if (error != cudaSuccess) return call_end(error);
    if (flags) return call_end(cudaErrorInvalidValue);
    *graph = graph_of(graph_new());
    return call_end(cudaSuccess);
}

// Adds a node to a chain; other graphs are not supported.
static void add_node(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                     size_t n_after, const struct operation *operation)
{
    cudaGraphExec_t recorded = graph->recorded;
    if (n_after != (recorded->first != NULL) || (n_after && &(*after)->next != recorded->last))
        hostdev_abort("a node that does not follow the last one");
    *node = allocate(sizeof **node);
    **node = *operation;
    (*node)->device = device_current();
    graph_append(recorded, *node);
}

// A node whose parameters are changed. Launches that are queued keep the parameters they were
// queued with; here there must be none.
static struct operation *changed_node(cudaGraphExec_t exec, cudaGraphNode_t node, int kind)
{
    if (exec->launches) hostdev_abort("changed a node of a graph that has not run");
    struct operation *o = exec->first;
    while (o && o != node) o = o->next;
    if (!o || (int)o->kind != kind) hostdev_abort("a node of another graph or kind");
    return o;
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                   const cudaGraphNode_t *after, size_t n_after,
                                   const struct cudaKernelNodeParams *parameters)
{
    cudaError_t error = call_begin();
    if (error != cudaSuccess) return call_end(error);
    struct operation operation = {.kind = KERNEL};
    error = bind_kernel(parameters, &operation.kernel);
    if (error == cudaSuccess) add_node(node, graph, after, n_after, &operation);
    return call_end(error);
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams *parameters)
{
    cudaError_t error = call_begin();
    if (error != cudaSuccess) return call_end(error);
    struct operation *o = changed_node(exec, node, KERNEL);
    struct hostdev_kernel kernel;
    error = bind_kernel(parameters, &kernel);
    if (error != cudaSuccess) return call_end(error);
    o->kernel.release(o->kernel.call);
    o->kernel = kernel;
    return call_end(cudaSuccess);
}

// The kind of a copy is known from the pointers. A copy of no bytes is refused, as CUDA does.
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph,
                                     const cudaGraphNode_t *after, size_t n_after, void *to,
                                     const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    const cudaError_t error = call_begin();
    (void)kind;
    if (error != cudaSuccess) return call_end(error);
    if (!bytes) return call_end(cudaErrorInvalidValue);
    add_node(node, graph, after, n_after,
             &(struct operation){.kind = COPY, .to = to, .from = from, .bytes = bytes});
    return call_end(cudaSuccess);
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void *to,
                                               const void *from, size_t bytes,
                                               enum cudaMemcpyKind kind)
{
    const cudaError_t error = call_begin();
    (void)kind;
    if (error != cudaSuccess) return call_end(error);
    if (!bytes) return call_end(cudaErrorInvalidValue);
    struct operation *o = changed_node(exec, node, COPY);
    o->to = to;
    o->from = from;
    o->bytes = bytes;
    return call_end(cudaSuccess);
}
