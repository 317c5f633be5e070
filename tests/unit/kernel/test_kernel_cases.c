// Every op case on every device there is: kernels against the plain C references, eager and
// replayed; then again with NaN, infinities, denormals and signed zeros among the inputs, and sums
// that are long enough to lose digits; these are replayed only where a kernel has a workspace.
//
// With an argument (a device name) it runs that device alone; a second one filters ops by name, or
// is K/N: the kth of n parts, without the long sums; NAME@K/N and @K/N have them, too. A third one
// names one of the rounds below, and "" before it filters nothing.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cases/op_cases.h"

static int run(const char *device, const char *filter, const char *round) {
    static const struct {
        op_case_values values;
        const char *name;
    } rounds[] = {
        {OP_CASE_PLAIN, "plain values"}, {OP_CASE_NOT_FINITE, "NaN and infinities"},
        {OP_CASE_ALL_NAN, "all NaN"},    {OP_CASE_TINY, "denormals and zeros"},
        {OP_CASE_BFLOAT, "bf16"},        {OP_CASE_LONG, "long sums"},
    };
    int result = 0;
    // A sample is to be quick: no long sums.
    const bool is_sample = filter != NULL && strtoul(filter, NULL, 10) != 0;
    const size_t count = sizeof rounds / sizeof rounds[0] - (is_sample ? 1 : 0);
    for (size_t i = 0; i < count; ++i) {
        op_case_counts counts;
        if (round != NULL && strcmp(round, rounds[i].name) != 0) {
            continue;
        }
        if (!op_cases_run(device, filter, rounds[i].values, &counts)) {
            return 77;
        }
        printf("%s, %s: %zu passed, %zu failed, %zu known, %zu without a kernel\n", device,
               rounds[i].name, counts.passed, counts.failed, counts.excused, counts.unsupported);
        // The filter may leave no op that takes floats.
        result |= counts.failed != 0 || (i == 0 && counts.passed == 0);
    }
    return result;
}

int main(int argc, char **argv) {
    if (argc > 1) {
        const char *filter = argc > 2 && argv[2][0] != '\0' ? argv[2] : NULL;
        return run(argv[1], filter, argc > 3 ? argv[3] : NULL);
    }
    const int host = run("host", NULL, NULL);
    const int gpu = run("cuda:0", NULL, NULL);
    const char *require = getenv("RONDO_REQUIRE");
    if (gpu == 77 && require != NULL && strcmp(require, "cuda") == 0) {
        return 1;
    }
    return host != 0 && host != 77 ? host : gpu == 77 ? host : gpu;
}
