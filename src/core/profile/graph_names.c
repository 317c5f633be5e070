// profile/graph_names.c — see graph_names.h.
// SPDX-License-Identifier: Apache-2.0
#include "profile/graph_names.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph_share.h"
#include "graph/label/label.h"
#include "profile/chunk.h"

enum { SLOT_COUNT = 256 };

// A node's label.
typedef struct named_node {
    uint32_t index;  // in the executable
    const char *label;
} named_node;

// All labels of one set (graph/label/label_set.h), by index.
typedef struct names {
    struct names *next;  // in its slot
    uint64_t number;
    uint32_t own_count;  // nodes of the graph itself
    uint32_t level_count;
    uint32_t *first_of_level;  // the index of each level's first node
    named_node *nodes;
    size_t count;
    size_t capacity;
} names;

typedef struct replay {
    uint64_t span;
    names *of;
    uint32_t executable;  // CUPTI's number; 0: not known
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

static void measure(void *user_data, uint32_t level, uint32_t index, const char *label) {
    names *n = user_data;
    n->capacity += label[0] != '\0' ? 1 : 0;
    n->level_count = level >= n->level_count ? level + 1 : n->level_count;
    n->own_count = level == 0 && index >= n->own_count ? index + 1 : n->own_count;
}

static void count_node(void *user_data, uint32_t level, uint32_t index, const char *label) {
    (void)index;
    (void)label;
    ((names *)user_data)->first_of_level[level] += 1;
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
        n->nodes[n->count++] =
            (named_node){.index = n->first_of_level[level] + index, .label = copy};
    }
}

static int compare_nodes(const void *a, const void *b) {
    const named_node *x = a;
    const named_node *y = b;
    return (x->index > y->index) - (x->index < y->index);
}

// Without memory there are no names.
static void fill_names(names *n, const rondo__participant *participants) {
    rondo__label_visit(participants, measure, n);
    const size_t bytes = n->level_count * sizeof *n->first_of_level;
    n->first_of_level = n->capacity > 0 ? rondo__profile_take(bytes) : NULL;
    n->nodes =
        n->first_of_level != NULL ? rondo__profile_take(n->capacity * sizeof *n->nodes) : NULL;
    if (n->nodes == NULL) {
        return;
    }
    memset(n->first_of_level, 0, bytes);
    rondo__label_visit(participants, count_node, n);
    uint32_t first = 0;
    for (uint32_t level = 0; level < n->level_count; ++level) {
        const uint32_t count = n->first_of_level[level];
        n->first_of_level[level] = first;
        first += count;
    }
    rondo__label_visit(participants, add_node, n);
    qsort(n->nodes, n->count, sizeof *n->nodes, compare_nodes);
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
    fill_names(n, participants);
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
        *noted = (replay){.span = span, .of = n, .executable = executable};
    }
    pthread_mutex_unlock(&g_names.lock);
}

static int compare_replays(const void *a, const void *b) {
    const replay *x = a;
    const replay *y = b;
    return (x->span > y->span) - (x->span < y->span);
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

// The names of what the span replays; NULL: there are none, or CUPTI counts in a way of its own.
static const names *find_counted(uint64_t span, uint64_t graph_node) {
    const replay *noted = find_replay(span);
    const bool is_known = noted != NULL && (noted->executable == 0 ||
                                            noted->executable == (uint32_t)(graph_node >> 32));
    return is_known ? noted->of : NULL;
}

const char *rondo__graph_names_find(uint64_t span, uint64_t graph_node) {
    const names *n = find_counted(span, graph_node);
    if (n == NULL || n->nodes == NULL) {
        return "";
    }
    const named_node node = {.index = (uint32_t)graph_node};
    const named_node *found = bsearch(&node, n->nodes, n->count, sizeof node, compare_nodes);
    return found != NULL ? found->label : "";
}

bool rondo__graph_names_is_inside(uint64_t span, uint64_t graph_node) {
    const names *n = find_counted(span, graph_node);
    return n != NULL && (uint32_t)graph_node >= n->own_count;
}

void rondo__graph_names_clear(void) {
    pthread_mutex_lock(&g_names.lock);
    for (size_t i = 0; i < SLOT_COUNT; ++i) {
        for (const names *n = g_names.slots[i]; n != NULL; n = n->next) {
            rondo__profile_give_back(n->nodes);
            rondo__profile_give_back(n->first_of_level);
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
