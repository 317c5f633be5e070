// support/on_devices.c — see on_devices.h.
// SPDX-License-Identifier: Apache-2.0
#include "support/on_devices.h"

#include <stdlib.h>

#include "support/gpu_present.h"
#include "support/models/add_program.h"

static const char *g_name = "host";
static bool g_is_fake;

const char *on_devices_get_name(void) {
    return g_name;
}

bool on_devices_is_fake(void) {
    return g_is_fake;
}

static int run(const char *group, const test_listed *tests) {
    return test_run(group, tests, NULL, NULL, NULL, NULL);
}

int on_devices_run(const test_listed *tests) {
    fake_cuda_reset(NULL);  // tests may ask it about violations
    g_name = "host";
    int failed_count = run("host", tests);
    g_name = "cuda:0";
    if (gpu_is_present(&failed_count)) {
        failed_count += run("cuda:0", tests);
    }
    return failed_count;
}

int on_devices_run_fake(const test_listed *tests, const fake_cuda_options *options) {
    fake_cuda_reset(options);
    setenv("RONDO_CACHE_DIR", "", 1);
    fake_cuda_install();
    add_program_prepare_fake();
    g_name = "cuda:0";
    g_is_fake = true;
    const int failed_count = run("fake", tests);
    g_is_fake = false;
    fake_cuda_uninstall();
    return failed_count;
}
