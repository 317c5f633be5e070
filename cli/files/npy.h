// npy.h — NumPy's .npy files to tensors and back.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/tensor.h"

// True when the bytes begin as a .npy file does.
bool cli_npy_is(const uint8_t *bytes, size_t byte_count);

// Makes a tensor of the bytes of a .npy file (format 1.0 to 3.0, either byte order, C or Fortran
// order). On failure prints why, beginning with `label`, and returns false.
//
// wanted     NumPy saves types of ml_dtypes (int4, float8) as bytes, '<V1': those are of this type.
//            NONE: not known, they become u8.
//
// Ownership: free *out_tensor with rondo_tensor_deinit.
bool cli_npy_parse(const uint8_t *bytes, size_t byte_count, const char *label, rondo_dtype wanted,
                   rondo_tensor *out_tensor);

// The same from a file.
bool cli_npy_read(const char *path, rondo_dtype wanted, rondo_tensor *out_tensor);

// Writes a .npy file of format 1.0, little endian. Types that NumPy lacks are written as it does
// with those of ml_dtypes, bf16 as '<V2' and narrow ones as '<V1': `array.view(ml_dtypes.int4)`
// has their numbers. Strings become UTF-32, as NumPy's are.
// On failure prints why and returns false; there is no file then.
bool cli_npy_write(const char *path, const rondo_tensor *tensor);
