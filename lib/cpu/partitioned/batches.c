// SPDX-License-Identifier: MIT
// Which partitions are multiplied for which blocks of a bundle (struct turn in partitioned.h).
//
//      age            0     1     2     3           one share's bundle of 4 blocks, multiple 1, 15
//      partitions 4 blocks    3..14 2 blocks     1..2         1..2 1 block        0     0     0 0
#include "partitioned.h"

void level_sections(const struct level *level, size_t bounds[SECTIONS + 1])
{
    // The first partition that is known early enough for the whole bundle, and for one block more.
    const size_t known = (level->bundle + level->multiple - 2) / level->multiple,
                 pair = level->bundle > 1 ? 1 : 0;
    bounds[SECTION_ALONE] = 0;
    bounds[SECTIONS] = level->parts;
    bounds[SECTION_WIDE] = known < level->parts ? known : level->parts;
    bounds[SECTION_PAIR] = pair < bounds[SECTION_WIDE] ? pair : bounds[SECTION_WIDE];
}

size_t level_turns(const struct level *level, size_t age, struct turn turns[SECTIONS])
{
    size_t bounds[SECTIONS + 1], n = 0;
    level_sections(level, bounds);
    if (age == 0 && bounds[SECTIONS] > bounds[SECTION_WIDE])
        turns[n++] = (struct turn){SECTION_WIDE, level->bundle};
    if (age % 2 == 0 && bounds[SECTION_WIDE] > bounds[SECTION_PAIR])
        turns[n++] = (struct turn){SECTION_PAIR, 2};
    if (bounds[SECTION_PAIR] > 0) turns[n++] = (struct turn){SECTION_ALONE, 1};
    return n;
}
