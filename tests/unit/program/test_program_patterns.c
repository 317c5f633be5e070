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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_program_patterns__masked_softmax),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
