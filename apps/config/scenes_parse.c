// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ir_name.h"
#include "scenes.h"
#include "yaml_node.h"

static const enum control_id value_ids[SCENE_VALUES] = {
    CONTROL_GAIN, CONTROL_WET,     CONTROL_DRY,      CONTROL_INPUT_GAIN,
    CONTROL_FADE, CONTROL_AZIMUTH, CONTROL_ELEVATION};
static const char KEYS[] = "filter|gain|wet|dry|input-gain|fade|azimuth|elevation";

// A value is written as the argument of its command, but for steps.
static bool parse_values(struct scene *scene, struct yaml_source *source, const yaml_node_t *map)
{
    for (int i = 0; i < SCENE_VALUES; i++) {
        const struct control_row *row = &control_rows[value_ids[i]];
        const yaml_node_t *node = yaml_node_get(source, map, row->name);
        const char *text = yaml_node_text(node);
        struct number number;
        char line[128];
        struct fault said;
        if (!node) continue;
        if (!text || (!number_parse(text, row->quantity, &number) &&
                      !(row->has_off && strcmp(text, "off") == 0)))
            return yaml_node_fault(source, node, "%s%s%s: needs a number%s", row->name,
                                   text ? " " : "", text ? text : "",
                                   row->has_off ? " or off" : "");
        snprintf(line, sizeof line, "%s %s", row->name, text);
        struct control_command *c = &scene->values[scene->n_values++];
        if (!control_parse(c, line, &said)) return yaml_node_fault(source, node, "%s", said.text);
        c->text = NULL; // a part of `line`
    }
    return true;
}

// Appends a file to the name of a filter. Relative paths begin at the folder of the scenes.
static bool add_file(struct scene *scene, const struct network *network, const char *name)
{
    enum ir_layout layout;
    const char *path = ir_name_path(name, &layout);
    char *file = network_file(network, NULL, path);
    const size_t used = strlen(scene->ir), space = sizeof scene->ir - used;
    int n = file ? snprintf(scene->ir + used, space, "%s%s%s", used ? "+" : "", ir_prefixes[layout],
                            file)
                 : -1;
    free(file);
    return n >= 0 && (size_t)n < space;
}

// One file, or a list of files, one after the other.
static bool parse_filter(struct scene *scene, struct yaml_source *source, const yaml_node_t *map)
{
    const yaml_node_t *node = yaml_node_get(source, map, "filter");
    const size_t n = yaml_node_count(node);
    scene->line = yaml_node_line(node ? node : map);
    for (size_t i = 0; i < (n ? n : 1); i++) {
        const char *name = yaml_node_text(n ? yaml_node_element(source, node, i) : node);
        if (!name) return yaml_node_fault(source, node ? node : map, "needs a filter: a file");
        if (!add_file(scene, source->network, name))
            return yaml_node_fault(source, node, "the name of the filter is too long");
    }
    return true;
}

static bool parse_scene(struct scene *scene, struct yaml_source *source,
                        const yaml_node_pair_t *pair)
{
    const yaml_node_t *key = yaml_document_get_node(&source->document, pair->key);
    const yaml_node_t *map = yaml_document_get_node(&source->document, pair->value);
    const char *name = yaml_node_text(key);
    if (!name || !*name || strlen(name) >= sizeof scene->name)
        return yaml_node_fault(source, key, "the name of a scene has 1 to %d characters",
                               SCENE_NAME_SIZE - 1);
    snprintf(scene->name, sizeof scene->name, "%s", name);
    return yaml_node_check_keys(source, map, KEYS) && parse_filter(scene, source, map) &&
           parse_values(scene, source, map);
}

static bool parse_file(struct scenes *scenes, struct yaml_source *source)
{
    const yaml_node_t *root = yaml_document_get_root_node(&source->document);
    if (!root) return fault_set(source->fault, "%s: is empty", scenes->path);
    if (!yaml_node_check_keys(source, root, "scenes|start")) return false;
    const yaml_node_t *map = yaml_node_get(source, root, "scenes");
    const ptrdiff_t n =
        yaml_node_is_map(map) ? map->data.mapping.pairs.top - map->data.mapping.pairs.start : 0;
    struct fault said;
    if (n < 1 || n > MAX_WORDS)
        return yaml_node_fault(source, map ? map : root, "scenes: needs 1 to %d names with scenes",
                               (int)MAX_WORDS);
    for (; scenes->n < n; scenes->n++) {
        struct scene *scene = &scenes->list[scenes->n];
        if (!parse_scene(scene, source, &map->data.mapping.pairs.start[scenes->n])) return false;
        if (scenes_find(scenes, scene->name, &said) >= 0)
            return yaml_node_fault(source, map, "%s: is there twice", scene->name);
    }
    const yaml_node_t *start = yaml_node_get(source, root, "start");
    const char *name = yaml_node_text(start);
    if (start) scenes->start = scenes_find(scenes, name ? name : "", &said);
    return scenes->start >= 0 || yaml_node_fault(source, start, "start: %s", said.text);
}

bool scenes_parse(struct scenes *ret, const char *path, const char *text, struct fault *fault)
{
    const struct network network = {.path = path}; // which the messages name
    struct yaml_source source;
    *ret = (struct scenes){.path = path};
    if (!yaml_source_parse(&source, &network, text, fault)) return false;
    bool good = parse_file(ret, &source);
    yaml_document_delete(&source.document);
    return good;
}
