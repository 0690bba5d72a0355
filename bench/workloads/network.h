// SPDX-License-Identifier: MIT
// Convolutions of networks as workloads: a training step (the filters are updated, then forward and
// both gradients) or inference (forward with filters that are kept), layer after layer.
#ifndef BENCH_NETWORK_H
#define BENCH_NETWORK_H

#include "workloads/layer.h"

// One row of a network: layers of one shape, square except along one axis of rank 1.
struct network_layer {
    const char *name;
    size_t in, out, groups, kernel, stride, size, pad;
    unsigned depth; // how often the network has it
};

struct network {
    bool training;
    int rank;
    size_t batch;
    const struct network_layer *layers;
    size_t n_layers;
    // Of a training step: nothing is in front of the first layer, so no gradient of its input.
    bool first;
};

// One direction of one row, as a workload of a layer. All of them share the operands of their
// network's workload, each has a part of its y.
struct network_part {
    struct workload workload;
    struct layer layer;
    unsigned depth;
};

// Lists the parts of a network, without its operands.
void network_list(struct workload *w, bool quick);

// workload_create, workload_destroy and oracle_error of networks. An item is a step.
void network_create(struct workload *w, bool quick);
void network_destroy(struct workload *w);
double network_error(struct workload *w);

// The largest error that counts as right: the largest of the parts'.
double gate_network(const struct workload *w);

// All cases: NETWORK-train and NETWORK-infer-nN, and of each row a case NETWORK-...:ROW, which is
// extra. They live as long as the program.
const struct workload *network_cases(size_t *ret_n);

#endif
