// philox.cuh - Philox 4x32-10: four random words for a key and a counter, and nothing to remember.
//
// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
// Plain C and CUDA C; the same text is compiled into the library for the host.
// SPDX-License-Identifier: Apache-2.0
#ifdef __CUDACC__
#define RONDO_RANDOM_INLINE static __device__ __forceinline__
#else
#define RONDO_RANDOM_INLINE static inline
#endif

RONDO_RANDOM_INLINE void rondo_philox_words(unsigned int key0, unsigned int key1,
                                            const unsigned int counter[4],
                                            unsigned int out_words[4]) {
    unsigned int x0 = counter[0], x1 = counter[1], x2 = counter[2], x3 = counter[3];
    for (int round = 0; round < 10; ++round) {
        const unsigned long long a = 0xd2511f53ull * x0, b = 0xcd9e8d57ull * x2;
        const unsigned int y0 = (unsigned int)(b >> 32) ^ x1 ^ key0;
        const unsigned int y2 = (unsigned int)(a >> 32) ^ x3 ^ key1;
        x1 = (unsigned int)b;
        x3 = (unsigned int)a;
        x0 = y0;
        x2 = y2;
        key0 += 0x9e3779b9u;
        key1 += 0xbb67ae85u;
    }
    out_words[0] = x0;
    out_words[1] = x1;
    out_words[2] = x2;
    out_words[3] = x3;
}

// The four words of one counter of a generator. In a kernel that was given a rondo_random_range:
// rondo_philox(range.state[0], range.state[1] + range.relative + i, words) for i < range.count.
RONDO_RANDOM_INLINE void rondo_philox(unsigned long long seed, unsigned long long counter,
                                      unsigned int out_words[4]) {
    const unsigned int words[4] = {(unsigned int)counter, (unsigned int)(counter >> 32), 0, 0};
    rondo_philox_words((unsigned int)seed, (unsigned int)(seed >> 32), words, out_words);
}
