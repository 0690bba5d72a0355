// SPDX-License-Identifier: MIT
// The convolutions of networks in a training step, or in inference with filters that are kept,
// beside PyTorch. A step runs the layers in their order; equal layers run as often as the network
// has them. NETWORK:ROW is one row of a network alone.
#include "workloads/network.h"
#include "ours/ours.h"
#include "peers/peers.h"

int main(int argc, char **argv)
{
    static const struct contender contenders[] = {
        {.name = "auto", .open = ours_network},
        {.name = "auto-shared", .open = ours_network_shared},
        {.name = "auto-last", .open = ours_network_last},
        {.name = "torch", .open = peer_torch},
        {.name = "torch-last", .open = peer_torch_last},
    };
    struct suite suite = {
        .program = "bench_network",
        .contenders = contenders,
        .n_contenders = sizeof contenders / sizeof *contenders,
        .prepare = ours_calibrate,
        .repetitions = 5,
        .max_pass = 4,
        .warm_up = 1e-6, // a second pass, in memory that has been touched
        .thread_counts = {1, 2},
    };
    suite.cases = network_cases(&suite.n_cases);
    return bench_main(argc, argv, &suite);
}
