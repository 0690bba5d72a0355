// SPDX-License-Identifier: MIT
// Grids of tiles (lib/geometry/tile_grid.h): for many random axes and every direction, each product
// of the defining sum belongs to exactly one combination of image, branch, tile, output and tap,
// and no other product does. Also the classes of passes of these axes (lib/cpu/conv/pass.h).
#include "cpu/conv/pass.h"
#include "geometry/tile_grid.h"

#include "core/problem.h"
#include "support/test.h"

enum { CASES = 3000, MAX_SIZE = 40 };

static struct partita_problem draw(struct random *random)
{
    for (;;) {
        struct partita_problem p = {
            .op = (enum partita_op)random_below(random, 2),
            .size = {1 + random_below(random, MAX_SIZE)},
            .kernel = {1 + random_below(random, random_below(random, 3) ? 6 : MAX_SIZE)},
            .stride = {1 + random_below(random, random_below(random, 4) ? 4 : 50)},
            .dilation = {1 + random_below(random, random_below(random, 4) ? 4 : 50)},
            .pad_begin = {(ptrdiff_t)random_below(random, 60) - 10},
            .pad_end = {(ptrdiff_t)random_below(random, 60) - 10}};
        if (reference_outputs(&p, 0) <= 60 &&
            partita_problem_output_size(&p, (size_t[3]){0}) == PARTITA_OK)
            return p;
    }
}

static bool is_inside(const struct tile_side *side, ptrdiff_t sample)
{
    return sample >= 0 && sample < (ptrdiff_t)side->size;
}

// How often the grid has the product of output p, sample i and tap r.
typedef unsigned char product_counts[100][MAX_SIZE][MAX_SIZE + 1];

static void count(const struct tile_grid *grid, bool backward, product_counts counts)
{
    const struct tile_axis *axis = &grid->axis[2];
    for (size_t image = 0; image < axis->images; image++)
        for (size_t branch = 0; branch < axis->branches; branch++)
            for (size_t at = 0; at < axis->tiles * axis->tile * axis->taps; at++) {
                const size_t k = at % axis->taps, o = at / axis->taps % axis->tile,
                             tile = at / axis->taps / axis->tile;
                const ptrdiff_t q = tile_output(axis, tile) + (ptrdiff_t)o,
                                from = tile_position(axis, false, tile) + (ptrdiff_t)(o + k),
                                to = tile_sample(&axis->out, image, branch, q),
                                in = tile_sample(&axis->in, image, branch, from);
                const size_t tap =
                    tile_grid_tap(grid, (const size_t[]){0, 0, branch}, (const size_t[]){0, 0, k});
                assert_true(o + k < axis->extent);
                if (tap == SIZE_MAX || !is_inside(&axis->out, to) || !is_inside(&axis->in, in))
                    continue;
                counts[backward ? in : to][backward ? to : in][tap]++;
            }
}

static void every_product_once(void **state)
{
    (void)state;
    struct random random = random_start("grid");
    static product_counts counts;
    for (int i = 0; i < CASES; i++) {
        const struct partita_problem p = draw(&random);
        struct shape shape;
        struct tile_grid grid;
        assert_ok(problem_canonical(&p, &(struct partita_log){0}, &shape));
        const struct axis *axis = &shape.axis[0];
        for (int d = 0; d < 2; d++) {
            assert_true(tile_grid_make(&shape, d ? PARTITA_BACKWARD_DATA : PARTITA_FORWARD, &grid));
            tile_grid_split(&grid, (const size_t[]){1, 1, 1 + random_below(&random, 7)});
            memset(counts, 0, sizeof counts);
            count(&grid, d, counts);
            for (size_t y = 0; y < axis->out; y++)
                for (size_t x = 0; x < axis->size; x++)
                    for (size_t r = 0; r < axis->kernel; r++) {
                        const bool meets =
                            (ptrdiff_t)(axis->stride * y + axis->dilation * r) + axis->begin ==
                            (ptrdiff_t)x;
                        const size_t tap = shape.flip ? axis->kernel - 1 - r : r;
                        if (counts[y][x][tap] != meets)
                            fail_msg("case %d: output %zu, sample %zu, tap %zu: %d products", i, y,
                                     x, r, counts[y][x][tap]);
                    }
        }
    }
}

