// SPDX-License-Identifier: MIT
// Signals so short that their direct sums take less time than planning does.
#ifndef PARTITA_DIRECT_SMALL_H
#define PARTITA_DIRECT_SMALL_H

#include "core/slice.h"

// y[range.size] = that slice, by the kernel of cpu/direct, on the calling thread and without
// allocating. Does nothing and returns false if the sums are too long, an array is misaligned, or
// the samples have two bytes.
bool direct_small(void *y, const struct one_shot *call);

#endif
