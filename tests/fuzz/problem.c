// SPDX-License-Identifier: MIT
// Fuzz target: problems and options (problem_check.h). The bytes choose fields, most of them small,
// some of any size, so that both the checks of problems and the engines see them. Not drawn:
// whole_blocks and budgets of errors.
#include "fuzz/input.h"
#include "problem_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Mostly below `limit`; one in 128 is any 64-bit number.
static size_t take_size(struct input *input, size_t limit)
{
    return input_take(input, 1) % 128 == 127 ? (size_t)input_take(input, 8)
                                             : (size_t)input_take(input, 2) % limit;
}

// The same for enumerations and signed numbers.
static int take_int(struct input *input, int limit)
{
    return input_take(input, 1) % 128 == 127 ? (int)input_take(input, 4)
                                             : (int)(input_take(input, 1) % (unsigned)limit);
}

static struct partita_problem take_problem(struct input *input)
{
    static const int pairs[6][2] = {{PARTITA_F32, PARTITA_F32},   {PARTITA_F64, PARTITA_F64},
                                    {PARTITA_CF32, PARTITA_CF32}, {PARTITA_CF64, PARTITA_CF64},
                                    {PARTITA_CF32, PARTITA_F32},  {PARTITA_CF64, PARTITA_F64}};
    // Half of all problems are layers: real, small along each axis.
    const bool layer = input_take(input, 1) % 2;
    const int *pair = pairs[input_take(input, 1) % (layer ? 2 : 6)];
    struct partita_problem p = {.signal = (enum partita_type)pair[0],
                                .taps = (enum partita_type)pair[1]};
    if (input_take(input, 1) % 32 == 31) p.taps = (enum partita_type)take_int(input, 6);
    p.op = (enum partita_op)take_int(input, 2);
    p.activation = layer ? (enum partita_activation)take_int(input, 2) : PARTITA_LINEAR;
    p.rank = layer                           ? (int)(1 + (unsigned)take_int(input, 3))
             : input_take(input, 1) % 8 == 7 ? take_int(input, 5)
                                             : 1;
    p.batch = take_size(input, 4);
    p.in_channels = take_size(input, 5);
    p.out_channels = take_size(input, 5);
    p.groups = input_take(input, 1) % 4 ? 1 : take_size(input, 3);
    if (layer && input_take(input, 1) % 4 == 3)
        p.groups = p.out_channels = p.in_channels; // depthwise
    int axes = p.rank > 0 && p.rank < PARTITA_MAX_RANK ? p.rank : PARTITA_MAX_RANK;
    if (input_take(input, 1) % 32 == 31) axes = PARTITA_MAX_RANK; // fields beyond the rank
    for (int a = 0; a < axes; a++) {
        p.kernel[a] = take_size(input, layer ? 5 : input_take(input, 1) % 2 ? 20 : 300);
        p.size[a] = take_size(input, layer ? 12 : 2000);
        p.stride[a] = take_size(input, layer ? 4 : 9);
        p.dilation[a] = take_size(input, layer ? 3 : 5);
        p.pad_begin[a] = (ptrdiff_t)take_size(input, layer ? 12 : 600) - (layer ? 3 : 100);
        p.pad_end[a] = (ptrdiff_t)take_size(input, layer ? 12 : 600) - (layer ? 3 : 100);
    }
    p.channels_last = layer && input_take(input, 1) % 3 == 2;
    p.separable = input_take(input, 1) % 32 == 31;
    if (!layer && input_take(input, 1) % 4 == 3) p.up = take_size(input, 12);
    if (!layer && input_take(input, 1) % 3 == 0) {
        p.size[0] = PARTITA_UNBOUNDED;
        p.pad_begin[0] = p.pad_end[0] = 0;
        p.batch = 0;
        p.block = take_size(input, 3000);
        p.latency = take_size(input, 5000);
    }
    if (input_take(input, 1) % 8 == 7) p.boundary = (enum partita_boundary)take_int(input, 6);
    if (p.boundary == PARTITA_BOUNDARY_CONSTANT) p.boundary_value = 0.5;
    return p;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const engines[] = {
        NULL,       "cpu/direct",   "cpu/overlap-add", "cpu/overlap-save",
        "cpu/gemm", "cpu/winograd", "cpu/tiles",       "cpu/depthwise"};
    struct input input = {data, size};
    struct partita_problem problem = take_problem(&input);
    struct partita_options options = {
        .engine = input_take(&input, 1) % 64 == 63
                      ? "none"
                      : engines[input_take(&input, 1) % 2 ? input_take(&input, 1) % 8 : 0],
        .threads = take_int(&input, 5),
        .workspace_limit = input_take(&input, 1) % 4 ? 0 : take_size(&input, 60000),
        .filter_uses = input_take(&input, 1) % 4};
    problem_check(&problem, &options, input_take(&input, 8));
    return 0;
}
