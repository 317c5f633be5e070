// support/cases/op_rows.h — op tests as rows of text: inputs, attributes, and what must come out.
//
//   op          "Conv", or "ai.onnx.ml.Scaler" with the domain in front
//   inputs      "f32[2,3]:1,2,3,4,5,6 - i64[]:-1"   separated by blanks; "-" is an absent input;
//               values missing at the end repeat the last one given; none: zeros; of strings
//               they are empty
//               "f32[2,3]:~4*0.1"    a pattern that any language can make: element i is
//               ((i * 37 + 4 * 11) mod 23 - 11) * 0.1; without the factor it is 0.125
//               "c64[2]:1,2,3,4"         complex numbers: real and imaginary parts in turn
//               "string[2]:red,a\\sb"                \s is a blank, \c a comma, \n and \t as in C
//               "{f32[1]:1;f32[2]:2,3}"  a sequence  "<f32[]:1>" "<{f32[]:1}>" "<>"  optionals
//   attributes  "axis=1 alpha=f:0.5 mode=s:edge axes=I:0,1 scales=F:1,2 value=T:i32[1]:7 a=S:x,y"
//               \s in the text of s: is a blank, too
//   expected    as inputs, one for each output, "-" for one that is not compared; "~1e-5" in front
//               is the tolerance of floats, in place of 1e-6 (8e-3 in 16 bits), of the value or of
//               1 where that is more; or "!STATUS part of the message" when the op must fail, "!3
//               STATUS ..." when three outputs are wanted of it
//
// A row that succeeds runs three times: into outputs it allocates, into given ones that hold
// garbage (numbers only), and with every allocation failing once. What inference says without
// values must agree.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>

typedef struct op_row {
    const char *op;
    int opset;
    const char *inputs;
    const char *attributes;
    const char *expected;
} op_row;

// Runs rows; the first wrong one ends the test and is named.
void op_rows_check(const op_row *rows, size_t count);

#define OP_ROWS_CHECK(rows) op_rows_check((rows), sizeof(rows) / sizeof((rows)[0]))

// A test (support/test.h) of nothing but rows.
#define OP_ROWS_TEST(name, rows) \
    TEST(name) {                 \
        OP_ROWS_CHECK(rows);     \
    }
