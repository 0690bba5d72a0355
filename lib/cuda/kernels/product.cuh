// SPDX-License-Identifier: MIT
// Shared by the kernels of matrix products (product.cu, tensor.cu): panels of operands on their
// way through shared memory, and the loop over the terms.
#ifndef PARTITA_CUDA_PRODUCT_CUH
#define PARTITA_CUDA_PRODUCT_CUH

#include "complex.cuh"
#include "launch.cuh"
#include "product.h"

constexpr int STEP = 8, WARP = 32; // terms of a panel; threads

// Elements of shared memory are those of the operand.
template <typename E> struct stored_as_is {
    typedef E from;
    typedef E to;
    static constexpr int PLANES = 1;

    static __device__ void store(E *shared, int, E element)
    {
        *shared = element;
    }

    static __device__ void store(E *shared, int, const vector_of<E> &vector)
    {
        *(vector_of<E> *)shared = vector;
    }
};

// A panel of an operand on its way through shared memory: STEP terms of EXTENT positions,
// [plane][term][position], with PAD more in a line; `Stored` makes an element of each plane from
// one of the operand. A thread moves COUNT vectors, the lines of which are APART from each other.
template <typename Stored, int EXTENT, int PAD, int THREADS, bool INNER> struct panel {
    typedef typename Stored::from E;
    typedef typename Stored::to S;
    static constexpr int N = vector_of<E>::N, COUNT = EXTENT * STEP / N / THREADS;
    static constexpr int OF_LINE = INNER ? STEP / N : EXTENT / N, APART = THREADS / OF_LINE;
    static constexpr int PITCH = EXTENT + PAD, PLANE = STEP * PITCH, SIZE = Stored::PLANES * PLANE;
    static_assert(COUNT > 0 && COUNT * N * THREADS == EXTENT * STEP, "whole vectors");
    vector_of<E> vectors[COUNT];
    const E *from;

    static __device__ int line()
    {
        return threadIdx.x / OF_LINE;
    }

    static __device__ int along()
    {
        return threadIdx.x % OF_LINE * N;
    }

    __device__ panel(const cuda_matrices &matrices, const E *matrix, int64_t position, int64_t term)
    {
        from = matrix + ((INNER ? position : term) + line()) * matrices.pitch +
               (INNER ? term : position) + along();
    }

    // Reads the next panel, of which `terms` terms and `positions` positions exist.
    __device__ void fetch_next(int64_t pitch, int terms, int positions)
    {
        const int lines = INNER ? positions : terms, length = INNER ? terms : positions;
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            vectors[i] = {};
            if (line() + i * APART < lines && along() < length)
                vectors[i] = *(const vector_of<E> *)(from + i * APART * pitch);
            if (INNER)
#pragma unroll
                for (int k = 1; k < N; k++)
                    if (along() + k >= terms) vectors[i].at[k] = {};
        }
        from += INNER ? STEP : STEP * pitch;
    }

    __device__ void to_shared(S *shared) const
    {
        shared += INNER ? along() * PITCH + line() : line() * PITCH + along();
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            if (INNER)
#pragma unroll
                for (int k = 0; k < N; k++)
                    Stored::store(shared + k * PITCH + i * APART, PLANE, vectors[i].at[k]);
            else Stored::store(shared + i * APART * PITCH, PLANE, vectors[i]);
    }
};

inline __host__ __device__ int64_t product_chunk_begin(const cuda_product &product, int64_t chunk)
{
    const int64_t each = ceiling(ceiling(product.terms, product.chunks), STEP) * STEP,
                  begin = chunk * each;
    return begin < product.terms ? begin : product.terms;
}

// Thread blocks of a kernel have one of four shapes.
struct product_shape {
    int warps;
    int64_t rows, columns; // of C
    double time;           // of a term, in multiply-adds
    double ends;           // work before the first term and after the last one, in terms
    double loads, panel;   // of an operand by a thread, and of an element of a panel by the block
};

// By tensor cores: shape `number`, and as cuda_launch_product with that shape.
product_shape cuda_tensor_shape(const cuda_product &product, int number);
cudaError_t cuda_launch_tensor_product(const cuda_product *product, int shape, void *c,
                                       const void *a, const void *b);

