// learn/learned_patch.c — words of a learned step, changed and written to its executable.
// SPDX-License-Identifier: Apache-2.0
#include "learn/learned_patch.h"

#include <string.h>

#include "base/memory.h"
#include "graph/node/patch.h"

static const char call_run[] = "rondo_learned_run";

// Room for what the nodes with slots did; only a graph that looks at addresses wants to know.
static rondo_status reserve_formers(rondo_learned *learned) {
    const size_t count = learned->lesson.reference.count;
    if (learned->formers != NULL) {
        return RONDO_STATUS_OK;
    }
    for (size_t i = 0; i < count; ++i) {
        if (learned->images[i] != NULL) {
            RETURN_IF_ERROR(rondo__node_image_reserve_former(learned->images[i]));
        }
    }
    learned->formers = rondo__calloc(count + 1, sizeof *learned->formers);
    return learned->formers != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
}

static void mark_dirty(rondo_learned *learned, size_t node) {
    rondo__node_image *image = learned->images[node];
    learned->dirt[node] = learned->formers != NULL ? RONDO__DIRTY_SAVED : RONDO__DIRTY;
    learned->dirty_nodes[learned->dirty_count] = node;
    learned->dirty[learned->dirty_count++] = image;
    if (learned->formers != NULL) {
        rondo__node_image_save(image, &learned->formers[node]);
    }
}

// Sizes that the compiler knows: each run comes here.
static bool holds(const unsigned char *place, uint32_t width, uint64_t word) {
    return width == 8   ? memcmp(place, &word, 8) == 0
           : width == 4 ? memcmp(place, &word, 4) == 0
                        : memcmp(place, &word, width) == 0;
}

static void store(unsigned char *place, uint32_t width, uint64_t word) {
    if (width == 8) {
        memcpy(place, &word, 8);
    } else if (width == 4) {
        memcpy(place, &word, 4);
    } else {
        memcpy(place, &word, width);
    }
}

// Writes the words that depend on the argument into the images of their nodes.
static void change_words(rondo_learned *learned, size_t argument) {
    const rondo__changing_word *end = learned->words + learned->first_words[argument + 1];
    for (const rondo__changing_word *w = learned->words + learned->first_words[argument]; w < end;
         ++w) {
        const uint64_t word =
            w->formula == NULL
                ? learned->values.bits[argument]
                : rondo__formula_evaluate(w->formula, &learned->arguments, &learned->values);
        if (holds(w->place, w->width, word)) {
            continue;
        }
        if (learned->dirt[w->node] == RONDO__CLEAN) {
            mark_dirty(learned, w->node);
        }
        store(w->place, w->width, word);
    }
}

// Takes over the new values of `next`, and changes the words that depend on them.
static void change_values(rondo_learned *learned, uint64_t changed) {
    if (learned->has_structs) {
        rondo__values_copy(&learned->arguments, &learned->values, &learned->next);
    }
    for (uint64_t rest = changed; rest != 0; rest &= rest - 1) {
        const size_t i = (size_t)__builtin_ctzll(rest);
        learned->values.bits[i] = learned->next.bits[i];
    }
    for (; changed != 0; changed &= changed - 1) {
        change_words(learned, (size_t)__builtin_ctzll(changed));
    }
}

// Looks at the memory that the dirty nodes name.
static rondo_status admit_dirty(const rondo_learned *learned, bool wants_addresses) {
    if (!learned->has_copies && !wants_addresses) {
        return RONDO_STATUS_OK;
    }
    for (size_t i = 0; i < learned->dirty_count; ++i) {
        const rondo__node_image *image = learned->dirty[i];
        if (image->info.kind == RONDO__NODE_COPY) {
            RETURN_IF_ERROR(rondo__graph_admit_copy(learned->graph, image, call_run));
        }
        if (wants_addresses) {
            const size_t node = learned->dirty_nodes[i];
            const bool is_saved = learned->dirt[node] == RONDO__DIRTY_SAVED;
            RETURN_IF_ERROR(rondo__graph_admit_addresses(
                learned->graph, image, is_saved ? &learned->formers[node] : NULL));
        }
    }
    return RONDO_STATUS_OK;
}

// Writes the dirty nodes: one call of the driver for each. To record and update the whole costs
// more, even where all of them are dirty (bench/results/core/dynamic_parameters_host.md).
static rondo_status write_dirty(rondo_learned *learned) {
    rondo_graph *graph = learned->graph;
    size_t done = 0;
    rondo_status status = learned->device->backend->patch_nodes(
        graph->executable, graph->recorded, learned->dirty, learned->dirty_count, &done);
    for (size_t i = 0; i < done; ++i) {
        learned->dirt[learned->dirty_nodes[i]] = RONDO__CLEAN;
    }
    learned->stats.patched_node_count += done;
    learned->dirty_count -= done;
    if (learned->dirty_count > 0) {
        memmove(learned->dirty, learned->dirty + done,
                learned->dirty_count * sizeof *learned->dirty);
        memmove(learned->dirty_nodes, learned->dirty_nodes + done,
                learned->dirty_count * sizeof *learned->dirty_nodes);
    }
    if (done > 0) {
        rondo__graph_watch_anew(graph);
    }
    return status;
}

rondo_status rondo__learned_patch(rondo_learned *learned, uint64_t changed) {
    bool wants_addresses = false;
    if (changed == 0 && learned->dirty_count == 0) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__graph_begin_patches(learned->graph, &wants_addresses));
    if (wants_addresses) {
        RETURN_IF_ERROR(reserve_formers(learned));
    }
    change_values(learned, changed);
    if (learned->dirty_count == 0) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(admit_dirty(learned, wants_addresses));
    return write_dirty(learned);
}
