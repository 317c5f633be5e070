// The fake driver's streams, events, captures and work. Work on a stream that does not record runs
// at once, so that a stream is always idle and an event that was recorded has happened; or as late
// as it may (fake_cuda_lazy.c).
// SPDX-License-Identifier: Apache-2.0
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "support/fake/fake_cuda_state.h"

const fake_watcher *g_fake_watcher;
_Thread_local int g_fake_body_depth;

// The handles NULL, legacy and per-thread are streams too: they never record here.
fake_stream *fake_get_stream(rondo__cu_stream handle, const char *name,
                             rondo__cu_result *out_code) {
    static fake_stream legacy;
    *out_code = RONDO__CU_SUCCESS;
    if ((uintptr_t)handle <= 2) {
        return &legacy;
    }
    if (!fake_is_alive(handle, FAKE_STREAM)) {
        fake_violation("%s with a dead stream", name);
        *out_code = RONDO__CU_ERROR_INVALID_HANDLE;
        return NULL;
    }
    return (fake_stream *)(void *)handle;
}

// ---- captures ---------------------------------------------------------------------------------

static fake_stream *next_origin(fake_object *from) {
    for (fake_object *object = from; object != NULL; object = object->next) {
        fake_stream *stream = (fake_stream *)object;
        if (object->kind == FAKE_STREAM && stream->origin == stream) {
            return stream;
        }
    }
    return NULL;
}

bool fake_break_unsafe(const char *name) {
    (void)name;
    bool is_forbidden = false;
    if (g_fake_thread.capture_mode == RONDO__CU_CAPTURE_MODE_RELAXED) {
        return false;
    }
    for (fake_stream *origin = next_origin(g_fake.objects); origin != NULL;
         origin = next_origin(origin->object.next)) {
        bool is_own = pthread_equal(origin->thread, pthread_self()) != 0;
        bool is_hit = is_own ? origin->mode != RONDO__CU_CAPTURE_MODE_RELAXED
                             : origin->mode == RONDO__CU_CAPTURE_MODE_GLOBAL &&
                                   g_fake_thread.capture_mode == RONDO__CU_CAPTURE_MODE_GLOBAL;
        if (is_hit) {
            origin->is_broken = true;
            is_forbidden = true;
        }
    }
    return is_forbidden;
}

fake_node *fake_append_node(fake_graph *graph, const size_t *dependencies, size_t count) {
    if (graph->node_count == graph->node_capacity) {
        graph->node_capacity = graph->node_capacity == 0 ? 8 : 2 * graph->node_capacity;
        graph->nodes = realloc(graph->nodes, graph->node_capacity * sizeof(*graph->nodes));
        if (graph->nodes == NULL) {
            abort();
        }
    }
    fake_node *node = &graph->nodes[graph->node_count++];
    memset(node, 0, sizeof(*node));
    node->identity = ++g_fake.node_identity;
    memcpy(node->dependencies, dependencies, count * sizeof(*dependencies));
    node->dependency_count = count;
    return node;
}

void fake_fill_node(fake_node *node, const fake_node *work) {
    fake_node placed = *work;
    memcpy(placed.dependencies, node->dependencies, sizeof(placed.dependencies));
    placed.dependency_count = node->dependency_count;
    placed.identity = node->identity;
    *node = placed;
}

static fake_node *add_node(fake_stream *stream) {
    fake_graph *graph = stream->origin->graph;
    fake_node *node = fake_append_node(graph, stream->dependencies, stream->dependency_count);
    stream->dependencies[0] = graph->node_count - 1;
    stream->dependency_count = 1;
    return node;
}

void fake_add_dependencies(fake_stream *stream, const size_t *dependencies, size_t count) {
    for (size_t i = 0; i < count; i++) {
        bool is_there = false;
        for (size_t j = 0; j < stream->dependency_count; j++) {
            is_there = is_there || stream->dependencies[j] == dependencies[i];
        }
        if (!is_there && stream->dependency_count < FAKE_DEPENDENCIES_MAX) {
            stream->dependencies[stream->dependency_count++] = dependencies[i];
        } else if (!is_there) {
            fake_violation("more dependencies than the fake driver keeps");
        }
    }
}

