// Stands where NVIDIA's cuBLASLt and cuDNN would be found: it has none of their functions, so Rondo
// takes its own kernels.
// SPDX-License-Identifier: Apache-2.0
extern const char rondo_emulated_absent[];
const char rondo_emulated_absent[] = "not there";
