// backend/cuda/graph/cuda_body.c — bodies of conditional nodes: captures into graphs that the
// driver owns.
//
// The driver (580, CUDA 13.0) cannot undo such a capture. When a body's capture is broken, or ends
// with a stream that was not joined, the driver destroys the body's graph although its node owns
// it, and destroys it again with the parent: the process dies. So a body must never be broken in
// the driver's eyes:
//
//   unsafe calls              the capture of a body is relaxed; they break the captures around it,
//                             which is fine once their bodies have ended
//   what Rondo refuses        is refused before the driver hears of it (capture/forbid.h)
//   streams not joined        are joined by Rondo before the end; the cause is noted, too
//   the order of the ends     bodies first, then what is around them
//
// One case remains: the driver itself breaks a body, by a driver call of the program on the native
// stream, by a launch that it refuses, or with the whole device. Such a body is in limbo: it is
// ended after the outermost capture, whose graph then lacks a part and is never destroyed. That
// leaks the graph and harms nothing else. Where the outermost capture broke in the driver's eyes as
// well, or broken bodies lie in one another, there is no safe end at all: the body's stream stays
// as it is, with those that joined it, and the context is kept at the end.
// SPDX-License-Identifier: Apache-2.0

#include <stdlib.h>
#include <string.h>

#include "backend/cause.h"
#include "backend/cuda/graph/cuda_body.h"
#include "backend/cuda/graph/cuda_frontier.h"
#include "base/error.h"
#include "base/log/logging.h"
#include "base/memory.h"

// ---- recording --------------------------------------------------------------------------------

rondo_status rondo__cuda_begin_body_capture(rondo_stream *stream_, rondo__cu_graph graph,
                                            uint64_t parent) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream_->device);
    rondo__cuda_stream *stream = (rondo__cuda_stream *)stream_;
    rondo__cuda_capture *capture = rondo__calloc(1, sizeof(*capture));
    if (capture == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    capture->mode = RONDO__CU_CAPTURE_MODE_RELAXED;
    rondo__cu_result code = device->api->cuStreamBeginCaptureToGraph(
        rondo__cuda_native_stream(stream_), graph, NULL, NULL, 0, capture->mode);
    if (code != RONDO__CU_SUCCESS) {
        rondo__free(capture);
        return RONDO__CUDA_FAIL(device, code, "cuStreamBeginCaptureToGraph",
                                "cannot record the body of a conditional node");
    }
    pthread_mutex_lock(&device->capture_lock);
    const rondo__cuda_capture *around = rondo__cuda_find_capture(device, parent);
    capture->root = around != NULL ? around->root : 0;
    capture->depth = around != NULL ? around->depth + 1 : 1;
    pthread_mutex_unlock(&device->capture_lock);
    stream->capture = rondo__cuda_add_capture(device, capture);
    stream->capture_mode = capture->mode;
    stream->is_origin = true;
    stream->is_body = true;
    stream->is_scratch = true;
    return RONDO_STATUS_OK;
}

// ---- joining what was not joined --------------------------------------------------------------

static int compare_handles(const void *a, const void *b) {
    uintptr_t left = (uintptr_t) * (rondo__cu_graph_node const *)a;
    uintptr_t right = (uintptr_t) * (rondo__cu_graph_node const *)b;
    return left < right ? -1 : left > right;
}

static bool holds(const rondo__cu_graph_node *sorted, size_t count, rondo__cu_graph_node node) {
    return bsearch(&node, sorted, count, sizeof(node), compare_handles) != NULL;
}

// The nodes of a graph, those that others depend on (sorted), and a frontier (sorted).
typedef struct body_nodes {
    rondo__cu_graph_node *nodes;
    size_t count;
    rondo__cu_graph_node *from;
    rondo__cu_graph_node *to;
    rondo__cu_edge_data *data;
    size_t edge_count;
    rondo__cu_graph_node *frontier;
    size_t frontier_count;
} body_nodes;

