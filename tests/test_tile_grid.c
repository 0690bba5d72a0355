// SPDX-License-Identifier: MIT
// Grids of tiles (lib/cpu/tile_grid.h): for many random axes every product of the defining sum is met exactly once by
// some image, phase, tile, output and tap of it, in every direction, and no other is met.
#include "cpu/tile_grid.h"

#include "problem.h"
#include "test.h"

enum { CASES = 3000, MOST = 40 };

static struct partita_problem draw(struct random *random)
{
    for (;;) {
        struct partita_problem p = {.op = (enum partita_op)random_below(random, 2),
                                    .size = {1 + random_below(random, MOST)},
                                    .kernel = {1 + random_below(random, random_below(random, 3) ? 6 : MOST)},
                                    .stride = {1 + random_below(random, random_below(random, 4) ? 4 : 50)},
                                    .dilation = {1 + random_below(random, random_below(random, 4) ? 4 : 50)},
                                    .pad_begin = {(ptrdiff_t)random_below(random, 60) - 10},
                                    .pad_end = {(ptrdiff_t)random_below(random, 60) - 10}};
        if (reference_outputs(&p, 0) <= 60 && partita_problem_output_size(&p, (size_t[3]){0}) == PARTITA_OK) return p;
    }
}

// How often output p meets sample i with tap r, by the grid.
typedef unsigned char met_table[100][MOST][MOST + 1];

static void count(const struct tile_grid *grid, bool backward, met_table met)
{
    const struct tile_axis *axis = &grid->axis[2];
    for (size_t image = 0; image < axis->images; image++)
        for (size_t phase = 0; phase < axis->phases; phase++)
            for (size_t at = 0; at < axis->tiles * axis->tile * axis->taps; at++) {
                const size_t k = at % axis->taps, o = at / axis->taps % axis->tile, tile = at / axis->taps / axis->tile;
                const ptrdiff_t q = tile_output(axis, tile) + (ptrdiff_t)o,
                                from = tile_input(axis, tile) + (ptrdiff_t)(o + k),
                                to = tile_sample(&axis->out, image, phase, q),
                                in = tile_sample(&axis->in, image, phase, from);
                const size_t tap = tile_grid_tap(grid, (const size_t[]){0, 0, phase}, (const size_t[]){0, 0, k});
                assert_true(o + k < axis->extent);
                if (tap == SIZE_MAX || !tile_inside(&axis->out, to) || !tile_inside(&axis->in, in)) continue;
                met[backward ? in : to][backward ? to : in][tap]++;
            }
}

static void every_product_once(void **state)
{
    (void)state;
    struct random random = random_start("grid");
    static met_table met;
    for (int i = 0; i < CASES; i++) {
        const struct partita_problem p = draw(&random);
        struct shape shape;
        struct tile_grid grid;
        assert_ok(problem_canonical(&p, &(struct partita_log){0}, &shape));
        const struct axis *axis = &shape.axis[0];
        for (int d = 0; d < 2; d++) {
            assert_true(tile_grid_make(&shape, d ? PARTITA_BACKWARD_DATA : PARTITA_FORWARD, &grid));
            tile_grid_cut(&grid, (const size_t[]){1, 1, 1 + random_below(&random, 7)});
            memset(met, 0, sizeof met);
            count(&grid, d, met);
            for (size_t y = 0; y < axis->out; y++)
                for (size_t x = 0; x < axis->size; x++)
                    for (size_t r = 0; r < axis->kernel; r++) {
                        const bool meets =
                            (ptrdiff_t)(axis->stride * y + axis->dilation * r) + axis->begin == (ptrdiff_t)x;
                        const size_t tap = shape.flip ? axis->kernel - 1 - r : r;
                        if (met[y][x][tap] != meets)
                            fail_msg("case %d: output %zu, sample %zu, tap %zu met %d times", i, y, x, r,
                                     met[y][x][tap]);
                    }
        }
    }
}

// Every output belongs to one image, phase and position, unless backward data says that some do not.
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
            tile_grid_cut(&grid, (const size_t[]){1, 1, 3});
            const struct tile_axis *a = &grid.axis[2];
            for (size_t image = 0; image < a->images; image++)
                for (size_t phase = 0; phase < (d ? a->phases : 1); phase++) {
                    const struct tile_range range = tile_within(&a->out, image, phase, a->first, a->count);
                    for (size_t q = 0; q < a->count; q++) {
                        const ptrdiff_t at = tile_sample(&a->out, image, phase, a->first + (ptrdiff_t)q);
                        assert_int_equal(tile_inside(&a->out, at), q >= range.begin && q < range.end);
                        if (tile_inside(&a->out, at)) seen[at]++;
                    }
                }
            for (size_t s = 0; s < a->out.size; s++) assert_true(seen[s] == 1 || (!grid.covers && seen[s] == 0));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_product_once), cmocka_unit_test(outputs_once)};
    return run_all(tests);
}
