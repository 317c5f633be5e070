// backend/host/host_backend.c — the table of the host, whose streams are worker threads.
// SPDX-License-Identifier: Apache-2.0
#include "backend/host/host_child.h"
#include "backend/host/host_conditional.h"
#include "backend/host/host_device.h"
#include "backend/host/host_event.h"
#include "backend/host/host_event_work.h"
#include "backend/host/host_executable.h"
#include "backend/host/host_heap.h"
#include "backend/host/host_patch.h"
#include "backend/host/host_recorded.h"
#include "backend/host/host_work.h"

const rondo__backend rondo__backend_host = {
    .name = "host",
    .count_devices = rondo__host_count_devices,
    .describe_device = rondo__host_describe_device,
    .open_device = rondo__host_open_device,
    .close_device = rondo__host_close_device,
    .synchronize_device = rondo__host_synchronize_device,
    .allocate = rondo__host_allocate,
    .deallocate = rondo__host_deallocate,
    .create_stream = rondo__host_create_stream,
    .wrap_stream = NULL,
    .destroy_stream = rondo__host_destroy_stream,
    .synchronize_stream = rondo__host_synchronize_stream,
    .drain_stream = rondo__host_drain_stream,
    .query_stream = rondo__host_query_stream,
    .wait_event = rondo__host_wait_event,
    .create_event = rondo__host_create_event,
    .destroy_event = rondo__host_destroy_event,
    .record_event = rondo__host_record_event,
    .record_from_outside = rondo__host_record_from_outside,
    .query_event = rondo__host_query_event,
    .synchronize_event = rondo__host_synchronize_event,
    .get_elapsed_ns = rondo__host_get_elapsed_ns,
    .copy = rondo__host_copy,
    .fill = rondo__host_fill,
    .call_host = rondo__host_call,
    .launch = rondo__host_launch,
    .begin_capture = rondo__host_begin_capture,
    .get_capture_state = rondo__host_get_capture_state,
    .get_capture_id = rondo__host_get_capture_id,
    .get_frontier = rondo__host_get_frontier,
    .get_position = rondo__host_get_position,
    .get_predecessors = rondo__host_get_predecessors,
    .add_dependencies = rondo__host_add_dependencies,
    .set_frontier = rondo__host_set_frontier,
    .count_recorded = rondo__host_count_recorded,
    .describe_recorded = rondo__host_describe_recorded,
    .end_capture = rondo__host_end_capture,
    .check_feature = rondo__host_check_feature,
    .add_conditional = rondo__host_add_conditional,
    .begin_body = rondo__host_begin_body,
    .end_body = rondo__host_end_body,
    .release_conditional = rondo__host_release_conditional,
    .destroy_template = rondo__host_destroy_template,
    .count_nodes = rondo__host_count_nodes,
    .count_kinds = rondo__host_count_kinds,
    .describe_node = rondo__host_describe_node,
    .list_handles = rondo__host_list_handles,
    .list_edges = rondo__host_list_edges,
    .visit_arguments = rondo__host_visit_arguments,
    .get_child = rondo__host_get_child,
    .add_child = rondo__host_add_child,
    .get_body = rondo__host_get_body,
    .instantiate = rondo__host_instantiate,
    .update = rondo__host_update,
    .read_node = rondo__host_read_node,
    .patch_node = rondo__host_patch_node,
    .enable_node = rondo__host_enable_node,
    .upload = rondo__host_upload,
    .replay = rondo__host_replay,
    .count_executed = rondo__host_count_executed,
    .destroy_executable = rondo__host_destroy_executable,
    .get_native_template = NULL,
    .get_native_executable = NULL,
    .get_function = NULL,
};