// The cost of tiles of C of a shape. A processor multiplies at its full rate from FULL threads on:
// fewer take as long.
inline double product_shape_slots(const cuda_product &product, const product_shape &shape,
                                  int processors)
{
    enum { FULL = 256 };
    const int64_t tiles =
        ceiling(product.rows, shape.rows) * ceiling(product.columns, shape.columns);
    const int64_t least = FULL / (WARP * shape.warps);
    const int64_t each = ceiling(tiles * product.batch * product.chunks, processors);
    const int64_t steps = ceiling(ceiling(product.terms, product.chunks), STEP);
    return (double)(each > least ? each : least) *
           ((double)(steps * STEP) * shape.time + shape.ends) *
           (product.element >= CUDA_CF32 ? 4 : 1) *
           ((1 + shape.loads) * (double)(shape.rows * shape.columns) +
            shape.panel * (double)(shape.rows + shape.columns));
}

// The shape that takes the least time.
inline int product_best_shape(const cuda_product &product, int processors,
                              product_shape (*shape_of)(const cuda_product &product, int number),
                              double *ret_slots)
{
    int best = 0;
    for (int shape = 0; shape < 4; shape++) {
        const double now = product_shape_slots(product, shape_of(product, shape), processors);
        if (shape && now >= *ret_slots) continue;
        best = shape;
        *ret_slots = now;
    }
    return best;
}

// Queues a kernel of products by an algorithm, or that for operands whose terms are inner.
template <typename Algorithm, typename Kernel>
inline cudaError_t queue_matrix_product(const cuda_product *product, Kernel outer, Kernel inner,
                                        void *c, const void *a, const void *b)
{
    typedef typename Algorithm::tile tile;
    typedef typename Algorithm::a_panel a_panel;
    const size_t bytes =
        2 * (a_panel::SIZE + Algorithm::b_panel::SIZE) * sizeof(typename a_panel::S);
    const int64_t tiles =
        ceiling(product->rows, tile::ROWS) * ceiling(product->columns, tile::COLUMNS);
    return queue(product->a.terms_inner ? inner : outer, tiles * product->chunks * product->batch,
                 dim3(tile::THREADS), bytes, *product, c, a, b);
}

// Blocks are [matrix][chunk][block of columns][block of rows]: neighbours read the same columns of
// B. `Algorithm` says how a block sums its tile of C: the elements, the panels of both operands,
// the part of a thread, and where it begins.
template <typename Algorithm>
inline __device__ void
multiply_matrices(const cuda_product &product, typename Algorithm::element *c,
                  const typename Algorithm::element *a, const typename Algorithm::element *b)
{
    typedef typename Algorithm::tile tile;
    typedef typename Algorithm::a_panel a_panel;
    typedef typename Algorithm::b_panel b_panel;
    typedef typename a_panel::S stored;
    constexpr int A_SIZE = a_panel::SIZE, SIZE = A_SIZE + b_panel::SIZE;
    int64_t block = blockIdx.x;
    const int64_t row = take(&block, ceiling(product.rows, tile::ROWS)) * tile::ROWS;
    const int64_t column = take(&block, ceiling(product.columns, tile::COLUMNS)) * tile::COLUMNS;
    const int64_t chunk = take(&block, product.chunks), matrix = block,
                  first = product_chunk_begin(product, chunk);
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const int my_row = Algorithm::row(warp, lane), my_column = Algorithm::column(warp, lane);
    stored *const shared = (stored *)shared_memory;
    c += matrix * product.c.plane + chunk * product.chunk_plane + (row + my_row) * product.c.pitch +
         column + my_column;
    const int rows_left = min_int(product.rows - row, tile::ROWS),
              columns_left = min_int(product.columns - column, tile::COLUMNS);
    a_panel from_a(product.a, a + matrix * product.a.plane, row, first);
    b_panel from_b(product.b, b + matrix * product.b.plane, column, first);
    int left = (int)(product_chunk_begin(product, chunk + 1) - first), half = 0;
    from_a.fetch_next(product.a.pitch, left, rows_left);
    from_b.fetch_next(product.b.pitch, left, columns_left);
    for (bool begun = false; left > 0 || !begun; begun = true) {
        typename Algorithm::thread_sums sum;
        sum.clear_sums();
        for (int t = 0; t < CUDA_PRODUCT_SEGMENT && left > 0; t += STEP, half = SIZE - half) {
            from_a.to_shared(shared + half);
            from_b.to_shared(shared + half + A_SIZE);
            __syncthreads(); // behind it nobody reads the other half any more
            left -= STEP;
            if (left > 0) {
                from_a.fetch_next(product.a.pitch, left, rows_left);
                from_b.fetch_next(product.b.pitch, left, columns_left);
            }
            sum.template add_panel_products<a_panel::PITCH, b_panel::PITCH>(
                shared + half + my_row, shared + half + A_SIZE + my_column);
        }
        sum.store_sums(c, product.c.pitch, rows_left - my_row, columns_left - my_column,
                       begun || product.onto);
    }
}

#endif
