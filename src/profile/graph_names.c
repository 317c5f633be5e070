// profile/graph_names.c — see graph_names.h.
// SPDX-License-Identifier: Apache-2.0
#include "profile/graph_names.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph_share.h"
#include "graph/label.h"
#include "profile/chunk.h"

enum { SLOT_COUNT = 256 };

// A node's label.
typedef struct named_node {
    uint32_t level;
    uint32_t index;
    const char *label;
} named_node;

// All labels of one set (graph/label_set.h), by level and index once they are sorted.
typedef struct names {
    struct names *next;  // in its slot
    uint64_t number;
    named_node *nodes;
    size_t count;
    size_t capacity;
    bool is_sorted;
} names;

typedef struct replay {
    uint64_t span;
    names *of;
    uint32_t executable;   // CUPTI's number; 0: not known
    uint32_t first_graph;  // the least number of a graph in it
} replay;

static struct {
    pthread_mutex_t lock;
    names *slots[SLOT_COUNT];    // by number
    rondo__profile_list memory;  // of the names
    rondo__profile_list texts;
    rondo__profile_list replays;
    // At the end: replays by span.
    replay *sorted;
    size_t sorted_count;
} g_names = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void count_node(void *user_data, uint32_t level, uint32_t index, const char *label) {
    (void)level;
    (void)index;
    names *n = user_data;
    n->capacity += label[0] != '\0' ? 1 : 0;
}

static void add_node(void *user_data, uint32_t level, uint32_t index, const char *label) {
    names *n = user_data;
    if (label[0] == '\0' || n->count == n->capacity) {
        return;
    }
    const named_node *before = n->count > 0 ? &n->nodes[n->count - 1] : NULL;
    // Neighbours often have one label.
    const char *copy = before != NULL && strcmp(before->label, label) == 0
                           ? before->label
                           : rondo__profile_list_add_text(&g_names.texts, label);
    if (copy != NULL) {
        n->nodes[n->count++] = (named_node){.level = level, .index = index, .label = copy};
    }
}

// The caller holds the lock. NULL: no memory.
static names *find_names(uint64_t number, const rondo__participant *participants) {
    names **slot = &g_names.slots[number % SLOT_COUNT];
    for (names *n = *slot; n != NULL; n = n->next) {
        if (n->number == number) {
            return n;
        }
    }
    names *n = rondo__profile_list_add(&g_names.memory, sizeof *n);
    if (n == NULL) {
        return NULL;
    }
    *n = (names){.next = *slot, .number = number};
    rondo__label_visit(participants, count_node, n);
    n->nodes = n->capacity > 0 ? rondo__profile_take(n->capacity * sizeof *n->nodes) : NULL;
    n->capacity = n->nodes != NULL ? n->capacity : 0;
    rondo__label_visit(participants, add_node, n);
    *slot = n;
    return n;
}

void rondo__graph_names_note(uint64_t span, const rondo_graph *graph, uint32_t executable) {
    const rondo__participant *participants = rondo__graph_get_participants(graph);
    const uint64_t number = rondo__label_get_number(participants);
    if (number == 0) {
        return;
    }
    pthread_mutex_lock(&g_names.lock);
    names *n = find_names(number, participants);
    replay *noted = n != NULL ? rondo__profile_list_add(&g_names.replays, sizeof *noted) : NULL;
    if (noted != NULL) {
        *noted =
            (replay){.span = span, .of = n, .executable = executable, .first_graph = UINT32_MAX};
    }
    pthread_mutex_unlock(&g_names.lock);
}

static int compare_replays(const void *a, const void *b) {
    const replay *x = a;
    const replay *y = b;
    return (x->span > y->span) - (x->span < y->span);
}

static int compare_nodes(const void *a, const void *b) {
    const named_node *x = a;
    const named_node *y = b;
    return x->level != y->level ? (x->level > y->level) - (x->level < y->level)
                                : (x->index > y->index) - (x->index < y->index);
}

static void sort_replays(void) {
    const size_t count = g_names.replays.count;
    g_names.sorted = count > 0 ? rondo__profile_take(count * sizeof *g_names.sorted) : NULL;
    for (const rondo__profile_chunk *chunk = g_names.replays.first;
         g_names.sorted != NULL && chunk != NULL; chunk = chunk->next) {
        memcpy(g_names.sorted + g_names.sorted_count, chunk->bytes, chunk->used);
        g_names.sorted_count += chunk->used / sizeof(replay);
    }
    if (g_names.sorted != NULL) {
        qsort(g_names.sorted, g_names.sorted_count, sizeof(replay), compare_replays);
    }
}

static replay *find_replay(uint64_t span) {
    const replay key = {.span = span};
    if (g_names.sorted == NULL) {
        sort_replays();
    }
    return g_names.sorted != NULL
               ? bsearch(&key, g_names.sorted, g_names.sorted_count, sizeof key, compare_replays)
               : NULL;
}

void rondo__graph_names_learn(uint64_t span, uint64_t graph_node) {
    replay *noted = find_replay(span);
    const uint32_t graph = (uint32_t)(graph_node >> 32);
    if (noted != NULL && graph < noted->first_graph) {
        noted->first_graph = graph;
    }
}

const char *rondo__graph_names_find(uint64_t span, uint64_t graph_node) {
    const replay *noted = find_replay(span);
    if (noted == NULL || noted->of->nodes == NULL) {
        return "";
    }
    const uint32_t graph = (uint32_t)(graph_node >> 32);
    const bool is_own = noted->executable != 0 && noted->first_graph >= noted->executable;
    const uint32_t root = is_own ? noted->executable : noted->first_graph;
    if (graph != root && noted->executable != 0 && !is_own) {
        return "";
    }
    const named_node node = {.level = graph - root, .index = (uint32_t)graph_node};
    names *n = noted->of;
    if (!n->is_sorted) {
        qsort(n->nodes, n->count, sizeof *n->nodes, compare_nodes);
        n->is_sorted = true;
    }
    const named_node *found = bsearch(&node, n->nodes, n->count, sizeof node, compare_nodes);
    return found != NULL ? found->label : "";
}

void rondo__graph_names_clear(void) {
    pthread_mutex_lock(&g_names.lock);
    for (size_t i = 0; i < SLOT_COUNT; ++i) {
        for (const names *n = g_names.slots[i]; n != NULL; n = n->next) {
            rondo__profile_give_back(n->nodes);
        }
        g_names.slots[i] = NULL;
    }
    rondo__profile_list *lists[] = {&g_names.memory, &g_names.texts, &g_names.replays};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; ++i) {
        rondo__profile_chunks_free(lists[i]->first);
        *lists[i] = (rondo__profile_list){0};
    }
    rondo__profile_give_back(g_names.sorted);
    g_names.sorted = NULL;
    g_names.sorted_count = 0;
    pthread_mutex_unlock(&g_names.lock);
}
