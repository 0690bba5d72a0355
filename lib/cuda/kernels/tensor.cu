// SPDX-License-Identifier: MIT
// Matrix products by tensor cores: the panels of product.cuh, elements being split into numbers of
// TF32 where they are stored to shared memory, and tiles of C by mma.sync.
//
// Tensor cores truncate their sums (Fasi, Higham, Mikaitis and Pranesh, Numerical behavior of
// NVIDIA tensor cores, 2021), which over hundreds of terms leaves a larger error than f32's. A sum
// therefore has the STEP terms of one panel only, and is added to f32 outside (Ootomo and Yokota,
// Recovering single precision accuracy from Tensor Cores, 2022). The small products come first.
// mma.sync.m16n8k8 needs compute capability 8.0; PTX ISA, matrix fragments for mma.m16n8k8, says
// which elements a lane holds.
#include <math.h>

#include "product.cuh"
#include "storage.cuh"

namespace {
// The nearest number of TF32, ties away from zero, as an f32 whose last 13 bits are 0; NaN stays
// NaN, and beyond the largest number there is infinity.
inline __device__ uint32_t tf32_of(float x)
{
#ifdef __CUDACC__
    uint32_t bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
#else
    return hostdev_tf32(x);
#endif
}

// sum[n] += a b[n]: N instructions of a warp. a is 16 rows by 8 terms, b[n] 8 terms by 8 columns,
// sum[n] 16 rows by 8 columns. With r = lane / 4 and t = lane % 4 a lane has of a (row r and r + 8
// of term t, then of t + 4), of b (term t and t + 4 of column r), of sum (columns 2t and 2t + 1 of
// row r, then of r + 8).
template <int N>
inline __device__ void multiply_tf32(float (&sum)[N][4], const uint32_t (&a)[4],
                                     const uint32_t (&b)[N][2])
{
#ifdef __CUDACC__
#pragma unroll
    for (int n = 0; n < N; n++)
        asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(sum[n][0]), "+f"(sum[n][1]), "+f"(sum[n][2]), "+f"(sum[n][3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[n][0]), "r"(b[n][1]));
#else
    hostdev_mma(N, sum[0], a, b[0]);
#endif
}

constexpr int TILE_ROWS = 16, TILE_COLUMNS = 8; // of an instruction
constexpr float LARGEST_TF32 = 0x1.ffcp127f;

template <typename E> struct reals_of {
    static constexpr int N = sizeof(E) / sizeof(float);
};

inline __device__ float real_at(float x, int)
{
    return x;
}

inline __device__ float real_at(const complex_of<float> &x, int i)
{
    return i ? x.im : x.re;
}

// Planes of numbers of TF32, [real][term], the terms of which add up to a real of an element. The
// first term is finite, so that the second is infinite or NaN where the real is; a single term is
// the rounded real.
template <typename E, int TERMS> struct split_element {
    typedef E from;
    typedef uint32_t to;
    static constexpr int REALS = reals_of<E>::N, PLANES = REALS * TERMS;
    // Lines are a quarter of the banks apart, besides whole turns: a warp that reads eight
    // positions of four terms finds all of them in different banks.
    static constexpr int PAD = 8;

    static __device__ void split(uint32_t (&ret)[PLANES], const E &element)
    {
#pragma unroll
        for (int i = 0; i < REALS; i++) {
            const float x = real_at(element, i);
            if (TERMS == 1) {
                ret[i] = tf32_of(x);
                continue;
            }
            const float high = float_of(tf32_of(x));
            const float near = fminf(fmaxf(high, -LARGEST_TF32), LARGEST_TF32);
            ret[i * TERMS] = bits_of(near);
            ret[i * TERMS + TERMS - 1] = tf32_of(x - near);
        }
    }

    static __device__ void store(uint32_t *shared, int plane, const E &element)
    {
        uint32_t words[PLANES];
        split(words, element);
#pragma unroll
        for (int i = 0; i < PLANES; i++) shared[i * plane] = words[i];
    }

    static __device__ void store(uint32_t *shared, int plane, const vector_of<E> &vector)
    {
        constexpr int N = vector_of<E>::N;
        struct __align__(4 * N) line
        {
            uint32_t at[N];
        }
        lines[PLANES];
#pragma unroll
        for (int k = 0; k < N; k++) {
            uint32_t words[PLANES];
            split(words, vector.at[k]);
#pragma unroll
            for (int i = 0; i < PLANES; i++) lines[i].at[k] = words[i];
        }
#pragma unroll
        for (int i = 0; i < PLANES; i++) *(line *)(shared + i * plane) = lines[i];
    }
};

// The part of a warp in the tile: 64 rows, and 32 columns of reals or 16 of complex numbers.
template <typename E, int TERMS> struct tensor_sums {
    typedef split_element<E, TERMS> split;
    static constexpr int REALS = split::REALS, M = 4, N = 4 / REALS;
    static constexpr int ROWS = M * TILE_ROWS, COLUMNS = N * TILE_COLUMNS;
    float sums[REALS][M][N][4];

    __device__ void clear_sums()
    {
#pragma unroll
        for (int i = 0; i < REALS * M * N * 4; i++)
            sums[i / (M * N * 4)][i / (N * 4) % M][i / 4 % N][i % 4] = 0;
    }

    // a and b point at this thread's first row and column.
    template <int A_PITCH, int B_PITCH>
    __device__ void add_panel_products(const uint32_t *a, const uint32_t *b)
    {
        uint32_t columns[REALS * TERMS][N][2];
        const int term = threadIdx.x % WARP % 4;
        a += term * A_PITCH;
        b += term * B_PITCH;
#pragma unroll
        for (int k = 0; k < REALS * TERMS; k++)
#pragma unroll
            for (int i = 0; i < 2 * N; i++)
                columns[k][i / 2][i % 2] =
                    b[(k * STEP + i % 2 * 4) * B_PITCH + i / 2 * TILE_COLUMNS];
#pragma unroll
        for (int m = 0; m < M; m++) {
            uint32_t rows[REALS * TERMS][4];
#pragma unroll
            for (int k = 0; k < REALS * TERMS; k++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    rows[k][i] = a[(k * STEP + i / 2 * 4) * A_PITCH + m * TILE_ROWS + i % 2 * 8];
            add_row_products(sums, m, rows, columns);
        }
    }

    __device__ void add_sums(float (&to)[N][4], const float (&sum)[N][4])
    {
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) to[n][i] += sum[n][i];
    }

    // Reals.
    __device__ void add_row_products(float (&to)[1][M][N][4], int m,
                                     const uint32_t (&rows)[TERMS][4],
                                     const uint32_t (&columns)[TERMS][N][2])
    {
        float sum[N][4] = {};
        if (TERMS > 1) {
            multiply_tf32(sum, rows[TERMS - 1], columns[0]);
            multiply_tf32(sum, rows[0], columns[TERMS - 1]);
        }
        multiply_tf32(sum, rows[0], columns[0]);
        add_sums(to[0][m], sum);
    }

    // Complex numbers, in four products of reals: that of both imaginary parts is subtracted.
    __device__ void add_row_products(float (&to)[2][M][N][4], int m,
                                     const uint32_t (&rows)[2 * TERMS][4],
                                     const uint32_t (&columns)[2 * TERMS][N][2])
    {
        uint32_t negative[TERMS][4];
        float re[N][4] = {}, im[N][4] = {};
#pragma unroll
        for (int k = 0; k < TERMS; k++)
#pragma unroll
            for (int i = 0; i < 4; i++) negative[k][i] = rows[TERMS + k][i] ^ 0x80000000u;
        if (TERMS > 1) {
            constexpr int LOW = TERMS - 1;
            multiply_tf32(re, rows[LOW], columns[0]);
            multiply_tf32(im, rows[LOW], columns[TERMS]);
            multiply_tf32(re, rows[0], columns[LOW]);
            multiply_tf32(im, rows[0], columns[TERMS + LOW]);
            multiply_tf32(re, negative[LOW], columns[TERMS]);
            multiply_tf32(im, rows[TERMS + LOW], columns[0]);
            multiply_tf32(re, negative[0], columns[TERMS + LOW]);
            multiply_tf32(im, rows[TERMS], columns[LOW]);
        }
        multiply_tf32(re, rows[0], columns[0]);
        multiply_tf32(im, rows[0], columns[TERMS]);
        multiply_tf32(re, negative[0], columns[TERMS]);
        multiply_tf32(im, rows[TERMS], columns[0]);
        add_sums(to[0][m], re);
        add_sums(to[1][m], im);
    }

    struct __align__(2 * sizeof(E)) two
    {
        float at[2][REALS];
    };

    // To C, or added to C, two columns at a time: of a lane's column, the first two are
    // 2 (lane % 4) from it.
    __device__ void store_sums(E *to, int64_t pitch, int rows_left, int columns_left,
                               bool onto) const
    {
        const int lane = threadIdx.x % WARP, shift = lane % 4 * 2 - lane / 4;
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int row = m * TILE_ROWS + half * 8;
                if (row >= rows_left) continue;
#pragma unroll
                for (int n = 0; n < N; n++) {
                    const int column = n * TILE_COLUMNS + shift;
                    if (column >= columns_left) continue;
                    two *at = (two *)(to + row * pitch + column), sum = {};
                    if (onto) sum = *at;
#pragma unroll
                    for (int i = 0; i < 2; i++)
#pragma unroll
                        for (int k = 0; k < REALS; k++) sum.at[i][k] += sums[k][m][n][half * 2 + i];
                    *at = sum;
                }
            }
    }
};

