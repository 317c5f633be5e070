// graph/conditional_calls.c — if, switch and while with functions as bodies: recorded in a capture,
// decided by the host outside one.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cause.h"
#include "backend/check.h"
#include "device/scope_list.h"
#include "device/stream.h"
#include "graph/conditional.h"

// What a call asks for.
typedef struct node {
    rondo_scope_kind kind;
    const void *predicate;
    const rondo_body_function *functions;
    uint32_t count;
} node;

// Calls that a capture refuses are refused outside one, too.
static rondo_status check(const node *wanted, const char *call) {
    RETURN_IF_ERROR(rondo__scope_check_predicate(wanted->predicate, call));
    if (wanted->kind == RONDO_SCOPE_SWITCH) {
        RETURN_IF_ERROR(rondo__check_pointer(wanted->functions, call, "bodies"));
        return rondo__scope_check_switch(wanted->count, call);
    }
    bool has_one = wanted->functions[0] != NULL || wanted->count > 1;
    return has_one ? RONDO_STATUS_OK
                   : rondo__check_fail_null(
                         call, wanted->kind == RONDO_SCOPE_WHILE ? "body" : "then_body");
}

// The predicate once all work before this has run.
static rondo_status read_predicate(rondo_stream *stream, const void *predicate,
                                   uint32_t *out_value) {
    RETURN_IF_ERROR(rondo_stream_copy(stream, out_value, predicate, sizeof *out_value,
                                      RONDO_COPY_DEVICE_TO_HOST));
    return rondo_stream_synchronize(stream);
}

static rondo_status run_body(rondo_stream *stream, rondo_body_function function, void *user_data,
                             const char *call) {
    uint64_t sequence = rondo_error_get_last()->sequence;
    return rondo__error_note_callback(function(stream, user_data), sequence, call,
                                      "the function of a body");
}

// ---- recording --------------------------------------------------------------------------------

static rondo_status record_body(rondo_scope scope, uint32_t branch, rondo_body_function function,
                                void *user_data, const char *call) {
    rondo_stream *body;
    RETURN_IF_ERROR(rondo_scope_enter(scope, branch, &body));
    rondo__scope_hold_body(body);
    rondo_status status = run_body(body, function, user_data, call);
    rondo__scope_let_go_of_body(body);
    return status == RONDO_STATUS_OK ? rondo_scope_leave(scope) : status;
}

static rondo_status record(rondo_stream *stream, const node *wanted, void *user_data,
                           const char *call) {
    rondo_scope scope;
    bool is_switch = wanted->kind == RONDO_SCOPE_SWITCH;
    RETURN_IF_ERROR(rondo_scope_begin(stream, wanted->kind, wanted->predicate,
                                      is_switch ? wanted->count : 0, &scope));
    rondo_status status = RONDO_STATUS_OK;
    for (uint32_t i = 0; i < wanted->count && status == RONDO_STATUS_OK; ++i) {
        if (wanted->functions[i] != NULL) {
            status = record_body(scope, i, wanted->functions[i], user_data, call);
        }
    }
    if (status != RONDO_STATUS_OK) {
        rondo__scope_abandon(scope);
        return status;
    }
    return rondo_scope_end(scope);
}

// Records the node when the stream does. A wrong argument then breaks the capture, which would lack
// the node; a device that cannot do it does not, because the program may have another way.
static rondo_status check_or_record(rondo_stream *stream, const node *wanted, void *user_data,
                                    const char *call, bool *out_records) {
    *out_records = false;
    RETURN_IF_ERROR(rondo__check_stream(stream, call));
    rondo__capture_state state = RONDO__CAPTURE_NONE;
    rondo_status status = rondo__capture_get_state(stream, &state);
    if (status == RONDO_STATUS_OK && state == RONDO__CAPTURE_BROKEN) {
        status = rondo__cause_fail_broken(stream, call);
    }
    if (status == RONDO_STATUS_OK) {
        status = check(wanted, call);
    }
    if (status != RONDO_STATUS_OK) {
        return rondo__mark_missing(stream, "", status);
    }
    *out_records = state == RONDO__CAPTURE_ACTIVE;
    return *out_records ? record(stream, wanted, user_data, call) : RONDO_STATUS_OK;
}

// ---- run at once ------------------------------------------------------------------------------

// On the program's own stream; that of a body that is recorded is always lent, and may be gone
// when the function has run.
static rondo_status run_body_now(rondo_stream *stream, rondo_body_function function,
                                 void *user_data, const char *call) {
    bool was_lent = rondo__stream_lend(stream);
    rondo_status status = run_body(stream, function, user_data, call);
    rondo__stream_take_back(stream, was_lent);
    return status;
}

// ---- the calls --------------------------------------------------------------------------------

rondo_status rondo_control_if(rondo_stream *stream, const void *predicate,
                              rondo_body_function then_body, rondo_body_function else_body,
                              void *user_data) {
    const rondo_body_function functions[] = {then_body, else_body};
    bool has_else = else_body != NULL;
    const node wanted = {.kind = has_else ? RONDO_SCOPE_IF_ELSE : RONDO_SCOPE_IF,
                         .predicate = predicate,
                         .functions = functions,
                         .count = has_else ? 2 : 1};
    bool records;
    RETURN_IF_ERROR(check_or_record(stream, &wanted, user_data, __func__, &records));
    if (records) {
        return RONDO_STATUS_OK;
    }
    uint32_t value = 0;
    RETURN_IF_ERROR(read_predicate(stream, predicate, &value));
    rondo_body_function function = value != 0 ? then_body : else_body;
    return function != NULL ? run_body_now(stream, function, user_data, __func__) : RONDO_STATUS_OK;
}

rondo_status rondo_control_switch(rondo_stream *stream, const void *index,
                                  const rondo_body_function *bodies, uint32_t body_count,
                                  void *user_data) {
    const node wanted = {
        .kind = RONDO_SCOPE_SWITCH, .predicate = index, .functions = bodies, .count = body_count};
    bool records;
    RETURN_IF_ERROR(check_or_record(stream, &wanted, user_data, __func__, &records));
    if (records) {
        return RONDO_STATUS_OK;
    }
    uint32_t value = 0;
    RETURN_IF_ERROR(read_predicate(stream, index, &value));
    // An index below 0 is a large one here.
    return value < body_count && bodies[value] != NULL
               ? run_body_now(stream, bodies[value], user_data, __func__)
               : RONDO_STATUS_OK;
}

rondo_status rondo_control_while(rondo_stream *stream, const void *predicate,
                                 rondo_body_function body, void *user_data) {
    const node wanted = {
        .kind = RONDO_SCOPE_WHILE, .predicate = predicate, .functions = &body, .count = 1};
    bool records;
    RETURN_IF_ERROR(check_or_record(stream, &wanted, user_data, __func__, &records));
    if (records) {
        return RONDO_STATUS_OK;
    }
    for (;;) {
        uint32_t value = 0;
        RETURN_IF_ERROR(read_predicate(stream, predicate, &value));
        if (value == 0) {
            return RONDO_STATUS_OK;
        }
        RETURN_IF_ERROR(run_body_now(stream, body, user_data, __func__));
    }
}
