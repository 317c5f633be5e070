// backend/host/host_conditional.c — recording conditional nodes and their bodies.
//
// In a template a conditional node owns a template for each body. A body is recorded by a capture
// of its own, whose template moves into the node when it ends. That capture is relaxed: calls that
// the outer capture forbids break the outer one only.
// SPDX-License-Identifier: Apache-2.0
#include "backend/host/host_conditional.h"

#include "backend/host/host_capture.h"
#include "backend/host/host_device.h"
#include "base/error.h"
#include "base/memory.h"

// The node while it is recorded.
typedef struct open_conditional {
    rondo__conditional head;
    rondo__host_capture *parent;     // a reference is held
    rondo__host_branches *branches;  // lives while parent->recorded does
} open_conditional;

static rondo__host_branches *create_branches(rondo_scope_kind kind, const void *predicate,
                                             uint32_t count) {
    rondo__host_branches *branches =
        rondo__calloc(1, sizeof *branches + count * sizeof branches->bodies[0]);
    if (branches != NULL) {
        branches->kind = kind;
        branches->predicate = predicate;
        branches->count = count;
    }
    return branches;
}

// ---- recording --------------------------------------------------------------------------------

rondo_status rondo__host_check_feature(rondo_device *device, rondo_feature feature) {
    (void)device;
    (void)feature;
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_add_conditional(rondo_stream *parent_, rondo_scope_kind kind,
                                         const void *predicate, uint32_t branch_count,
                                         rondo__conditional **out_conditional) {
    rondo__host_stream *parent = (rondo__host_stream *)parent_;
    rondo__host_device *device = rondo__host_device_of(parent_->device);
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    open_conditional *open = rondo__calloc(1, sizeof *open);
    rondo__host_branches *branches = create_branches(kind, predicate, branch_count);
    if (open == NULL || branches == NULL) {
        goto free_both;
    }
    rondo__host_node node = {.kind = RONDO__NODE_CONDITIONAL, .name = "", .branches = branches};
    bool was_recorded = false;
    status = rondo__host_record_node(parent, &node, &was_recorded);
    if (status == RONDO_STATUS_OK && !was_recorded) {
        status = RONDO_FAIL_AS("rondo_scope_begin", STATE, "stream %u does not record",
                               (unsigned)parent_->number);
    }
    if (status != RONDO_STATUS_OK) {
        goto free_both;
    }
    open->head = (rondo__conditional){.device = parent_->device,
                                      .kind = kind,
                                      .predicate = predicate,
                                      .branch_count = branch_count};
    open->branches = branches;
    pthread_mutex_lock(&device->capture_lock);
    open->parent = atomic_load(&parent->capture);
    ++open->parent->reference_count;
    open->head.last_node = parent->frontier[0];
    pthread_mutex_unlock(&device->capture_lock);
    *out_conditional = &open->head;
    return RONDO_STATUS_OK;

free_both:
    rondo__free(branches);
    rondo__free(open);
    return status;
}

rondo_status rondo__host_begin_body(rondo__conditional *conditional, uint32_t branch,
                                    rondo_stream *body, rondo__node_handle *out_node,
                                    uint32_t *out_index) {
    rondo__host_device *device = rondo__host_device_of(conditional->device);
    RETURN_IF_ERROR(rondo__host_begin_capture(body, RONDO_CAPTURE_RELAXED, NULL));
    pthread_mutex_lock(&device->capture_lock);
    atomic_load(&((rondo__host_stream *)body)->capture)->is_body = true;
    pthread_mutex_unlock(&device->capture_lock);
    *out_node = conditional->last_node;
    *out_index = branch;
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_end_body(rondo__conditional *conditional, uint32_t branch,
                                  rondo_stream *body) {
    open_conditional *open = (open_conditional *)conditional;
    rondo__host_device *device = rondo__host_device_of(conditional->device);
    rondo__template *recorded = NULL;
    RETURN_IF_ERROR(rondo__host_end_capture(body, &recorded));
    pthread_mutex_lock(&device->capture_lock);
    bool is_wanted = open->parent->recorded != NULL;
    if (is_wanted) {
        open->branches->bodies[branch] = (rondo__host_template *)recorded;
    }
    pthread_mutex_unlock(&device->capture_lock);
    if (!is_wanted) {
        rondo__host_destroy_template(recorded);
    }
    return RONDO_STATUS_OK;
}

void rondo__host_release_conditional(rondo__conditional *conditional) {
    open_conditional *open = (open_conditional *)conditional;
    rondo__host_device *device = rondo__host_device_of(conditional->device);
    pthread_mutex_lock(&device->capture_lock);
    rondo__host_capture_unreference(open->parent);
    pthread_mutex_unlock(&device->capture_lock);
    rondo__free(open);
}
