// SPDX-License-Identifier: MIT
#include "product.h"

#include "base/sizes.h"

// With the registers of AVX2 a rectangle has four rows and reads a strip twice as often: sums of
// half as many terms from the L1 cache are faster in spite of adding them up twice.
enum { SHORT_TERMS = 128 };

size_t product_strip(const struct partita_plan *plan, size_t left)
{
    // Three vectors of 64 bytes and one leave few sums in flight, six of 32 bytes and two do not.
    const size_t lanes = CONV_BLOCK_BYTES / (plan->kernels->f64 ? sizeof(double) : sizeof(float));
    const bool pairs = plan->isa != CPU_AVX2 && left == (PRODUCT_STRIP_VECTORS + 1) * lanes;
    return pairs ? left / 2 : size_min(left, PRODUCT_STRIP_VECTORS * lanes);
}

void product_prefetch_rows(struct product_prefetch *prefetch, const char *first, size_t row,
                           size_t rows, size_t step)
{
    const size_t lines = row / CONV_BLOCK_BYTES + 1;
    if (prefetch->n == PRODUCT_MAX_WALKS) return;
    prefetch->lines[prefetch->n] = lines * rows;
    prefetch->all += lines * rows;
    prefetch->walk[prefetch->n++] = (struct conv_walk){.at = (uintptr_t)first,
                                                       .left = lines,
                                                       .lines = lines,
                                                       .skip = step - lines * CONV_BLOCK_BYTES};
}

// Columns column .. column+n-1 of B, terms first .. first+terms-1, which are `term` scalars apart.
struct strip {
    size_t first, terms, column, n, term;
    const char *b;
};

// A product on its way.
struct run {
    const struct product *product;
    size_t bytes;                       // of a scalar
    size_t segment;                     // terms
    struct product_prefetch prefetch;   // what is left of it
    size_t at, share;                   // the current walk; lines of a call
    size_t term, offset[PRODUCT_TERMS]; // of a segment whose terms in B are this far apart
};

static struct strip strip_at(const struct run *run, size_t first, size_t column)
{
    const struct product *product = run->product;
    const struct product_matrix *b = &product->b;
    const size_t block = b->block ? column / b->block : 0, begin = block * b->block;
    const size_t left = product->columns - begin;
    const size_t width = b->block ? size_min(b->block, left) : left;
    struct strip ret = {.first = first,
                        .terms = size_min(run->segment, product->terms - first),
                        .column = column,
                        .n = product_strip(product->plan, begin + width - column),
                        .term = b->term ? b->term : width};
    const size_t at = block * b->pitch + column - begin;
    ret.b = b->at + (at + (b->offset ? 0 : (b->first + first) * ret.term)) * run->bytes;
    return ret;
}

// The lines of the strip that follows in time, the next product's as wide as this one.
static struct conv_walk walk_of_b(const struct run *run, const struct strip *strip, size_t *lines)
{
    const size_t column = strip->column + strip->n, first = strip->first + strip->terms;
    struct strip next = *strip;
    next.b = run->product->next_b;
    if (column < run->product->columns) next = strip_at(run, strip->first, column);
    else if (first < run->product->terms) next = strip_at(run, first, 0);
    const size_t row = next.n * run->bytes / CONV_BLOCK_BYTES;
    *lines = next.terms * row;
    return (struct conv_walk){.at = (uintptr_t)next.b,
                              .left = row,
                              .lines = row,
                              .skip = next.term * run->bytes - row * CONV_BLOCK_BYTES};
}

// The share of a call of the kernel in what is prefetched.
static struct conv_walk *next_walk(struct run *run, size_t terms)
{
    struct product_prefetch *prefetch = &run->prefetch;
    if (!prefetch->n) return NULL;
    if (!prefetch->lines[run->at] && run->at + 1 < prefetch->n) run->at++;
    struct conv_walk *walk = &prefetch->walk[run->at];
    walk->count = size_min(size_min(run->share, terms), prefetch->lines[run->at]);
    prefetch->lines[run->at] -= walk->count;
    return walk;
}

// All rows of a strip.
static void run_strip(struct run *run, const struct strip *strip)
{
    const struct product *product = run->product;
    const struct product_matrix *a = &product->a, *c = &product->c;
    const size_t rows = product->rows, bytes = run->bytes, first = a->first + strip->first;
    const size_t a_block = a->block ? a->block : rows;
    const size_t c_block = c->block ? strip->column / c->block : 0;
    char *y = c->at + (c_block * c->pitch + strip->column - c_block * c->block) * bytes;
    size_t lines = 0;
    struct conv_walk walk = {0};
    if (product->next_b) walk = walk_of_b(run, strip, &lines);
    for (size_t t = 0; t < run->segment && strip->term != run->term; t++)
        run->offset[t] = t * strip->term;
    run->term = strip->term;
    for (size_t block = 0; block < rows; block += a_block) {
        const size_t n = size_min(a_block, rows - block);
        const size_t row = a->term ? a->step : 1, term = a->term ? a->term : n;
        for (size_t k = 0; k < n; k += CONV_CHANNELS) {
            const struct conv_operands operands = {
                .y = y + (block + k) * c->step * bytes,
                .x = strip->b,
                .w = a->at + (block / a_block * a->pitch + k * row + first * term) * bytes,
                .offset = product->b.offset ? product->b.offset + strip->first : run->offset,
                .y_stride = c->step,
                .w_term = term,
                .w_channel = row,
                .terms = strip->terms,
                .channels = size_min(CONV_CHANNELS, n - k),
                .n = strip->n,
                .fresh = !product->add && strip->first == 0};
            walk.count = size_min(lines, strip->terms);
            lines -= walk.count;
            product->plan->kernels->conv(&operands,
                                         walk.count ? &walk : next_walk(run, strip->terms));
        }
    }
}

void product_run(const struct product *product)
{
    const size_t max = product->plan->isa == CPU_AVX2 ? SHORT_TERMS : PRODUCT_TERMS;
    struct run run;
    run.product = product;
    run.bytes = product->plan->kernels->f64 ? sizeof(double) : sizeof(float);
    run.segment = size_split_even(product->terms, size_min(product->segment, max));
    run.prefetch.n = run.at = run.share = run.term = 0;
    if (product->prefetch) {
        const size_t strips = ceil_div(product->columns * run.bytes, PRODUCT_STRIP_BYTES);
        const size_t calls =
            strips * ceil_div(product->rows, CONV_CHANNELS) * ceil_div(product->terms, run.segment);
        run.prefetch = *product->prefetch;
        run.share = run.prefetch.all / size_max(calls, 1) + 1;
    }
    for (size_t first = 0; first < product->terms; first += run.segment)
        for (size_t column = 0, n; column < product->columns; column += n) {
            const struct strip strip = strip_at(&run, first, column);
            n = strip.n;
            run_strip(&run, &strip);
        }
}
