// emulated/emulated_abi.h — what a compiled kernel text and the emulation share; C and C++.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_TESTS_EMULATED_ABI_H
#define RONDO_TESTS_EMULATED_ABI_H

enum { EMULATED_WARP = 32 };

typedef struct emulated_extent {
    unsigned int x, y, z;
} emulated_extent;

// One for the process, as one thread of one block runs at a time.
typedef struct emulated_machine {
    emulated_extent thread, block;          // threadIdx, blockIdx
    emulated_extent block_size, grid_size;  // blockDim, gridDim
    unsigned char *shared;                  // extern __shared__
    // __syncthreads: returns when every thread of the block that goes on has come.
    void (*meet_block)(void);
    // The same for these lanes of the thread's warp; each brings a word. Returns the words of all,
    // valid until the lane's next meeting but one, and a bit for each lane that came.
    const unsigned long long *(*meet_warp)(unsigned int lanes, unsigned long long word,
                                           unsigned int *out_lanes);
} emulated_machine;

// A kernel: runs one thread. `arguments` are packed as the driver packs them.
typedef void (*emulated_thread)(emulated_machine *machine, const unsigned char *arguments);

#define EMULATED_PREFIX "emulated_thread_"

// An image, NVRTC's "machine code": this, the size in eight bytes (lowest first), a shared object.
#define EMULATED_MAGIC "emulated"

#endif  // RONDO_TESTS_EMULATED_ABI_H