template <typename E, int TERMS, int WARP_ROWS, int WARP_COLUMNS, bool TERMS_INNER>
struct tensor_algorithm {
    typedef E element;
    typedef tensor_sums<E, TERMS> thread_sums;
    typedef split_element<E, TERMS> split;
    struct tile {
        static constexpr int THREADS = WARP * WARP_ROWS * WARP_COLUMNS,
                             ROWS = WARP_ROWS * thread_sums::ROWS,
                             COLUMNS = WARP_COLUMNS * thread_sums::COLUMNS;
    };
    static constexpr bool INNER = TERMS_INNER;
    typedef panel<split, tile::ROWS, split::PAD, tile::THREADS, INNER> a_panel;
    typedef panel<split, tile::COLUMNS, split::PAD, tile::THREADS, INNER> b_panel;

    static __device__ int row(int warp, int lane)
    {
        return warp % WARP_ROWS * thread_sums::ROWS + lane / 4;
    }

    static __device__ int column(int warp, int lane)
    {
        return warp / WARP_ROWS * thread_sums::COLUMNS + lane / 4;
    }
};

// Of 256 threads one block is resident with 255 registers, and two with 128.
template <typename E, int TERMS, int WARP_ROWS, int WARP_COLUMNS, bool INNER>
__global__ void __launch_bounds__(WARP *WARP_ROWS *WARP_COLUMNS, 1)
    tensor_kernel(const __grid_constant__ cuda_product product, E *c, const E *a, const E *b)
{
    multiply_matrices<tensor_algorithm<E, TERMS, WARP_ROWS, WARP_COLUMNS, INNER>>(product, c, a, b);
}

