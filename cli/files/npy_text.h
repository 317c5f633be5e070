// npy_text.h — strings in .npy files: every element has the room of the longest, as UTF-32 ('<U9')
// or as bytes ('|S9'), filled up with zeros.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "rondo/tensor.h"

typedef struct cli_npy_text {
    size_t element_bytes;
    bool is_wide;  // UTF-32, otherwise bytes as they are
    bool is_big_endian;
} cli_npy_text;

// A string takes 36 bytes and more in memory, one or four in a file, so there is a limit to how
// many are read.
enum { CLI_NPY_STRINGS_MAX = 1 << 24 };

// Reads the element type, for example "'<U9'". False when it is none of strings.
bool cli_npy_text_parse_descr(const char *value, cli_npy_text *out_text);

// Makes a string tensor of the elements behind the header. On failure prints why, beginning with
// `label`.
//
// Ownership: free *out_tensor with rondo_tensor_deinit.
bool cli_npy_text_read(const uint8_t *bytes, const cli_npy_text *text, const rondo_shape *shape,
                       const char *label, rondo_tensor *out_tensor);

// The number of characters of the longest string, at least 1. On failure prints why: NumPy's
// strings are valid UTF-8 and cannot end in zeros.
bool cli_npy_text_measure(const rondo_tensor *tensor, const char *label, size_t *out_characters);

// Writes the elements as UTF-32, little endian, each with room for `characters`. What fails is left
// to the check of the file.
void cli_npy_text_write(const rondo_tensor *tensor, size_t characters, FILE *file);
