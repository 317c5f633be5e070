#include "support/sweep.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static atomic_bool has_lost_body;

bool sweep_step(rondo_status status, uint64_t sequence_before, const char *text) {
    if (status == RONDO_STATUS_OK) {
        return true;
    }
    const rondo_error *error = rondo_error_get_last();
    if (error->sequence <= sequence_before || error->status != status ||
        error->message[0] == '\0' || error->file == NULL) {
        fail_msg("%s: returned %d without a record of its own (%d: %s)", text, (int)status,
                 (int)error->status, error->message);
    }
    return false;
}

void sweep_ignore_line(void *user_data, rondo_log_level level, const char *message) {
    (void)user_data;
    (void)level;
    if (strstr(message, "that memory is lost until the end of the process") != NULL) {
        atomic_store(&has_lost_body, true);
    }
}

bool sweep_take_lost_body(void) {
    return atomic_exchange(&has_lost_body, false);
}

bool sweep_append_text(void *user_data, const char *bytes, size_t count) {
    sweep_text *text = user_data;
    assert_true(count < sizeof text->bytes - text->length);
    memcpy(text->bytes + text->length, bytes, count);
    text->length += count;
    text->bytes[text->length] = '\0';
    return true;
}
