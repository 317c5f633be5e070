// support/on_devices.h — one list of tests, run on the host, on a GPU, and over the fake driver.
//
//   int main(void) {
//       const struct CMUnitTest tests[] = {...};
//       return ON_DEVICES(tests) + OVER_THE_FAKE(tests, NULL);
//   }
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

#include "support/expect_ok.h"
#include "support/fake/fake_cuda.h"

// What the running tests open: "host", or "cuda:0", which over the fake driver is the fake.
const char *on_devices_get_name(void);
bool on_devices_is_fake(void);

// Runs the tests on the host, and on cuda:0 where that opens; where it does not, RONDO_REQUIRE=cuda
// makes that a failure. Returns how many failed.
int on_devices_run(const struct CMUnitTest *tests, size_t count);
// Runs them over the fake driver, which can do additions; options as fake_cuda_reset takes them.
int on_devices_run_fake(const struct CMUnitTest *tests, size_t count,
                        const fake_cuda_options *options);

#define ON_DEVICES(tests) on_devices_run((tests), sizeof(tests) / sizeof *(tests))
#define OVER_THE_FAKE(tests, options) \
    on_devices_run_fake((tests), sizeof(tests) / sizeof *(tests), (options))
