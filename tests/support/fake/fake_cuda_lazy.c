// A GPU that is as late as it may be (RONDO_EMULATED_LAZY=1): work on a stream waits until somebody
// waits for it, and then what stands before it runs, and no more. So a result that is read too
// soon, memory that is used again too soon, and streams that should have been ordered give wrong
// numbers here, where they mostly would not on a GPU.
//
// Without that setting work runs when it is submitted. What ends or changes things in use, as
// freeing memory does, lets all run first. Copies from and to pageable memory happen at once, as
// the driver's mostly do.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "support/fake/fake_cuda_state.h"

typedef struct lazy_item {
    struct lazy_item *next;
    uint64_t number;  // from 1, in the order of submission
    const fake_stream *stream;
    uint64_t awaited;        // an item that runs first; 0: none
    fake_node *work;         // one of these, or none
    const fake_graph *exec;  // a launch of it
    fake_event *event;       // its record
    bool is_done;
} lazy_item;

static struct {
    lazy_item *first;
    lazy_item **end;
    uint64_t last_number;
    int depth;  // of runs within runs
} g_lazy = {.end = &g_lazy.first};

static bool is_on(void) {
    static int mode = -1;
    if (mode < 0) {
        const char *setting = getenv("RONDO_EMULATED_LAZY");
        mode = setting != NULL && strcmp(setting, "1") == 0;
    }
    return mode != 0;
}

static lazy_item *add_item(const fake_stream *stream) {
    lazy_item *item = calloc(1, sizeof *item);
    if (item == NULL) {
        abort();
    }
    item->number = ++g_lazy.last_number;
    item->stream = stream;
    *g_lazy.end = item;
    g_lazy.end = &item->next;
    return item;
}

static void free_done(void) {
    lazy_item **link = &g_lazy.first;
    while (*link != NULL) {
        lazy_item *item = *link;
        if (!item->is_done) {
            link = &item->next;
            continue;
        }
        *link = item->next;
        free(item->work);
        free(item);
    }
    g_lazy.end = link;
}

static void run_stream(const fake_stream *stream, uint64_t last);

static void run_until(uint64_t number) {
    for (const lazy_item *item = g_lazy.first; item != NULL; item = item->next) {
        if (item->number == number && !item->is_done) {
            run_stream(item->stream, number);
            return;
        }
    }
}

static void run_item(lazy_item *item) {
    item->is_done = true;
    run_until(item->awaited);
    if (item->work != NULL) {
        fake_run_node(item->work, NULL, 0);
    } else if (item->exec != NULL) {
        fake_run_nodes(item->exec);
    } else if (item->event != NULL) {
        item->event->time_ns = fake_now_ns();
    }
}

// The stream's items up to that number, and what they wait for. NULL: of all streams.
static void run_stream(const fake_stream *stream, uint64_t last) {
    g_lazy.depth++;
    for (lazy_item *item = g_lazy.first; item != NULL && item->number <= last; item = item->next) {
        if (!item->is_done && (stream == NULL || item->stream == stream)) {
            run_item(item);
        }
    }
    if (--g_lazy.depth == 0) {
        free_done();
    }
}

void fake_lazy_run_all(void) {
    run_stream(NULL, UINT64_MAX);
}

void fake_lazy_run_stream(const fake_stream *stream) {
    run_stream(stream, UINT64_MAX);
}

void fake_lazy_run_event(const fake_event *event) {
    run_until(event->lazy_number);
}

void fake_lazy_enter(const char *name) {
    static const char *const enders[] = {"cuMemFree",
                                         "cuMemFreeHost",
                                         "cuModuleUnload",
                                         "cuCtxSynchronize",
                                         "cuStreamDestroy",
                                         "cuDevicePrimaryCtxRelease",
                                         "cuGraphNodeSetEnabled"};
    bool ends = strncmp(name, "cuGraphExec", strlen("cuGraphExec")) == 0;
    for (size_t i = 0; i < sizeof enders / sizeof enders[0]; i++) {
        ends = ends || strcmp(name, enders[i]) == 0;
    }
    if (ends && g_lazy.depth == 0) {
        fake_lazy_run_all();
    }
}

bool fake_lazy_takes(rondo__cu_stream handle, const fake_stream *stream, const fake_node *work) {
    if (!is_on()) {
        return false;
    }
    if ((uintptr_t)handle <= 2) {
        fake_lazy_run_all();
        return false;
    }
    if (work->type == RONDO__CU_GRAPH_NODE_MEMCPY &&
        (fake_is_pageable(work->source) || fake_is_pageable(work->destination))) {
        fake_lazy_run_stream(stream);
        return false;
    }
    fake_node *copy = malloc(sizeof *copy);
    if (copy == NULL) {
        abort();
    }
    *copy = *work;
    add_item(stream)->work = copy;
    return true;
}

// A launch waits for the records that have come before it, as a stream does; not for those that
// come while its own work is still to run.
static void wait_for_events(const fake_stream *stream, const fake_graph *graph) {
    for (size_t i = 0; i < graph->node_count; i++) {
        const fake_node *node = &graph->nodes[i];
        if (node->type == RONDO__CU_GRAPH_NODE_WAIT_EVENT &&
            fake_is_alive(node->event, FAKE_EVENT)) {
            fake_lazy_wait(stream, node->event);
        } else if (node->type == RONDO__CU_GRAPH_NODE_GRAPH) {
            wait_for_events(stream, node->child);
        }
    }
}

// The events that a launch will record.
static void mark_events(const fake_graph *graph, uint64_t number) {
    for (size_t i = 0; i < graph->node_count; i++) {
        const fake_node *node = &graph->nodes[i];
        if (node->type == RONDO__CU_GRAPH_NODE_EVENT_RECORD &&
            fake_is_alive(node->event, FAKE_EVENT)) {
            node->event->lazy_number = number;
            node->event->is_recorded = true;
        } else if (node->type == RONDO__CU_GRAPH_NODE_GRAPH) {
            mark_events(node->child, number);
        }
    }
}

bool fake_lazy_takes_graph(rondo__cu_stream handle, const fake_stream *stream,
                           const fake_graph *exec) {
    if (!is_on()) {
        return false;
    }
    if ((uintptr_t)handle <= 2) {
        fake_lazy_run_all();
        return false;
    }
    uint64_t former = 0;  // launches of one executable run one after another
    for (const lazy_item *item = g_lazy.first; item != NULL; item = item->next) {
        former = item->exec == exec ? item->number : former;
    }
    wait_for_events(stream, exec);
    lazy_item *item = add_item(stream);
    item->exec = exec;
    item->awaited = former;
    mark_events(exec, item->number);
    return true;
}

void fake_lazy_record(const fake_stream *stream, fake_event *event) {
    if (is_on()) {
        lazy_item *item = add_item(stream);
        item->event = event;
        event->lazy_number = item->number;
    }
}

void fake_lazy_wait(const fake_stream *stream, const fake_event *event) {
    if (is_on() && event->lazy_number > 0) {
        add_item(stream)->awaited = event->lazy_number;
    }
}

void fake_lazy_forget(const fake_event *event) {
    for (lazy_item *item = g_lazy.first; item != NULL; item = item->next) {
        if (item->event == event) {
            item->event = NULL;  // it still orders what waits for it
        }
    }
}

void fake_lazy_drop(void) {
    for (lazy_item *item = g_lazy.first; item != NULL; item = item->next) {
        item->is_done = true;
    }
    free_done();
}