static void deinit_nodes(body_nodes *all) {
    rondo__free(all->nodes);
    rondo__free(all->from);
    rondo__free(all->to);
    rondo__free(all->data);
    rondo__free(all->frontier);
}

static rondo_status fetch_all(rondo_stream *stream, rondo__cu_graph graph, body_nodes *all) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    const rondo__cuda_api *api = device->api;
    bool is_typed = (api->capabilities & RONDO__CUDA_CAN_LIST_TYPED_EDGES) != 0;
    rondo__cu_result code = api->cuGraphGetNodes(graph, NULL, &all->count);
    if (code == RONDO__CU_SUCCESS) {
        code = is_typed ? api->cuGraphGetEdges_v2(graph, NULL, NULL, NULL, &all->edge_count)
                        : api->cuGraphGetEdges(graph, NULL, NULL, &all->edge_count);
    }
    if (code != RONDO__CU_SUCCESS) {
        return RONDO__CUDA_FAIL(device, code, "cuGraphGetNodes", "cannot list the nodes of a body");
    }
    RETURN_IF_ERROR(rondo__cuda_get_frontier(stream, NULL, 0, &all->frontier_count));
    all->nodes = rondo__calloc(all->count, sizeof(*all->nodes));
    all->from = rondo__calloc(all->edge_count, sizeof(*all->from));
    all->to = rondo__calloc(all->edge_count, sizeof(*all->to));
    all->data = rondo__calloc(all->edge_count, sizeof(*all->data));
    all->frontier = rondo__calloc(all->frontier_count, sizeof(*all->frontier));
    if (all->nodes == NULL || all->from == NULL || all->to == NULL || all->data == NULL ||
        all->frontier == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    if (all->count > 0) {
        code = api->cuGraphGetNodes(graph, all->nodes, &all->count);
    }
    if (code == RONDO__CU_SUCCESS && all->edge_count > 0) {
        code = is_typed
                   ? api->cuGraphGetEdges_v2(graph, all->from, all->to, all->data, &all->edge_count)
                   : api->cuGraphGetEdges(graph, all->from, all->to, &all->edge_count);
    }
    if (code != RONDO__CU_SUCCESS) {
        return RONDO__CUDA_FAIL(device, code, "cuGraphGetNodes", "cannot list the nodes of a body");
    }
    // A handle of a node is its CUgraphNode, see cuda_frontier.c.
    RETURN_IF_ERROR(rondo__cuda_get_frontier(stream, (rondo__node_handle *)(void *)all->frontier,
                                             all->frontier_count, &all->frontier_count));
    qsort(all->from, all->edge_count, sizeof(*all->from), compare_handles);
    qsort(all->frontier, all->frontier_count, sizeof(*all->frontier), compare_handles);
    return RONDO_STATUS_OK;
}

static rondo_status fail_unjoined(rondo__cuda_device *device, uint64_t serial) {
    char members[96] = "";
    uint32_t first = 0;
    bool is_body = true;
    pthread_mutex_lock(&device->capture_lock);
    const rondo__cuda_capture *capture = rondo__cuda_find_capture(device, serial);
    if (capture != NULL) {
        first = rondo__cuda_list_members(capture, members, sizeof(members));
        is_body = capture->depth > 0;
    }
    pthread_mutex_unlock(&device->capture_lock);
    (void)RONDO_FAIL_DRIVER(RONDO_STATUS_STATE, RONDO__CU_ERROR_STREAM_CAPTURE_UNJOINED,
                            "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "cuStreamEndCapture",
                            "%s forked inside the %s and was not joined; record an event on it "
                            "and let the %s stream wait for that",
                            members[0] != '\0' ? members : "a stream", is_body ? "body" : "capture",
                            is_body ? "body's" : "first");
    rondo__cause_set_unjoined(first);
    return RONDO_STATUS_STATE;
}

