// emulated/emulated_abi.h — what a compiled kernel text and the emulation share; C and C++.
// SPDX-License-Identifier: Apache-2.0
#pragma once

enum {
    EMULATED_WARP = 32,
    EMULATED_THREADS = 8192,         // of a cluster, at most
    EMULATED_BLOCK_SHARED = 1 << 18  // bytes from one block's to the next one's
};

typedef struct emulated_extent {
    unsigned int x, y, z;
} emulated_extent;

// What a lane brings to a meeting of its warp.
typedef struct emulated_words {
    unsigned long long word[3];
} emulated_words;

// What the emulated driver writes into the 128 bytes of a tensor map.
typedef struct emulated_map {
    const unsigned char *base;
    unsigned long long extent[4];  // the innermost first; of a matrix 0 in the last two
    unsigned long long stride_bytes[3];
    unsigned int box_columns, box_rows;
    short lower[2], upper[2];  // corners of the window's places, x first
    unsigned int step[2];
    unsigned int is_image;
    unsigned int magic;  // EMULATED_MAP
} emulated_map;

enum { EMULATED_MAP = 0x6d61702e };

// One for the process, as one thread of one block runs at a time.
typedef struct emulated_machine {
    emulated_extent thread, block;          // threadIdx, blockIdx
    emulated_extent block_size, grid_size;  // blockDim, gridDim
    unsigned int index;                     // of the thread in its cluster
    unsigned char *shared;                  // extern __shared__ of this block
    unsigned char *cluster_shared;          // of the first block of the cluster; see below
    // __syncthreads: returns when every thread of the block that goes on has come.
    void (*meet_block)(void);
    void (*meet_cluster)(void);  // the same for all blocks of a cluster
    // The same for these lanes of the thread's warp; each brings words. Returns the words of all,
    // valid until the lane's next meeting but one, and a bit for each lane that came.
    const emulated_words *(*meet_warp)(unsigned int lanes, const emulated_words *words,
                                       unsigned int *out_lanes);
    // Lets all others go on for a while: what a thread does that looks again and again.
    void (*yield)(void);
    unsigned long long (*now_ns)(void);
} emulated_machine;

// A kernel: runs one thread. `arguments` are packed as the driver packs them.
typedef void (*emulated_thread)(emulated_machine *machine, const unsigned char *arguments);

#define EMULATED_THREAD "emulated_thread_"
#define EMULATED_CLUSTER "emulated_cluster_"  // how many blocks run together
#define EMULATED_BYTES "emulated_bytes_"      // of its packed arguments
#define EMULATED_LAYOUT "emulated_layout_"    // how many parameters, then offset and size of each

// An image, NVRTC's "machine code": this, the size in eight bytes (lowest first), a shared object.
#define EMULATED_MAGIC "emulated"
