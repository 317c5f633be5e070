// SPDX-License-Identifier: Apache-2.0
#include "support/models/executor_sweep.h"
#include "support/short_forms.h"

#include <stdlib.h>

#include "base/error.h"

static void run_round(const sweep_point *point) {
    const executor_sweep *sweep = point->data;
    executor_world w = {0};
    sweep->work(&w, point->device_name);
    (void)sweep_lift();
    for (int run = 0; run < 2 && w.executor != NULL; ++run) {
        const rondo_status status = sweep->run(w.executor);
        const bool is_lost = point->code == RONDO__CU_ERROR_LAUNCH_FAILED;
        if (status != RONDO_STATUS_OK && !(is_lost && status == RONDO_STATUS_LOST)) {
            sweep_fail(point, "afterwards run %d: %s", run, rondo_error_get_last()->message);
        }
    }
    rondo_executor_destroy(w.executor);
    rondo_builder_destroy(w.builder);
    rondo_program_destroy(w.program);
    rondo_device_release(w.device);
}

static void prepare_fake(void) {
    fake_cuda_install_compiler();
}

void executor_sweep_on_fake(const char *name, const executor_sweep *sweep) {
    setenv("RONDO_CACHE_DIR", "", 1);
    const fake_cuda_options options = {
        .device_count = sweep->device_count, .driver_version = 13000, .has_get_proc_address = true};
    const sweep_subject subject = {.run = run_round,
                                   .data = sweep,
                                   .prepare = prepare_fake,
                                   .options = &options,
                                   .dense = sweep->dense};
    const sweep_count count = sweep_on_fake(name, &subject);
    assert_true(count.driver_calls > sweep->count_min && count.allocations > sweep->count_min);
}

rondo_status executor_world_begin(executor_world *w, const char *input, int64_t count) {
    RETURN_IF_ERROR(rondo_builder_create(NULL, &w->builder));
    return rondo_builder_add_input(w->builder, &PORT(input, RONDO_DTYPE_F32, count));
}
