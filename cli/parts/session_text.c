// session_text.c — see session_text.h.
// SPDX-License-Identifier: Apache-2.0
#include "session_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

char *cli_format_port(const rondo_port *port, char *buffer, size_t buffer_bytes) {
    size_t length = 0;
    const char *dtype = rondo_dtype_get_name(port->dtype);
    if (port->dtype == RONDO_DTYPE_SEQUENCE || port->dtype == RONDO_DTYPE_OPTIONAL) {
        const bool is_deep = port->item_dtype[0] == RONDO_DTYPE_SEQUENCE;
        const bool is_known = port->item_dtype[0] != RONDO_DTYPE_NONE;
        snprintf(buffer, buffer_bytes, "%s%s%s%s%s", dtype, is_known ? " of " : "",
                 is_known ? rondo_dtype_get_name(port->item_dtype[0]) : "", is_deep ? " of " : "",
                 is_deep ? rondo_dtype_get_name(port->item_dtype[1]) : "");
        return buffer;
    }
    if (port->rank < 0) {
        snprintf(buffer, buffer_bytes, "%s, any shape", dtype);
        return buffer;
    }
    snprintf(buffer, buffer_bytes, "%s [", dtype);
    for (int32_t d = 0; d < port->rank; d++) {
        const char *separator = d > 0 ? ", " : "";
        length = strlen(buffer);
        if (port->symbol[d] != NULL && port->extent[d] >= 0) {
            snprintf(buffer + length, buffer_bytes - length, "%s%.40s=%" PRId64, separator,
                     port->symbol[d], port->extent[d]);
        } else if (port->symbol[d] != NULL) {
            snprintf(buffer + length, buffer_bytes - length, "%s%.40s", separator, port->symbol[d]);
        } else if (port->extent[d] >= 0) {
            snprintf(buffer + length, buffer_bytes - length, "%s%" PRId64, separator,
                     port->extent[d]);
        } else {
            snprintf(buffer + length, buffer_bytes - length, "%s?", separator);
        }
    }
    length = strlen(buffer);
    snprintf(buffer + length, buffer_bytes - length, "]");
    return buffer;
}

int cli_session_fail(const cli_session *session) {
    const rondo_status status = rondo_error_get_last()->status;
    const bool may_be_shapes = status == RONDO_STATUS_INVALID || status == RONDO_STATUS_BAD_DATA ||
                               status == RONDO_STATUS_UNSUPPORTED;
    return cli_fail_about(session->path, may_be_shapes ? session->hint : "");
}