// Each output belongs to one image, branch and position, unless backward data reports outputs
// without any.
static void outputs_once(void **state)
{
    (void)state;
    struct random random = random_start("outputs");
    for (int i = 0; i < CASES; i++) {
        const struct partita_problem p = draw(&random);
        struct shape shape;
        struct tile_grid grid;
        assert_ok(problem_canonical(&p, &(struct partita_log){0}, &shape));
        for (int d = 0; d < 2; d++) {
            unsigned char seen[100] = {0};
            assert_true(tile_grid_make(&shape, d ? PARTITA_BACKWARD_DATA : PARTITA_FORWARD, &grid));
            tile_grid_split(&grid, (const size_t[]){1, 1, 3});
            const struct tile_axis *a = &grid.axis[2];
            for (size_t image = 0; image < a->images; image++)
                for (size_t branch = 0; branch < (d ? a->branches : 1); branch++) {
                    const struct tile_range range =
                        tile_within(&a->out, image, branch, a->first, a->count);
                    for (size_t q = 0; q < a->count; q++) {
                        const ptrdiff_t at =
                            tile_sample(&a->out, image, branch, a->first + (ptrdiff_t)q);
                        assert_int_equal(is_inside(&a->out, at), q >= range.begin && q < range.end);
                        if (is_inside(&a->out, at)) seen[at]++;
                    }
                }
            for (size_t s = 0; s < a->out.size; s++)
                assert_true(seen[s] == 1 || (!grid.covers && seen[s] == 0));
        }
    }
}

// Each pass of backward data is equivalent to the first pass of exactly one class, and is linked to
// the next pass of that class.
static void passes_of_a_class(void **state)
{
    (void)state;
    struct random random = random_start("kinds");
    size_t max_classes = 0;
    for (int i = 0; i < CASES / 4; i++) {
        struct partita_problem p = draw(&random);
        const struct partita_problem other = draw(&random);
        p.rank = 2;
        p.size[1] = other.size[0];
        p.kernel[1] = other.kernel[0];
        p.stride[1] = other.stride[0];
        p.dilation[1] = other.dilation[0];
        p.pad_begin[1] = other.pad_begin[0];
        p.pad_end[1] = other.pad_end[0];
        struct shape shape;
        assert_ok(problem_canonical(&p, &(struct partita_log){0}, &shape));
        struct conv_class class[CONV_MAX_CLASSES];
        struct conv_pass first[CONV_MAX_CLASSES], pass;
        size_t n[CONV_MAX_CLASSES] = {0};
        const size_t classes = conv_pass_classes(&shape, PARTITA_BACKWARD_DATA, class);
        assert_in_range(classes, 1, CONV_MAX_CLASSES);
        max_classes = classes > max_classes ? classes : max_classes;
        for (size_t k = 0; k < classes; k++)
            conv_pass_make(&shape, PARTITA_BACKWARD_DATA, class[k].first, &first[k]);
        for (size_t at = 0; at < conv_pass_count(&shape, PARTITA_BACKWARD_DATA); at++) {
            size_t met = 0;
            conv_pass_make(&shape, PARTITA_BACKWARD_DATA, at, &pass);
            for (size_t k = 0; k < classes; k++) {
                if (!conv_pass_same_class(&first[k], &pass)) continue;
                met++;
                n[k]++;
                assert_true(class[k].first <= at);
                assert_int_equal(first[k].terms, pass.terms);
                for (int a = 0; a < 3; a++) {
                    assert_int_equal(first[k].axis[a].count, pass.axis[a].count);
                    assert_int_equal(first[k].axis[a].residues, pass.axis[a].residues);
                    assert_int_equal(first[k].axis[a].reach, pass.axis[a].reach);
                }
            }
            assert_int_equal(met, 1);
        }
        for (size_t k = 0; k < classes; k++) assert_int_equal(n[k], class[k].n);
    }
    assert_true(max_classes > 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_product_once),
                                       cmocka_unit_test(outputs_once),
                                       cmocka_unit_test(passes_of_a_class)};
    return run_all(tests);
}
