// support/fake_flow.h — the kernels around bodies of If, Loop and Scan for the fake driver: the C
// functions that the host backend runs.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_TESTS_SUPPORT_FAKE_FLOW_H
#define RONDO_TESTS_SUPPORT_FAKE_FLOW_H

// After each fake_cuda_reset; the driver forgets its kernels then.
void fake_flow_set_kernels(void);

#endif  // RONDO_TESTS_SUPPORT_FAKE_FLOW_H
