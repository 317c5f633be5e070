// graph/template.c — the walk over a template, and what is found on it: nodes, edges, hashes.
// SPDX-License-Identifier: Apache-2.0

#include "graph/template.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"

const char *rondo__node_kind_get_name(rondo__node_kind kind) {
    static const char *const names[] = {
        [RONDO__NODE_KERNEL] = "kernel",
        [RONDO__NODE_HOST] = "host",
        [RONDO__NODE_COPY] = "memcpy",
        [RONDO__NODE_FILL] = "memset",
        [RONDO__NODE_EMPTY] = "empty",
        [RONDO__NODE_EVENT_WAIT] = "event_wait",
        [RONDO__NODE_EVENT_RECORD] = "event_record",
        [RONDO__NODE_CHILD] = "child",
        [RONDO__NODE_CONDITIONAL] = "conditional",
        [RONDO__NODE_OTHER] = "other",
    };
    return names[kind];
}

// ---- the walk ---------------------------------------------------------------------------------

uint32_t rondo__node_count_levels(const rondo__node_info *info) {
    return info->kind == RONDO__NODE_CONDITIONAL ? info->branch_count
                                                 : info->kind == RONDO__NODE_CHILD;
}

rondo_status rondo__node_get_level(rondo__template *recorded, size_t index,
                                   const rondo__node_info *info, uint32_t branch,
                                   rondo__template **out_inner) {
    const rondo__backend *backend = recorded->device->backend;
    return info->kind == RONDO__NODE_CHILD ? backend->get_child(recorded, index, out_inner)
                                           : backend->get_body(recorded, index, branch, out_inner);
}

typedef struct walk {
    const rondo__template_visitor *visitor;
    void *user_data;
    size_t node_count;  // met so far
} walk;

static rondo_status visit_level(walk *w, rondo__template_level *level);

static rondo_status visit_node(walk *w, rondo__template_level *level, size_t index) {
    const rondo__template_visitor *visitor = w->visitor;
    rondo__template_node node = {.id = w->node_count++, .index = index, .level = level};
    RETURN_IF_ERROR(
        level->recorded->device->backend->describe_node(level->recorded, index, &node.info));
    if (visitor->enter_node != NULL) {
        RETURN_IF_ERROR(visitor->enter_node(w->user_data, &node));
    }
    uint32_t level_count = rondo__node_count_levels(&node.info);
    for (uint32_t branch = 0; branch < level_count && !level->skips_rest; ++branch) {
        rondo__template_level inner = {.node = &node, .branch = branch, .depth = level->depth + 1};
        RETURN_IF_ERROR(
            rondo__node_get_level(level->recorded, index, &node.info, branch, &inner.recorded));
        RETURN_IF_ERROR(visit_level(w, &inner));
    }
    return visitor->leave_node != NULL ? visitor->leave_node(w->user_data, &node) : RONDO_STATUS_OK;
}

static rondo_status visit_level(walk *w, rondo__template_level *level) {
    const rondo__template_visitor *visitor = w->visitor;
    size_t count = 0;
    if (visitor->enter_level != NULL) {
        RETURN_IF_ERROR(visitor->enter_level(w->user_data, level));
    }
    if (level->recorded != NULL && !level->skips_rest) {
        RETURN_IF_ERROR(level->recorded->device->backend->count_nodes(level->recorded, &count));
    }
    for (size_t i = 0; i < count && !level->skips_rest; ++i) {
        RETURN_IF_ERROR(visit_node(w, level, i));
    }
    return visitor->leave_level != NULL ? visitor->leave_level(w->user_data, level)
                                        : RONDO_STATUS_OK;
}

rondo_status rondo__template_visit(rondo__template *recorded,
                                   const rondo__template_visitor *visitor, void *user_data) {
    walk w = {.visitor = visitor, .user_data = user_data};
    rondo__template_level whole = {.recorded = recorded};
    return visit_level(&w, &whole);
}

// ---- nodes by id ------------------------------------------------------------------------------

// The levels around the node that is met, and its own.
typedef struct table_depth {
    rondo__node_handle *handles;
    size_t id;        // of the latest node
    uint32_t number;  // of the level
} table_depth;

