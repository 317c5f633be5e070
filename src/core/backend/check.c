// backend/check.c — the records of failed argument checks.
// SPDX-License-Identifier: Apache-2.0
#include "backend/check.h"

rondo_status rondo__check_fail_null(const char *call, const char *argument) {
    return RONDO_FAIL_AS(call, INVALID, "argument \"%s\" is NULL", argument);
}

rondo_status rondo__check_fail_lost(const rondo_device *device, const char *call) {
    return RONDO_FAIL_AS(
        call, LOST, "device %s is lost: %s", device->name,
        atomic_load(&device->is_forked)
            ? "it was opened before a fork; open it again in this process"
            : "an earlier failure poisoned it; destroy its objects and start the process again");
}

rondo_status rondo__check_fail_device(const rondo_device *device, const rondo_stream *stream,
                                      const char *call, const char *kind, const char *label) {
    const char *quote = label != NULL ? "\"" : "";
    return RONDO_FAIL_AS(call, INVALID, "%s %s%s%s%sis of %s, the stream of %s; use a stream of %s",
                         kind, quote, label != NULL ? label : "", quote, label != NULL ? " " : "",
                         device->name, stream->device->name, device->name);
}
