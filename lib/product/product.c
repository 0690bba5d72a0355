// SPDX-License-Identifier: MIT
#include "product.h"

#include "base/sizes.h"

enum { NEAR_BYTES = 24 << 10 }; // of an L1 cache of 32 KiB

size_t product_strip(const struct partita_plan *plan, size_t left)
{
    // Four vectors of 64 bytes are cut 2 + 2: one of 3 + 1 alone has too few sums in flight.
    const size_t lanes = CONV_BLOCK_BYTES / (plan->kernels->f64 ? sizeof(double) : sizeof(float));
    const bool pairs = plan->isa != CPU_AVX2 && left == (PRODUCT_STRIP_VECTORS + 1) * lanes;
    return pairs ? left / 2 : size_min(left, PRODUCT_STRIP_VECTORS * lanes);
}

struct product_matrix product_pack_rows(const struct partita_plan *plan,
                                        const struct product_matrix *from, size_t terms,
                                        size_t rows, char *to)
{
    const size_t bytes = plan->kernels->f64 ? sizeof(double) : sizeof(float);
    for (size_t row = 0; row < rows; row += CONV_CHANNELS)
        plan->kernels->conv_rows(to + row * terms * bytes, from->at + row * bytes, from->term,
                                 terms, size_min(CONV_CHANNELS, rows - row));
    return (struct product_matrix){
        .at = to, .block = CONV_CHANNELS, .pitch = CONV_CHANNELS * terms};
}

void product_prefetch_rows(struct product_prefetch *prefetch, const char *first, size_t row,
                           size_t rows, size_t step)
{
    const size_t lines = row / CONV_BLOCK_BYTES + 1;
    if (prefetch->n == PRODUCT_MAX_RANGES) return;
    prefetch->lines[prefetch->n] = lines * rows;
    prefetch->all += lines * rows;
    prefetch->range[prefetch->n++] =
        (struct conv_prefetch){.at = (uintptr_t)first,
                               .left = lines,
                               .lines = lines,
                               .skip = step - lines * CONV_BLOCK_BYTES};
}

// Columns column .. column+n-1 of a block of B, which has `width`, and terms first ..
// first+terms-1, which are `term` scalars apart.
struct strip {
    size_t block, width, column, n, first, terms, term;
    const char *b;
};

// A product on its way.
struct run {
    const struct product *product;
    size_t bytes;                       // of a scalar
    size_t segment;                     // terms
    struct product_prefetch prefetch;   // the rest of it
    size_t at, share;                   // the current range; lines of a call
    size_t term, offset[PRODUCT_TERMS]; // of a segment whose terms in B are this far apart
};

// Block `block` of B from a column of it on.
static void strip_at(const struct run *run, size_t block, size_t first, size_t column,
                     struct strip *ret)
{
    const struct product *product = run->product;
    const struct product_matrix *b = &product->b;
    const size_t left = product->columns - block * b->block;
    const size_t width = b->block ? size_min(b->block, left) : left;
    // Registers of 64 bytes read a strip seldom enough to read it from the L2 cache.
    const bool wide = b->block || (product->next_b && product->plan->isa != CPU_AVX2) ||
                      (b->offset && product->rows <= CONV_CHANNELS); // a strip is read once
    // So many columns of few terms stay in the L1 cache.
    const size_t near = product->next_b ? 0 : NEAR_BYTES / (run->segment * run->bytes);
    const size_t strip = PRODUCT_STRIP_BYTES / run->bytes, rest = width - column;
    ret->block = block;
    ret->first = first;
    ret->terms = size_min(run->segment, product->terms - first);
    ret->column = column;
    ret->n = wide || rest <= near ? rest : product_strip(product->plan, rest);
    if (!wide && near >= 2 * strip && rest > near) ret->n = near / strip * strip;
    ret->width = width;
    ret->term = b->term ? b->term : width;
    ret->b =
        b->at +
        (block * b->pitch + column + (b->offset ? 0 : (b->first + first) * ret->term)) * run->bytes;
}

// The strip that follows in time: of the segment, of the next segment, of the next block; false:
// there is none, and it is the next product's, as large as this one.
static bool next_strip(const struct run *run, const struct strip *strip, struct strip *ret)
{
    const struct product *product = run->product;
    const size_t column = strip->column + strip->n, first = strip->first + strip->terms;
    const size_t next = product->b.block ? (strip->block + 1) * product->b.block : product->columns;
    if (column < strip->width) strip_at(run, strip->block, strip->first, column, ret);
    else if (first < product->terms) strip_at(run, strip->block, first, 0, ret);
    else if (next < product->columns) strip_at(run, strip->block + 1, 0, 0, ret);
    else {
        ret->b = product->next_b;
        ret->n = strip->n;
        ret->terms = strip->terms;
        ret->term = strip->term;
        return false;
    }
    return true;
}