typedef struct table_builder {
    rondo__node_table *table;
    table_depth *depths;
    size_t depth_count;
    uint32_t level_count;  // entered so far
} table_builder;

static rondo_status list_handles(rondo__template *recorded, rondo__node_handle **out_handles,
                                 size_t *out_count) {
    const rondo__backend *backend = recorded->device->backend;
    RETURN_IF_ERROR(backend->count_nodes(recorded, out_count));
    rondo__node_handle *handles = rondo__calloc(*out_count, sizeof *handles);
    rondo_status status = handles != NULL ? backend->list_handles(recorded, handles, *out_count)
                                          : RONDO_STATUS_NO_MEMORY;
    if (status != RONDO_STATUS_OK) {
        rondo__free(handles);
        return status;
    }
    *out_handles = handles;
    return RONDO_STATUS_OK;
}

static rondo_status add_keys(table_builder *builder, const rondo__template_level *level,
                             size_t first, size_t count, rondo__node_kind kind) {
    rondo__node_table *table = builder->table;
    rondo_status status = RONDO__ARRAY_RESERVE(table->keys, table->capacity, table->count + count);
    RETURN_IF_ERROR(status);
    for (size_t i = first; i < first + count; ++i) {
        builder->depths[level->depth].id = table->count;
        table->keys[table->count++] = (rondo__node_key){
            .kind = kind,
            .parent = level->depth > 0 ? builder->depths[level->depth - 1].id : SIZE_MAX,
            .branch = level->branch,
            .level_number = builder->depths[level->depth].number,
            .index = i,
            .level = level->recorded,
            .handle = builder->depths[level->depth].handles[i]};
    }
    return RONDO_STATUS_OK;
}

// Nodes are gone through one by one only where some of them hold levels: describing a node costs
// calls of the driver.
static rondo_status enter_table_level(void *user_data, rondo__template_level *level) {
    table_builder *builder = user_data;
    size_t counts[RONDO__NODE_KIND_COUNT] = {0};
    size_t count = 0;
    const uint32_t number = builder->level_count++;
    if (level->recorded == NULL) {
        return RONDO_STATUS_OK;
    }
    rondo_status status =
        RONDO__ARRAY_RESERVE(builder->depths, builder->depth_count, level->depth + 1);
    RETURN_IF_ERROR(status);
    table_depth *depth = &builder->depths[level->depth];
    rondo__free(depth->handles);
    depth->handles = NULL;
    depth->number = number;
    RETURN_IF_ERROR(list_handles(level->recorded, &depth->handles, &count));
    RETURN_IF_ERROR(level->recorded->device->backend->count_kinds(level->recorded, counts));
    level->skips_rest = counts[RONDO__NODE_CHILD] + counts[RONDO__NODE_CONDITIONAL] == 0;
    return level->skips_rest ? add_keys(builder, level, 0, count, RONDO__NODE_OTHER)
                             : RONDO_STATUS_OK;
}

static rondo_status add_key(void *user_data, const rondo__template_node *node) {
    bool holds_levels =
        node->info.kind == RONDO__NODE_CHILD || node->info.kind == RONDO__NODE_CONDITIONAL;
    return add_keys(user_data, node->level, node->index, 1,
                    holds_levels ? node->info.kind : RONDO__NODE_OTHER);
}

rondo_status rondo__node_table_init(rondo__template *recorded, rondo__node_table *out_table) {
    static const rondo__template_visitor visitor = {.enter_level = enter_table_level,
                                                    .enter_node = add_key};
    *out_table = (rondo__node_table){0};
    table_builder builder = {.table = out_table};
    rondo_status status = rondo__template_visit(recorded, &visitor, &builder);
    for (size_t i = 0; i < builder.depth_count; ++i) {
        rondo__free(builder.depths[i].handles);
    }
    rondo__free(builder.depths);
    if (status != RONDO_STATUS_OK) {
        rondo__node_table_deinit(out_table);
    }
    return status;
}

void rondo__node_table_deinit(rondo__node_table *table) {
    rondo__free(table->keys);
    *table = (rondo__node_table){0};
}

// ---- nodes by handle --------------------------------------------------------------------------

struct rondo__node_place {
    rondo__node_handle handle;
    size_t index;
};

