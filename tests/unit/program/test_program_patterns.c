// Patterns that exporters write out in small ops become one op each, and what only looks like one
// does not.
// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka wants the four above first
#include <cmocka.h>

#include "support/cases/program_lines.h"

#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])

// ---- softmax whose empty rows are zeros -------------------------------------------------------

#define MASKED "input x f32 2,3,5 empty", "value zero f32 0", "Softmax axis=-1 x > s", "IsNaN s > n"

static void test_program_patterns__masked_softmax(void **state) {
    (void)state;
    static const program_row rows[] = {
        // as torch 2.15 writes attention with a mask
        {{MASKED, "Where n zero s > y", "output y"}, "rondo.Softmax"},
        {{"input x f32 2,3,5 empty", "value zero f32 0 1", "Softmax axis=1 x > s", "IsNaN s > n",
          "Where n zero s > y", "output y"},
         "rondo.Softmax"},
        // another number, -0, axes that it adds, the branches swapped, of another value
        {{MASKED, "value one f32 1", "Where n one s > y", "output y"}, "Softmax IsNaN Where"},
        {{MASKED, "value negative f32 -0.0", "Where n negative s > y", "output y"},
         "Softmax IsNaN Where"},
        {{MASKED, "value wide f32 0 1,1,1,1", "Where n wide s > y", "output y"},
         "Softmax IsNaN Where"},
        {{MASKED, "Where n s zero > y", "output y"}, "Softmax IsNaN Where"},
        {{MASKED, "input z f32 2,3,5", "Where n zero z > y", "output y"}, "Softmax IsNaN Where"},
        // somebody else looks at what lies between
        {{MASKED, "Where n zero s > y", "output y", "output s"}, "Softmax IsNaN Where"},
        {{MASKED, "Where n zero s > y", "output y", "output n"}, "Softmax IsNaN Where"},
        {{MASKED, "Where n zero s > y", "Relu s > z", "output y", "output z"},
         "Softmax IsNaN Where Relu"},
    };
    program_rows_check(rows, COUNT(rows), NULL);
}

// ---- RMSNormalization -------------------------------------------------------------------------

#define MEAN                                                                        \
    "input x f32 2,3,8", "const w f32 8", "value two f32 2", "value e f32 0.00001", \
        "list last -1,", "Pow x two > p", "ReduceMean p last > m", "Add m e > a"

static void test_program_patterns__rms_norm(void **state) {
    (void)state;
    static const program_row rows[] = {
        // as torch, keras and others write it
        {{MEAN, "Sqrt a > s", "Reciprocal s > r", "Mul x r > n", "Mul w n > y", "output y"},
         "~RMSNormalization"},
        {{MEAN, "value one f32 1", "Sqrt a > s", "Div one s > r", "Mul r x > n", "Mul n w > y",
          "output y"},
         "~RMSNormalization"},
        {{MEAN, "Sqrt a > s", "Div x s > n", "Mul n w > y", "output y"}, "~RMSNormalization"},
        {{MEAN, "value half f32 -0.5", "Pow a half > r", "Mul x r > n", "Mul n w > y", "output y"},
         "~RMSNormalization"},
        {{"input x f32 2,8", "const w f32 8", "value e f32 0.00001", "list last 1,", "Mul x x > p",
          "ReduceMean p last > m", "Add e m > a", "Sqrt a > s", "Div x s > n", "Mul n w > y",
          "output y"},
         "~RMSNormalization"},
        // another power, axis or numerator; no epsilon; a gain of another shape, or that is computed
        {{"input x f32 2,8", "const w f32 8", "value three f32 3", "value e f32 9", "list last -1,",
          "Pow x three > p", "ReduceMean p last > m", "Add m e > a", "Sqrt a > s", "Div x s > n",
          "Mul n w > y", "output y"},
         "Pow ReduceMean Add Sqrt Div Mul"},
        {{"input x f32 8,8", "const w f32 8", "value two f32 2", "value e f32 1", "list first 0,",
          "Pow x two > p", "ReduceMean p first > m", "Add m e > a", "Sqrt a > s", "Div x s > n",
          "Mul n w > y", "output y"},
         "Pow ReduceMean Add Sqrt Div Mul"},
        {{MEAN, "input z f32 2,3,8", "Sqrt a > s", "Div z s > n", "Mul n w > y", "output y"},
         "Pow ReduceMean Add Sqrt Div Mul"},
        {{"input x f32 2,8", "const w f32 8", "value two f32 2", "list last -1,", "Pow x two > p",
          "ReduceMean p last > m", "Sqrt m > s", "Div x s > n", "Mul n w > y", "output y"},
         "Pow ReduceMean Sqrt Div Mul"},
        {{MEAN, "const g f32 3,1", "Sqrt a > s", "Div x s > n", "Mul n g > y", "output y"},
         "Pow ReduceMean Add Sqrt Div Mul"},
        {{"input x f32 2,3,1", "const w f32 8", "value two f32 2", "value e f32 1", "list last -1,",
          "Pow x two > p", "ReduceMean p last > m", "Add m e > a", "Sqrt a > s", "Div x s > n",
          "Mul n w > y", "output y"},
         "Pow ReduceMean Add Sqrt Div Mul"},
        {{MEAN, "input g f32 8", "Sqrt a > s", "Div x s > n", "Mul n g > y", "output y"},
         "Pow ReduceMean Add Sqrt Div Mul"},
        // somebody else looks at what lies between
        {{MEAN, "Sqrt a > s", "Div x s > n", "Mul n w > y", "output y", "output n"},
         "Pow ReduceMean Add Sqrt Div Mul"},
        {{MEAN, "Sqrt a > s", "Div x s > n", "Mul n w > y", "output y", "output m"},
         "Pow ReduceMean Add Sqrt Div Mul"},
    };
    program_rows_check(rows, COUNT(rows), NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_program_patterns__masked_softmax),
        cmocka_unit_test(test_program_patterns__rms_norm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
