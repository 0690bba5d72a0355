// SPDX-License-Identifier: MIT
// Batched products of matrices: a thread block sums a tile of C, stepping along the terms through
// panels of A and B in shared memory, one being read from memory while the other is multiplied; a
// thread has 64 reals of the tile in registers, in groups of a vector of 16 bytes, and a warp reads
// each vector of a panel at most once per phase. Source: the blocking is that of Volkov and Demmel,
// Benchmarking GPUs to tune dense linear algebra (2008), and of NVIDIA's CUTLASS (efficient GEMM in
// CUDA, its documentation).
#include "product.h"

#include <assert.h>

#include "product.cuh"

namespace {
constexpr int LANE_ROWS = 4, LANE_COLUMNS = 8;

// The vector of rows and of columns that a lane of a warp reads first. Of all pairs of neighbours
// one has the same row, and of neighbours but one the same column: then shared memory serves a
// load of 16 bytes in two cycles, not four (an answer of NVIDIA on its forum, "unexpected shared
// memory bank conflict", 2019).
inline __device__ int cuda_product_lane_row(int lane)
{
    return lane % 2 + lane / 8 % 2 * 2;
}

inline __device__ int lane_column(int lane)
{
    return lane / 2 % 4 + lane / 16 * 4;
}

// How many elements of C a thread sums: 64 reals of f32, of the others half as many of twice the
// size.
template <typename E> struct thread_tile {
    static constexpr int ROWS = sizeof(E) == 16 ? 4 : 8, COLUMNS = sizeof(E) == 4 ? 8 : 4;
};

// Tiles of a thread block: so many warps along rows and columns.
template <typename E, int WARP_ROWS, int WARP_COLUMNS> struct block_tile {
    static constexpr int THREADS = WARP * WARP_ROWS * WARP_COLUMNS;
    static constexpr int ROWS = WARP_ROWS * LANE_ROWS * thread_tile<E>::ROWS;
    static constexpr int COLUMNS = WARP_COLUMNS * LANE_COLUMNS * thread_tile<E>::COLUMNS;
};

// A thread's part of the tile: vectors of N rows LANE_ROWS apart, and of N columns LANE_COLUMNS
// apart.
template <typename E> struct sums {
    static constexpr int N = vector_of<E>::N, ROWS = thread_tile<E>::ROWS,
                         COLUMNS = thread_tile<E>::COLUMNS;
    E sums[ROWS][COLUMNS];

    __device__ void clear_sums()
    {
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) sums[r][c] = {};
    }

    // Adds the products of STEP terms; a and b point at this thread's first vectors.
    template <int A_PITCH, int B_PITCH> __device__ void add_panel_products(const E *a, const E *b)
    {
#pragma unroll
        for (int t = 0; t < STEP; t++) {
            vector_of<E> rows[ROWS / N], columns[COLUMNS / N];
#pragma unroll
            for (int q = 0; q < ROWS / N; q++)
                rows[q] = *(const vector_of<E> *)(a + t * A_PITCH + q * LANE_ROWS * N);
#pragma unroll
            for (int q = 0; q < COLUMNS / N; q++)
                columns[q] = *(const vector_of<E> *)(b + t * B_PITCH + q * LANE_COLUMNS * N);
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int c = 0; c < COLUMNS; c++)
                    multiply_add(sums[r][c], rows[r / N].at[r % N], columns[c / N].at[c % N]);
        }
    }

    // To C, or added to C. `left` rows and columns exist from the first ones on.
    __device__ void store_sums(E *to, int64_t pitch, int rows_left, int columns_left,
                               bool onto) const
    {
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int row = r / N * LANE_ROWS * N + r % N;
            if (row >= rows_left) continue;
#pragma unroll
            for (int q = 0; q < COLUMNS / N; q++) {
                const int column = q * LANE_COLUMNS * N;
                if (column >= columns_left) continue;
                vector_of<E> *at = (vector_of<E> *)(to + row * pitch + column), sum;
#pragma unroll
                for (int k = 0; k < N; k++) sum.at[k] = sums[r][q * N + k];
                if (onto) {
                    const vector_of<E> before = *at;
#pragma unroll
                    for (int k = 0; k < N; k++) sum.at[k] = before.at[k] + sum.at[k];
                }
                *at = sum;
            }
        }
    }
};

// Thread blocks of so many warps that a processor is to hold at once: 16 warps of 128 registers,
// and 12 of 168 where a thread moves more of the panels.
template <typename E> constexpr int product_resident(int warps)
{
    if (sizeof(E) == 16) return 1;
    return (warps >= 4 ? 16 : 12) / warps;
}

// The parameters of this kernel for multiply_matrices.
template <typename E, int WARP_ROWS, int WARP_COLUMNS, bool TERMS_INNER> struct plain_algorithm {
    typedef E element;
    typedef block_tile<E, WARP_ROWS, WARP_COLUMNS> tile;
    static constexpr bool INNER = TERMS_INNER;
    static constexpr int N = vector_of<E>::N; // a vector more in a line: four terms of a position
                                              // are then in four banks' groups
    typedef panel<stored_as_is<E>, tile::ROWS, N, tile::THREADS, INNER> a_panel;
    typedef panel<stored_as_is<E>, tile::COLUMNS, N, tile::THREADS, INNER> b_panel;
    typedef sums<E> thread_sums;

    static __device__ int row(int warp, int lane)
    {
        return warp % WARP_ROWS * (tile::ROWS / WARP_ROWS) + cuda_product_lane_row(lane) * N;
    }

    static __device__ int column(int warp, int lane)
    {
        return warp / WARP_ROWS * (tile::COLUMNS / WARP_COLUMNS) + lane_column(lane) * N;
    }
};