// Mostly they are sorted already.
static void sort(void *elements, size_t count, size_t bytes,
                 int (*compare)(const void *, const void *)) {
    const char *at = elements;
    size_t sorted = 1;
    while (sorted < count && compare(at, at + bytes) <= 0) {
        at += bytes;
        ++sorted;
    }
    if (sorted < count) {
        qsort(elements, count, bytes, compare);
    }
}

static int compare_places(const void *a, const void *b) {
    rondo__node_handle left = ((const struct rondo__node_place *)a)->handle;
    rondo__node_handle right = ((const struct rondo__node_place *)b)->handle;
    return left < right ? -1 : left > right;
}

rondo_status rondo__node_places_init(rondo__template *recorded, rondo__node_places *out_places) {
    rondo__node_handle *handles = NULL;
    *out_places = (rondo__node_places){0};
    RETURN_IF_ERROR(list_handles(recorded, &handles, &out_places->count));
    out_places->places = rondo__calloc(out_places->count, sizeof *out_places->places);
    for (size_t i = 0; i < out_places->count && out_places->places != NULL; ++i) {
        out_places->places[i] = (struct rondo__node_place){.handle = handles[i], .index = i};
    }
    rondo__free(handles);
    if (out_places->places == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    sort(out_places->places, out_places->count, sizeof *out_places->places, compare_places);
    return RONDO_STATUS_OK;
}

size_t rondo__node_places_find(const rondo__node_places *places, rondo__node_handle handle) {
    const struct rondo__node_place wanted = {.handle = handle};
    const struct rondo__node_place *found =
        places->count > 0
            ? bsearch(&wanted, places->places, places->count, sizeof wanted, compare_places)
            : NULL;
    return found != NULL ? found->index : SIZE_MAX;
}

void rondo__node_places_deinit(rondo__node_places *places) {
    rondo__free(places->places);
    *places = (rondo__node_places){0};
}

// ---- edges ------------------------------------------------------------------------------------

void rondo__edge_table_deinit(rondo__edge_table *table) {
    rondo__free(table->edges);
    *table = (rondo__edge_table){0};
}

// Asks for the edges and their kinds; `kinds` is all 0 where the backend knows full ones only.
static rondo_status list_edges(rondo__template *recorded, size_t *pairs, uint8_t *kinds,
                               size_t count) {
    const rondo__backend *backend = recorded->device->backend;
    size_t pair_count = 0;
    RETURN_IF_ERROR(backend->list_edges(recorded, pairs, count, &pair_count));
    size_t kind_count = pair_count;
    if (backend->list_edge_kinds != NULL) {
        RETURN_IF_ERROR(backend->list_edge_kinds(recorded, kinds, count, &kind_count));
    }
    return pair_count == count && kind_count == count
               ? RONDO_STATUS_OK
               : RONDO_FAIL(STATE,
                            "the graph was edited through its native handle while it was listed");
}

rondo_status rondo__edge_table_init(rondo__template *recorded, rondo__edge_table *out_table) {
    *out_table = (rondo__edge_table){0};
    size_t count = 0;
    RETURN_IF_ERROR(recorded->device->backend->list_edges(recorded, NULL, 0, &count));
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    size_t *pairs = rondo__calloc(count, 2 * sizeof *pairs);
    uint8_t *kinds = rondo__calloc(count, sizeof *kinds);
    rondo__edge *edges = rondo__calloc(count, sizeof *edges);
    if (pairs != NULL && kinds != NULL && edges != NULL) {
        status = list_edges(recorded, pairs, kinds, count);
    }
    if (status == RONDO_STATUS_OK) {
        for (size_t i = 0; i < count; ++i) {
            edges[i] = (rondo__edge){pairs[2 * i], pairs[2 * i + 1], kinds[i]};
        }
        *out_table = (rondo__edge_table){.edges = edges, .count = count};
        edges = NULL;
    }
    rondo__free(edges);
    rondo__free(kinds);
    rondo__free(pairs);
    return status;
}

static int compare_edges(const void *a, const void *b) {
    const rondo__edge *left = a;
    const rondo__edge *right = b;
    if (left->to != right->to) {
        return left->to < right->to ? -1 : 1;
    }
    return left->from < right->from ? -1 : left->from > right->from;
}

void rondo__edge_table_sort(rondo__edge_table *table) {
    sort(table->edges, table->count, sizeof *table->edges, compare_edges);
}

// ---- hashes -----------------------------------------------------------------------------------

#define HASH_NUMBERS(seed, ...) \
    rondo__hash64((seed), (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}))

