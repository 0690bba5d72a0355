// SPDX-License-Identifier: MIT
// Captured graphs. Launches are queued like kernels.
#include <stdlib.h>

#include "internal.h"

struct CUgraphExec_st {
    struct operation *first, **last;
    size_t holders; // handles and queued launches
};

struct CUgraph_st {
    cudaGraphExec_t recorded;
};

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
    const cudaError_t error = queue(stream, &(struct operation){.kind = GRAPH, .graph = exec});
    if (error != cudaSuccess) exec->holders--;
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
