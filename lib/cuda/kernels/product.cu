// SPDX-License-Identifier: MIT
// Batched products of matrices: a thread block sums a tile of C, stepping along the terms through
// panels of A and B in shared memory, one being read from memory while the other is multiplied; a
// thread has 64 reals of the tile in registers, in groups of a vector of 16 bytes, and a warp reads
// each vector of a panel at most once per phase. Source: the blocking is that of Volkov and Demmel,
// Benchmarking GPUs to tune dense linear algebra (2008), and of NVIDIA's CUTLASS (efficient GEMM in
// CUDA, its documentation).
#include "product.h"

#include <assert.h>

#include "complex.cuh"
#include "launch.cuh"

namespace {
constexpr int STEP = 8, WARP = 32, LANE_ROWS = 4, LANE_COLUMNS = 8;

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

// A panel of an operand on its way through shared memory: STEP terms of EXTENT positions,
// [term][position]. A thread moves COUNT vectors of it, the lines of which are APART from each
// other.
template <typename E, int EXTENT, int THREADS, bool INNER> struct panel {
    static constexpr int N = vector_of<E>::N, COUNT = EXTENT * STEP / N / THREADS;
    static constexpr int OF_LINE = INNER ? STEP / N : EXTENT / N, APART = THREADS / OF_LINE;
    static constexpr int PITCH =
        EXTENT + N; // a vector more: four terms of a position are then in four banks' groups
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

    __device__ panel(const cuda_matrices &of, const E *matrix, int64_t position, int64_t term)
    {
        from = matrix + ((INNER ? position : term) + line()) * of.pitch +
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

    __device__ void to_shared(E *shared) const
    {
        shared += INNER ? along() * PITCH + line() : line() * PITCH + along();
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            if (INNER)
#pragma unroll
                for (int k = 0; k < N; k++) shared[k * PITCH + i * APART] = vectors[i].at[k];
            else *(vector_of<E> *)(shared + i * APART * PITCH) = vectors[i];
    }
};

// What a thread sums of the tile: vectors of N rows LANE_ROWS apart, and of N columns LANE_COLUMNS
// apart.
template <typename E> struct sums {
    static constexpr int N = vector_of<E>::N, ROWS = thread_tile<E>::ROWS,
                         COLUMNS = thread_tile<E>::COLUMNS;
    E of[ROWS][COLUMNS];

    __device__ void clear_sums()
    {
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) of[r][c] = {};
    }

    // Adds the products of STEP terms; a and b point at this thread's first vectors.
    __device__ void add_panel_products(const E *a, int a_pitch, const E *b, int b_pitch)
    {
#pragma unroll
        for (int t = 0; t < STEP; t++) {
            vector_of<E> rows[ROWS / N], columns[COLUMNS / N];
#pragma unroll
            for (int q = 0; q < ROWS / N; q++)
                rows[q] = *(const vector_of<E> *)(a + t * a_pitch + q * LANE_ROWS * N);
#pragma unroll
            for (int q = 0; q < COLUMNS / N; q++)
                columns[q] = *(const vector_of<E> *)(b + t * b_pitch + q * LANE_COLUMNS * N);
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int c = 0; c < COLUMNS; c++)
                    multiply_add(of[r][c], rows[r / N].at[r % N], columns[c / N].at[c % N]);
        }
    }

    // To C, or onto what is there. `left` rows and columns exist from the first ones on.
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
                for (int k = 0; k < N; k++) sum.at[k] = of[r][q * N + k];
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

__host__ __device__ int64_t chunk_begin(const cuda_product &product, int64_t chunk)
{
    const int64_t each = ceiling(ceiling(product.terms, product.chunks), STEP) * STEP,
                  begin = chunk * each;
    return begin < product.terms ? begin : product.terms;
}

// Thread blocks of so many warps that a processor is to hold at once: 16 warps of 128 registers,
// and 12 of 168 where a thread moves more of the panels.
template <typename E> constexpr int product_resident(int warps)
{
    if (sizeof(E) == 16) return 1;
    return (warps >= 4 ? 16 : 12) / warps;
}

// Blocks are [matrix][chunk][block of columns][block of rows]: neighbours read the same columns of
// B.
template <typename E, int WARP_ROWS, int WARP_COLUMNS, bool INNER>
__global__ void __launch_bounds__(WARP *WARP_ROWS *WARP_COLUMNS,
                                  product_resident<E>(WARP_ROWS *WARP_COLUMNS))
    product_kernel(const __grid_constant__ cuda_product product, E *c, const E *a, const E *b)
{
    typedef block_tile<E, WARP_ROWS, WARP_COLUMNS> tile;
    typedef panel<E, tile::ROWS, tile::THREADS, INNER> a_panel;
    typedef panel<E, tile::COLUMNS, tile::THREADS, INNER> b_panel;
    constexpr int A_SIZE = STEP * a_panel::PITCH, SIZE = A_SIZE + STEP * b_panel::PITCH,
                  N = vector_of<E>::N;
    int64_t block = blockIdx.x;
    const int64_t row = take(&block, ceiling(product.rows, tile::ROWS)) * tile::ROWS;
    const int64_t column = take(&block, ceiling(product.columns, tile::COLUMNS)) * tile::COLUMNS;
    const int64_t chunk = take(&block, product.chunks), matrix = block,
                  first = chunk_begin(product, chunk);
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const int my_row =
        warp % WARP_ROWS * (tile::ROWS / WARP_ROWS) + cuda_product_lane_row(lane) * N;
    const int my_column = warp / WARP_ROWS * (tile::COLUMNS / WARP_COLUMNS) + lane_column(lane) * N;
    E *const shared = (E *)shared_memory;
    c += matrix * product.c.plane + chunk * product.chunk_plane + (row + my_row) * product.c.pitch +
         column + my_column;
    const int rows_left = min_int(product.rows - row, tile::ROWS),
              columns_left = min_int(product.columns - column, tile::COLUMNS);
    a_panel from_a(product.a, a + matrix * product.a.plane, row, first);
    b_panel from_b(product.b, b + matrix * product.b.plane, column, first);
    int left = (int)(chunk_begin(product, chunk + 1) - first), half = 0;
    from_a.fetch_next(product.a.pitch, left, rows_left);
    from_b.fetch_next(product.b.pitch, left, columns_left);
    for (bool begun = false; left > 0 || !begun; begun = true) {
        sums<E> sum;
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
            sum.add_panel_products(shared + half + my_row, a_panel::PITCH,
                                   shared + half + A_SIZE + my_column, b_panel::PITCH);
        }
        sum.store_sums(c, product.c.pitch, rows_left - my_row, columns_left - my_column,
                       begun || product.onto);
    }
}