// Every node that nothing depends on must be in the frontier. Where one is not, a stream was not
// joined: noted as the cause, and joined all the same. *out_is_whole: the body can be ended.
static rondo_status join_all(rondo_stream *stream, rondo__cu_graph graph, bool *out_is_whole) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    uint64_t serial = ((rondo__cuda_stream *)stream)->capture;
    body_nodes all = {0};
    *out_is_whole = false;
    rondo_status status = fetch_all(stream, graph, &all);
    if (status != RONDO_STATUS_OK) {
        goto deinit;
    }
    size_t missing = 0;
    for (size_t i = 0; i < all.count; i++) {
        if (!holds(all.from, all.edge_count, all.nodes[i]) &&
            !holds(all.frontier, all.frontier_count, all.nodes[i])) {
            all.nodes[missing++] = all.nodes[i];
        }
    }
    rondo__cu_result code = RONDO__CU_SUCCESS;
    if (missing > 0) {
        status = fail_unjoined(device, serial);
        code = device->api->cuStreamUpdateCaptureDependencies(rondo__cuda_native_stream(stream),
                                                              all.nodes, missing,
                                                              RONDO__CU_CAPTURE_ADD_DEPENDENCIES);
        if (code != RONDO__CU_SUCCESS) {
            rondo_error saved;
            rondo__error_save(&saved);
            (void)RONDO__CUDA_FAIL(device, code, "cuStreamUpdateCaptureDependencies",
                                   "cannot join a stream to its capture");
            rondo__error_restore(&saved);
        }
    }
    *out_is_whole = code == RONDO__CU_SUCCESS;

deinit:
    deinit_nodes(&all);
    return status;
}

// ---- ending -----------------------------------------------------------------------------------

// Sees to it that the driver finds nothing wrong with the end of the body.
static rondo_status make_whole(rondo_stream *stream, bool *out_is_whole) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    int state = RONDO__CU_CAPTURE_STATUS_NONE;
    uint64_t id = 0;
    rondo__cu_graph graph = NULL;
    *out_is_whole = false;
    rondo__cu_result code = device->api->cuStreamGetCaptureInfo(rondo__cuda_native_stream(stream),
                                                                &state, &id, &graph, NULL, NULL);
    if (code == RONDO__CU_SUCCESS && state == RONDO__CU_CAPTURE_STATUS_ACTIVE) {
        return join_all(stream, graph, out_is_whole);
    }
    return RONDO__CUDA_FAIL(
        device, code != RONDO__CU_SUCCESS ? code : RONDO__CU_ERROR_STREAM_CAPTURE_INVALIDATED,
        "cuStreamEndCapture", "the body of a conditional node is broken");
}

// The driver (580) overlooks a fork that ends in a recorded graph or a conditional node.
rondo_status rondo__cuda_check_joined(rondo_stream *stream) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    int state = RONDO__CU_CAPTURE_STATUS_NONE;
    uint64_t id = 0;
    rondo__cu_graph graph = NULL;
    bool is_whole;
    bool was_pushed = false;
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    rondo_status status = RONDO_STATUS_OK;
    rondo__cu_result code = device->api->cuStreamGetCaptureInfo(rondo__cuda_native_stream(stream),
                                                                &state, &id, &graph, NULL, NULL);
    // The end reports a broken body.
    if (code != RONDO__CU_SUCCESS) {
        status = RONDO__CUDA_FAIL(device, code, "cuStreamGetCaptureInfo",
                                  "cannot ask whether all forked streams were joined");
    } else if (state == RONDO__CU_CAPTURE_STATUS_ACTIVE) {
        status = join_all(stream, graph, &is_whole);
    }
    rondo__cuda_leave(device, was_pushed);
    return status;
}

// The body is never ended: what it holds, and the streams that record into it, stay as they are.
static void lose_body(rondo__cuda_device *device, rondo__cuda_capture *body) {
    pthread_mutex_lock(&device->capture_lock);
    body->next = device->lost_bodies;
    device->lost_bodies = body;
    pthread_mutex_unlock(&device->capture_lock);
}

