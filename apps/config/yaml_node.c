// SPDX-License-Identifier: MIT
#include "yaml_node.h"

#include <math.h>
#include <string.h>

bool yaml_source_parse(struct yaml_source *ret, const struct network *network, const char *text,
                       struct fault *fault)
{
    yaml_parser_t parser;
    *ret = (struct yaml_source){.network = network, .fault = fault};
    if (!yaml_parser_initialize(&parser))
        return fault_set(fault, "%s: out of memory", network->path);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, strlen(text));
    const bool good = yaml_parser_load(&parser, &ret->document);
    if (!good && parser.error == YAML_MEMORY_ERROR)
        fault_set(fault, "%s: out of memory", network->path);
    else if (!good)
        network_fault(network, (int)parser.problem_mark.line + 1, fault, "is no YAML: %s",
                      parser.problem ? parser.problem : "damaged text");
    yaml_parser_delete(&parser);
    return good;
}

int yaml_node_line(const yaml_node_t *node)
{
    return (int)node->start_mark.line + 1;
}

const char *yaml_node_text(const yaml_node_t *node)
{
    return node && node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : NULL;
}

bool yaml_node_is_map(const yaml_node_t *node)
{
    return node && node->type == YAML_MAPPING_NODE;
}

size_t yaml_node_count(const yaml_node_t *node)
{
    if (!node || node->type != YAML_SEQUENCE_NODE) return 0;
    return (size_t)(node->data.sequence.items.top - node->data.sequence.items.start);
}

yaml_node_t *yaml_node_element(struct yaml_source *source, const yaml_node_t *sequence, size_t i)
{
    return yaml_document_get_node(&source->document, sequence->data.sequence.items.start[i]);
}

static bool is_null(const yaml_node_t *node)
{
    const char *text = yaml_node_text(node);
    if (!text || node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE) return !node;
    return !*text || strcmp(text, "~") == 0 || strcmp(text, "null") == 0;
}

yaml_node_t *yaml_node_get(struct yaml_source *source, const yaml_node_t *map, const char *key)
{
    if (!yaml_node_is_map(map)) return NULL;
    for (const yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top;
         p++) {
        const char *name = yaml_node_text(yaml_document_get_node(&source->document, p->key));
        if (!name || strcmp(name, key) != 0) continue;
        yaml_node_t *value = yaml_document_get_node(&source->document, p->value);
        return is_null(value) ? NULL : value;
    }
    return NULL;
}

bool yaml_node_is_word(const char *words, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = words; at; at = strchr(at, '|')) {
        at += *at == '|';
        if (n == strcspn(at, "|") && strncmp(at, word, n) == 0) return true;
    }
    return false;
}

bool yaml_node_check_keys(struct yaml_source *source, const yaml_node_t *map, const char *keys)
{
    if (!yaml_node_is_map(map))
        return yaml_node_fault(source, map, "needs keys and values: %s", keys);
    for (const yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top;
         p++) {
        const yaml_node_t *key = yaml_document_get_node(&source->document, p->key);
        const char *name = yaml_node_text(key);
        if (!name || !yaml_node_is_word(keys, name))
            return yaml_node_fault(source, key, "'%.40s' is not one of the keys %s",
                                   name ? name : "", keys);
    }
    return true;
}

const char *yaml_node_get_text(struct yaml_source *source, const yaml_node_t *map, const char *key)
{
    const yaml_node_t *value = yaml_node_get(source, map, key);
    const char *text = yaml_node_text(value);
    if (!text) yaml_node_fault(source, value ? value : map, "needs a value of %s", key);
    return text;
}

bool yaml_node_get_list(struct yaml_source *source, const yaml_node_t *map, const char *key,
                        const yaml_node_t **ret)
{
    *ret = yaml_node_get(source, map, key);
    return !*ret || (*ret)->type == YAML_SEQUENCE_NODE ||
           yaml_node_fault(source, *ret, "%s: needs a list", key);
}

bool yaml_node_get_flag(struct yaml_source *source, const yaml_node_t *map, const char *key,
                        bool *value)
{
    const yaml_node_t *node = yaml_node_get(source, map, key);
    const char *text = yaml_node_text(node);
    if (!node) return true;
    if (!text || !yaml_node_is_word("true|True|TRUE|false|False|FALSE", text))
        return yaml_node_fault(source, node, "%s: '%.40s' is neither true nor false", key,
                               text ? text : "");
    *value = *text == 't' || *text == 'T';
    return true;
}

bool yaml_node_number(struct yaml_source *source, const yaml_node_t *node,
                      const struct network_number *number, double *real, size_t *whole)
{
    const struct network_number here = {number->what, yaml_node_line(node), number->low,
                                        number->high};
    const char *text = yaml_node_text(node);
    return network_parse_number(source->network, &here, text ? text : "", real, whole,
                                source->fault);
}

bool yaml_node_get_real(struct yaml_source *source, const yaml_node_t *map, const char *key,
                        double low, double high, double *value)
{
    const yaml_node_t *node = yaml_node_get(source, map, key);
    const struct network_number number = {key, 0, low, high};
    if (node) return yaml_node_number(source, node, &number, value, NULL);
    return !isnan(*value) || yaml_node_fault(source, map, "needs a value of %s", key);
}

bool yaml_node_get_whole(struct yaml_source *source, const yaml_node_t *map, const char *key,
                         double low, double high, size_t *value)
{
    const yaml_node_t *node = yaml_node_get(source, map, key);
    const struct network_number number = {key, 0, low, high};
    if (node) return yaml_node_number(source, node, &number, NULL, value);
    return *value != NEEDED_WHOLE || yaml_node_fault(source, map, "needs a value of %s", key);
}