// Shapes of thread blocks, in warps.
constexpr struct {
    int warp_rows, warp_columns;
} shapes[] = {{2, 4}, {2, 2}, {1, 2}, {1, 1}};

template <typename E>
cudaError_t launch_tensor(const cuda_product *product, int shape, void *c, const void *a,
                          const void *b)
{
    const int terms = product->arithmetic == CUDA_TF32_THREE ? 2 : 1;
    return with_constant<1, 2>(terms, [=](auto split) {
        return with_constant<0, 1, 2, 3>(shape, [=](auto number) {
            constexpr int TERMS = decltype(split)::value,
                          ROWS = shapes[decltype(number)::value].warp_rows,
                          COLUMNS = shapes[decltype(number)::value].warp_columns;
            return queue_matrix_product<tensor_algorithm<E, TERMS, ROWS, COLUMNS, false>>(
                product, tensor_kernel<E, TERMS, ROWS, COLUMNS, false>,
                tensor_kernel<E, TERMS, ROWS, COLUMNS, true>, c, a, b);
        });
    });
}
} // namespace

// The time of the instructions is in place of that of multiply-adds. Nothing else is counted in it,
// since other instructions are issued meanwhile (decision 43).
product_shape cuda_tensor_shape(const cuda_product &product, int number)
{
    const double products = product.arithmetic == CUDA_TF32_THREE ? 3 : 1;
    return {shapes[number].warp_rows * shapes[number].warp_columns,
            shapes[number].warp_rows * 64,
            shapes[number].warp_columns * (product.element == CUDA_CF32 ? 16 : 32),
            products / (product.tf32_rate > 0 ? product.tf32_rate : 1),
            10,
            0,
            3};
}

cudaError_t cuda_launch_tensor_product(const cuda_product *product, int shape, void *c,
                                       const void *a, const void *b)
{
    if (product->element == CUDA_F32) return launch_tensor<float>(product, shape, c, a, b);
    if (product->element == CUDA_CF32)
        return launch_tensor<complex_of<float>>(product, shape, c, a, b);
    return cudaErrorInvalidValue;
}
