// graph/conditional.c — scopes: conditional nodes with bodies, recorded piece by piece.
//
//   begin   participants put nodes before the node; the backend records it, with empty bodies
//   enter   a stream of our own records the body, as a capture of its own
//   leave   participants put nodes at the body's end; the body ends
//   end     the parent stream goes on behind the node
//
// From begin to end the parent stream's frontier is the node and nothing else. Where it is not,
// work was put there instead of on a body's stream; that would run whatever the predicate says, so
// the capture is broken.
// SPDX-License-Identifier: Apache-2.0
#include "graph/conditional.h"

#include "backend/cause.h"
#include "backend/check.h"
#include "base/memory.h"
#include "capture/addresses.h"
#include "capture/label_stack.h"
#include "device/scope_list.h"

enum { BRANCH_COUNT_MAX = 1024 };

static void break_parent(const rondo__scope *scope) {
    rondo__scope_break_at(scope->capture, scope->parent);
}

// OK while the parent stream stands right behind the node.
static rondo_status check_parent(const rondo__scope *scope, const char *call) {
    const rondo__backend *backend = scope->device->backend;
    unsigned number = scope->parent->number;
    rondo__capture_state state = RONDO__CAPTURE_NONE;
    RETURN_IF_ERROR(rondo__capture_get_state(scope->parent, &state));
    if (state == RONDO__CAPTURE_BROKEN) {
        return rondo__cause_fail_broken(scope->parent, call);
    }
    if (state == RONDO__CAPTURE_NONE) {
        return RONDO_FAIL_AS(
            call, STATE, "stream %u no longer records: its capture ended before the scope", number);
    }
    rondo__node_handle node = 0;
    size_t count = 0;
    RETURN_IF_ERROR(backend->get_frontier(scope->parent, &node, 1, &count));
    if (count == 1 && node == scope->conditional->last_node) {
        return RONDO_STATUS_OK;
    }
    rondo_status status = RONDO_FAIL_AS(
        call, STATE,
        "stream %u was used while its %s scope was open; put the work of a body on the stream from "
        "rondo_scope_enter, and other work before or after the scope",
        number, rondo__scope_kind_names[scope->conditional->kind]);
    break_parent(scope);
    return status;
}

// ---- begin ------------------------------------------------------------------------------------

rondo_status rondo__scope_check_predicate(const void *predicate, const char *call) {
    RETURN_IF_ERROR(rondo__check_pointer(predicate, call, "predicate"));
    return (uintptr_t)predicate % sizeof(uint32_t) == 0
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS(call, INVALID, "the predicate is not aligned to its 4 bytes");
}

rondo_status rondo__scope_check_switch(uint32_t branch_count, const char *call) {
    return branch_count > 0 && branch_count <= BRANCH_COUNT_MAX
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS(call, INVALID, "a switch has 1 to %d branches, not %u",
                               (int)BRANCH_COUNT_MAX, (unsigned)branch_count);
}

static rondo_status check_begin(rondo_stream *stream, rondo_scope_kind kind, const void *predicate,
                                uint32_t *in_out_branch_count, const rondo_scope *out_scope) {
    static const char call[] = "rondo_scope_begin";
    static const uint32_t counts[] = {[RONDO_SCOPE_IF] = 1,
                                      [RONDO_SCOPE_IF_ELSE] = 2,
                                      [RONDO_SCOPE_SWITCH] = BRANCH_COUNT_MAX,
                                      [RONDO_SCOPE_WHILE] = 1};
    uint32_t count = *in_out_branch_count;
    RETURN_IF_ERROR(rondo__check_stream(stream, call));
    RETURN_IF_ERROR(rondo__check_pointer(out_scope, call, "out_scope"));
    if ((unsigned)kind > RONDO_SCOPE_WHILE) {
        return RONDO_FAIL_AS(call, INVALID, "%d is not a kind of scope", (int)kind);
    }
    RETURN_IF_ERROR(rondo__scope_check_predicate(predicate, call));
    if (kind == RONDO_SCOPE_SWITCH) {
        RETURN_IF_ERROR(rondo__scope_check_switch(count, call));
    } else if (count != 0) {
        return RONDO_FAIL_AS(call, INVALID,
                             "branch_count is a switch's; of the kind \"%s\" it is 0, not %u",
                             rondo__scope_kind_names[kind], (unsigned)count);
    }
    rondo__capture_state state = RONDO__CAPTURE_NONE;
    RETURN_IF_ERROR(rondo__capture_get_state(stream, &state));
    if (state == RONDO__CAPTURE_BROKEN) {
        return rondo__cause_fail_broken(stream, call);
    }
    if (state == RONDO__CAPTURE_NONE) {
        return RONDO_FAIL_AS(call, STATE,
                             "stream %u does not record; scopes are for captures, the functions "
                             "of rondo/control.h work outside, too",
                             (unsigned)stream->number);
    }
    if (rondo__scope_find(stream->device, 0, NULL, stream) != NULL) {
        return RONDO_FAIL_AS(call, STATE,
                             "stream %u has an open scope; nest on the stream of its body, or "
                             "end it first",
                             (unsigned)stream->number);
    }
    *in_out_branch_count = kind == RONDO_SCOPE_SWITCH ? count : counts[kind];
    return RONDO_STATUS_OK;
}

