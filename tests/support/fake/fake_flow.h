// support/fake/fake_flow.h — the kernels of control flow for the fake driver.
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lets the fake driver run the kernels of kernel/flow.h as the C functions that they also are.
void fake_flow_set_kernels(void);
void fake_flow_set_carry(void);  // kernel/carry.h
