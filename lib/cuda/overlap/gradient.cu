// SPDX-License-Identifier: MIT
#include "cuda/kernels/outputs.cuh"
#include "cuda/kernels/spectra.cuh"
#include "gradient.h"

namespace {
// What a thread block sums: a job of a cell, over a run of chains. It lies in shared memory, as
// registers are for sums.
struct task {
    int64_t x, gy;               // where the cell's lines of the first item lie
    int64_t x_item, gy_item;     // scalars from an item to the next
    int64_t begin;               // where the window of block 0 begins
    int64_t sum;                 // which of all sums
    int first, end;              // chains
    int block, blocks_end, each; // blocks; of a chain
    int row;                     // chains that are summed in a row
    bool both;                   // sums are there
};

template <int SUMS> __device__ task task_of(const cuda_gradient &of)
{
    int64_t cell = blockIdx.x;
    const int64_t run = take(&cell, of.runs), job = take(&cell, of.jobs),
                  chains = of.batch * of.chains;
    const int64_t in = cell % of.group_in, out = cell / of.group_in, group = out / of.group_out;
    const int64_t sum =
        (run * of.groups * of.group_out * of.group_in + cell) * of.parts + job * SUMS;
    const int each = (int)ceiling(of.seen[job].end - of.seen[job].first, of.chains);
    return {(group * of.group_in + in) * of.x.size,
            out * of.gy.size,
            of.groups * of.group_in * of.x.size,
            of.groups * of.group_out * of.gy.size,
            of.x.first + job * SUMS * of.part,
            sum,
            (int)(chains * run / of.runs),
            (int)(chains * (run + 1) / of.runs),
            of.seen[job].first,
            of.seen[job].end,
            each,
            (each < CUDA_GRADIENT_TERMS ? CUDA_GRADIENT_TERMS / (each > 0 ? each : 1) : 1) *
                (int)blockDim.y,
            SUMS == 2 && job * SUMS + 1 < of.parts};
}

// A chain of blocks, of which so many are left. One that is not there sees zeros alone.
template <typename T> struct chain {
    const T *x, *gy;
    int block, left;
};

template <typename T>
__device__ chain<T> chain_of(const cuda_gradient &of, const task &task, const T *x, const T *gy,
                             int number)
{
    const int chains = (int)of.chains, item = number / chains,
              block = task.block + number % chains * task.each;
    const int left = task.blocks_end - block < task.each ? task.blocks_end - block : task.each;
    return {x + task.x + item * task.x_item, gy + task.gy + item * task.gy_item, block,
            number < task.end ? left : 0};
}

template <typename T>
__device__ void transform_window(const cuda_gradient &of, const T *line, int64_t first,
                                 const fft_place<T> &place, complex_of<T> v[CUDA_FFT_POINTS])
{
    const fft_place<T> here = fft_again(place);
    inputs_load(of.x, line, 0, first, here, v);
    fft_forward(fft_again(here), v);
}

template <typename T>
__device__ void transform_block(const cuda_gradient &of, const T *line, int64_t first,
                                const fft_place<T> &place, complex_of<T> v[CUDA_FFT_POINTS])
{
    const fft_place<T> here = fft_again(place);
    if (of.gy.step == 1) inputs_load(of.gy, line, 0, first, here, v);
    else load_points(of.gy, line, first, here, v);
    fft_forward(fft_again(here), v);
}

// A block's products. `kept` is the spectrum of its window where there are two sums, and becomes
// the next one's.
template <typename T, int SUMS>
__device__ void add_block(const cuda_gradient &of, const task &task, const chain<T> &at,
                          const fft_place<T> &place, complex_of<T> *kept, complex_of<T> *second,
                          complex_of<T> sum[CUDA_FFT_POINTS])
{
    const int64_t first = at.block * of.gy.hop;
    complex_of<T> v[CUDA_FFT_POINTS];
    if (SUMS == 1) {
        transform_window(of, at.x, at.left > 0 ? task.begin + first : of.x.size, place, v);
        spectrum_store(kept, place, v);
    }
    transform_block(of, at.gy, at.left > 0 ? first : of.gy.size * of.gy.step, place, v);
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) {
        complex_of<T> *const bin = kept + place.thread + (j << (place.log2_points - 4));
        multiply_add(sum[j], *bin, conjugated(v[j]));
        if (SUMS == 2) *bin = v[j];
    }
    if (SUMS == 1) return;
    transform_window(
        of, at.x, at.left > 0 ? task.begin + at.block * of.gy.hop + of.part : of.x.size, place, v);
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) {
        const int bin = place.thread + (j << (place.log2_points - 4));
        complex_of<T> of_bin = second[bin];
        multiply_add(of_bin, v[j], conjugated(kept[bin]));
        second[bin] = of_bin;
        kept[bin] = v[j];
    }
}