// The share of a call of the kernel in prefetching.
static struct conv_prefetch *next_range(struct run *run, size_t terms)
{
    struct product_prefetch *prefetch = &run->prefetch;
    if (!prefetch->n) return NULL;
    if (!prefetch->lines[run->at] && run->at + 1 < prefetch->n) run->at++;
    struct conv_prefetch *range = &prefetch->range[run->at];
    range->count = size_min(size_min(run->share, terms), prefetch->lines[run->at]);
    prefetch->lines[run->at] -= range->count;
    return range;
}

// All rows of a strip.
static void run_strip(struct run *run, const struct strip *strip, const struct strip *next)
{
    const struct product *product = run->product;
    const struct product_matrix *a = &product->a, *b = &product->b;
    const size_t rows = product->rows, bytes = run->bytes, first = a->first + strip->first;
    const size_t a_block = a->block ? a->block : rows;
    const struct kernels *kernels = product->plan->kernels;
    conv_fn *const conv = product->pairs ? kernels->conv_pairs : kernels->conv;
    char *y = product->c + (strip->block * product->c_pitch + strip->column) * bytes;
    size_t row = next->n * bytes / CONV_BLOCK_BYTES; // lines of a term
    size_t lines = product->next_b ? next->terms * row : 0;
    if (next->n == next->term) row = lines; // its terms are adjacent
    struct conv_prefetch next_terms = {.at = (uintptr_t)next->b,
                                       .left = row,
                                       .lines = row,
                                       .skip = next->term * bytes - row * CONV_BLOCK_BYTES};
    // Packed blocks come from afar: calls fetch a line of the next one with each term; where these
    // are too few, the first call fetches lines just before it reads them. Blocks that are not
    // packed were made just before: the last call fetches all of it, beside its own columns.
    const bool few = 2 * lines > ceil_div(rows, CONV_CHANNELS) * strip->terms;
    size_t ahead = 0, ahead_row = 0;
    if (product->next_b && b->term) {
        ahead = (uintptr_t)next->b - (uintptr_t)strip->b;
        ahead_row = (rows - 1) / CONV_CHANNELS * CONV_CHANNELS;
    } else if (few) ahead = CONV_AHEAD_BYTES;
    if (ahead) lines = 0;
    for (size_t t = 0; t < run->segment && strip->term != run->term && !b->offset; t++)
        run->offset[t] = t * strip->term;
    run->term = strip->term;
    const char *w = a->at;
    for (size_t block = 0; block < rows; block += a_block, w += a->pitch * bytes) {
        const size_t n = size_min(a_block, rows - block);
        const size_t step = a->term ? a->step : 1, term = a->term ? a->term : n;
        for (size_t k = 0; k < n; k += CONV_CHANNELS) {
            const struct conv_operands operands = {.y = y + (block + k) * product->c_step * bytes,
                                                   .x = strip->b,
                                                   .w = w + (k * step + first * term) * bytes,
                                                   .offset = b->offset ? b->offset + strip->first
                                                                       : run->offset,
                                                   .y_stride = product->c_step,
                                                   .w_term = term,
                                                   .w_channel = step,
                                                   .terms = strip->terms,
                                                   .channels = size_min(CONV_CHANNELS, n - k),
                                                   .n = strip->n,
                                                   .ahead = block + k == ahead_row ? ahead : 0,
                                                   .overwrite = !product->add && strip->first == 0,
                                                   .past_caches = product->past_caches};
            next_terms.count = size_min(lines, strip->terms);
            lines -= next_terms.count;
            conv(&operands, next_terms.count ? &next_terms : next_range(run, strip->terms));
        }
    }
}

void product_run(const struct product *product)
{
    struct run run;
    run.product = product;
    run.bytes = product->plan->kernels->f64 ? sizeof(double) : sizeof(float);
    run.segment = size_split_even(product->terms, product->segment);
    run.prefetch.n = run.at = run.share = run.term = 0;
    if (product->prefetch) {
        const size_t strips = ceil_div(product->columns * run.bytes, PRODUCT_STRIP_BYTES);
        const size_t calls =
            strips * ceil_div(product->rows, CONV_CHANNELS) * ceil_div(product->terms, run.segment);
        run.prefetch = *product->prefetch;
        run.share = run.prefetch.all / size_max(calls, 1) + 1;
    }
    struct strip strip[2];
    strip_at(&run, 0, 0, 0, &strip[0]);
    for (bool more = true, i = false; more; i = !i) {
        more = next_strip(&run, &strip[i], &strip[!i]);
        run_strip(&run, &strip[i], &strip[!i]);
    }
}
