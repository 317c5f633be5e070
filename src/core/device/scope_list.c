// device/scope_list.c — the open scopes of a device.
//
// They hang in the device's list, latest first, and are known to the program by a number. So a
// handle that outlived its scope is an error and not a dead address, and a capture that ends or is
// given up finds what it left open.
// SPDX-License-Identifier: Apache-2.0
#include "device/scope_list.h"

#include "backend/check.h"
#include "base/memory.h"
#include "capture/label_stack.h"
#include "device/stream_tag.h"

const char *const rondo__scope_kind_names[] = {
    [RONDO_SCOPE_IF] = "if",
    [RONDO_SCOPE_IF_ELSE] = "if_else",
    [RONDO_SCOPE_SWITCH] = "switch",
    [RONDO_SCOPE_WHILE] = "while",
};

// ---- the list of open scopes ------------------------------------------------------------------

void rondo__scope_list(rondo__scope *scope) {
    rondo_device *device = scope->device;
    pthread_mutex_lock(&device->capture_list_lock);
    scope->id = ++device->last_scope_id;
    scope->next = device->scope_list;
    device->scope_list = scope;
    atomic_fetch_add(&device->open_scope_count, 1);
    if (scope->capture != NULL) {
        scope->capture->had_scopes = true;
    }
    pthread_mutex_unlock(&device->capture_list_lock);
}

static void unlist_scope(rondo__scope *scope) {
    rondo_device *device = scope->device;
    pthread_mutex_lock(&device->capture_list_lock);
    rondo__scope **link = &device->scope_list;
    while (*link != scope) {
        link = &(*link)->next;
    }
    *link = scope->next;
    atomic_fetch_sub(&device->open_scope_count, 1);
    pthread_mutex_unlock(&device->capture_list_lock);
}

rondo__scope *rondo__scope_find(rondo_device *device, uint64_t id, const rondo__capture *capture,
                                const rondo_stream *parent) {
    pthread_mutex_lock(&device->capture_list_lock);
    rondo__scope *scope = device->scope_list;
    while (scope != NULL &&
           !((id == 0 || scope->id == id) && (capture == NULL || scope->capture == capture) &&
             (parent == NULL || scope->parent == parent))) {
        scope = scope->next;
    }
    pthread_mutex_unlock(&device->capture_list_lock);
    return scope;
}

// The list has inner ones earlier.
rondo__scope *rondo__scope_find_inner(const rondo__scope *outer) {
    rondo_device *device = outer->device;
    pthread_mutex_lock(&device->capture_list_lock);
    rondo__scope *scope = device->scope_list;
    while (scope != outer && scope->parent != outer->body) {
        scope = scope->next;
    }
    pthread_mutex_unlock(&device->capture_list_lock);
    return scope != outer ? scope : NULL;
}

rondo_status rondo__scope_get(rondo_scope handle, const char *call, rondo__scope **out_scope) {
    *out_scope = NULL;
    RETURN_IF_ERROR(rondo__check_pointer(handle.device, call, "scope.device"));
    RETURN_IF_ERROR(rondo__check_process(handle.device, call));
    if (handle.id != 0) {
        *out_scope = rondo__scope_find(handle.device, handle.id, NULL, NULL);
    }
    if (*out_scope == NULL) {
        return RONDO_FAIL_AS(call, STATE, "this scope is over: it was ended, or its capture was");
    }
    return rondo__check_alive(handle.device, call);
}

// ---- closing and breaking ---------------------------------------------------------------------

void rondo__scope_break_at(rondo__capture *capture, rondo_stream *place) {
    if (capture != NULL) {
        rondo__blame_break(capture, place,
                           rondo_error_get_last()->status == RONDO_STATUS_STATE
                               ? RONDO_CAUSE_OTHER
                               : RONDO_CAUSE_WORK_REFUSED);
    }
}

rondo_stream *rondo__scope_get_place(const rondo__scope *scope) {
    return scope->is_body_open ? scope->body : scope->parent;
}

