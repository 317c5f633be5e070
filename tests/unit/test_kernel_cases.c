// Every op case on every device there is: kernels against the plain C references, eager and
// replayed.
//
// With an argument (a device name) it runs that device alone; a second one filters ops by name.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/op_cases.h"

static int run(const char *device, const char *filter) {
    op_case_counts counts;
    if (!op_cases_run(device, filter, &counts)) {
        return 77;
    }
    printf("%s: %zu passed, %zu failed, %zu without a kernel\n", device, counts.passed,
           counts.failed, counts.unsupported);
    return counts.failed == 0 && counts.passed > 0 ? 0 : 1;
}

int main(int argc, char **argv) {
    if (argc > 1) {
        return run(argv[1], argc > 2 ? argv[2] : NULL);
    }
    const int host = run("host", NULL);
    const int gpu = run("cuda:0", NULL);
    const char *require = getenv("RONDO_REQUIRE");
    if (gpu == 77 && require != NULL && strcmp(require, "cuda") == 0) {
        return 1;
    }
    return host != 0 && host != 77 ? host : gpu == 77 ? host : gpu;
}
