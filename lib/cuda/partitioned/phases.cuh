// SPDX-License-Identifier: MIT
// The quantum that the kernels of cuda/partitioned work on, and the groups of channels whose blocks
// are due in it.
#ifndef PARTITA_CUDA_PHASES_CUH
#define PARTITA_CUDA_PHASES_CUH

#include "schedule.h"

inline __device__ const cuda_quantum &quantum_of(const cuda_partition_memory &memory,
                                                 const cuda_partition_launch &launch)
{
    return memory.quantum ? *memory.quantum : launch.quantum;
}

// Quanta that a group is ahead, modulo those of a block.
inline __device__ int phase_of(const cuda_partition_launch &launch, const cuda_segment &segment,
                               int group)
{
    const int ahead = launch.bank.slots ? launch.bank.slots[group].phase : group;
    return ahead & (segment.quanta - 1);
}

inline __device__ const cuda_paths &filter_of(const cuda_partition_launch &launch,
                                              const cuda_quantum &now, int group, int set)
{
    return launch.bank.slots ? launch.bank.slots[group].filter[set] : now.slot.filter[set];
}

// The index of the spectra of a group's last complete block; `newest` is that of a group whose
// phase is 0.
inline __device__ int newest_block(const cuda_segment &segment, int newest, uint64_t quantum,
                                   int phase)
{
    const int collected = (int)(quantum + 1) & (segment.quanta - 1);
    newest += collected + phase >= segment.quanta;
    return newest < segment.partitions ? newest : 0;
}

#endif
