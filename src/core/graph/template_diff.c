// graph/template_diff.c — in what two templates differ, field by field.
// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "graph/label/label.h"
#include "graph/template.h"

// One comparison under way.
typedef struct comparison {
    rondo__node_table before;
    rondo__node_table after;
    const rondo__participant *labels;
    size_t limit;
    rondo__template_diff *diff;
} comparison;

static rondo_status describe(const rondo__node_key *key, rondo__node_info *out_info) {
    RETURN_IF_ERROR(key->level->device->backend->describe_node(key->level, key->index, out_info));
    out_info->name = out_info->name != NULL ? out_info->name : "";
    return RONDO_STATUS_OK;
}

// ---- entries ----------------------------------------------------------------------------------

// As dumps name it: the way from the outermost node inwards, with the branch of conditional nodes.
static void format_place(char *text, size_t capacity, const rondo__node_table *table, size_t id) {
    const rondo__node_key *key = &table->keys[id];
    char inner[24];
    snprintf(inner, sizeof inner, "%zu", key->index);
    if (key->parent == SIZE_MAX) {
        snprintf(text, capacity, "%s", inner);
        return;
    }
    format_place(text, capacity, table, key->parent);
    size_t length = strlen(text);
    if (table->keys[key->parent].kind == RONDO__NODE_CONDITIONAL) {
        snprintf(text + length, capacity - length, "_%" PRIu32, key->branch);
        length = strlen(text);
    }
    snprintf(text + length, capacity - length, "_%s", inner);
}

// A new entry on the node, with its texts still empty; NULL: enough are there, or no memory.
static rondo_status add_entry(comparison *c, const rondo__node_table *table, size_t id,
                              rondo__difference **out_entry) {
    rondo__template_diff *diff = c->diff;
    *out_entry = NULL;
    if (diff->count >= c->limit) {
        return RONDO_STATUS_OK;
    }
    rondo_status status = RONDO__ARRAY_RESERVE(diff->entries, diff->capacity, diff->count + 1);
    RETURN_IF_ERROR(status);
    *out_entry = &diff->entries[diff->count++];
    (*out_entry)->node = id;
    (*out_entry)->label = table == &c->after ? rondo__label_of_node(c->labels, id) : "";
    format_place((*out_entry)->place, sizeof(*out_entry)->place, table, id);
    return RONDO_STATUS_OK;
}

static rondo_status add_texts(comparison *c, size_t id, const char *field, const char *before,
                              const char *after) {
    rondo__difference *entry;
    RETURN_IF_ERROR(add_entry(c, &c->after, id, &entry));
    if (entry != NULL) {
        rondo__text_fit(entry->field, sizeof entry->field, field);
        rondo__text_fit(entry->before, sizeof entry->before, before);
        rondo__text_fit(entry->after, sizeof entry->after, after);
    }
    return RONDO_STATUS_OK;
}

static rondo_status add_numbers(comparison *c, size_t id, const char *field, bool is_hexadecimal,
                                uint64_t before, uint64_t after) {
    char texts[2][24];
    const uint64_t values[] = {before, after};
    for (int i = 0; i < 2; ++i) {
        snprintf(texts[i], sizeof texts[i], is_hexadecimal ? "0x%" PRIx64 : "%" PRIu64, values[i]);
    }
    return add_texts(c, id, field, texts[0], texts[1]);
}

// ---- structure --------------------------------------------------------------------------------

// The structures differ here; that is all there is to say.
static rondo_status add_structure(comparison *c, size_t id, const char *field, const char *before,
                                  const char *after) {
    c->diff->has_same_structure = false;
    return add_texts(c, id, field, before, after);
}

