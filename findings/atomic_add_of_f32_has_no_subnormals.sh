#!/bin/bash
# atomicAdd of f32 in global memory takes subnormal numbers for 0 and makes 0 of what was there, in shared memory it keeps them; f64, f16
# and bf16 keep them in both. Plain additions do, too.
#
# What is done: 1e-40 is added by atomicAdd to 1e-40 in global and in shared memory, to 0, and as a part of a float2; 0 is added to 1e-40;
# and three quarters of the least normal number are taken from it; 1e-310 to 1e-310 in f64, 1e-7 in f16, 1e-40 in bf16; the same by a
# plain addition. The code is compiled without fast math.
# Seen (H200, driver 580.159.04, CUDA 13.0): in global memory all sums of subnormals are 0, also that of 1e-40 and 0, so that adding
# nothing erases what was there; the least normal number stays as it is. The value before, which the call returns, is 1e-40. In shared
# memory and by plain additions the sum is 2e-40, in f64 2e-310, in f16 2.4e-7, in bf16 1.8e-40. PyTorch's index_add, scatter_add and
# bincount on a GPU (2.11.0) are 0 likewise, where index_put with accumulate and sum are not.
# What one would expect: the arithmetic of the addition. PTX' manual says so of atom.add.f32 in one sentence; nvcc's flag for subnormals
# (-ftz=false) does not reach it. Sums by atomics and by a tree differ, and on the processor the numbers are there.
# Exit status: 0 the same, 1 something differs, 77 no GPU or no nvcc here.
# SPDX-License-Identifier: Apache-2.0
set -eu
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .) || true
if [ ! -x "$nvcc" ] || [ -z "$capability" ]; then
    echo "skipped: this needs nvcc and a GPU"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$nvcc" --version | grep release
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1
cat >"$folder/finding.cu" <<'END'
#include <cstdio>
#include <cstdlib>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#define MUST(call)                                                                 \
    do {                                                                           \
        cudaError_t code = (call);                                                 \
        if (code != cudaSuccess) {                                                 \
            printf("%s: %s\n", #call, cudaGetErrorName(code));                     \
            exit(code == cudaErrorNoDevice || code == cudaErrorInsufficientDriver ? 77 : 1); \
        }                                                                          \
    } while (0)

static int differences;

static void expect(const char *what, bool is_so) {
    printf("%-10s %s\n", is_so ? "as before" : "DIFFERS", what);
    differences += !is_so;
}

struct Numbers {
    float onto_itself, onto_zero, zero_onto_it, normal, before, in_shared, plain;
    float2 pair;
    double wide;
    __half half;
    __nv_bfloat16 brain;
};

__global__ void add(Numbers *x, float small, float part, double wide, float half) {
    __shared__ float shared;
    shared = small;
    __syncthreads();
    x->before = atomicAdd(&x->onto_itself, small);
    atomicAdd(&x->onto_zero, small);
    atomicAdd(&x->zero_onto_it, 0.0f);
    atomicAdd(&x->normal, part);
    atomicAdd(&x->pair, make_float2(small, 1.0f));
    atomicAdd(&shared, small);
    x->in_shared = shared;
    x->plain = x->plain + small;
    atomicAdd(&x->wide, wide);
    atomicAdd(&x->half, __float2half(half));
    atomicAdd(&x->brain, __float2bfloat16(small));
}

static bool is_near(double a, double b) {
    return a > 0.98 * b && a < 1.02 * b;
}

int main() {
    const float small = 1e-40f, least = 1.17549435e-38f;
    Numbers x = {small, 0, small, least, 0, 0, small, {small, 1}, 1e-310, __float2half(1e-7f), __float2bfloat16(small)};
    Numbers *device;
    MUST(cudaMalloc(&device, sizeof x));
    MUST(cudaMemcpy(device, &x, sizeof x, cudaMemcpyHostToDevice));
    add<<<1, 1>>>(device, small, -0.75f * least, 1e-310, 1e-7f);
    MUST(cudaMemcpy(&x, device, sizeof x, cudaMemcpyDeviceToHost));
    const double half = __half2float(x.half), brain = __bfloat162float(x.brain);
    printf("in global memory: 1e-40 + 1e-40 = %g (before %g), 0 + 1e-40 = %g, 1e-40 + 0 = %g, pair %g %g, least - 3/4 of it = %g\n",
           x.onto_itself, x.before, x.onto_zero, x.zero_onto_it, x.pair.x, x.pair.y, x.normal);
    printf("in shared memory %g, plain %g, f64 %g, f16 %g, bf16 %g\n", x.in_shared, x.plain, x.wide, half, brain);
    expect("sums of subnormals are 0 in global memory", x.onto_itself == 0 && x.onto_zero == 0 && x.pair.x == 0 && x.pair.y == 2);
    expect("adding 0 erases a subnormal", x.zero_onto_it == 0 && is_near(x.before, 1e-40));
    expect("a subnormal term is lost", x.normal == least);
    expect("shared memory and plain additions keep them", is_near(x.in_shared, 2e-40) && is_near(x.plain, 2e-40));
    expect("f64, f16 and bf16 keep them", is_near(x.wide, 2e-310) && half > 2.3e-7 && half < 2.5e-7 && brain > 1.8e-40 && brain < 2.1e-40);
    return differences != 0;
}
END
"$nvcc" -std=c++17 -arch="sm_$capability" -w -o "$folder/finding" "$folder/finding.cu"
"$folder/finding"
