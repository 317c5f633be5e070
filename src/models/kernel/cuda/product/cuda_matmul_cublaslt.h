// kernel/cuda/product/cuda_matmul_cublaslt.h — matrix products by cuBLASLt.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/cuda/product/cuda_matmul.h"

enum { RONDO__CUBLASLT_PLANS = 6 };

// cuBLASLt's candidate `plan` (0 is what its heuristic likes best), with what its epilogues lack as
// a second step. Refuses when the library is absent or has no such plan.
void rondo__cuda_add_cublaslt_plan(rondo__cuda_kernel *kernel, const rondo__cuda_matmul *matmul,
                                   size_t plan);
// Whether strides and types are such as cuBLASLt takes.
bool rondo__cuda_suits_cublaslt(const rondo__cuda_matmul *matmul);
// The version, 0 when the library is absent; part of names of its plans. Both load it.
size_t rondo__cuda_get_cublaslt_version(const rondo__cuda_kernel *kernel);
bool rondo__cuda_has_cublaslt(const rondo__cuda_kernel *kernel);
