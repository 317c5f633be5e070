// rondo_attention_gradient.cuh - the arguments of the kernels of attention_gradient.cu and
// attention_gradient_tensor.cu, and the part of the tensors that one block works on.
// SPDX-License-Identifier: Apache-2.0

#ifndef RONDO_T
#define RONDO_T f16
#endif
typedef RONDO_T T;
#ifndef WIDTH
#define WIDTH 64  // of q and k
#endif
#ifndef V_WIDTH
#define V_WIDTH 64
#endif
#ifndef CAUSAL
#define CAUSAL 0
#endif

struct gradient_arguments {
    const T *dy;  // [batch, m, heads, V_WIDTH]
    const T *q;   // [batch, m, heads, WIDTH]
    const T *k;   // [batch, n, heads, WIDTH]
    const T *v;   // [batch, n, heads, V_WIDTH]
    T *dq;        // these may be NULL
    T *dk;
    T *dv;
    float2 *rows;  // [batch, heads, m]
    i64 heads, m, n;
    i64 out_pitch, out_v_pitch;  // from row to row of the outputs
    double scale;
};

// The tensors of a block's batch and head, with rows `pitch` and `v_pitch` apart.
struct view {
    const T *dy;
    const T *q;
    const T *k;
    const T *v;
    i64 at_q, at_k, at_v;  // offsets in the outputs
    i64 pitch, v_pitch;
    float2 *rows;
    __device__ __forceinline__ view(const gradient_arguments &a) {
        const i64 head = blockIdx.y, batch = blockIdx.z;
        pitch = a.heads * WIDTH;
        v_pitch = a.heads * V_WIDTH;
        at_q = batch * a.m * a.out_pitch + head * WIDTH;
        at_k = batch * a.n * a.out_pitch + head * WIDTH;
        at_v = batch * a.n * a.out_v_pitch + head * V_WIDTH;
        dy = a.dy + batch * a.m * v_pitch + head * V_WIDTH;
        q = a.q + batch * a.m * pitch + head * WIDTH;
        k = a.k + batch * a.n * pitch + head * WIDTH;
        v = a.v + batch * a.n * v_pitch + head * V_WIDTH;
        rows = a.rows + (batch * a.heads + head) * a.m;
    }
};