// A chain takes no depth, however long it is.
void fake_mark_ancestors(const fake_graph *graph, size_t node, bool *marks) {
    while (!marks[node]) {
        const fake_node *at = &graph->nodes[node];
        marks[node] = true;
        for (size_t i = 0; i + 1 < at->dependency_count; i++) {
            fake_mark_ancestors(graph, at->dependencies[i], marks);
        }
        node = at->dependency_count > 0 ? at->dependencies[at->dependency_count - 1] : node;
    }
}

static bool has_dependent(const fake_graph *graph, size_t node) {
    bool has = false;
    for (size_t i = 0; i < graph->node_count; i++) {
        for (size_t j = 0; j < graph->nodes[i].dependency_count; j++) {
            has = has || graph->nodes[i].dependencies[j] == node;
        }
    }
    return has;
}

// Every node must lead to the end of the stream the capture began on. A fork that ends in a graph
// or a condition, which no call of its stream has made, is overlooked, as by driver 580.
static bool is_joined(const fake_stream *origin) {
    const fake_graph *graph = origin->graph;
    bool *marks = calloc(graph->node_count + 1, sizeof(*marks));
    if (marks == NULL) {
        abort();
    }
    for (size_t i = 0; i < origin->dependency_count; i++) {
        fake_mark_ancestors(graph, origin->dependencies[i], marks);
    }
    for (size_t i = 0; i < graph->node_count; i++) {
        const int type = graph->nodes[i].type;
        if ((type == RONDO__CU_GRAPH_NODE_GRAPH || type == RONDO__CU_GRAPH_NODE_CONDITIONAL) &&
            !marks[i] && !has_dependent(graph, i)) {
            fake_mark_ancestors(graph, i, marks);
        }
    }
    bool is_whole = true;
    for (size_t i = 0; i < graph->node_count; i++) {
        is_whole = is_whole && marks[i];
    }
    free(marks);
    return is_whole;
}

static void leave_capture(fake_stream *origin) {
    for (fake_object *object = g_fake.objects; object != NULL; object = object->next) {
        if (object->kind == FAKE_STREAM && ((fake_stream *)object)->origin == origin) {
            ((fake_stream *)object)->origin = NULL;
            ((fake_stream *)object)->dependency_count = 0;
        } else if (object->kind == FAKE_EVENT && ((fake_event *)object)->origin == origin) {
            ((fake_event *)object)->origin = NULL;
            ((fake_event *)object)->is_recorded = false;
            ((fake_event *)object)->is_orphan = true;
        }
    }
}

// Work on the legacy stream would wait for blocking streams: breaks their captures.
bool fake_break_blocking(void) {
    bool is_hit = false;
    for (fake_object *object = g_fake.objects; object != NULL; object = object->next) {
        fake_stream *stream = (fake_stream *)object;
        if (object->kind == FAKE_STREAM && stream->is_blocking && stream->origin != NULL) {
            stream->origin->is_broken = true;
            is_hit = true;
        }
    }
    return is_hit;
}