// The level that begins with this node.
static rondo_status compare_edges(comparison *c, size_t id) {
    rondo__edge_table before;
    rondo__edge_table after = {0};
    RETURN_IF_ERROR(rondo__edge_table_init(c->before.keys[id].level, &before));
    rondo_status status = rondo__edge_table_init(c->after.keys[id].level, &after);
    rondo__edge_table_sort(&before);
    rondo__edge_table_sort(&after);
    size_t same = 0;
    while (status == RONDO_STATUS_OK && same < before.count && same < after.count &&
           before.edges[same].from == after.edges[same].from &&
           before.edges[same].to == after.edges[same].to &&
           before.edges[same].kind == after.edges[same].kind) {
        ++same;
    }
    if (status == RONDO_STATUS_OK && (same < before.count || same < after.count)) {
        char texts[2][72];
        const rondo__edge_table *tables[] = {&before, &after};
        size_t to = SIZE_MAX;
        for (int i = 0; i < 2; ++i) {
            const rondo__edge *edge = same < tables[i]->count ? &tables[i]->edges[same] : NULL;
            snprintf(texts[i], sizeof texts[i], "none");
            if (edge != NULL) {
                snprintf(texts[i], sizeof texts[i], "%zu -> %zu%s", edge->from, edge->to,
                         edge->kind != 0 ? " (programmatic)" : "");
                to = edge->to < to ? edge->to : to;
            }
        }
        size_t node = id;
        while (c->after.keys[node].level != c->after.keys[id].level ||
               c->after.keys[node].index != to) {
            ++node;
        }
        status = add_structure(c, node, "edges", texts[0], texts[1]);
    }
    rondo__edge_table_deinit(&after);
    rondo__edge_table_deinit(&before);
    return status;
}

// Whether both have the node at the same position of the same kind, and what depends on what.
static rondo_status compare_structure(comparison *c, size_t id) {
    const rondo__node_key *before = &c->before.keys[id];
    const rondo__node_key *after = &c->after.keys[id];
    if (before->parent != after->parent || before->branch != after->branch ||
        before->index != after->index) {
        char place[40];
        char now[40];
        format_place(place, sizeof place, &c->before, id);
        format_place(now, sizeof now, &c->after, id);
        return add_structure(c, id, "place", place, now);
    }
    rondo__node_info infos[2];
    RETURN_IF_ERROR(describe(before, &infos[0]));
    RETURN_IF_ERROR(describe(after, &infos[1]));
    return infos[0].kind == infos[1].kind
               ? RONDO_STATUS_OK
               : add_structure(c, id, "kind", rondo__node_kind_get_name(infos[0].kind),
                               rondo__node_kind_get_name(infos[1].kind));
}

// One of them has more nodes: the first of those.
static rondo_status add_surplus(comparison *c) {
    bool is_new = c->after.count > c->before.count;
    const rondo__node_table *table = is_new ? &c->after : &c->before;
    size_t id = is_new ? c->before.count : c->after.count;
    rondo__node_info info;
    rondo__difference *entry;
    c->diff->has_same_structure = false;
    RETURN_IF_ERROR(describe(&table->keys[id], &info));
    const char *kind = rondo__node_kind_get_name(info.kind);
    RETURN_IF_ERROR(add_entry(c, table, id, &entry));
    if (entry != NULL) {
        rondo__text_fit(entry->field, sizeof entry->field, "node");
        rondo__text_fit(entry->before, sizeof entry->before, is_new ? "none" : kind);
        rondo__text_fit(entry->after, sizeof entry->after, is_new ? kind : "none");
    }
    return RONDO_STATUS_OK;
}

// ---- fields -----------------------------------------------------------------------------------

typedef struct field_row {
    const char *name;
    size_t offset;
    size_t bytes;
    bool is_hexadecimal;
} field_row;

#define ROW_OF(type, name, member, is_hexadecimal) \
    { name, offsetof(type, member), sizeof(((type *)0)->member), (is_hexadecimal) }
#define ROW(name, member, is_hexadecimal) ROW_OF(rondo__node_info, name, member, is_hexadecimal)

