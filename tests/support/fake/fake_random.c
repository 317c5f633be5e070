// SPDX-License-Identifier: Apache-2.0

#include "support/fake/fake_random.h"

#include "random/random_host.h"
#include "support/fake/fake_cuda.h"

static void run(rondo__random_kernel kernel, const void *arguments, size_t argument_bytes) {
    fake_cuda_run_host(rondo__random_get_host_function(kernel), arguments, argument_bytes);
}

#define FAKE_KERNEL(name)                                                  \
    static void run_##name(const void *arguments, size_t argument_bytes) { \
        run(RONDO__RANDOM_##name, arguments, argument_bytes);              \
    }
FAKE_KERNEL(WORDS)
FAKE_KERNEL(UNIFORM)
FAKE_KERNEL(UNIFORM_F64)
FAKE_KERNEL(NORMAL)
FAKE_KERNEL(NORMAL_F64)
FAKE_KERNEL(BERNOULLI)
FAKE_KERNEL(DROPOUT)
FAKE_KERNEL(SET)
FAKE_KERNEL(ADVANCE)
#undef FAKE_KERNEL

void fake_random_set_kernels(void) {
    static const fake_cuda_kernel kernels[RONDO__RANDOM_KERNEL_COUNT] = {
        [RONDO__RANDOM_WORDS] = run_WORDS,
        [RONDO__RANDOM_UNIFORM] = run_UNIFORM,
        [RONDO__RANDOM_UNIFORM_F64] = run_UNIFORM_F64,
        [RONDO__RANDOM_NORMAL] = run_NORMAL,
        [RONDO__RANDOM_NORMAL_F64] = run_NORMAL_F64,
        [RONDO__RANDOM_BERNOULLI] = run_BERNOULLI,
        [RONDO__RANDOM_DROPOUT] = run_DROPOUT,
        [RONDO__RANDOM_SET] = run_SET,
        [RONDO__RANDOM_ADVANCE] = run_ADVANCE,
    };
    for (int i = 0; i < RONDO__RANDOM_KERNEL_COUNT; ++i) {
        fake_cuda_set_kernel(rondo__random_kernel_names[i], kernels[i]);
    }
}
