// graph/conditional_calls.c — if, switch and while with functions as bodies: recorded in a capture,
// decided by the host outside one.
#include "backend/check.h"
#include "graph/conditional.h"

// True when the stream records.
static rondo_status find_mode(rondo_stream *stream, const void *predicate, const char *call,
                              bool *out_records) {
    *out_records = false;
    RETURN_IF_ERROR(rondo__check_stream(stream, call));
    RETURN_IF_ERROR(rondo__check_pointer(predicate, call, "predicate"));
    rondo__capture_state state = RONDO__CAPTURE_NONE;
    RETURN_IF_ERROR(stream->device->backend->get_capture_state(stream, &state));
    if (state == RONDO__CAPTURE_BROKEN) {
        return rondo__error_set(
            RONDO_STATUS_STATE, 0, "", __FILE__, __LINE__, call,
            "the capture that stream %u takes part in is broken; end it to learn why",
            (unsigned)stream->number);
    }
    *out_records = state == RONDO__CAPTURE_ACTIVE;
    return RONDO_STATUS_OK;
}

// The predicate once all work before this has run.
static rondo_status read_predicate(rondo_stream *stream, const void *predicate,
                                   uint32_t *out_value) {
    RETURN_IF_ERROR(rondo_stream_copy(stream, out_value, predicate, sizeof *out_value,
                                      RONDO_COPY_DEVICE_TO_HOST));
    return rondo_stream_synchronize(stream);
}

// ---- recording --------------------------------------------------------------------------------

// A function that failed in its own way has written no record.
static void note_failure(rondo_status status, const char *call) {
    if (rondo_error_get_last()->status != status) {
        (void)rondo__error_set(status, 0, "", __FILE__, __LINE__, call,
                               "the function of a body returned %s", rondo_status_get_name(status));
    }
}

static rondo_status record_body(rondo_scope scope, uint32_t branch, rondo_body_function function,
                                void *user_data, const char *call) {
    rondo_stream *body;
    RETURN_IF_ERROR(rondo_scope_enter(scope, branch, &body));
    rondo_status status = function(body, user_data);
    if (status != RONDO_STATUS_OK) {
        note_failure(status, call);
        return status;
    }
    return rondo_scope_leave(scope);
}

static rondo_status record(rondo_stream *stream, rondo_scope_kind kind, const void *predicate,
                           const rondo_body_function *functions, uint32_t count, void *user_data,
                           const char *call) {
    rondo_scope scope;
    RETURN_IF_ERROR(
        rondo_scope_begin(stream, kind, predicate, kind == RONDO_SCOPE_SWITCH ? count : 0, &scope));
    rondo_status status = RONDO_STATUS_OK;
    for (uint32_t i = 0; i < count && status == RONDO_STATUS_OK; ++i) {
        if (functions[i] != NULL) {
            status = record_body(scope, i, functions[i], user_data, call);
        }
    }
    if (status != RONDO_STATUS_OK) {
        rondo__scope_abandon(scope);
        return status;
    }
    return rondo_scope_end(scope);
}

// ---- the calls --------------------------------------------------------------------------------

rondo_status rondo_control_if(rondo_stream *stream, const void *predicate,
                              rondo_body_function then_body, rondo_body_function else_body,
                              void *user_data) {
    bool records;
    RETURN_IF_ERROR(find_mode(stream, predicate, __func__, &records));
    if (then_body == NULL && else_body == NULL) {
        return rondo__check_fail_null(__func__, "then_body");
    }
    if (records) {
        const rondo_body_function functions[] = {then_body, else_body};
        bool has_else = else_body != NULL;
        return record(stream, has_else ? RONDO_SCOPE_IF_ELSE : RONDO_SCOPE_IF, predicate, functions,
                      has_else ? 2 : 1, user_data, __func__);
    }
    uint32_t value = 0;
    RETURN_IF_ERROR(read_predicate(stream, predicate, &value));
    rondo_body_function function = value != 0 ? then_body : else_body;
    return function != NULL ? function(stream, user_data) : RONDO_STATUS_OK;
}

rondo_status rondo_control_switch(rondo_stream *stream, const void *index,
                                  const rondo_body_function *bodies, uint32_t body_count,
                                  void *user_data) {
    bool records;
    RETURN_IF_ERROR(find_mode(stream, index, __func__, &records));
    RETURN_IF_ERROR(rondo__check_pointer(bodies, __func__, "bodies"));
    if (records) {
        return record(stream, RONDO_SCOPE_SWITCH, index, bodies, body_count, user_data, __func__);
    }
    uint32_t value = 0;
    RETURN_IF_ERROR(read_predicate(stream, index, &value));
    // An index below 0 is a large one here.
    return value < body_count && bodies[value] != NULL ? bodies[value](stream, user_data)
                                                       : RONDO_STATUS_OK;
}

rondo_status rondo_control_while(rondo_stream *stream, const void *predicate,
                                 rondo_body_function body, void *user_data) {
    bool records;
    RETURN_IF_ERROR(find_mode(stream, predicate, __func__, &records));
    if (body == NULL) {
        return rondo__check_fail_null(__func__, "body");
    }
    if (records) {
        return record(stream, RONDO_SCOPE_WHILE, predicate, &body, 1, user_data, __func__);
    }
    for (;;) {
        uint32_t value = 0;
        RETURN_IF_ERROR(read_predicate(stream, predicate, &value));
        if (value == 0) {
            return RONDO_STATUS_OK;
        }
        RETURN_IF_ERROR(body(stream, user_data));
    }
}