void rondo__scope_close_body(rondo__scope *scope) {
    scope->is_body_open = false;
    if (scope->capture != NULL) {
        rondo__capture_close_body(scope->capture, scope->body);
    }
    rondo__label_close_above(scope->body, 0);
}

// It records no more; or its body is lost, and the backend lets go of it.
static void destroy_body_stream(rondo_stream *stream) {
    if (stream == NULL) {
        return;
    }
    rondo__label_stack_destroy(stream->labels);
    stream->labels = NULL;
    if (stream->is_in_function) {
        stream->is_orphan = true;
        // So that work on it is looked at, and refused.
        atomic_fetch_add(&stream->device->broken_capture_count, 1);
    } else {
        rondo__stream_tag_destroy_stream(stream);
    }
}

void rondo__scope_hold_body(rondo_stream *body) {
    body->is_in_function = true;
}

void rondo__scope_let_go_of_body(rondo_stream *body) {
    body->is_in_function = false;
    if (body->is_orphan) {
        atomic_fetch_sub(&body->device->broken_capture_count, 1);
        destroy_body_stream(body);
    }
}

void rondo__scope_free(rondo__scope *scope) {
    unlist_scope(scope);
    scope->device->backend->release_conditional(scope->conditional);
    destroy_body_stream(scope->body);
    rondo__free(scope->label_path);
    rondo__free(scope);
}

// Closes what is inside first.
static void close_scope(rondo__scope *scope) {
    const rondo__backend *backend = scope->device->backend;
    rondo_error saved;
    rondo__error_save(&saved);
    for (rondo__scope *inner;
         scope->body != NULL && (inner = rondo__scope_find_inner(scope)) != NULL;) {
        close_scope(inner);
    }
    if (scope->is_body_open) {
        (void)backend->end_body(scope->conditional, scope->open_branch, scope->body);
        rondo__scope_close_body(scope);
    }
    rondo__scope_free(scope);
    rondo__error_restore(&saved);
}

void rondo__scopes_close(rondo__capture *capture, const rondo_stream *stream) {
    rondo__scope *scope;
    while ((scope = rondo__scope_find(capture->device, 0, capture, stream)) != NULL) {
        close_scope(scope);
    }
}

void rondo__scopes_note_place(rondo__capture *capture, const char *call) {
    const rondo__scope *scope = rondo__scope_find(capture->device, 0, capture, NULL);
    if (scope != NULL && scope->is_body_open) {
        rondo__blame_note_place(capture, scope->body, call);
    }
}

void rondo__scopes_close_on(const rondo_stream *stream) {
    if (atomic_load_explicit(&stream->device->open_scope_count, memory_order_relaxed) == 0) {
        return;
    }
    rondo__scope *scope;
    while ((scope = rondo__scope_find(stream->device, 0, NULL, stream)) != NULL) {
        close_scope(scope);
    }
}

void rondo__scopes_roll_back(rondo__capture *capture) {
    rondo__scopes_close(capture, NULL);
}

void rondo__scopes_refuse_open(rondo__capture *capture) {
    if (!capture->had_scopes) {
        return;  // there never was one
    }
    const rondo__scope *scope = rondo__scope_find(capture->device, 0, capture, NULL);
    if (scope == NULL) {
        return;
    }
    (void)RONDO_FAIL_AS("rondo_graph_capture_end", STATE,
                        "the %s scope on stream %u is still open; call %srondo_scope_end first",
                        rondo__scope_kind_names[scope->conditional->kind],
                        (unsigned)scope->parent->number,
                        scope->is_body_open ? "rondo_scope_leave and " : "");
    if (capture->origin != NULL) {
        rondo__scope_break_at(capture, rondo__scope_get_place(scope));
    }
    rondo__scopes_close(capture, NULL);
}

void rondo__scope_abandon(rondo_scope handle) {
    rondo__scope *scope = rondo__scope_find(handle.device, handle.id, NULL, NULL);
    if (scope != NULL) {
        rondo__scope_break_at(scope->capture, rondo__scope_get_place(scope));
        close_scope(scope);
    }
}
