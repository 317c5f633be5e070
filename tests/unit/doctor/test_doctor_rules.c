// Each rule, with a stream that has the fault and one that has not: the first is found, and nothing
// else; in the second nothing is.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "doctor/analysis/doctor_rules.h"
#include "support/source_dir.h"
#include "support/test.h"
#include "unit/doctor/stream_text.h"

enum { STEPS = 24 };

typedef struct row {
    rondo__doctor_rule rule;
    const char *with;
    const char *without;
    double count;      // a step
    const char *more;  // ids of other rules that the fault breaks, too
} row;

#define RULE(identity) RONDO__DOCTOR_RULE_##identity

static const row g_rows[] = {
    {RULE(WAIT_DEVICE), "L:na cuCtxSynchronize L:nb W", "L:na L:nb cuCtxSynchronize", 1, ""},
    {RULE(WAIT_STREAM), "L:na W L:nb W", "L:na L:nb W", 1, ""},
    {RULE(WAIT_EVENT), "L:na cuEventRecord:o1 cuEventSynchronize:o1 L:nb W:d60",
     "L:na cuEventRecord:o1 L:nb cuEventSynchronize:o1", 1, ""},
    {RULE(READ_BACK), "L:na D:b4 W L:nb W", "L:na L:nb D:b4 W", 1, ""},
    {RULE(READ_BACK), "L:na cuMemcpyDtoH:b4 L:nb W", "L:na L:nb cuMemcpyDtoH:b4", 1, ""},
    {RULE(QUERY), "L:na cuStreamQuery cuEventQuery L:nb W", "L:na L:nb cuStreamQuery W", 2, ""},
    {RULE(ELAPSED_TIME), "L:na cuEventElapsedTime L:nb W", "L:na L:nb W cuEventElapsedTime", 1, ""},
    {RULE(SYNCHRONOUS_COPY), "L:na cuMemcpyHtoD:b4 L:nb W", "cuMemcpyHtoD:b4 L:na L:nb W", 1, ""},
    {RULE(SYNCHRONOUS_FILL), "L:na cuMemsetD8:b4 L:nb W", "L:na cuMemsetD8Async:b4 L:nb W", 1, ""},
    {RULE(PAGEABLE_COPY), "L:na H:b4:P L:nb W", "H:b4:P L:na H:b4 L:nb W", 1, ""},
    {RULE(ALLOCATE), "L:na cuMemAlloc:o5:b64 L:nb cuMemFree:o5 W", "L:na L:nb W", 2, ""},
    {RULE(FREE_USED), "L:na:w139637976000000 cuMemFree:o139637976000000 L:nb W",
     "L:na:w139637976000000 L:nb W", 1, ""},
    {RULE(HOST_MEMORY), "L:na cuMemHostAlloc cuMemFreeHost L:nb W", "L:na L:nb W", 2, ""},
    {RULE(STREAM_MEMORY), "L:na cuMemAllocAsync cuMemFreeAsync L:nb W", "L:na L:nb W", 2, ""},
    {RULE(MAP_MEMORY), "L:na cuMemMap L:nb W", "L:na L:nb W", 1, ""},
    {RULE(LOAD_MODULE), "L:na cuModuleLoadData L:nb W", "L:na L:nb W", 1, ""},
    {RULE(MAKE_STREAM), "L:na cuStreamCreate cuStreamDestroy L:nb W", "L:na L:nb W", 2, ""},
    {RULE(MAKE_EVENT), "L:na cuEventCreate L:nb cuEventDestroy W", "L:na L:nb W", 2, ""},
    {RULE(HOST_FUNCTION), "L:na cuLaunchHostFunc L:nb W", "L:na L:nb W", 1, ""},
    {RULE(CALLBACK_CALLS), "L:na cuMemFree:o5:C L:nb W", "L:na L:nb W", 1, ""},
    {RULE(STREAM_CALLBACK), "L:na cuStreamAddCallback L:nb W", "L:na L:nb W", 1, ""},
    {RULE(ATTACH_MEMORY), "L:na cuStreamAttachMemAsync L:nb W", "L:na L:nb W", 1, ""},
    {RULE(REBUILD_GRAPH), "L:na cuGraphExecUpdate cuGraphLaunch W", "L:na cuGraphLaunch W", 1, ""},
    {RULE(MANY_GRAPHS), "cuGraphLaunch L:na cuGraphLaunch L:nb cuGraphLaunch cuGraphLaunch W",
     "L:na cuGraphLaunch L:nb cuGraphLaunch W", 4, ""},
    {RULE(LEGACY_STREAM), "L:na:s0 L:nb:s0 W:s0", "L:na L:nb W", 2, ""},
    {RULE(FOREIGN_EVENT), "L:na cuStreamWaitEvent:o1 L:nb W",
     "L:na cuEventRecord:o1:s7 cuStreamWaitEvent:o1:s7 L:nb W", 1, ""},
    {RULE(UNJOINED_FORK), "L:na cuEventRecord:o1:s7 cuStreamWaitEvent:o1:s8 L:nc:s8 L:nb W",
     "L:na cuEventRecord:o1:s7 cuStreamWaitEvent:o1:s8 L:nc:s8 cuEventRecord:o2:s8 "
     "cuStreamWaitEvent:o2:s7 L:nb W",
     1, ""},
    {RULE(SEPARATE_STREAM), "L:na L:nc:s8 L:nb W", "L:na L:nc L:nb W", 1, ""},
    {RULE(CHANGING_SHAPE), "L:na L:nc:G L:nd L:ne L:nf L:nb W", "L:na L:nc L:nb W", 1, ""},
    {RULE(DATA_SHAPE), "L:na D:b4 W L:nc:G L:nd L:ne L:nf L:nb W", "L:na L:nc L:nb D:b4 W", 1,
     "read-back"},
    {RULE(CHANGING_KERNEL), "L:na L:K L:nd L:ne L:nf L:nb W", "L:na L:nc L:nd L:nb W", 1, ""},
    {RULE(CHANGING_COPY), "L:na cuMemcpyDtoDAsync:B L:nd L:ne L:nf L:nb W",
     "L:na cuMemcpyDtoDAsync:b8 L:nb W", 1, ""},
    {RULE(COUNTER), "L:na:w7:w# L:nb W", "L:na:w7:w3 L:nb W", 1, ""},
    {RULE(MOVING_ADDRESS), "L:na:w@:w3 L:nb W", "L:na:w139637976000000:w3 L:nb W", 1, ""},
    {RULE(MOVING_ADDRESS), "L:na cuMemcpyDtoDAsync:A L:nb W", "H:A L:na L:nb W", 1, ""},
    {RULE(CHANGING_SCALAR), "L:na:w? L:nb W", "L:na:w5 L:nb W", 1, ""},
    {RULE(RANDOM_STATE), "L:nfused_dropout_kernel:w# L:nb W", "L:nfused_dropout_kernel:w1 L:nb W",
     1, ""},
    {RULE(UNWRITTEN_WORD), "L:na:U:w7:w! L:nb W", "L:na:U:w7:w263680336 L:nb W", 1, ""},
    {RULE(UNWRITTEN_WORD), "L:na:U:w7:w& L:nb W", "L:na:U:w7:w2 L:nb W", 1, ""},
    {RULE(UNWRITTEN_WORD), "L:na:U:w7:w~ L:nb W", "L:na:U:w7:w6 L:nb W", 1, ""},
    {RULE(UNWRITTEN_WORD), "L:na:E:w7:w! L:nb W", "L:na:E:w7:w263680336 L:nb W", 1, ""},
    {RULE(UNWRITTEN_WORD), "L:na:U:w%:w7 L:nb W", "L:na:U:w17179869190:w7 L:nb W", 1, ""},
    {RULE(MOVING_ADDRESS), "L:na:w@:U:w7 L:nb W", "L:na:U:w139637976000000:w7 L:nb W", 1, ""},
    {RULE(COUNTER), "L:na:E:w7:w# L:nb W", "L:na:E:w7:w3 L:nb W", 1, ""},
    {RULE(RANDOM_STATE), "L:nphilox:U:w7:w! L:nb W", "L:nphilox:U:w7:w3 L:nb W", 1, ""},
    {RULE(CHANGING_SCALAR), "L:na:U:w7:w? L:nb W", "L:na:U:w7:w5 L:nb W", 1, ""},
    {RULE(COLLECTIVE_ORDER), "L:na L:nncclSum:K L:nd L:ne L:nf L:nb W", "L:na L:nncclSum L:nb W", 1,
     ""},
};
enum { ROW_COUNT = sizeof(g_rows) / sizeof(g_rows[0]) };