rondo_status rondo_scope_begin(rondo_stream *stream, rondo_scope_kind kind, const void *predicate,
                               uint32_t branch_count, rondo_scope *out_scope) {
    static const rondo_feature features[] = {
        [RONDO_SCOPE_IF] = RONDO_FEATURE_IF,
        [RONDO_SCOPE_IF_ELSE] = RONDO_FEATURE_IF_ELSE,
        [RONDO_SCOPE_SWITCH] = RONDO_FEATURE_SWITCH,
        [RONDO_SCOPE_WHILE] = RONDO_FEATURE_WHILE,
    };
    if (out_scope != NULL) {
        *out_scope = (rondo_scope){0};
    }
    rondo_status checked = check_begin(stream, kind, predicate, &branch_count, out_scope);
    if (checked != RONDO_STATUS_OK) {
        return rondo__mark_missing(stream, "", checked);
    }
    rondo_device *device = stream->device;
    const rondo__backend *backend = device->backend;
    checked = backend->check_feature(device, features[kind]);
    if (checked == RONDO_STATUS_UNSUPPORTED) {
        return checked;  // breaks nothing: the program may have another way
    }
    if (checked != RONDO_STATUS_OK) {
        return rondo__mark_missing(stream, rondo__scope_kind_names[kind], checked);
    }
    rondo__capture *capture = NULL;
    rondo__scope *scope = rondo__calloc(1, sizeof *scope + branch_count * sizeof(bool));
    rondo_status status =
        scope != NULL ? rondo__capture_find(stream, &capture, NULL) : RONDO_STATUS_NO_MEMORY;
    const char *label_path = rondo_label_get_path(stream);
    if (status == RONDO_STATUS_OK && label_path[0] != '\0') {
        scope->label_path = rondo__strdup(label_path);
        status = scope->label_path != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
    }
    if (status == RONDO_STATUS_OK && capture != NULL) {
        status = rondo__capture_enter_scope(capture, stream);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__addresses_note(stream, predicate, "a predicate");
    }
    if (status == RONDO_STATUS_OK) {
        status =
            backend->add_conditional(stream, kind, predicate, branch_count, &scope->conditional);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__scope_break_at(capture, stream);  // what belongs to the node may be there already
        if (scope != NULL) {
            rondo__free(scope->label_path);
        }
        rondo__free(scope);
        return status;
    }
    scope->device = device;
    scope->capture = capture;
    scope->parent = stream;
    rondo__scope_list(scope);
    (void)rondo__mark_work(stream, rondo__scope_kind_names[kind], RONDO_STATUS_OK);
    *out_scope = (rondo_scope){.device = device, .id = scope->id};
    return RONDO_STATUS_OK;
}

// ---- bodies -----------------------------------------------------------------------------------

static rondo_status check_enter(const rondo__scope *scope, uint32_t branch,
                                rondo_stream *const *out_body) {
    static const char call[] = "rondo_scope_enter";
    RETURN_IF_ERROR(rondo__check_pointer(out_body, call, "out_body"));
    const rondo__conditional *conditional = scope->conditional;
    const char *kind = rondo__scope_kind_names[conditional->kind];
    if (scope->is_body_open) {
        return RONDO_FAIL_AS(call, STATE, "body %u of the %s is open; leave it first",
                             (unsigned)scope->open_branch, kind);
    }
    if (branch >= conditional->branch_count) {
        return RONDO_FAIL_AS(call, INVALID, "there is no branch %u, the %s has %u",
                             (unsigned)branch, kind, (unsigned)conditional->branch_count);
    }
    if (scope->was_entered[branch]) {
        return RONDO_FAIL_AS(call, STATE, "body %u of the %s was recorded already",
                             (unsigned)branch, kind);
    }
    return check_parent(scope, call);
}

