// SPDX-License-Identifier: MIT
// Typed access to the nodes of a YAML document, with messages that name file, line and key.
#ifndef PARTITA_APPS_YAML_NODE_H
#define PARTITA_APPS_YAML_NODE_H

#include <yaml.h>

#include "network.h"

struct yaml_source {
    const struct network *network;
    yaml_document_t document;
    struct fault *fault;
};

// Parses the first document of a text. The caller releases it with yaml_document_delete.
bool yaml_source_parse(struct yaml_source *ret, const struct network *network, const char *text,
                       struct fault *fault);

// The line of the configuration that a node begins at.
int yaml_node_line(const yaml_node_t *node);

// "path:line: " and the message, a format and its arguments. Returns false.
#define yaml_node_fault(source, node, ...)                                                         \
    network_fault((source)->network, yaml_node_line(node), (source)->fault, __VA_ARGS__)

// The text of a scalar; NULL for other nodes and for NULL.
const char *yaml_node_text(const yaml_node_t *node);

// Whether a word is one of those that '|' separates.
bool yaml_node_is_word(const char *words, const char *word);

bool yaml_node_is_map(const yaml_node_t *node);

// Number of elements of a sequence; 0 for other nodes.
size_t yaml_node_count(const yaml_node_t *node);
yaml_node_t *yaml_node_element(struct yaml_source *source, const yaml_node_t *sequence, size_t i);

// The value of a key in a map; NULL if it is absent or null, or `map` is no map.
yaml_node_t *yaml_node_get(struct yaml_source *source, const yaml_node_t *map, const char *key);

// False, with a fault, unless each key of the map is a word of `keys`, which '|' separates.
bool yaml_node_check_keys(struct yaml_source *source, const yaml_node_t *map, const char *keys);

// The value of a key, which must be there, and a text; NULL, with a fault: it is not.
const char *yaml_node_get_text(struct yaml_source *source, const yaml_node_t *map, const char *key);

// The list that is the value of a key; *ret is NULL if the key is absent.
bool yaml_node_get_list(struct yaml_source *source, const yaml_node_t *map, const char *key,
                        const yaml_node_t **ret);

// The number that a node is; `number->line` is not used, real and whole: see network_parse_number.
bool yaml_node_number(struct yaml_source *source, const yaml_node_t *node,
                      const struct network_number *number, double *real, size_t *whole);

// The value of a key that may be absent, then *value stays as it is, unless that is NEEDED_REAL or
// NEEDED_WHOLE: then the key must be there.
#define NEEDED_REAL NAN
#define NEEDED_WHOLE SIZE_MAX
bool yaml_node_get_flag(struct yaml_source *source, const yaml_node_t *map, const char *key,
                        bool *value);
bool yaml_node_get_real(struct yaml_source *source, const yaml_node_t *map, const char *key,
                        double low, double high, double *value);
bool yaml_node_get_whole(struct yaml_source *source, const yaml_node_t *map, const char *key,
                         double low, double high, size_t *value);

#endif
