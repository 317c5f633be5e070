// op/registry.c — which ops there are, found by name.
//
// The family tables are constant. A model may have a million nodes, so look-up goes through a hash
// index that is built once, on first use, and is constant from then on: INDEX_SLOTS slots, open
// addressing, entries of one name (one for each range of opsets) beside each other in probe order.
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <string.h>

#include "base/hash.h"
#include "op/op.h"

enum { INDEX_SLOTS = 2048 };  // a power of two, several times the number of entries

static const rondo__op_def *const families[] = {
#define TABLE_ADDRESS(family) rondo__op_table_##family,
    RONDO_OP_TABLE_MAP(TABLE_ADDRESS)
#undef TABLE_ADDRESS
        NULL,
};

static const rondo__op_def *op_index[INDEX_SLOTS];  // written once, under index_once
static pthread_once_t index_once = PTHREAD_ONCE_INIT;

static size_t hash_name(const char *name) {
    return (size_t)rondo__hash64(RONDO__HASH_SEED, name, strlen(name)) & (INDEX_SLOTS - 1);
}

static void insert(void *user_data, const rondo__op_def *def) {
    size_t *used = user_data;
    // One slot stays empty, so that every probe ends.
    if (*used + 1 >= INDEX_SLOTS) {
        return;
    }
    size_t slot = hash_name(def->name);
    while (op_index[slot] != NULL) {
        slot = (slot + 1) & (INDEX_SLOTS - 1);
    }
    op_index[slot] = def;
    ++*used;
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
    return NULL;
}
