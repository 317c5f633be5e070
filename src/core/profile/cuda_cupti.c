// profile/cuda_cupti.c — the source that knows each kernel, copy and fill of CUDA devices, also
// inside replayed graphs: CUPTI's activity.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include "backend/open_devices.h"
#include "base/error.h"
#include "base/log/logging.h"
#include "graph/graph_object.h"
#include "profile/cupti_session.h"
#include "profile/graph_names.h"
#include "profile/profile_source.h"

// Used by the thread that starts and stops.
static char g_reason[200];
static uint32_t g_version;

static void find_cuda(rondo_device *device, void *data) {
    if (device->backend == &rondo__backend_cuda) {
        *(bool *)data = true;
    }
}

static rondo_status start_session(void) {
    const rondo__cupti_api *api = NULL;
    bool has_device = false;
    rondo__device_visit_others(NULL, find_cuda, &has_device);
    if (!has_device) {
        return RONDO_FAIL_AS("rondo_profile_start", UNAVAILABLE,
                             "no CUDA device is open; open it before the profile starts");
    }
    RETURN_IF_ERROR(rondo__cupti_get_api(&api));
    g_version = api->version;
    return rondo__cupti_session_start(api);
}

static rondo_status start(void) {
    const rondo_status status = start_session();
    (void)snprintf(g_reason, sizeof g_reason, "%.190s",
                   status != RONDO_STATUS_OK ? rondo_error_get_last()->message : "");
    return status;
}

const char *rondo__profile_cupti_get_reason(void) {
    return g_reason;
}

// CUPTI's number of the graph's executable; 0: there is none yet.
static uint32_t find_number(const rondo_graph *graph) {
    const rondo__cupti_api *api = NULL;
    uint32_t number = 0;
    if (graph->executable == NULL || rondo__cupti_get_api(&api) != RONDO_STATUS_OK ||
        api->cuptiGetGraphExecId == NULL ||
        api->cuptiGetGraphExecId(graph->device->backend->get_native_executable(graph->executable),
                                 &number) != RONDO__CUPTI_SUCCESS) {
        return 0;
    }
    return number;
}

static void begin_span(uint64_t span, const rondo__hook_span *what) {
    const rondo_graph *graph = what->graph;
    if (graph != NULL && graph->device->backend == &rondo__backend_cuda) {
        rondo__graph_names_note(span, graph, find_number(graph));
    }
    rondo__cupti_session_push(span);
}

// CUPTI tells of work that has ended. A device that records cannot be waited for; what it still
// does is missed.
static void wait_for_device(rondo_device *device, void *data) {
    (void)data;
    if (device->backend == &rondo__backend_cuda && !atomic_load(&device->is_lost)) {
        (void)device->backend->synchronize_device(device);
    }
}

static void post(void *user_data, const rondo__cupti_work *work) {
    (void)user_data;
    // A device without room for times leaves them 0. A body that is not taken takes none.
    if (work->begin_ns == work->end_ns) {
        const bool is_inside =
            work->graph_node != 0 && rondo__graph_names_is_inside(work->span, work->graph_node);
        if (is_inside) {
            return;
        }
        if (work->begin_ns == 0) {
            rondo__cupti_session_drop();
            return;
        }
    }
    const rondo__hook_work told = {
        .kind = work->kind,
        .way = work->way,
        .name = work->name,
        .label = work->graph_node != 0 ? rondo__graph_names_find(work->span, work->graph_node) : "",
        .span = work->span,
        .device = work->device,
        .stream = work->stream,
        .bytes = work->bytes,
        .begin_ns = work->begin_ns,
        .end_ns = work->end_ns,
    };
    if (work->graph_node != 0 && told.label[0] == '\0') {
        RONDO_LOG_DEBUG_F("profile: node %u of executable %u has no label: %s",
                          (unsigned)work->graph_node, (unsigned)(work->graph_node >> 32),
                          work->name);
    }
    rondo__hook_post_work(&told);
}

static void flush(void) {
    rondo_error saved;
    rondo__error_save(&saved);
    rondo__device_visit_others(NULL, wait_for_device, NULL);
    rondo__error_restore(&saved);
    rondo__cupti_session_flush();
    rondo__cupti_session_visit(post, NULL);
}

static void stop(void) {
    rondo__cupti_session_stop();
    rondo__graph_names_clear();
}

// 18 came with CUDA 12.0; since 13.0 the number says it.
static void describe(char *text, size_t bytes) {
    if (g_version >= 100000) {
        (void)snprintf(text, bytes, "CUPTI %u.%u: each kernel and copy, also inside replays",
                       g_version / 10000, g_version / 100 % 100);
    } else {
        (void)snprintf(text, bytes, "CUPTI, version %u: each kernel and copy, also inside replays",
                       g_version);
    }
}

const rondo__profile_source rondo__profile_source_cupti = {
    .kind = RONDO_PROFILE_SOURCE_CUPTI,
    .name = "CUPTI",
    .start = start,
    .flush = flush,
    .stop = stop,
    .describe = describe,
    .count_dropped = rondo__cupti_session_count_dropped,
    .span_begin = begin_span,
    .span_end = rondo__cupti_session_pop,
};
