// ONNX's own operator tests on the plain C references.
//
// Alone it checks how many pass; with directories as arguments it prints a line for each.
// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cases/node_runner.h"
#include "support/source_dir.h"
#include "support/test.h"

#define NODES "/usr/share/libonnx-testdata/data/node"

enum { PASSED_MIN = 890 };

typedef struct tally {
    int counts[3];
} tally;

static void run_one(const char *directory, tally *counts, int is_quiet) {
    static const char *const names[] = {"passed", "FAILED", "skipped"};
    char reason[512];
    node_outcome outcome = node_runner_run(directory, reason, sizeof reason);
    counts->counts[outcome]++;
    if (!is_quiet || outcome == NODE_FAILED) {
        const char *name = strrchr(directory, '/');
        printf("%-7s %s %s\n", names[outcome], name != NULL ? name + 1 : directory, reason);
    }
}

// Tests whose expected output is wrong are left out; the list says why.
static bool is_known_wrong(const char *name) {
    char line[256];
    bool is_listed = false;
    char path[512];
    (void)snprintf(path, sizeof path, "%s/tests/support/models/onnx_known_wrong.txt",
                   get_source_dir());
    FILE *file = fopen(path, "r");
    while (file != NULL && !is_listed && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        is_listed = strcmp(line, name) == 0;
    }
    if (file != NULL) {
        fclose(file);
    }
    return is_listed;
}

TEST(test_op_onnx_nodes__pass) {
    tally counts = {{0}};
    struct dirent **entries = NULL;
    int entry_count = scandir(NODES, &entries, NULL, alphasort);
    if (entry_count < 0) {
        printf("skipped: " NODES " is not there (Debian and Ubuntu: libonnx-testdata)\n");
        skip();
    }
    for (int i = 0; i < entry_count; i++) {
        if (strncmp(entries[i]->d_name, "test_", 5) == 0 && !is_known_wrong(entries[i]->d_name)) {
            char path[512];
            snprintf(path, sizeof path, NODES "/%s", entries[i]->d_name);
            run_one(path, &counts, 1);
        }
        free(entries[i]);
    }
    free(entries);
    printf("%d passed, %d failed, %d skipped\n", counts.counts[0], counts.counts[1],
           counts.counts[2]);
    assert_int_equal(counts.counts[NODE_FAILED], 0);
    assert_true(counts.counts[NODE_PASSED] >= PASSED_MIN);
}

int main(int argc, char **argv) {
    if (argc > 1) {
        tally counts = {{0}};
        for (int i = 1; i < argc; i++) {
            run_one(argv[i], &counts, 0);
        }
        printf("%d passed, %d failed, %d skipped\n", counts.counts[0], counts.counts[1],
               counts.counts[2]);
        return counts.counts[NODE_FAILED] == 0 ? 0 : 1;
    }
    return RUN_TESTS(NULL, NULL);
}
