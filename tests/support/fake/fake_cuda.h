// support/fake/fake_cuda.h — a libcuda in plain C, so that the CUDA backend is tested without a
// GPU.
//
// It keeps streams, events, memory, modules, captures, graphs and user objects, runs work at once
// on the calling thread, and is strict where the real driver is: the errors of capture (900 to 908)
// come for the same misuse; tests/truth asks it and real drivers the same questions. What the real
// driver would leave undefined (a handle that is dead, a context that is not current, a stream
// destroyed while it records) is noted as a violation.
//
// It can be told to fail the nth call. Calls that give something up do their work and report the
// failure all the same, as the real ones do when they pass on an earlier asynchronous error.
//
// State is the process's, as a driver's is; all calls are serialised by a lock.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "backend/cuda/driver/cuda_api.h"
#include "rondo/device.h"

enum { FAKE_CUDA_EXEC_BYTES = 4 << 20 };  // device memory that an executable takes, any of them

typedef struct fake_cuda_options {
    int device_count;
    int driver_version;          // 1000 * major + 10 * minor
    const char *missing_symbol;  // an exported name this driver lacks, or NULL
    int compute_capability;      // 10 * major + minor; 0: 90
    const char *name;            // of each device, before its number; NULL: "Fake GPU"
    size_t memory_bytes;         // of each device; 0: 128 GiB
    bool has_get_proc_address;
    bool has_no_peers;     // no GPU reaches the memory of another one
    bool reverses_copies;  // lists the nodes of a child graph in the opposite order of its source's
} fake_cuda_options;

// Starts from an empty driver; NULL means one device, CUDA 13.0, everything there.
void fake_cuda_reset(const fake_cuda_options *options);

// dlsym of the fake library, for rondo__cuda_api_load.
void *fake_cuda_resolve(void *user_data, const char *symbol);

// Makes the backend use the fake. Fails the running test when the table cannot be filled.
void fake_cuda_install(void);
void fake_cuda_uninstall(void);
// Takes NVRTC's place until the uninstall: any text "compiles", and its kernels are those of
// fake_cuda_set_kernel. So the library's own kernels run here without NVRTC, as C functions.
void fake_cuda_install_compiler(void);

// Call number `n` from now on (0 is the next) fails with `code`; negative: none. With a code that
// poisons the context every later call fails too.
void fake_cuda_fail_nth(long n, rondo__cu_result code);
bool fake_cuda_has_failed(void);              // whether the planned failure came
const char *fake_cuda_get_failed_call(void);  // its name; "" when none

// Calls `hook` once, on the calling thread, just before the next call of this name: for what
// another thread might do at that moment. NULL: none any more.
void fake_cuda_set_hook(const char *name, void (*hook)(void *data), void *data);

// Called inside each call that can be made to fail; NULL: nobody any more.
void fake_cuda_set_watch(void (*watch)(void));

// Events take their time from `now_ns` in place of the machine's clock, so that work takes as long
// as a test says. NULL: the machine's clock again.
void fake_cuda_set_clock(uint64_t (*now_ns)(void));

// How often a function was called since the reset; NULL: all of them together.
size_t fake_cuda_count_calls(const char *name);
// Objects alive: contexts retained, memory, streams, events, modules, graphs, executables, user
// objects, contexts left pushed.
size_t fake_cuda_count_objects(void);
// Bytes of memory alive: the device's, or pinned memory.
size_t fake_cuda_count_bytes(bool is_host);
// What was illegal so far, one per line; "" when nothing was.
const char *fake_cuda_get_violations(void);

// A kernel of every module: what cuLaunchKernel runs for this name; "", set last, for all others.
typedef void (*fake_cuda_kernel)(const void *arguments, size_t argument_bytes);
void fake_cuda_set_kernel(const char *name, fake_cuda_kernel kernel);
// From now on captured cuMemAllocAsync take from a pool that other processes may reach.
void fake_cuda_share_pool(bool is_shared);
// For such kernels: the blocks in x of a cluster of the launch that runs.
unsigned int fake_cuda_get_cluster(void);
// For such kernels: calls what the host backend runs in their place, with at most 256 bytes.
void fake_cuda_run_host(rondo_host_function function, const void *arguments, size_t argument_bytes);