rondo_status rondo_scope_enter(rondo_scope handle, uint32_t branch, rondo_stream **out_body) {
    if (out_body != NULL) {
        *out_body = NULL;
    }
    rondo__scope *scope;
    RETURN_IF_ERROR(rondo__scope_get(handle, __func__, &scope));
    rondo_status checked = check_enter(scope, branch, out_body);
    if (checked != RONDO_STATUS_OK) {
        return rondo__mark_missing(rondo__scope_get_place(scope), "", checked);
    }
    const rondo__backend *backend = scope->device->backend;
    rondo__node_handle node = 0;
    uint32_t index = 0;
    uint64_t id = 0;
    rondo_status status = RONDO_STATUS_OK;
    if (scope->body == NULL) {
        const rondo_stream_options options = {.struct_size = sizeof options,
                                              .priority = scope->parent->priority};
        status = rondo_stream_create(scope->device, &options, &scope->body);
        if (status == RONDO_STATUS_OK) {
            scope->body->is_lent = true;
        }
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__label_inherit(scope->body, scope->parent, scope->label_path);
    }
    if (status == RONDO_STATUS_OK) {
        status = backend->begin_body(scope->conditional, branch, scope->body, &node, &index);
    }
    if (status == RONDO_STATUS_OK && scope->capture != NULL) {
        status =
            rondo__capture_add_body(scope->capture, scope->parent, node, index, scope->body, &id);
        if (status != RONDO_STATUS_OK) {
            rondo_error saved;
            rondo__error_save(&saved);
            (void)backend->end_body(scope->conditional, branch, scope->body);
            rondo__scope_close_body(scope);
            rondo__error_restore(&saved);
        }
    }
    if (status != RONDO_STATUS_OK) {
        break_parent(scope);  // the graph would lack the body
        return status;
    }
    atomic_store_explicit(&scope->body->may_record, true, memory_order_relaxed);
    scope->was_entered[branch] = true;
    scope->open_branch = branch;
    scope->is_body_open = true;
    *out_body = scope->body;
    return RONDO_STATUS_OK;
}

rondo_status rondo_scope_leave(rondo_scope handle) {
    rondo__scope *scope;
    RETURN_IF_ERROR(rondo__scope_get(handle, __func__, &scope));
    const rondo__backend *backend = scope->device->backend;
    if (!scope->is_body_open) {
        return RONDO_FAIL(STATE, "no body of the %s is open; call rondo_scope_enter first",
                          rondo__scope_kind_names[scope->conditional->kind]);
    }
    const rondo__scope *inner = rondo__scope_find_inner(scope);
    if (inner != NULL) {
        return RONDO_FAIL(STATE, "a %s inside the body is open; end it first",
                          rondo__scope_kind_names[inner->conditional->kind]);
    }
    rondo_status status = check_parent(scope, __func__);
    if (status == RONDO_STATUS_OK && scope->capture != NULL) {
        status = rondo__capture_leave_body(scope->capture, scope->body);
    }
    // Where both fail, a body that was broken before knows the cause.
    rondo_error first;
    rondo__error_save(&first);
    rondo_status end_status =
        backend->end_body(scope->conditional, scope->open_branch, scope->body);
    if (end_status == RONDO_STATUS_OK && status != RONDO_STATUS_OK) {
        rondo__error_restore(&first);
    } else {
        status = end_status;
    }
    if (status != RONDO_STATUS_OK) {
        rondo__scope_break_at(scope->capture, scope->body);
    }
    rondo__scope_close_body(scope);
    return status;
}

// ---- end --------------------------------------------------------------------------------------

rondo_status rondo_scope_end(rondo_scope handle) {
    rondo__scope *scope;
    RETURN_IF_ERROR(rondo__scope_get(handle, __func__, &scope));
    if (scope->is_body_open) {
        return RONDO_FAIL(STATE, "body %u of the %s is open; call rondo_scope_leave first",
                          (unsigned)scope->open_branch,
                          rondo__scope_kind_names[scope->conditional->kind]);
    }
    if (scope->conditional->kind == RONDO_SCOPE_WHILE && !scope->was_entered[0]) {
        return RONDO_FAIL(STATE,
                          "the while has no body, so nothing would ever end it; call "
                          "rondo_scope_enter, and write the predicate in the body");
    }
    rondo_status status = check_parent(scope, __func__);
    rondo_error saved;
    rondo__error_save(&saved);
    rondo__scope_free(scope);
    rondo__error_restore(&saved);
    return status;
}

// ---- what a device can do ---------------------------------------------------------------------

rondo_status rondo_device_supports(rondo_device *device, rondo_feature feature) {
    RETURN_IF_ERROR(rondo__check_device(device, __func__));
    if ((unsigned)feature > RONDO_FEATURE_HOST_IN_BODY) {
        return RONDO_FAIL(INVALID, "%d is not a feature", (int)feature);
    }
    return device->backend->check_feature(device, feature);
}
