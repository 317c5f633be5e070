// device/copy_note.c — see copy_note.h.
// SPDX-License-Identifier: Apache-2.0
#include "device/copy_note.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/log/logging.h"

bool rondo__copy_is_logged(void) {
    return RONDO_LOG_IS_WANTED(RONDO_LOG_DEBUG);
}

bool rondo__copy_is_told(void) {
    return rondo__hook_is_on(RONDO__HOOK_SPANS) || rondo__copy_is_logged();
}

// "x" f32 [1, 3, 224, 224]
static void describe_variable(const rondo__copy_note *note, char *text, size_t bytes) {
    char shape[96] = "";
    text[0] = '\0';
    if (note != NULL && note->variable != NULL) {
        if (note->shape != NULL) {
            (void)rondo_shape_format(note->shape, shape, sizeof shape);
        }
        (void)snprintf(text, bytes, "\"%.80s\" %s %s", note->variable,
                       rondo_dtype_get_name(note->dtype), shape);
    }
}

static void log_copy(const rondo__copy_tale *tale, const rondo__copy_note *note,
                     const char *variable, const char *how) {
    const bool has_op = note != NULL && note->op != NULL;
    const bool has_name = has_op && note->name != NULL && note->name[0] != '\0';
    RONDO_LOG_DEBUG_F("transfer: %s%s%.80s%s%s%s from %s to %s, %" PRIu64 " bytes, %s",
                      has_op ? note->op : "a copy", has_name ? " \"" : "",
                      has_name ? note->name : "", has_name ? "\"" : "",
                      variable[0] != '\0' ? " takes " : "", variable, tale->from, tale->to,
                      tale->bytes, how);
}

static const char *const g_names[][2] = {
    [RONDO__WAY_NONE] = {"copy, sync", "copy"},
    [RONDO__WAY_H2D] = {"copy host to device, sync", "copy host to device"},
    [RONDO__WAY_D2H] = {"copy device to host, sync", "copy device to host"},
    [RONDO__WAY_D2D] = {"copy device to device, sync", "copy device to device"},
    [RONDO__WAY_H2H] = {"copy host to host", "copy host to host"},
};

rondo__hook_scope rondo__copy_tell(const rondo__copy_tale *tale, const rondo__copy_note *note) {
    char variable[240];
    describe_variable(note, variable, sizeof variable);
    if (RONDO_LOG_IS_WANTED(RONDO_LOG_DEBUG)) {
        log_copy(tale, note, variable, tale->is_async ? "in the background" : "waited for");
    }
    if (!rondo__hook_is_on(RONDO__HOOK_SPANS)) {
        return (rondo__hook_scope){0};
    }
    return rondo__hook_begin(&(rondo__hook_span){.category = RONDO__SPAN_COPY,
                                                 .name = g_names[tale->way][tale->is_async ? 1 : 0],
                                                 .detail = variable,
                                                 .bytes = tale->bytes,
                                                 .way = tale->way,
                                                 .is_async = tale->is_async,
                                                 .stream = tale->stream});
}

rondo__hook_scope rondo__copy_tell_host(uint64_t bytes, const rondo__copy_note *note) {
    char variable[240];
    if (!rondo__hook_is_on(RONDO__HOOK_SPANS)) {
        return (rondo__hook_scope){0};
    }
    describe_variable(note, variable, sizeof variable);
    return rondo__hook_begin(&(rondo__hook_span){.category = RONDO__SPAN_COPY,
                                                 .name = g_names[RONDO__WAY_H2H][0],
                                                 .detail = variable,
                                                 .bytes = bytes,
                                                 .way = RONDO__WAY_H2H});
}

void rondo__copy_log_replayed(const rondo__copy_tale *tale, const rondo__copy_note *note) {
    char variable[240];
    if (rondo__copy_is_logged()) {
        describe_variable(note, variable, sizeof variable);
        log_copy(tale, note, variable, "in a graph");
    }
}
