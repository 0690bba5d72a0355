// SPDX-License-Identifier: MIT
// What the kernels of cuda/direct are asked to do, in words that C and CUDA share: a pass of
// stride-free sums over taps (decision 19), and the functions that queue one. All arrays are in the
// device's memory.
#ifndef PARTITA_CUDA_KERNELS_H
#define PARTITA_CUDA_KERNELS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Along one axis output j of a pass, j < n, goes to position to_first + to_step*j and is the sum
// over taps t < taps of
//   w[tap_first + tap_step*t] * from[from_first + from_step*j + from_dilation*t],
// where positions outside [0, from_size) hold zeros.
struct cuda_axis {
    int64_t n, to_first, to_step, to_size;
    int64_t from_first, from_step, from_dilation, from_size;
    int64_t taps, tap_first, tap_step, kernel; // of `kernel` taps in the caller's array
};

// Arrays are [batch][groups*channels][planes][rows][columns]; the tap of output channel k and input
// channel c of group g begins at g*tap_group + k*tap_to + c*tap_from.
struct cuda_pass {
    struct cuda_axis axis[3]; // planes, rows, columns
    int64_t batch, groups, to, from;
    int64_t tap_group, tap_to, tap_from;
    bool relu;
};

// The ways of reading samples and taps, from the plainest on.
enum cuda_variant {
    CUDA_PLAIN,    // samples and taps from memory
    CUDA_CONSTANT, // taps from constant memory: they travel with the launch
    CUDA_HALO,     // a tile of samples with its halo, and taps, in shared memory
    CUDA_CACHED,   // a tile without its halo in shared memory; the halo comes through the caches
    CUDA_VARIANTS,
};

enum {
    CUDA_CONSTANT_BYTES = 16 << 10, // of taps in one launch
    CUDA_THREADS = 256,             // of a thread block, at most
    CUDA_TILE_COLUMNS = 4,          // outputs of one thread in a tile, along the columns ..
    CUDA_TILE_RUN = 8,   // .. or, neighbours, of one channel and stride and dilation 1 along them
    CUDA_TILE_GROUP = 4, // taps of a row that are read at once for such a run
    CUDA_TILE_CHANNELS = 8, // output channels of one thread in a tile
    CUDA_WEIGHT_TAPS = 8,   // gradients of taps that one thread block sums
};

// How a tile variant cuts a pass; chosen on the host, by shape alone.
struct cuda_tile {
    int threads_x, threads_y; // each*threads_x columns by threads_y rows
    int each;                 // CUDA_TILE_COLUMNS, threads_x apart, or CUDA_TILE_RUN neighbours
    int channels;             // 1 or CUDA_TILE_CHANNELS
    int rows, columns;        // of samples in shared memory
    size_t shared_bytes;
};

// The cut of a pass by CUDA_HALO or CUDA_CACHED whose shared memory is at most `most` bytes; false
// if there is none.
bool cuda_tile_cut(const struct cuda_pass *pass, enum cuda_variant variant, bool f64, size_t most,
                   struct cuda_tile *ret);

// Queue a pass: to and from are y and x or gx and gy; bias [groups*to] or NULL; taps in the
// caller's order.
cudaError_t cuda_launch_plain(const struct cuda_pass *pass, bool f64, void *to, const void *from,
                              const void *taps, const void *bias, cudaStream_t stream);
// taps are in the host's memory here; those of one output channel, from*taps of them, fit
// CUDA_CONSTANT_BYTES.
cudaError_t cuda_launch_constant(const struct cuda_pass *pass, bool f64, void *to, const void *from,
                                 const void *taps, const void *bias, cudaStream_t stream);
cudaError_t cuda_launch_tile(const struct cuda_pass *pass, enum cuda_variant variant,
                             const struct cuda_tile *tile, bool f64, void *to, const void *from,
                             const void *taps, const void *bias, cudaStream_t stream);

// A pass of stride and dilation 1 along rows and columns, a channel from one channel: taps of an
// axis one after the other, first along columns, then along rows. Taps are
// [channel][axis][cuda_separable_pitch], rows' before columns', in the order of the sum.
enum { CUDA_SEPARABLE_TAPS = 32 }; // of an axis, at most
int cuda_separable_pitch(const struct cuda_pass *pass);
size_t cuda_separable_shared(const struct cuda_pass *pass, bool f64); // bytes of a thread block
double cuda_separable_blocks(const struct cuda_pass *pass);
double cuda_separable_slots(
    const struct cuda_pass *pass); // times of a multiply-add that an output takes, counted
cudaError_t cuda_launch_separable(const struct cuda_pass *pass, bool f64, void *to,
                                  const void *from, const void *taps, const void *bias,
                                  cudaStream_t stream);

// Queue the gradient of the taps of a forward pass: gw in the caller's order, one sum a tap over
// all outputs, cut into `parts` runs of rows whose sums, [parts][taps], are added in order. With
// one part they are gw.
cudaError_t cuda_launch_weight(const struct cuda_pass *pass, bool f64, void *gw, void *sums,
                               const void *x, const void *gy, int64_t parts, cudaStream_t stream);

// Queue gb[k] = sum of gy [batch][channels][n] over items and positions.
cudaError_t cuda_launch_bias(bool f64, void *gb, const void *gy, int64_t batch, int64_t channels,
                             int64_t n, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
