// SPDX-License-Identifier: MIT
// The parts of the parser of CamillaDSP's configurations: camilladsp.c, and recursive.c with the
// filters that have feedback.
#ifndef PARTITA_APPS_CAMILLADSP_H
#define PARTITA_APPS_CAMILLADSP_H

#include "yaml_node.h"

#define MAX_COEFFICIENT 1e30

struct camilladsp {
    struct yaml_source yaml;
    struct network *network;
    yaml_node_t *filters, *mixers;
    size_t *impulses; // of the filters used so far, by number of node; 0: none, else index + 1
    size_t channels;  // after the steps so far
};

// Read the parameters of a filter; what is muted has the gain 0. False, with a fault.
bool camilladsp_biquad(struct camilladsp *c, const yaml_node_t *map, struct network_term *term);
bool camilladsp_loudness(struct camilladsp *c, const yaml_node_t *map, struct network_term *term);
bool camilladsp_volume(struct camilladsp *c, const yaml_node_t *map, struct network_term *term);
bool camilladsp_delay(struct camilladsp *c, const yaml_node_t *map, struct network_term *term);

#endif