static void examine(const char *step, rondo__doctor_findings *out_findings) {
    rondo__doctor_log log = {.events = NULL};
    rondo__doctor_steps steps;
    stream_add_steps(&log, step, STEPS);
    assert_true(rondo__doctor_find_steps(&log, &steps));
    if (steps.period == 0) {
        fail_msg("no step in \"%s\"", step);
    }
    rondo__doctor_apply_rules(&steps, out_findings);
    rondo__doctor_steps_clear(&steps);
    rondo__doctor_log_clear(&log);
}

static double count_rule(const rondo__doctor_findings *findings, rondo__doctor_rule rule) {
    double count = 0.0;
    for (size_t i = 0; i < findings->count; i++) {
        count += findings->rows[i].rule == rule ? findings->rows[i].count : 0.0;
    }
    return count;
}

static void check_nothing_else(const row *r, const rondo__doctor_findings *findings) {
    for (size_t i = 0; i < findings->count; i++) {
        const rondo__doctor_rule rule = findings->rows[i].rule;
        if (rule != r->rule && strcmp(r->more, rondo__doctor_rule_id(rule)) != 0) {
            fail_msg("\"%s\" also breaks %s", r->with, rondo__doctor_rule_id(rule));
        }
    }
}

TEST(test_each_rule) {
    static rondo__doctor_findings findings;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const row *r = &g_rows[i];
        examine(r->with, &findings);
        const double count = count_rule(&findings, r->rule);
        if (!(count > r->count - 0.01 && count < r->count + 0.01)) {
            fail_msg("%s: \"%s\" breaks it %g times a step, not %g", rondo__doctor_rule_id(r->rule),
                     r->with, count, r->count);
        }
        check_nothing_else(r, &findings);
        examine(r->without, &findings);
        if (findings.count != 0) {
            fail_msg("\"%s\" breaks %s", r->without, rondo__doctor_rule_id(findings.rows[0].rule));
        }
    }
}

