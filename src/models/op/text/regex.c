// op/text/regex.c — what the engine says about a pattern, as an error of the op.
// SPDX-License-Identifier: Apache-2.0
#include "op/text/regex.h"

#include "op/op.h"

rondo_status rondo__regex_create(const rondo__op *op, const char *pattern,
                                 rondo__regex **out_regex) {
    char problem[RONDO__REGEX_PROBLEM_BYTES];
    const rondo_status status = rondo__regex_compile(pattern, out_regex, problem);
    switch (status) {
        case RONDO_STATUS_BAD_DATA:
            return RONDO_OP_FAIL(op, BAD_DATA, "the pattern is no regular expression: %s", problem);
        case RONDO_STATUS_UNSUPPORTED:
            return rondo__op_fail_unsupported(op, problem);
        default:
            return status;
    }
}
