// npy.h — NumPy's .npy files to tensors and back.
#ifndef RONDO_CLI_NPY_H
#define RONDO_CLI_NPY_H

#include <stdbool.h>

#include "rondo/tensor.h"

// Reads a .npy file (format 1.0 to 3.0, either byte order). On failure prints why and returns
// false.
//
// Ownership: free *out_tensor with rondo_tensor_deinit.
bool cli_npy_read(const char *path, rondo_tensor *out_tensor);

// Writes a .npy file of format 1.0, little endian. bf16, which NumPy lacks, is written as '<V2'.
// On failure prints why and returns false.
bool cli_npy_write(const char *path, const rondo_tensor *tensor);

#endif  // RONDO_CLI_NPY_H