static const field_row field_rows[] = {
    ROW("grid.x", grid[0], false),
    ROW("grid.y", grid[1], false),
    ROW("grid.z", grid[2], false),
    ROW("block.x", block[0], false),
    ROW("block.y", block[1], false),
    ROW("block.z", block[2], false),
    ROW("shared_bytes", shared_bytes, false),
    ROW("copy_kind", copy_kind, false),
    ROW("destination", destination, true),
    ROW("source", source, true),
    ROW("byte_count", byte_count, false),
    ROW("fill_value", fill_value, false),
    ROW("element_bytes", element_bytes, false),
    ROW("width", width, false),
    ROW("height", height, false),
    ROW("depth", depth, false),
    ROW("pitch_bytes", pitch_bytes, false),
    ROW("event", event, true),
    ROW("predicate", predicate, true),
    ROW("branch_count", branch_count, false),
};

#undef ROW
#define ROW(name, member, is_hexadecimal) \
    ROW_OF(rondo__launch_attributes, name, member, is_hexadecimal)

static const field_row attribute_rows[] = {
    ROW("cluster.x", cluster[0], false),   ROW("cluster.y", cluster[1], false),
    ROW("cluster.z", cluster[2], false),   ROW("cooperative", is_cooperative, false),
    ROW("priority", priority, false),      ROW("access policy", access_policy, true),
    ROW("other attributes", others, true),
};
#undef ROW

static uint64_t read_field(const void *from, const field_row *row) {
    uint32_t narrow = 0;
    uint64_t wide = 0;
    const char *field = (const char *)from + row->offset;
    if (row->bytes == sizeof narrow) {
        memcpy(&narrow, field, sizeof narrow);
        return narrow;
    }
    memcpy(&wide, field, sizeof wide);
    return wide;
}

// A kernel's arguments in words of eight bytes, the last one of each filled up with zeros.
typedef struct words {
    uint64_t *values;
    size_t count;
    size_t capacity;
} words;

static rondo_status add_words(void *user_data, const void *bytes, size_t byte_count) {
    words *w = user_data;
    size_t added = (byte_count + sizeof(uint64_t) - 1) / sizeof(uint64_t);
    rondo_status status = RONDO__ARRAY_RESERVE(w->values, w->capacity, w->count + added);
    RETURN_IF_ERROR(status);
    memset(&w->values[w->count], 0, added * sizeof *w->values);
    memcpy(&w->values[w->count], bytes, byte_count);
    w->count += added;
    return RONDO_STATUS_OK;
}

static rondo_status list_words(const rondo__node_key *key, words *w) {
    const rondo__backend *backend = key->level->device->backend;
    return backend->visit_arguments(key->level, key->index, add_words, w);
}

// Arguments stand one by one on CUDA, where each has words of its own; as one block on the host.
// The kernel that sets a condition (backend/cuda/graph/cuda_conditional.c) begins with the number
// of its conditional node, which is another one in each capture.
static rondo_status compare_arguments(comparison *c, size_t id, const char *name) {
    size_t first = strcmp(name, "rondo_condition") == 0 ? 1 : 0;
    words before = {0};
    words after = {0};
    rondo_status status = list_words(&c->before.keys[id], &before);
    if (status == RONDO_STATUS_OK) {
        status = list_words(&c->after.keys[id], &after);
    }
    if (status == RONDO_STATUS_OK && before.count != after.count) {
        status = add_numbers(c, id, "argument words", false, before.count, after.count);
    }
    for (size_t i = first; i < before.count && i < after.count && status == RONDO_STATUS_OK; ++i) {
        if (before.values[i] != after.values[i]) {
            char field[40];
            snprintf(field, sizeof field, "argument word %zu", i);
            status = add_numbers(c, id, field, true, before.values[i], after.values[i]);
        }
    }
    rondo__free(after.values);
    rondo__free(before.values);
    return status;
}

static rondo_status compare_rows(comparison *c, size_t id, const field_row *rows, size_t row_count,
                                 const void *before, const void *after) {
    for (size_t i = 0; i < row_count; ++i) {
        const uint64_t values[] = {read_field(before, &rows[i]), read_field(after, &rows[i])};
        if (values[0] != values[1]) {
            RETURN_IF_ERROR(
                add_numbers(c, id, rows[i].name, rows[i].is_hexadecimal, values[0], values[1]));
        }
    }
    return RONDO_STATUS_OK;
}