// Two collectives that change places from step to step.
TEST(test_collectives) {
    static rondo__doctor_findings findings;
    rondo__doctor_log log = {.events = NULL};
    rondo__doctor_steps steps;
    for (int i = 0; i < STEPS; i++) {
        stream_add_steps(&log,
                         i == 11 || i == 18
                             ? "L:na L:nncclMax L:nncclSum L:nc L:nd L:ne L:nf L:nb W"
                             : "L:na L:nncclSum L:nncclMax L:nc L:nd L:ne L:nf L:nb W",
                         1);
    }
    assert_true(rondo__doctor_find_steps(&log, &steps));
    rondo__doctor_apply_rules(&steps, &findings);
    assert_true(count_rule(&findings, RULE(COLLECTIVE_ORDER)) > 0.0);
    assert_true(count_rule(&findings, RULE(CHANGING_KERNEL)) <= 0.0);
    rondo__doctor_steps_clear(&steps);
    rondo__doctor_log_clear(&log);
}

// The same collectives in another order on another process, or in the same one.
TEST(test_ranks) {
    static rondo__doctor_findings findings;
    static const char *const ranks[] = {"L:na L:nncclSum L:nncclMax L:nb W",
                                        "L:nb L:nncclMax L:nncclSum W", "L:nncclSum L:nncclMax W",
                                        "L:na L:nb W"};
    rondo__doctor_log logs[4] = {{.events = NULL}};
    rondo__doctor_steps steps[4];
    for (size_t i = 0; i < 4; i++) {
        stream_add_steps(&logs[i], ranks[i], STEPS);
        assert_true(rondo__doctor_find_steps(&logs[i], &steps[i]));
    }
    for (size_t i = 1; i < 4; i++) {
        findings.count = 0;
        rondo__doctor_compare_ranks(&steps[0], &steps[i], &findings);
        assert_int_equal(findings.count, i == 1 ? 1 : 0);
        assert_true(i != 1 || findings.rows[0].rule == RULE(COLLECTIVE_RANKS));
    }
    for (size_t i = 0; i < 4; i++) {
        rondo__doctor_steps_clear(&steps[i]);
        rondo__doctor_log_clear(&logs[i]);
    }
}

TEST(test_texts) {
    bool has_row[RONDO__DOCTOR_RULE_COUNT] = {[RULE(COLLECTIVE_RANKS)] = true};  // test_ranks
    for (size_t i = 0; i < ROW_COUNT; i++) {
        has_row[g_rows[i].rule] = true;
    }
    for (size_t rule = 0; rule < RONDO__DOCTOR_RULE_COUNT; rule++) {
        const rondo__doctor_rule_row *texts = rondo__doctor_get_rule(rule);
        assert_true(has_row[rule]);
        assert_true(strlen(rondo__doctor_rule_id(rule)) > 0);
        assert_non_null(texts->what);
        assert_non_null(texts->cure);
    }
    assert_null(rondo__doctor_get_rule(RONDO__DOCTOR_RULE_COUNT));
    assert_string_equal(rondo__doctor_rule_id(RONDO__DOCTOR_RULE_COUNT), "");
}

// docs/doctor.md has a section for each rule, with its cure.
TEST(test_documentation) {
    static char text[1 << 16];
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/docs/doctor.md", get_source_dir());
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof(text) - 1, file) < sizeof(text) - 1);
    assert_int_equal(fclose(file), 0);
    for (size_t rule = 0; rule < RONDO__DOCTOR_RULE_COUNT; rule++) {
        char head[64];
        (void)snprintf(head, sizeof(head), "\n### %s\n", rondo__doctor_rule_id(rule));
        const char *section = strstr(text, head);
        if (section == NULL || strstr(section, "Cure: ") == NULL) {
            fail_msg("docs/doctor.md has no section for %s", rondo__doctor_rule_id(rule));
        }
    }
}

// What breaks a capture comes first, then what costs most.
TEST(test_order) {
    static rondo__doctor_findings findings;
    examine("L:na:w# cuEventCreate cuMemAlloc W L:nb W", &findings);
    assert_int_equal(findings.count, 4);
    assert_int_equal(findings.rows[0].rule, RULE(WAIT_STREAM));
    assert_int_equal(findings.rows[1].rule, RULE(ALLOCATE));
    assert_int_equal(findings.rows[2].rule, RULE(COUNTER));
    assert_int_equal(findings.rows[2].word, 0);
    assert_int_equal(findings.rows[3].rule, RULE(MAKE_EVENT));
    assert_true(findings.rows[0].cost_us > 19.0 && findings.rows[0].cost_us < 21.0);
}

TEST_MAIN()