template <typename E, int WARP_ROWS, int WARP_COLUMNS, bool INNER>
__global__ void __launch_bounds__(WARP *WARP_ROWS *WARP_COLUMNS,
                                  product_resident<E>(WARP_ROWS *WARP_COLUMNS))
    product_kernel(const __grid_constant__ cuda_product product, E *c, const E *a, const E *b)
{
    multiply_matrices<plain_algorithm<E, WARP_ROWS, WARP_COLUMNS, INNER>>(product, c, a, b);
}

// Shapes of thread blocks, in warps. The costs beside multiply-adds are counted from the machine
// code (sm_90; decision 21).
constexpr struct {
    int warp_rows, warp_columns;
} shapes[] = {{4, 2}, {2, 2}, {2, 1}, {1, 1}};

product_shape plain_shape_of(const cuda_product &product, int number)
{
    const bool complex = product.element >= CUDA_CF32;
    const int rows = LANE_ROWS * (product.element == CUDA_CF64 ? 4 : 8),
              columns = LANE_COLUMNS * (product.element == CUDA_F32 ? 8 : 4);
    return {shapes[number].warp_rows * shapes[number].warp_columns,
            shapes[number].warp_rows * rows,
            shapes[number].warp_columns * columns,
            1,
            complex ? 5. : 10,
            complex ? 0.09 : 0.1,
            complex ? 1. : 3};
}

// The shapes for a product's arithmetic.
auto shape_of(const cuda_product &product)
{
    return product.arithmetic == CUDA_MULTIPLY_ADD ? plain_shape_of : cuda_tensor_shape;
}

// Calls a function object with a zero of an element's type.
template <typename Use> cudaError_t with_element(cuda_element element, Use use)
{
    switch (element) {
    case CUDA_F32:
        return use(0.0f);
    case CUDA_F64:
        return use(0.0);
    case CUDA_CF32:
        return use(complex_of<float>());
    case CUDA_CF64:
        return use(complex_of<double>());
    default:
        return cudaErrorInvalidValue;
    }
}
} // namespace

int64_t cuda_product_chunks(const cuda_product *product, int64_t terms, int64_t max)
{
    enum { TARGET_BLOCKS = 1024, BLOCK_EDGE = 64 };
    const int64_t blocks =
        product->batch * ceiling(product->rows, BLOCK_EDGE) * ceiling(product->columns, BLOCK_EDGE);
    int64_t chunks = ceiling(TARGET_BLOCKS, blocks);
    if (chunks > terms / CUDA_PRODUCT_SEGMENT) chunks = terms / CUDA_PRODUCT_SEGMENT;
    if (chunks > max) chunks = max;
    return chunks > 1 ? chunks : 1;
}

double cuda_product_slots(const cuda_product *product, int processors)
{
    double slots;
    product_best_shape(*product, processors, shape_of(*product), &slots);
    return slots;
}

double cuda_product_error(cuda_arithmetic arithmetic)
{
    switch (arithmetic) {
    case CUDA_TF32_THREE:
        return 2.5 * 0x1p-24;
    case CUDA_TF32_ONE:
        return 0.6 * 0x1p-11;
    default:
        return 0;
    }
}

cuda_arithmetic cuda_product_arithmetic(cuda_element element, double tf32_rate, double error)
{
    if (element == CUDA_F64 || element == CUDA_CF64) return CUDA_MULTIPLY_ADD;
    if (tf32_rate > 1 && cuda_product_error(CUDA_TF32_ONE) <= error) return CUDA_TF32_ONE;
    if (tf32_rate > 3 && cuda_product_error(CUDA_TF32_THREE) <= error) return CUDA_TF32_THREE;
    return CUDA_MULTIPLY_ADD;
}

cudaError_t cuda_launch_product(const cuda_product *product, int processors, void *c, const void *a,
                                const void *b)
{
    double slots;
    const int shape = product_best_shape(*product, processors, shape_of(*product), &slots);
    [[maybe_unused]] const int64_t vector =
        CUDA_PRODUCT_ALIGN / cuda_element_bytes(product->element);
    assert(product->a.terms_inner == product->b.terms_inner && product->chunks > 0);
    assert(product->a.pitch % vector == 0 && product->b.pitch % vector == 0);
    assert(product->c.pitch % vector == 0 && product->c.pitch >= product->columns);
    if (product->arithmetic != CUDA_MULTIPLY_ADD)
        return cuda_launch_tensor_product(product, shape, c, a, b);
    return with_element(product->element, [=](auto zero) {
        return with_constant<0, 1, 2, 3>(shape, [=](auto number) {
            typedef decltype(zero) E;
            constexpr int ROWS = shapes[decltype(number)::value].warp_rows,
                          COLUMNS = shapes[decltype(number)::value].warp_columns;
            return queue_matrix_product<plain_algorithm<E, ROWS, COLUMNS, false>>(
                product, product_kernel<E, ROWS, COLUMNS, false>,
                product_kernel<E, ROWS, COLUMNS, true>, c, a, b);
        });
    });
}