// How a kernel is launched beyond its shape, where the backend has such.
static rondo_status compare_attributes(comparison *c, size_t id) {
    const rondo__node_key *keys[] = {&c->before.keys[id], &c->after.keys[id]};
    rondo__launch_attributes attributes[2];
    for (int i = 0; i < 2; ++i) {
        const rondo__backend *backend = keys[i]->level->device->backend;
        if (backend->read_attributes == NULL) {
            return RONDO_STATUS_OK;
        }
        RETURN_IF_ERROR(backend->read_attributes(keys[i]->level, keys[i]->index, &attributes[i]));
    }
    return compare_rows(c, id, attribute_rows, sizeof attribute_rows / sizeof *attribute_rows,
                        &attributes[0], &attributes[1]);
}

static rondo_status compare_fields(comparison *c, size_t id) {
    rondo__node_info infos[2];
    RETURN_IF_ERROR(describe(&c->before.keys[id], &infos[0]));
    RETURN_IF_ERROR(describe(&c->after.keys[id], &infos[1]));
    if (strcmp(infos[0].name, infos[1].name) != 0) {
        RETURN_IF_ERROR(add_texts(c, id, "name", infos[0].name, infos[1].name));
    }
    RETURN_IF_ERROR(compare_rows(c, id, field_rows, sizeof field_rows / sizeof *field_rows,
                                 &infos[0], &infos[1]));
    if (infos[0].kind != RONDO__NODE_KERNEL) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(compare_attributes(c, id));
    return compare_arguments(c, id, infos[0].name);
}

// ---- the whole --------------------------------------------------------------------------------

static rondo_status compare(comparison *c) {
    rondo__template_diff *diff = c->diff;
    size_t common = c->before.count < c->after.count ? c->before.count : c->after.count;
    diff->has_same_structure = true;
    for (size_t id = 0; id < common && diff->has_same_structure; ++id) {
        RETURN_IF_ERROR(compare_structure(c, id));
    }
    if (diff->has_same_structure && c->before.count != c->after.count) {
        RETURN_IF_ERROR(add_surplus(c));
    }
    for (size_t id = 0; id < common && diff->has_same_structure; ++id) {
        if (c->before.keys[id].index == 0) {
            RETURN_IF_ERROR(compare_edges(c, id));
        }
    }
    for (size_t id = 0; id < common && diff->has_same_structure && diff->count < c->limit; ++id) {
        RETURN_IF_ERROR(compare_fields(c, id));
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__template_compare(rondo__template *before, rondo__template *after,
                                     const rondo__participant *labels, size_t limit,
                                     rondo__template_diff *out_diff) {
    *out_diff = (rondo__template_diff){0};
    comparison c = {.labels = labels, .limit = limit, .diff = out_diff};
    rondo_status status = rondo__node_table_init(before, &c.before);
    if (status == RONDO_STATUS_OK) {
        status = rondo__node_table_init(after, &c.after);
    }
    if (status == RONDO_STATUS_OK) {
        status = compare(&c);
    }
    rondo__node_table_deinit(&c.after);
    rondo__node_table_deinit(&c.before);
    if (status != RONDO_STATUS_OK) {
        rondo__template_diff_deinit(out_diff);
    }
    return status;
}

void rondo__template_diff_deinit(rondo__template_diff *diff) {
    rondo__free(diff->entries);
    *diff = (rondo__template_diff){0};
}

size_t rondo__difference_format(const rondo__difference *difference, char *text, size_t capacity) {
    bool has_label = difference->label[0] != '\0';
    int length = snprintf(text, capacity, "node %s%s%s%s: %s %s before, %s now", difference->place,
                          has_label ? " (" : "", difference->label, has_label ? ")" : "",
                          difference->field, difference->before, difference->after);
    return length > 0 ? (size_t)length : 0;
}
