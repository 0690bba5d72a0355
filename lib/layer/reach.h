// SPDX-License-Identifier: MIT
// Which samples of a plane depend on marked samples of another: axis after axis, because taps,
// strides and padding act on each axis alone.
#ifndef PARTITA_REACH_H
#define PARTITA_REACH_H

#include "core/problem.h"

// From the plane that is read to the plane that is written.
enum reach_kind { REACH_X_TO_Y, REACH_GY_TO_X, REACH_X_TO_TAPS, REACH_GY_TO_TAPS };

struct reach {
    const struct shape *shape;
    enum reach_kind kind;
    void *memory; // reach_bytes, provided by the caller
};

size_t reach_bytes(const struct shape *shape);

// to[i] = whether sample i depends on any sample with from[j] != 0; taps in the order of
// correlation.
void reach_spread(const struct reach *reach, unsigned char *to, const unsigned char *from);

#endif
