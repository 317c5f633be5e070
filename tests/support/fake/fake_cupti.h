// support/fake/fake_cupti.h — a CUPTI in plain C, so that device times are tested without a GPU.
//
// It keeps which kinds of activity are on, external ids of each thread, one subscriber and buffers,
// and writes records where a test says that a device did something. Call number n can fail. What
// the real one would not forgive (calls while nothing is subscribed, ids that pile up) is noted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/cuda/cupti/cupti_api.h"

typedef struct fake_cupti_options {
    const char *missing_symbol;  // or NULL
    uint32_t version;            // 0: 130001
    bool is_taken;               // another tool has subscribed
    bool reverses_records;       // a kernel's record comes before that of its span
    bool hides_copy_calls;       // copies are told, but not which calls put them there
} fake_cupti_options;

// Starts anew; NULL: everything there.
void fake_cupti_reset(const fake_cupti_options *options);
// dlsym of the fake, for rondo__cupti_api_load.
void *fake_cupti_resolve(void *user_data, const char *symbol);
// Makes profiles use the fake, which tells of what the fake driver does. Fails the running test
// when the table cannot be filled.
void fake_cupti_install(void);
void fake_cupti_uninstall(void);

// Call number `n` from now on (0 is the next) fails with `code`; negative: none.
void fake_cupti_fail_nth(long n, rondo__cupti_result code);
bool fake_cupti_has_failed(void);
// Kinds and calls that are on, subscribers, buffers that the fake has.
size_t fake_cupti_count_open(void);
const char *fake_cupti_get_violations(void);

// The calling thread launches something, which a device does at once; the number of the launch.
uint32_t fake_cupti_launch(void);
// The same through CUDA's runtime, as cuBLASLt does it.
uint32_t fake_cupti_launch_by_runtime(void);
// One thing of a launch. graph_node 0: not of a graph.
void fake_cupti_add_kernel(uint32_t launch, const char *name, uint64_t graph_node,
                           uint64_t begin_ns, uint64_t end_ns);
void fake_cupti_add_copy(uint32_t launch, uint8_t copy_kind, uint64_t bytes, uint64_t graph_node,
                         uint64_t begin_ns, uint64_t end_ns);
void fake_cupti_add_fill(uint32_t launch, uint64_t bytes, uint64_t graph_node, uint64_t begin_ns,
                         uint64_t end_ns);
// So many records are lost.
void fake_cupti_drop(size_t count);