// Adds the sums of all rows of threads in order, into memory or onto what is there; they begin
// anew.
template <typename T>
__device__ void flush(const fft_place<T> &place, complex_of<T> *to, bool onto,
                      complex_of<T> sum[CUDA_FFT_POINTS])
{
    const int points = 1 << place.log2_points, rows = (int)blockDim.y, apart = points + points / 16;
    const complex_of<T> *const all = (const complex_of<T> *)shared_memory;
    __syncthreads();
    spectrum_store(place.shared, place, sum);
    __syncthreads();
    for (int i = (int)(threadIdx.y * blockDim.x + threadIdx.x); i < points;
         i += (int)(blockDim.x * blockDim.y)) {
        complex_of<T> total = all[i];
        for (int row = 1; row < rows; row++) total = total + all[row * apart + i];
        to[i] = onto ? to[i] + total : total;
    }
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) sum[j] = {0, 0};
}

// The second sum, which shared memory has.
template <typename T>
__device__ void flush_second(const fft_place<T> &place, complex_of<T> *to, bool onto,
                             complex_of<T> *second)
{
    complex_of<T> sum[CUDA_FFT_POINTS];
    spectrum_load(second, place, sum);
    flush(place, to, onto, sum);
    spectrum_store(second, place, sum);
}

// What is kept before the first block of a chain, where there are two sums: of all rows alike, as
// lines are not cut.
template <typename T>
__device__ void keep_window(const cuda_gradient &of, const task &task, const chain<T> &at,
                            const fft_place<T> &place, complex_of<T> *kept)
{
    const int64_t first = task.begin + task.block * of.gy.hop;
    complex_of<T> v[CUDA_FFT_POINTS] = {};
    if (first > -of.x.length && first < of.x.size)
        transform_window(of, at.x, at.left > 0 ? first : of.x.size, place, v);
    spectrum_store(kept, place, v);
}

// Blocks are [cell][job][run]; every run has a chain.
template <typename T, int SUMS>
__global__ void __launch_bounds__(fft_most_threads<T>(), 1)
    gradient_kernel(const __grid_constant__ cuda_gradient of, complex_of<T> *to, const T *x,
                    const T *gy)
{
    fft_place<T> place = fft_place_of<T>(of.form);
    place.turned = true;
    const int points = 1 << place.log2_points, rows = (int)blockDim.y;
    complex_of<T> *const spectra = (complex_of<T> *)shared_memory + rows * (points + points / 16);
    complex_of<T> *const kept = spectra + threadIdx.y * points, *const second =
                                                                    kept + rows * points;
    task *const own = (task *)(spectra + SUMS * rows * points);
    complex_of<T> sum[CUDA_FFT_POINTS] = {};
    if (SUMS == 2) spectrum_store(second, place, sum);
    if (threadIdx.x == 0 && threadIdx.y == 0) *own = task_of<SUMS>(of);
    __syncthreads();
    for (int first = own->first; first < own->end; first += rows) {
        chain<T> at = chain_of(of, *own, x, gy, first + (int)threadIdx.y);
        if (SUMS == 2) keep_window(of, *own, at, place, kept);
        for (int i = own->each; i > 0; i--) {
            add_block<T, SUMS>(of, *own, at, place, kept, second, sum);
            at.block++;
            at.left--;
        }
        const int done = first + rows - own->first;
        if (done % own->row && first + rows < own->end) continue;
        complex_of<T> *const place_of_sum = to + (own->sum << place.log2_points);
        flush(place, place_of_sum, done > own->row, sum);
        if (own->both) flush_second(place, place_of_sum + points, done > own->row, second);
    }
}