rondo__cu_result fake_cuStreamBeginCapture(rondo__cu_stream handle, int mode) {
    ENTER("cuStreamBeginCapture");
    if (!fake_may_launch(handle, "cuStreamBeginCapture")) {
        return fake_leave(RONDO__CU_ERROR_INVALID_CONTEXT);
    }
    GET_STREAM("cuStreamBeginCapture");
    if ((uintptr_t)handle <= 1) {
        return fake_leave(RONDO__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    if (stream->origin != NULL) {
        return fake_leave(RONDO__CU_ERROR_ILLEGAL_STATE);
    }
    stream->origin = stream;
    stream->graph = fake_new_object(FAKE_GRAPH, sizeof(fake_graph));
    stream->capture_id = ++g_fake.last_capture_id;
    stream->mode = mode;
    stream->thread = pthread_self();
    stream->is_broken = false;
    stream->dependency_count = 0;
    return fake_leave(code);
}

rondo__cu_result fake_cuStreamEndCapture(rondo__cu_stream handle, rondo__cu_graph *out_graph) {
    rondo__cu_result code = fake_enter("cuStreamEndCapture");
    *out_graph = NULL;
    // A poisoned context ends it all the same.
    if (code == RONDO__CU_SUCCESS && !fake_may_launch(handle, "cuStreamEndCapture")) {
        return fake_leave(RONDO__CU_ERROR_INVALID_CONTEXT);
    }
    GET_STREAM("cuStreamEndCapture");
    if (stream->origin == NULL) {
        return fake_leave(RONDO__CU_ERROR_ILLEGAL_STATE);
    }
    if (stream->origin != stream) {
        stream->origin->is_broken = true;
        return fake_leave(RONDO__CU_ERROR_STREAM_CAPTURE_UNMATCHED);
    }
    // As driver 580 does: a broken one may end anywhere, and the end by a wrong thread is one.
    if (code == RONDO__CU_SUCCESS && stream->mode != RONDO__CU_CAPTURE_MODE_RELAXED &&
        !stream->is_broken && pthread_equal(stream->thread, pthread_self()) == 0) {
        code = RONDO__CU_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    } else if (code == RONDO__CU_SUCCESS && stream->is_broken) {
        code = RONDO__CU_ERROR_STREAM_CAPTURE_INVALIDATED;
    } else if (code == RONDO__CU_SUCCESS && !is_joined(stream)) {
        code = RONDO__CU_ERROR_STREAM_CAPTURE_UNJOINED;
    }
    if (stream->is_dangling) {
        fake_violation("the end of a body whose node is gone");
        leave_capture(stream);
        return fake_leave(RONDO__CU_ERROR_UNKNOWN);
    }
    fake_graph *graph = stream->graph;
    bool is_lost = stream->is_broken || code == RONDO__CU_ERROR_STREAM_CAPTURE_UNJOINED ||
                   code == RONDO__CU_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    stream->graph = NULL;
    leave_capture(stream);
    if (code == RONDO__CU_SUCCESS) {
        *out_graph = (rondo__cu_graph)(void *)graph;
    } else if (!graph->is_body) {
        fake_free_graph(graph);
    } else {
        graph->is_gone = is_lost;
    }
    return fake_leave(code);
}

int fake_get_capture_status(const fake_stream *stream) {
    if (stream->origin == NULL) {
        return RONDO__CU_CAPTURE_STATUS_NONE;
    }
    return stream->origin->is_broken ? RONDO__CU_CAPTURE_STATUS_INVALIDATED
                                     : RONDO__CU_CAPTURE_STATUS_ACTIVE;
}

rondo__cu_result fake_cuStreamIsCapturing(rondo__cu_stream handle, int *out_status) {
    ENTER("cuStreamIsCapturing");
    GET_STREAM("cuStreamIsCapturing");
    *out_status = fake_get_capture_status(stream);
    return fake_leave(code);
}

rondo__cu_result fake_cuThreadExchangeStreamCaptureMode(int *in_out_mode) {
    ENTER("cuThreadExchangeStreamCaptureMode");
    int former = g_fake_thread.capture_mode;
    g_fake_thread.capture_mode = *in_out_mode;
    *in_out_mode = former;
    return fake_leave(code);
}

// ---- streams and events -----------------------------------------------------------------------

rondo__cu_result fake_cuStreamCreate(rondo__cu_stream *out_stream, unsigned int flags) {
    ENTER("cuStreamCreate");
    NEED_CONTEXT("cuStreamCreate");
    fake_stream *stream = fake_new_object(FAKE_STREAM, sizeof(*stream));
    stream->is_blocking = (flags & RONDO__CU_STREAM_NON_BLOCKING) == 0;
    *out_stream = (rondo__cu_stream)(void *)stream;
    return fake_leave(code);
}

rondo__cu_result fake_cuStreamCreateWithPriority(rondo__cu_stream *out_stream, unsigned int flags,
                                                 int priority) {
    ENTER("cuStreamCreateWithPriority");
    NEED_CONTEXT("cuStreamCreateWithPriority");
    fake_stream *stream = fake_new_object(FAKE_STREAM, sizeof(*stream));
    stream->is_blocking = (flags & RONDO__CU_STREAM_NON_BLOCKING) == 0;
    stream->priority = priority;
    *out_stream = (rondo__cu_stream)(void *)stream;
    return fake_leave(code);
}

rondo__cu_result fake_cuStreamGetPriority(rondo__cu_stream handle, int *out_priority) {
    ENTER("cuStreamGetPriority");
    GET_STREAM("cuStreamGetPriority");
    *out_priority = stream->priority;
    return fake_leave(code);
}

rondo__cu_result fake_cuStreamDestroy(rondo__cu_stream handle) {
    rondo__cu_result code = fake_enter("cuStreamDestroy");
    GET_STREAM("cuStreamDestroy");
    if (stream->origin != NULL) {
        fake_violation("cuStreamDestroy while the stream records");
        if (stream->origin == stream) {
            if (!stream->graph->is_body) {
                fake_free_graph(stream->graph);
            }
            leave_capture(stream);
        }
    }
    fake_free_object(stream);
    return fake_leave(code);
}

static rondo__cu_result touch_stream(rondo__cu_stream handle, const char *name) {
    ENTER(name);
    NEED_CONTEXT(name);
    GET_STREAM(name);
    fake_check_selected(stream, name);
    if (stream->origin != NULL) {
        stream->origin->is_broken = true;
        return fake_leave(RONDO__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    if (fake_break_unsafe(name)) {
        return fake_leave(RONDO__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    fake_lazy_run_stream((uintptr_t)handle <= 2 ? NULL : stream);
    return fake_leave(code);
}

rondo__cu_result fake_cuStreamSynchronize(rondo__cu_stream handle) {
    return touch_stream(handle, "cuStreamSynchronize");
}

rondo__cu_result fake_cuStreamQuery(rondo__cu_stream handle) {
    return touch_stream(handle, "cuStreamQuery");
}

rondo__cu_result fake_cuCtxSynchronize(void) {
    ENTER("cuCtxSynchronize");
    NEED_CONTEXT("cuCtxSynchronize");
    const rondo__cu_context current = g_fake_thread.contexts[g_fake_thread.depth - 1];
    for (fake_stream *origin = next_origin(g_fake.objects); origin != NULL;
         origin = next_origin(origin->object.next)) {
        if (origin->object.context == current) {
            origin->is_broken = true;
            code = RONDO__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    return fake_leave(code);
}

rondo__cu_result fake_cuStreamGetCtx(rondo__cu_stream handle, rondo__cu_context *out_context) {
    ENTER("cuStreamGetCtx");
    NEED_CONTEXT("cuStreamGetCtx");
    if ((uintptr_t)handle > 2 && !fake_is_alive(handle, FAKE_STREAM)) {
        return fake_leave(RONDO__CU_ERROR_INVALID_HANDLE);
    }
    *out_context = (uintptr_t)handle > 2 ? ((fake_object *)(void *)handle)->context
                                         : g_fake_thread.contexts[g_fake_thread.depth - 1];
    return fake_leave(code);
}

// ---- work -------------------------------------------------------------------------------------

// The driver (580) repeats the value over a word and writes words: what a node's value has beyond
// its element is in them.
static void fill_row(const fake_node *node, unsigned char *row) {
    uint32_t word = node->value;
    for (unsigned int bits = 8 * node->element_bytes; bits < 32; bits *= 2) {
        word |= word << bits;
    }
    const size_t bytes = node->count * node->element_bytes;
    size_t done = 0;
    for (; (uintptr_t)row % 4 == 0 && done + 4 <= bytes; done += 4) {
        // Whole: another thread may look, as a watchdog does.
        atomic_store_explicit((_Atomic uint32_t *)(void *)(row + done), word, memory_order_relaxed);
    }
    for (; done < bytes; done++) {
        row[done] = (unsigned char)(word >> (done % 4 * 8));
    }
}

const fake_node *g_fake_running;

unsigned int fake_cuda_get_cluster(void) {
    unsigned int blocks = 1;
    for (size_t i = 0; g_fake_running != NULL && i < g_fake_running->attribute_count; i++) {
        const rondo__cu_launch_attribute *attribute = &g_fake_running->attributes[i];
        if (attribute->id == RONDO__CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION ||
            attribute->id == RONDO__CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER) {
            blocks = attribute->value.cluster[0];
        }
    }
    return blocks;
}

static void run_node(const fake_node *node) {
    const char *problem = NULL;
    g_fake_running = node;
    switch (node->type) {
        case RONDO__CU_GRAPH_NODE_KERNEL:
            if (node->kernel->code.thread != NULL) {
                if (!emulated_run(&node->kernel->code, node->shape, node->arguments, &problem)) {
                    fake_violation("kernel %s: %s", node->kernel->name, problem);
                }
            } else if (node->kernel->text != NULL && strcmp(node->kernel->name, "pointwise") != 0) {
                fake_select_run(node->kernel->name, node->kernel->text, node->arguments,
                                node->argument_bytes);
            } else if (node->kernel->text != NULL) {
                fake_pointwise_run(node->kernel->text, node->arguments, node->argument_bytes);
            } else if (node->kernel->kernel != NULL) {
                node->kernel->kernel(node->arguments, node->argument_bytes);
            }
            break;
        case RONDO__CU_GRAPH_NODE_MEMCPY:
            for (size_t row = 0; row < (node->height > 0 ? node->height : 1); row++) {
                memmove((char *)node->destination + row * node->destination_pitch,
                        (const char *)node->source + row * node->source_pitch, node->count);
            }
            break;
        case RONDO__CU_GRAPH_NODE_MEMSET:
            for (size_t row = 0; row < (node->height > 0 ? node->height : 1); row++) {
                fill_row(node, (unsigned char *)node->destination + row * node->destination_pitch);
            }
            break;
        case RONDO__CU_GRAPH_NODE_HOST:
            node->function(node->user_data);
            break;
        case RONDO__CU_GRAPH_NODE_EVENT_RECORD:
        case RONDO__CU_GRAPH_NODE_WAIT_EVENT:
            if (!fake_is_alive(node->event, FAKE_EVENT)) {
                fake_violation("a graph that uses a dead event was launched");
            } else if (node->type == RONDO__CU_GRAPH_NODE_EVENT_RECORD) {
                node->event->is_recorded = true;
                node->event->time_ns = fake_now_ns();
            }
            break;
        case RONDO__CU_GRAPH_NODE_GRAPH:
            fake_run_nodes(node->child);
            break;
        case RONDO__CU_GRAPH_NODE_CONDITIONAL:
            fake_run_conditional(node);
            break;
        default:
            break;
    }
}

void fake_run_node(const fake_node *node, const fake_graph *graph, size_t index) {
    const uint64_t begin_ns = g_fake_watcher != NULL ? rondo__clock_now_ns() : 0;
    run_node(node);
    if (g_fake_watcher != NULL) {
        const uint64_t graph_node =
            graph != NULL ? (uint64_t)graph->number << 32 | (graph->first_index + index) : 0;
        g_fake_watcher->work(node, graph_node, begin_ns, rondo__clock_now_ns());
    }
}

static bool is_off_fill(const fake_node *node) {
    return node->is_disabled && node->type == RONDO__CU_GRAPH_NODE_MEMSET;
}

// 2: may run before what it should come behind; 1: may run; 0: waits.
static int get_readiness(const fake_graph *graph, const fake_node *node, const bool *done) {
    int readiness = 1;
    for (size_t i = 0; i < node->dependency_count; i++) {
        const size_t before = node->dependencies[i];
        if (is_off_fill(&graph->nodes[before]) && !done[before]) {
            readiness = 2;
        } else if (!done[before]) {
            return 0;
        }
    }
    return readiness;
}

// Behind a fill that is switched off the driver (580) lets run what waits for nothing else.
static void run_without_order(const fake_graph *graph) {
    bool *done = calloc(graph->node_count, sizeof(*done));
    if (done == NULL) {
        abort();
    }
    for (size_t count = 0; count < graph->node_count; count++) {
        size_t next = graph->node_count;
        int best = 0;
        for (size_t i = 0; i < graph->node_count; i++) {
            const int readiness = done[i] ? 0 : get_readiness(graph, &graph->nodes[i], done);
            next = readiness > best ? i : next;
            best = readiness > best ? readiness : best;
        }
        if (next == graph->node_count) {
            break;
        }
        if (best == 2) {
            fake_violation("nothing keeps what is behind a fill that is switched off");
        }
        done[next] = true;
        if (!graph->nodes[next].is_disabled) {
            fake_run_node(&graph->nodes[next], graph, next);
        }
    }
    free(done);
}

void fake_run_nodes(const fake_graph *graph) {
    bool has_off_fill = false;
    for (size_t i = 0; i < graph->node_count; i++) {
        has_off_fill = has_off_fill || is_off_fill(&graph->nodes[i]);
    }
    if (has_off_fill) {
        run_without_order(graph);
        return;
    }
    for (size_t i = 0; i < graph->node_count; i++) {
        if (!graph->nodes[i].is_disabled) {
            fake_run_node(&graph->nodes[i], graph, i);
        }
    }
}

// CUPTI tells of them, with no times.
void fake_skip_nodes(const fake_graph *graph) {
    for (size_t i = 0; i < graph->node_count && g_fake_watcher != NULL; i++) {
        g_fake_watcher->work(&graph->nodes[i],
                             (uint64_t)graph->number << 32 | (graph->first_index + i), 0, 0);
    }
}

rondo__cu_result fake_submit(rondo__cu_stream handle, const char *name, const fake_node *work) {
    GET_STREAM(name);
    if ((uintptr_t)handle <= 1 && fake_break_blocking()) {
        return fake_leave(RONDO__CU_ERROR_STREAM_CAPTURE_IMPLICIT);
    }
    if (stream->origin == NULL) {
        if (g_fake_watcher != NULL) {
            g_fake_watcher->launch();
        }
        if (!fake_lazy_takes(handle, stream, work)) {
            fake_run_node(work, NULL, 0);
        }
        return fake_leave(RONDO__CU_SUCCESS);
    }
    if (stream->origin->is_broken) {
        return fake_leave(RONDO__CU_ERROR_STREAM_CAPTURE_INVALIDATED);
    }
    fake_node *node = add_node(stream);
    fake_fill_node(node, work);
    // Only a kernel says when the next one may start.
    for (size_t i = 0; i < node->dependency_count; i++) {
        node->is_programmatic =
            node->is_programmatic &&
            stream->origin->graph->nodes[node->dependencies[i]].type == RONDO__CU_GRAPH_NODE_KERNEL;
    }
    return fake_leave(RONDO__CU_SUCCESS);
}

// The types: of the source, and of the destination.
static rondo__cu_result submit_copy(const char *name, void *destination, const void *source,
                                    size_t bytes, int from, int to, rondo__cu_stream handle) {
    ENTER(name);
    NEED_CONTEXT(name);
    GET_STREAM(name);
    fake_check_selected(stream, name);
    fake_check_reach(stream, source, name);
    fake_check_reach(stream, destination, name);
    fake_node work = {.type = RONDO__CU_GRAPH_NODE_MEMCPY,
                      .source = source,
                      .destination = destination,
                      .source_type = from,
                      .destination_type = to,
                      .count = bytes};
    return fake_submit(handle, name, &work);
}

rondo__cu_result fake_cuMemcpyHtoDAsync(rondo__cu_address destination, const void *source,
                                        size_t bytes, rondo__cu_stream handle) {
    return submit_copy("cuMemcpyHtoDAsync", (void *)(uintptr_t)destination, source, bytes,
                       RONDO__CU_MEMORY_TYPE_HOST, RONDO__CU_MEMORY_TYPE_DEVICE, handle);
}

rondo__cu_result fake_cuMemcpyDtoHAsync(void *destination, rondo__cu_address source, size_t bytes,
                                        rondo__cu_stream handle) {
    return submit_copy("cuMemcpyDtoHAsync", destination, (const void *)(uintptr_t)source, bytes,
                       RONDO__CU_MEMORY_TYPE_DEVICE, RONDO__CU_MEMORY_TYPE_HOST, handle);
}

rondo__cu_result fake_cuMemcpyDtoDAsync(rondo__cu_address destination, rondo__cu_address source,
                                        size_t bytes, rondo__cu_stream handle) {
    return submit_copy("cuMemcpyDtoDAsync", (void *)(uintptr_t)destination,
                       (const void *)(uintptr_t)source, bytes, RONDO__CU_MEMORY_TYPE_DEVICE,
                       RONDO__CU_MEMORY_TYPE_DEVICE, handle);
}

rondo__cu_result fake_cuMemcpyAsync(rondo__cu_address destination, rondo__cu_address source,
                                    size_t bytes, rondo__cu_stream handle) {
    return submit_copy("cuMemcpyAsync", (void *)(uintptr_t)destination,
                       (const void *)(uintptr_t)source, bytes, RONDO__CU_MEMORY_TYPE_UNIFIED,
                       RONDO__CU_MEMORY_TYPE_UNIFIED, handle);
}

static rondo__cu_result submit_fill(const char *name, rondo__cu_address destination,
                                    unsigned int value, unsigned int element_bytes, size_t count,
                                    rondo__cu_stream handle) {
    ENTER(name);
    NEED_CONTEXT(name);
    GET_STREAM(name);
    fake_check_selected(stream, name);
    fake_check_reach(stream, (const void *)(uintptr_t)destination, name);
    fake_node work = {.type = RONDO__CU_GRAPH_NODE_MEMSET,
                      .destination = (void *)(uintptr_t)destination,
                      .value = value,
                      .element_bytes = element_bytes,
                      .count = count};
    return fake_submit(handle, name, &work);
}

rondo__cu_result fake_cuMemsetD8Async(rondo__cu_address destination, unsigned char value,
                                      size_t count, rondo__cu_stream handle) {
    return submit_fill("cuMemsetD8Async", destination, value, 1, count, handle);
}

rondo__cu_result fake_cuMemsetD16Async(rondo__cu_address destination, unsigned short value,
                                       size_t count, rondo__cu_stream handle) {
    return submit_fill("cuMemsetD16Async", destination, value, 2, count, handle);
}

rondo__cu_result fake_cuMemsetD32Async(rondo__cu_address destination, unsigned int value,
                                       size_t count, rondo__cu_stream handle) {
    return submit_fill("cuMemsetD32Async", destination, value, 4, count, handle);
}

rondo__cu_result fake_cuLaunchHostFunc(rondo__cu_stream handle, rondo__cu_host_function function,
                                       void *user_data) {
    ENTER("cuLaunchHostFunc");
    NEED_CONTEXT("cuLaunchHostFunc");
    fake_node work = {
        .type = RONDO__CU_GRAPH_NODE_HOST, .function = function, .user_data = user_data};
    return fake_submit(handle, "cuLaunchHostFunc", &work);
}

// There are the levels -5 to 0; others become the nearest.
static void cut_priority(rondo__cu_launch_attribute *attribute) {
    if (attribute->id == RONDO__CU_LAUNCH_ATTRIBUTE_PRIORITY) {
        const int32_t level = attribute->value.priority;
        attribute->value.priority = level > 0 ? 0 : level < -5 ? -5 : level;
    }
}

static void take_attributes(fake_node *work, const rondo__cu_launch_attribute *attributes,
                            size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (attributes[i].id == RONDO__CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) {
            work->is_programmatic = attributes[i].value.is_allowed != 0;
        } else if (work->attribute_count < FAKE_ATTRIBUTES_MAX) {
            work->attributes[work->attribute_count++] = attributes[i];
            cut_priority(&work->attributes[work->attribute_count - 1]);
        } else {
            fake_violation("a launch with more attributes than the fake driver keeps");
        }
    }
}

// A node has the priority of the stream that recorded it.
static void take_priority(fake_node *work, rondo__cu_stream handle) {
    const fake_stream *stream =
        (uintptr_t)handle > 2 && fake_is_alive(handle, FAKE_STREAM) ? (void *)handle : NULL;
    bool has_own = false;
    for (size_t i = 0; i < work->attribute_count; i++) {
        has_own = has_own || work->attributes[i].id == RONDO__CU_LAUNCH_ATTRIBUTE_PRIORITY;
    }
    if (stream != NULL && stream->origin != NULL && stream->priority != 0 && !has_own &&
        work->attribute_count < FAKE_ATTRIBUTES_MAX) {
        work->attributes[work->attribute_count++] = (rondo__cu_launch_attribute){
            .id = RONDO__CU_LAUNCH_ATTRIBUTE_PRIORITY, .value = {.priority = stream->priority}};
    }
}

bool fake_take_launch(fake_node *work, rondo__cu_function function, const unsigned int shape[7],
                      void **parameters, void **extra) {
    work->kernel = (const fake_kernel_entry *)(const void *)function;
    memcpy(work->shape, shape, sizeof(work->shape));
    // A kernel with a text that is not compiled has one parameter (RONDO_LAUNCH_ONE_PARAMETER).
    const bool has_one = work->kernel->module != NULL && work->kernel->code.layout == NULL;
    if (parameters != NULL && has_one) {
        work->argument_bytes = work->kernel->code.argument_bytes;
        memcpy(work->arguments, parameters[0],
               work->argument_bytes <= FAKE_ARGUMENTS_MAX ? work->argument_bytes : 0);
        work->has_parameters = true;
    }
    if (!has_one) {
        fake_pack_parameters(work, parameters);
    }
    const void *arguments = NULL;
    for (; extra != NULL && *extra != RONDO__CU_LAUNCH_END; extra += 2) {
        if (extra[0] == RONDO__CU_LAUNCH_BUFFER_POINTER) {
            arguments = extra[1];
        } else if (extra[0] == RONDO__CU_LAUNCH_BUFFER_SIZE) {
            memcpy(&work->argument_bytes, extra[1], sizeof(work->argument_bytes));
        }
    }
    if (!fake_is_launchable(shape, work->kernel) || work->argument_bytes > FAKE_ARGUMENTS_MAX) {
        return false;
    }
    if (arguments != NULL && work->argument_bytes > 0) {
        memcpy(work->arguments, arguments, work->argument_bytes);
    }
    return true;
}

static rondo__cu_result launch_kernel(rondo__cu_function function, const unsigned int shape[7],
                                      const rondo__cu_launch_attribute *attributes,
                                      size_t attribute_count, rondo__cu_stream handle,
                                      void **parameters, void **extra) {
    ENTER("cuLaunchKernel");
    if (!fake_may_launch(handle, "cuLaunchKernel")) {
        return fake_leave(RONDO__CU_ERROR_INVALID_CONTEXT);
    }
    fake_node work = {.type = RONDO__CU_GRAPH_NODE_KERNEL};
    take_attributes(&work, attributes, attribute_count);
    take_priority(&work, handle);
    if (!fake_take_launch(&work, function, shape, parameters, extra)) {
        if ((uintptr_t)handle > 2 && fake_is_alive(handle, FAKE_STREAM) &&
            ((fake_stream *)(void *)handle)->origin != NULL) {
            ((fake_stream *)(void *)handle)->origin->is_broken = true;
        }
        return fake_leave(RONDO__CU_ERROR_INVALID_VALUE);
    }
    if (work.kernel->module != NULL && (uintptr_t)handle > 2 &&
        fake_is_alive(handle, FAKE_STREAM)) {
        fake_check_launch((fake_stream *)(void *)handle, &work);
    }
    return fake_submit(handle, "cuLaunchKernel", &work);
}

rondo__cu_result fake_cuLaunchKernel(rondo__cu_function function, unsigned int grid_x,
                                     unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
                                     unsigned int block_y, unsigned int block_z,
                                     unsigned int shared_bytes, rondo__cu_stream handle,
                                     void **parameters, void **extra) {
    const unsigned int shape[7] = {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes};
    return launch_kernel(function, shape, NULL, 0, handle, parameters, extra);
}

rondo__cu_result fake_cuLaunchKernelEx(const rondo__cu_launch_config *config,
                                       rondo__cu_function function, void **parameters,
                                       void **extra) {
    if (config->attribute_count == 0) {
        fake_violation("cuLaunchKernelEx without attributes");
    }
    const unsigned int shape[7] = {config->grid[0],     config->grid[1],  config->grid[2],
                                   config->block[0],    config->block[1], config->block[2],
                                   config->shared_bytes};
    return launch_kernel(function, shape, config->attributes, config->attribute_count,
                         config->stream, parameters, extra);
}
