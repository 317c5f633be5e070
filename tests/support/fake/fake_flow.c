// SPDX-License-Identifier: Apache-2.0

#include "support/fake/fake_flow.h"

#include <string.h>

#include "kernel/carry.h"
#include "kernel/flow.h"
#include "support/fake/fake_cuda.h"

static void run(size_t kernel, const void *arguments, size_t argument_bytes) {
    fake_cuda_run_host(rondo__flow_get_host_function(kernel), arguments, argument_bytes);
}

#define FAKE_KERNEL(name, index)                                           \
    static void run_##name(const void *arguments, size_t argument_bytes) { \
        run(index, arguments, argument_bytes);                             \
    }
FAKE_KERNEL(choose, 0)
FAKE_KERNEL(enter, 1)
FAKE_KERNEL(next, 2)
FAKE_KERNEL(slice, 3)
#undef FAKE_KERNEL

// The driver packs arguments as it likes, so the struct need not be aligned there.
static void run_carry(const void *arguments, size_t argument_bytes) {
    rondo__carry carry;
    size_t count = 0;
    memcpy(&carry, arguments, argument_bytes < sizeof carry ? argument_bytes : sizeof carry);
    while (count < RONDO__CARRY_PIECES && carry.pieces[count].bytes > 0) {
        count += 1;
    }
    rondo__carry_run(&carry, count);
}

void fake_flow_set_carry(void) {
    fake_cuda_set_kernel(rondo__carry_name, run_carry);
}

void fake_flow_set_kernels(void) {
    static const fake_cuda_kernel kernels[RONDO__FLOW_KERNEL_COUNT] = {run_choose, run_enter,
                                                                       run_next, run_slice};
    for (size_t i = 0; i < RONDO__FLOW_KERNEL_COUNT; ++i) {
        fake_cuda_set_kernel(rondo__flow_kernel_names[i], kernels[i]);
    }
}
