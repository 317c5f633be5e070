// flow.cu - what happens between the turns of a loop, and before a branch: read the condition, count,
// move one slice. T is an unsigned type that a slice's rows are a multiple of. See kernel/flow.h,
// whose structs these are.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

#ifndef RONDO_T
#define RONDO_T u32
#endif
typedef RONDO_T T;

struct flow_state {
    i64 turn;
    i64 count;
    i64 taken;
    u32 predicate;
    u32 is_stopped;
    u8 condition;
    u8 unused[7];
};

struct flow_watch {
    i32 call;
    u32 unused;
    u64 stopped;
};

struct choose_arguments {
    flow_state *state;
    const u8 *condition;
};
extern "C" __global__ void rondo_flow_choose(const choose_arguments a) {
    take_turn();
    a.state->predicate = *a.condition != 0;
}

struct loop_arguments {
    flow_state *state;
    flow_state *outermost;
    volatile flow_watch *watch;
    const i64 *count;
    const u8 *condition;
    i64 fixed_count, limit;
    u64 owner;
};

// Whether one more turn begins.
__device__ __forceinline__ void decide(const loop_arguments &a, bool goes_on) {
    u64 reason = 0;
    goes_on = goes_on && a.state->turn < a.state->count && a.outermost->is_stopped == 0;
    if (goes_on && a.limit > 0 && a.outermost->taken >= a.limit) {
        reason = a.owner;
    } else if (goes_on && a.watch != 0 && a.state->turn % 16 == 0 && a.watch->call == 2) {
        reason = 2;
    }
    if (reason != 0) {
        a.outermost->is_stopped = 1;
        a.watch->stopped = reason;
        __threadfence_system();
    }
    goes_on = goes_on && reason == 0;
    a.outermost->taken += goes_on && a.limit > 0 ? 1 : 0;
    a.state->predicate = goes_on ? 1 : 0;
}

extern "C" __global__ void rondo_flow_enter(const loop_arguments a) {
    take_turn();
    a.state->turn = 0;
    a.state->count = a.count != 0 ? *a.count : a.fixed_count;
    a.state->condition = 1;
    if (a.outermost == a.state) {
        a.state->taken = 0;
        a.state->is_stopped = 0;
    }
    decide(a, a.condition == 0 || *a.condition != 0);
}

extern "C" __global__ void rondo_flow_next(const loop_arguments a) {
    take_turn();
    a.state->turn += 1;
    decide(a, a.condition == 0 || *a.condition != 0);
}

// tensor [outer, length, inner] and slice [outer, inner], along the turn.
struct slice_arguments {
    const flow_state *state;
    T *tensor;
    T *slice;
    i64 outer, length, inner, is_written, is_backward, element_bytes;
};
extern "C" __global__ void __launch_bounds__(256) rondo_flow_slice(const slice_arguments a) {
    take_turn();
    const i64 turn = a.state->turn;
    if (turn < 0 || turn >= a.length) {
        return;
    }
    const i64 index = a.is_backward != 0 ? a.length - 1 - turn : turn;
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.outer * a.inner;
         n += (i64)gridDim.x * 256) {
        T *strided = a.tensor + (n / a.inner * a.length + index) * a.inner + n % a.inner;
        if (a.is_written != 0) {
            *strided = a.slice[n];
        } else {
            a.slice[n] = *strided;
        }
    }
}