// Puts the body into limbo, its native stream with it. This thread's latest record says why:
// STATE, an earlier call broke it; otherwise that one stays.
static rondo_status give_up_body(rondo_stream *stream_, rondo_status status) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream_->device);
    rondo__cuda_stream *stream = (rondo__cuda_stream *)stream_;
    rondo__cuda_capture *capture = rondo__cuda_take_capture(device, stream->capture);
    capture->native = rondo__cuda_native_stream(stream_);
    stream->capture = 0;
    stream->is_origin = false;
    stream->is_body = false;
    stream_->is_wrapped = true;  // the native stream is no longer this one's
    if (status == RONDO_STATUS_STATE) {
        status = rondo__cuda_fail_end(device, RONDO__CU_ERROR_STREAM_CAPTURE_INVALIDATED, capture);
    }
    pthread_mutex_lock(&device->capture_lock);
    rondo__cuda_capture *root = rondo__cuda_find_capture(device, capture->root);
    if (root != NULL) {
        capture->next = root->limbo;
        root->limbo = capture;
    }
    pthread_mutex_unlock(&device->capture_lock);
    if (root == NULL) {
        // Inside a capture that the program began by itself, whose end Rondo does not see.
        lose_body(device, capture);
    }
    return status;
}

rondo_status rondo__cuda_end_body_capture(rondo_stream *stream) {
    rondo__cuda_device *device = rondo__cuda_device_of(stream->device);
    rondo__cu_graph graph = NULL;
    rondo__cuda_capture *capture = NULL;
    bool was_pushed = false;
    bool is_whole = false;
    rondo__cuda_enter_cleanup(device, &was_pushed);
    rondo_status status = make_whole(stream, &is_whole);
    if (!is_whole) {
        status = give_up_body(stream, status);
        rondo__cuda_leave(device, was_pushed);
        return status;
    }
    rondo__cu_result code = rondo__cuda_end_native(stream, &graph, &capture);
    if (code != RONDO__CU_SUCCESS) {
        status = rondo__cuda_fail_end(device, code, capture);
    }
    if (capture != NULL) {
        rondo__cuda_free_notes(capture->notes);
        rondo__free(capture);
    }
    rondo__cuda_leave(device, was_pushed);
    return status;
}

// True when the driver left the graph around alone.
static bool end_late(rondo__cuda_device *device, rondo__cuda_capture *body) {
    const rondo__cuda_api *api = device->api;
    rondo__cuda_stream stream = {.head = {.device = &device->head, .native = body->native}};
    bool is_whole = false;
    rondo__cu_graph graph = NULL;
    rondo_status status = make_whole(&stream.head, &is_whole);
    (void)status;  // the cause is known
    pthread_mutex_lock(&device->capture_lock);
    is_whole = api->cuStreamEndCapture(body->native, &graph) == RONDO__CU_SUCCESS && is_whole;
    pthread_mutex_unlock(&device->capture_lock);
    int mode = rondo__cuda_relax(device);
    rondo__cuda_log_failure(device, api->cuStreamDestroy(body->native), "cuStreamDestroy");
    rondo__cuda_restore(device, mode);
    return is_whole;
}

bool rondo__cuda_end_limbo(rondo__cuda_device *device, rondo__cuda_capture *capture,
                           bool has_graph) {
    rondo_error saved;
    rondo__error_save(&saved);
    uint32_t depth = 0;
    for (const rondo__cuda_capture *body = capture->limbo; body != NULL; body = body->next) {
        depth = body->depth > depth ? body->depth : depth;
    }
    bool is_whole = true;
    while (capture->limbo != NULL) {
        rondo__cuda_capture *body = capture->limbo;
        capture->limbo = body->next;
        if (has_graph && body->depth == depth) {
            is_whole = end_late(device, body) && is_whole;
            rondo__free(body);
        } else {
            lose_body(device, body);
            is_whole = false;
        }
    }
    if (!is_whole) {
        RONDO_LOG_WARN_F(
            "%s: the driver broke the body of a conditional node, and cannot free its graph; that "
            "memory is lost until the end of the process",
            device->head.name);
    }
    rondo__error_restore(&saved);
    return is_whole;
}