// Shapes of thread blocks, in warps.
constexpr struct {
    int warp_rows, warp_columns;
} shapes[] = {{4, 2}, {2, 2}, {2, 1}, {1, 1}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

// What tiles of C of a shape cost. A processor multiplies at its full rate from FULL threads on:
// fewer take as long. The rest is counted from the machine code (sm_90; decision 21): loads of a
// thread's operands and the loop, what a block does with each element of its panels, and what it
// does before its first term and after its last, in terms.
double slots_of(const cuda_product &product, int shape, int processors)
{
    enum { FULL = 256 };
    const bool complex = product.element >= CUDA_CF32;
    const double loads = complex ? 0.09 : 0.1, panel = complex ? 1 : 3, ends = complex ? 5 : 10;
    const int warps = shapes[shape].warp_rows * shapes[shape].warp_columns;
    const int thread_rows = product.element == CUDA_CF64 ? 4 : 8;
    const int thread_columns = product.element == CUDA_F32 ? 8 : 4;
    const int64_t rows = shapes[shape].warp_rows * LANE_ROWS * thread_rows;
    const int64_t columns = shapes[shape].warp_columns * LANE_COLUMNS * thread_columns;
    const int64_t tiles = ceiling(product.rows, rows) * ceiling(product.columns, columns);
    const int64_t least = FULL / (WARP * warps);
    const int64_t each = ceiling(tiles * product.batch * product.chunks, processors);
    const int64_t steps = ceiling(ceiling(product.terms, product.chunks), STEP);
    return (double)(each > least ? each : least) * ((double)(steps * STEP) + ends) *
           (complex ? 4 : 1) *
           ((1 + loads) * (double)(rows * columns) + panel * (double)(rows + columns));
}

int best_shape(const cuda_product &product, int processors, double *ret_slots)
{
    int best = 0;
    for (int shape = 0; shape < SHAPES; shape++) {
        const double slots = slots_of(product, shape, processors);
        if (shape && slots >= *ret_slots) continue;
        best = shape;
        *ret_slots = slots;
    }
    return best;
}

template <typename E, int WARP_ROWS, int WARP_COLUMNS>
cudaError_t launch_product(const cuda_product *product, void *c, const void *a, const void *b)
{
    typedef block_tile<E, WARP_ROWS, WARP_COLUMNS> tile;
    const size_t bytes = 2 * STEP * (tile::ROWS + tile::COLUMNS + 2 * vector_of<E>::N) * sizeof(E);
    const int64_t tiles =
        ceiling(product->rows, tile::ROWS) * ceiling(product->columns, tile::COLUMNS);
    void (*kernel)(cuda_product, E *, const E *, const E *) =
        product_kernel<E, WARP_ROWS, WARP_COLUMNS, false>;
    if (product->a.terms_inner) kernel = product_kernel<E, WARP_ROWS, WARP_COLUMNS, true>;
    return queue(kernel, tiles * product->chunks * product->batch, dim3(tile::THREADS), bytes,
                 *product, (E *)c, (const E *)a, (const E *)b);
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

int64_t cuda_product_chunk_begin(const cuda_product *product, int64_t chunk)
{
    return chunk_begin(*product, chunk);
}

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
    best_shape(*product, processors, &slots);
    return slots;
}

cudaError_t cuda_launch_product(const cuda_product *product, int processors, void *c, const void *a,
                                const void *b)
{
    double slots;
    const int shape = best_shape(*product, processors, &slots);
    [[maybe_unused]] const int64_t vector =
        CUDA_PRODUCT_ALIGN / cuda_element_bytes(product->element);
    assert(product->a.terms_inner == product->b.terms_inner && product->chunks > 0);
    assert(product->a.pitch % vector == 0 && product->b.pitch % vector == 0);
    assert(product->c.pitch % vector == 0 && product->c.pitch >= product->columns);
    return with_element(product->element, [=](auto zero) {
        typedef decltype(zero) E;
        switch (shape) {
        case 0:
            return launch_product<E, 4, 2>(product, c, a, b);
        case 1:
            return launch_product<E, 2, 2>(product, c, a, b);
        case 2:
            return launch_product<E, 2, 1>(product, c, a, b);
        default:
            return launch_product<E, 1, 1>(product, c, a, b);
        }
    });
}
