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

static int run(const char *group, const struct CMUnitTest *tests, size_t count) {
    return _cmocka_run_group_tests(group, tests, count, NULL, NULL);
}

int on_devices_run(const struct CMUnitTest *tests, size_t count) {
    fake_cuda_reset(NULL);  // tests may ask it about violations
    g_name = "host";
    int failed_count = run("host", tests, count);
    g_name = "cuda:0";
    if (gpu_is_present(&failed_count)) {
        failed_count += run("cuda:0", tests, count);
    }
    return failed_count;
}

int on_devices_run_fake(const struct CMUnitTest *tests, size_t count,
                        const fake_cuda_options *options) {
    fake_cuda_reset(options);
    setenv("RONDO_CACHE_DIR", "", 1);
    fake_cuda_install();
    add_program_prepare_fake();
    g_name = "cuda:0";
    g_is_fake = true;
    const int failed_count = run("fake", tests, count);
    g_is_fake = false;
    fake_cuda_uninstall();
    return failed_count;
}