// Rows of threads are [cell][part].
template <typename T>
__global__ void __launch_bounds__(fft_most_threads<T>(), 1)
    gradient_lines_kernel(const __grid_constant__ cuda_gradient of,
                          const __grid_constant__ cuda_lines lines, T *gw,
                          const complex_of<T> *sums)
{
    const fft_place<T> place = fft_place_of<T>(of.form);
    const int64_t all = lines.lines * of.parts,
                  number = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
    const int points = 1 << place.log2_points;
    complex_of<T> v[CUDA_FFT_POINTS];
    spectrum_load(sums + (number < all ? number : all - 1) * points, place, v);
    fft_inverse(place, v);
    if (number >= all) return;
    const int64_t cell = number / of.parts, lag = number % of.parts * of.part;
    const T scale = 1 / (T)points;
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) {
        const int64_t at = place.thread + j * (points / CUDA_FFT_POINTS) - of.lead,
                      upper = at + points;
        if (at >= 0 && at < of.part) line_store(lines, gw, cell, lag + at, v[j].re * scale);
        if (upper < of.part) line_store(lines, gw, cell, lag + upper, -v[j].im * scale);
    }
}

template <typename T, int SUMS>
cudaError_t launch_gradient(const cuda_gradient *of, void *to, const void *x, const void *gy,
                            cudaStream_t stream)
{
    void (*const kernel)(cuda_gradient, complex_of<T> *, const T *, const T *) =
        gradient_kernel<T, SUMS>;
    const size_t shared_bytes =
        cuda_gradient_shared((size_t)1 << of->form.log2_points, SUMS, sizeof(T) == 8);
    return queue(kernel, of->groups * of->group_out * of->group_in * of->jobs * of->runs,
                 fft_block(of->form.log2_points), shared_bytes, stream, *of, (complex_of<T> *)to,
                 (const T *)x, (const T *)gy);
}

template <typename T>
cudaError_t launch_lines(const cuda_gradient *of, const cuda_lines *lines, void *gw,
                         const void *sums, cudaStream_t stream)
{
    const dim3 threads = fft_block(of->form.log2_points);
    const size_t shared_bytes =
        threads.y * cuda_fft_shared((size_t)1 << of->form.log2_points, sizeof(T) == 8);
    return queue(gradient_lines_kernel<T>, ceiling(lines->lines * of->parts, threads.y), threads,
                 shared_bytes, stream, *of, *lines, (T *)gw, (const complex_of<T> *)sums);
}
} // namespace

cudaError_t cuda_launch_gradient(const cuda_gradient *gradient, int sums, bool f64, void *to,
                                 const void *x, const void *gy, cudaStream_t stream)
{
    if (sums == 1)
        return f64 ? launch_gradient<double, 1>(gradient, to, x, gy, stream)
                   : launch_gradient<float, 1>(gradient, to, x, gy, stream);
    return f64 ? launch_gradient<double, 2>(gradient, to, x, gy, stream)
               : launch_gradient<float, 2>(gradient, to, x, gy, stream);
}

cudaError_t cuda_launch_gradient_lines(const cuda_gradient *gradient, const cuda_lines *lines,
                                       bool f64, void *gw, const void *sums, cudaStream_t stream)
{
    return f64 ? launch_lines<double>(gradient, lines, gw, sums, stream)
               : launch_lines<float>(gradient, lines, gw, sums, stream);
}
