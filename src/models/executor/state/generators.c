// executor/state/generators.c — see generators.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/state/generators.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "op/draws.h"

static bool is_named(const rondo__executor_generator *entry, const char *name) {
    return name == NULL ? entry->name == NULL
                        : entry->name != NULL && strcmp(entry->name, name) == 0;
}

rondo_status rondo__executor_get_generator(rondo_executor *executor, const rondo__node *node,
                                           rondo_generator **out_generator) {
    uint64_t seed = executor->options.seed;
    const char *name = rondo__op_get_seed(&node->op, &seed) ? node->op.name : NULL;
    return rondo__executor_find_generator(executor, name, seed, out_generator);
}

rondo_status rondo__executor_find_generator(rondo_executor *executor, const char *name,
                                            uint64_t seed, rondo_generator **out_generator) {
    rondo__executor_generator *entry = executor->resources.generators;
    while (entry != NULL && !is_named(entry, name)) {
        entry = entry->next;
    }
    if (entry != NULL) {
        *out_generator = entry->generator;
        return RONDO_STATUS_OK;
    }
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    entry = rondo__calloc(1, sizeof *entry);
    if (entry == NULL) {
        return status;
    }
    entry->name = name != NULL ? rondo__strdup(name) : NULL;
    if (name != NULL && entry->name == NULL) {
        goto free_entry;
    }
    entry->seed = seed;
    status = rondo_generator_create(executor->device, seed, &entry->generator);
    if (status != RONDO_STATUS_OK) {
        goto free_name;
    }
    entry->next = executor->resources.generators;
    executor->resources.generators = entry;
    *out_generator = entry->generator;
    return RONDO_STATUS_OK;

free_name:
    rondo__free(entry->name);
free_entry:
    rondo__free(entry);
    return status;
}

void rondo__executor_release_generators(rondo_executor *executor) {
    while (executor->resources.generators != NULL) {
        rondo__executor_generator *entry = executor->resources.generators;
        executor->resources.generators = entry->next;
        rondo_generator_release(entry->generator);
        rondo__free(entry->name);
        rondo__free(entry);
    }
}
