// op/registry.c — which ops there are, found by name.
//
// The family tables are constant. A model may have a million nodes, so look-up goes through a hash
// index that is built once, on first use, and is constant from then on: INDEX_SLOTS entries, open
// addressing, entries of one name (one for each range of opsets) beside each other in probe order.
//
// What the program registers stands in a list beside it: a handful of entries, read without a lock,
// to which only its head is ever added.
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "op/op.h"
#include "op/registered.h"

enum { INDEX_SLOTS = 2048 };  // a power of two, several times the number of entries

static const rondo__op_def *const families[] = {
#define TABLE_ADDRESS(family) rondo__op_table_##family,
    RONDO_OP_TABLE_MAP(TABLE_ADDRESS)
#undef TABLE_ADDRESS
        NULL,
};

static const rondo__op_def *op_index[INDEX_SLOTS];            // written once, under index_once
static const rondo__op_def *newest_rows[RONDO__OP_ID_COUNT];  // likewise
static pthread_once_t index_once = PTHREAD_ONCE_INIT;

static pthread_mutex_t enter_lock = PTHREAD_MUTEX_INITIALIZER;  // one registers at a time
static _Atomic(rondo__user_op *) user_ops;                      // the newest; written under it

static size_t hash_name(const char *name) {
    return (size_t)rondo__hash64(RONDO__HASH_SEED, name, strlen(name)) & (INDEX_SLOTS - 1);
}

static void insert(void *user_data, const rondo__op_def *def) {
    size_t *used = user_data;
    // One entry stays empty, so that every probe ends.
    if (*used + 1 >= INDEX_SLOTS) {
        return;
    }
    size_t slot = hash_name(def->name);
    while (op_index[slot] != NULL) {
        slot = (slot + 1) & (INDEX_SLOTS - 1);
    }
    op_index[slot] = def;
    ++*used;
    const rondo__op_def *newest = newest_rows[def->id];
    if (newest == NULL || newest->opset_max < def->opset_max) {
        newest_rows[def->id] = def;
    }
}

static void build_index(void) {
    size_t used = 0;
    rondo__op_visit(insert, &used);
}

void rondo__op_visit(void (*visit)(void *user_data, const rondo__op_def *def), void *user_data) {
    for (size_t f = 0; families[f] != NULL; ++f) {
        for (const rondo__op_def *def = families[f]; def->name != NULL; ++def) {
            visit(user_data, def);
        }
    }
}

const rondo__op_def *rondo__op_get_def(rondo__op_id id) {
    (void)pthread_once(&index_once, build_index);
    return newest_rows[id];
}

typedef struct version_search {
    const char *domain;
    const char *name;
    int32_t min, max;  // 0 while none was found
} version_search;

static void add_versions(version_search *search, const rondo__op_def *def) {
    if (strcmp(def->name, search->name) == 0 && strcmp(def->domain, search->domain) == 0) {
        const bool is_first = search->max == 0;
        search->min = is_first || def->opset_min < search->min ? def->opset_min : search->min;
        search->max = is_first || def->opset_max > search->max ? def->opset_max : search->max;
    }
}

static void add_visited(void *user_data, const rondo__op_def *def) {
    add_versions(user_data, def);
}

bool rondo__op_get_versions(const char *domain, const char *name, int32_t *out_min,
                            int32_t *out_max) {
    version_search search = {.domain = domain, .name = name};
    rondo__op_visit(add_visited, &search);
    const rondo__user_op *op = atomic_load_explicit(&user_ops, memory_order_acquire);
    for (; op != NULL; op = op->next) {
        add_versions(&search, &op->def);
    }
    *out_min = search.min;
    *out_max = search.max;
    return search.max != 0;
}

const rondo__op_def *rondo__op_lookup(const char *domain, const char *name, int32_t opset) {
    (void)pthread_once(&index_once, build_index);
    if (strcmp(domain, "ai.onnx") == 0) {
        domain = "";
    }
    for (size_t slot = hash_name(name); op_index[slot] != NULL;
         slot = (slot + 1) & (INDEX_SLOTS - 1)) {
        const rondo__op_def *def = op_index[slot];
        if (strcmp(def->name, name) != 0 || strcmp(def->domain, domain) != 0) {
            continue;
        }
        // Internal ops have no versions.
        if ((def->flags & RONDO__OP_INTERNAL) != 0 ||
            (opset >= def->opset_min && opset <= def->opset_max)) {
            return def;
        }
    }
    const rondo__user_op *op = atomic_load_explicit(&user_ops, memory_order_acquire);
    while (op != NULL && (strcmp(op->def.name, name) != 0 || strcmp(op->def.domain, domain) != 0 ||
                          opset < op->def.opset_min || opset > op->def.opset_max)) {
        op = op->next;
    }
    return op != NULL ? &op->def : NULL;
}

typedef struct search {
    const rondo__op_def *wanted;
    bool is_there;
} search;

static void compare(void *user_data, const rondo__op_def *def) {
    search *s = user_data;
    s->is_there =
        s->is_there ||
        (strcmp(def->name, s->wanted->name) == 0 && strcmp(def->domain, s->wanted->domain) == 0 &&
         def->opset_min <= s->wanted->opset_max && s->wanted->opset_min <= def->opset_max);
}

rondo_status rondo__op_enter(rondo__user_op *op) {
    rondo_status status = RONDO_STATUS_OK;
    search s = {.wanted = &op->def};
    (void)pthread_mutex_lock(&enter_lock);
    rondo__user_op *newest = atomic_load_explicit(&user_ops, memory_order_relaxed);
    rondo__op_visit(compare, &s);
    for (const rondo__user_op *other = newest; other != NULL; other = other->next) {
        compare(&s, &other->def);
    }
    if (s.is_there) {
        status = RONDO_FAIL_AS("rondo_op_register", INVALID,
                               "op %.64s.%.64s is there already, with some version in common",
                               op->def.domain, op->def.name);
    } else {
        op->next = newest;
        atomic_store_explicit(&user_ops, op, memory_order_release);
    }
    (void)pthread_mutex_unlock(&enter_lock);
    return status;
}
