// tensor_text.h — elements of any type as numbers, and a tensor in a few words.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "rondo/tensor.h"

// Element `index` as a double (64-bit whole numbers lose low digits), of a complex number the real
// part; 0 for what is no number.
double cli_tensor_get_element(const rondo_tensor *tensor, size_t index);

enum { CLI_ELEMENT_BYTES = 48 };

// Element `index` of numbers with all its digits: whole numbers exactly, reals with up to 9. Writes
// CLI_ELEMENT_BYTES at most. Returns `buffer`.
char *cli_tensor_format_element(const rondo_tensor *tensor, size_t index, char *buffer);

// "\"text\"", escaped as rondo/text.h does and cut to fit. Returns `buffer`.
char *cli_string_quote(const rondo_string *string, char *buffer, size_t buffer_bytes);

// "min -1.2, mean 0.1, max 3.4 (at 281); values 0.1 0.2 ..."; of strings the first few, of
// sequences and optionals the types and shapes of the first few items. Returns `buffer`.
char *cli_tensor_summarise(const rondo_tensor *tensor, char *buffer, size_t buffer_bytes);

// True for the types whose elements are numbers or booleans, complex ones apart.
bool cli_is_number(rondo_dtype dtype);
// F64, F32, F16 and BF16.
bool cli_is_real(rondo_dtype dtype);
// C64 and C128.
bool cli_is_complex(rondo_dtype dtype);
// Elements of less than 8 bits, or floats of 8: .npy files have bytes in their place.
bool cli_is_narrow(rondo_dtype dtype);
bool cli_is_narrow_float(rondo_dtype dtype);

// The parts of complex numbers as a tensor of reals, which borrows them: [..., 2], flattened.
rondo_tensor cli_view_parts(const rondo_tensor *tensor);
