// SPDX-License-Identifier: MIT
// The table of one instruction set and precision; every slot has a kernel in each.
#include "names.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#define ENTRY(type, op) .op = KERNEL(op),

// clang-format off
const struct kernels KERNEL(table) = {
    .isa = TEXT(ISA),
    .f64 = sizeof(REAL) == sizeof(double),
#if REAL_BYTES == 4
    .widen = {[HALF_F16] = KERNEL(widen_f16), [HALF_BF16] = KERNEL(widen_bf16)},
    .narrow = {[HALF_F16] = KERNEL(narrow_f16), [HALF_BF16] = KERNEL(narrow_bf16)},
    .pair = KERNEL(pair),
#if VECTOR_BYTES == 64
    .conv_pairs = KERNEL(conv_pairs),
#endif
#endif
    .fft = &KERNEL(fft),
    EACH_KERNEL(ENTRY)
};
