// libcuda.so.1 of the emulated GPU: the fake driver, for programs that load it like the real one.
// What was illegal is printed when the process ends, which then fails.
//
// RONDO_EMULATED_DEVICES is how many GPUs there are; 1 without it. RONDO_EMULATED_CAPABILITY is
// their compute capability; 75 without it, as kernels for tensor cores, from 80 on, take long here.
//
// RONDO_EMULATED_SLOW names a kernel that is slow (by 3 ms) but for where a tuner times it, where
// all others are: so a contest takes it for the fastest. With a + before it, it is slow everywhere.
//
// Sweeps of failures find the emulated_ functions at the end, which a real libcuda has not.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/fake/fake_cuda_state.h"

enum { STATUS_AFTER_VIOLATION = 99 };

rondo__cu_result emulated_get_proc_address(const char *symbol, void **out_function, int version,
                                           uint64_t flags, int *out_status)
    FAKE_CUDA_EXPORT("cuGetProcAddress_v2");

rondo__cu_result emulated_get_proc_address(const char *symbol, void **out_function, int version,
                                           uint64_t flags, int *out_status) {
    rondo__cu_result (*function)(const char *, void **, int, uint64_t, int *) = NULL;
    void *address = fake_cuda_resolve(NULL, "cuGetProcAddress_v2");
    memcpy(&function, &address, sizeof(function));
    return function(symbol, out_function, version, flags, out_status);
}

#define FOR_SWEEPS __attribute__((visibility("default")))
FOR_SWEEPS void emulated_fail_nth(long n, int code);
FOR_SWEEPS const char *emulated_get_failed_call(void);
FOR_SWEEPS size_t emulated_count_objects(void);
FOR_SWEEPS size_t emulated_count_calls(void);

// Call n from now on (0 is the next) fails with `code`; -1: none does.
void emulated_fail_nth(long n, int code) {
    fake_cuda_fail_nth(n, (rondo__cu_result)code);
}

// "" while none has failed.
const char *emulated_get_failed_call(void) {
    return fake_cuda_get_failed_call();
}

size_t emulated_count_objects(void) {
    return fake_cuda_count_objects();
}

size_t emulated_count_calls(void) {
    return fake_cuda_count_calls(NULL);
}

// What `rondo doctor` rehearses with is no code of the emulation's compiler; here it takes no time.
static void wait_for_nothing(const void *arguments, size_t argument_bytes) {
    (void)arguments, (void)argument_bytes;
}

// ---- a slow kernel ----------------------------------------------------------------------------

static void hear_nothing(void) {
}

// A contest puts a small kernel behind each launch, which a network does not have.
static void slow_down(const fake_node *node, uint64_t graph_node, uint64_t begin_ns,
                      uint64_t end_ns) {
    static bool is_timed;
    (void)graph_node, (void)begin_ns, (void)end_ns;
    if (node->type != RONDO__CU_GRAPH_NODE_KERNEL) {
        return;
    }
    const char *name = node->kernel->name;
    const bool is_neighbour = strcmp(name, "neighbour") == 0;
    const char *slow = getenv("RONDO_EMULATED_SLOW");
    const bool is_always = slow[0] == '+';
    const bool is_named = strcmp(name, slow + (is_always ? 1 : 0)) == 0;
    if (!is_neighbour && is_named != is_timed) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
    }
    is_timed = is_neighbour && !is_always;
}

__attribute__((constructor)) static void start(void) {
    static const fake_watcher slow = {.launch = hear_nothing, .work = slow_down};
    const char *devices = getenv("RONDO_EMULATED_DEVICES");
    const char *capability = getenv("RONDO_EMULATED_CAPABILITY");
    const char *version = getenv("RONDO_EMULATED_CUDA");
    const int count = devices != NULL ? atoi(devices) : 1;
    const fake_cuda_options options = {
        .device_count = count > 0 && count <= FAKE_DEVICES_MAX ? count : 1,
        .driver_version = version != NULL ? atoi(version) : 13000,
        .compute_capability = capability != NULL ? atoi(capability) : 75,
        .name = "Emulated GPU",
        .has_get_proc_address = true,
    };
    fake_cuda_reset(&options);
    fake_cuda_set_kernel("rondo_wait_4", wait_for_nothing);
    fake_cuda_set_kernel("rondo_wait_16", wait_for_nothing);
    fake_cuda_set_kernel("rondo_wait_32", wait_for_nothing);
    fake_cuda_set_kernel("rondo_wait_96", wait_for_nothing);
    if (getenv("RONDO_EMULATED_SLOW") != NULL) {
        g_fake_watcher = &slow;
    }
}

__attribute__((destructor)) static void finish(void) {
    const char *violations = fake_cuda_get_violations();
    if (violations[0] != '\0') {
        (void)fflush(stdout);
        (void)fprintf(stderr, "the emulated driver saw what is illegal:\n%s", violations);
        _exit(STATUS_AFTER_VIOLATION);
    }
}
