// executor/state/tuning.c — the choices of an executor's kernels as a tuning file.
// SPDX-License-Identifier: Apache-2.0

#include "rondo/tuning.h"

#include "base/error.h"
#include "base/text.h"
#include "executor/state/plan.h"

rondo_status rondo_executor_write_tuning(rondo_executor *executor, rondo_write_function write,
                                         void *user_data) {
    if (executor == NULL || write == NULL) {
        return RONDO_FAIL(INVALID, "%s is NULL", executor == NULL ? "executor" : "write");
    }
    rondo__text text = {0};
    rondo__tuning_choices_print(executor->resources.choices, &text);
    const rondo_status status = rondo__text_get_status(&text);
    if (status == RONDO_STATUS_OK) {
        (void)write(user_data, text.bytes, text.length);
    }
    rondo__text_deinit(&text);
    return status;
}