// Edges add up, because the driver may list those of a copy in another order.
static rondo_status hash_level(void *user_data, rondo__template_level *level) {
    rondo__template_hash *hash = user_data;
    rondo__edge_table table = {0};
    uint64_t sum = 0;
    if (level->recorded != NULL) {
        RETURN_IF_ERROR(rondo__edge_table_init(level->recorded, &table));
    }
    for (size_t i = 0; i < table.count; ++i) {
        const rondo__edge *edge = &table.edges[i];
        sum += HASH_NUMBERS(RONDO__HASH_SEED, edge->from, edge->to, edge->kind);
    }
    // The count tells an edge from none, the depth where a level ends.
    hash->structure = HASH_NUMBERS(hash->structure, level->depth, level->branch, table.count, sum);
    rondo__edge_table_deinit(&table);
    return RONDO_STATUS_OK;
}

static rondo_status hash_attributes(rondo__template_hash *hash, const rondo__template_node *node) {
    rondo__template *level = node->level->recorded;
    rondo__launch_attributes attributes = {.others = 0};
    if (level->device->backend->read_attributes == NULL) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(level->device->backend->read_attributes(level, node->index, &attributes));
    hash->structure = HASH_NUMBERS(hash->structure, attributes.cluster[0], attributes.cluster[1],
                                   attributes.cluster[2], attributes.is_cooperative,
                                   (uint64_t)attributes.priority, attributes.others);
    hash->content = HASH_NUMBERS(hash->content, attributes.access_policy);
    return RONDO_STATUS_OK;
}

static rondo_status hash_node(void *user_data, const rondo__template_node *node) {
    rondo__template_hash *hash = user_data;
    const rondo__node_info *info = &node->info;
    hash->structure = HASH_NUMBERS(
        hash->structure, node->level->depth, node->index, (uint64_t)info->kind, info->grid[0],
        info->grid[1], info->grid[2], info->block[0], info->block[1], info->block[2],
        info->shared_bytes, (uint64_t)info->copy_kind, info->byte_count, info->element_bytes,
        info->width, info->height, info->depth, info->pitch_bytes, info->branch_count);
    if (info->name != NULL) {
        hash->structure = rondo__hash64(hash->structure, info->name, strlen(info->name) + 1);
    }
    hash->content =
        HASH_NUMBERS(hash->content, (uintptr_t)info->destination, (uintptr_t)info->source,
                     (uintptr_t)info->event, (uintptr_t)info->predicate, info->fill_value);
    return info->kind == RONDO__NODE_KERNEL ? hash_attributes(hash, node) : RONDO_STATUS_OK;
}

rondo_status rondo__template_get_hash(rondo__template *recorded, rondo__template_hash *out_hash) {
    static const rondo__template_visitor visitor = {.enter_level = hash_level,
                                                    .enter_node = hash_node};
    *out_hash = (rondo__template_hash){0};
    rondo__template_hash hash = {RONDO__HASH_SEED, RONDO__HASH_SEED};
    RETURN_IF_ERROR(rondo__template_visit(recorded, &visitor, &hash));
    out_hash->structure = hash.structure;
    out_hash->content = HASH_NUMBERS(hash.content, hash.structure);
    return RONDO_STATUS_OK;
}

rondo_status rondo__graph_check_exclusive(rondo__template *recorded, bool *out_is_exclusive) {
    const rondo__backend *backend = recorded->device->backend;
    size_t counts[RONDO__NODE_KIND_COUNT] = {0};
    *out_is_exclusive = false;
    if (backend->exclusive_kinds == 0) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(backend->count_kinds(recorded, counts));
    for (uint32_t kind = 0; kind < RONDO__NODE_KIND_COUNT; ++kind) {
        bool is_such = (backend->exclusive_kinds >> kind & 1) != 0;
        *out_is_exclusive = *out_is_exclusive || (is_such && counts[kind] > 0);
    }
    return RONDO_STATUS_OK;
}
