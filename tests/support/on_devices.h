// support/on_devices.h — one list of tests, run on the host, on a GPU, and over the fake driver.
//
//   int main(void) {
//       return ON_DEVICES() + OVER_THE_FAKE(NULL);
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
int on_devices_run(const test_listed *tests);
// Runs them over the fake driver, which can do additions; options as fake_cuda_reset takes them.
int on_devices_run_fake(const test_listed *tests, const fake_cuda_options *options);

#define ON_DEVICES() on_devices_run(g_listed)
#define OVER_THE_FAKE(options) on_devices_run_fake(g_listed, (options))
