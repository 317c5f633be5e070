// The checker of programmatic edges sees what it is there for, in PTX made for the purpose.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "support/ptx_turn.h"
#include "support/test.h"

#define HEAD                                            \
    ".version 8.0\n.target sm_90\n.visible .entry k(\n" \
    "  .param .align 8 .b8 k_param_0[64]\n)\n{\n"       \
    "  .reg .pred %p<3>;\n  .reg .b64 %rd<9>;\n"        \
    "  ld.param.u64 %rd1, [k_param_0];\n"               \
    "  ld.param.u64 %rd2, [k_param_0+8];\n"             \
    "  ld.param.u64 %rd3, [k_param_0+16];\n"            \
    "  // begin inline asm\n  griddepcontrol.launch_dependents;\n  // end inline asm\n"
#define WAIT "  griddepcontrol.wait;\n"
#define TAIL "  ret;\n}\n"

// Of the entry "k" pointer 1 of 3 is constant, and the tensor whose map lies at 128; "other" has
// none.
static const ptx_constant g_constants[] = {{"k", 3, 1u << 1, 128}, {NULL, 0, 0, 0}};

static const struct {
    const char *ptx;
    const char *why;  // "": it takes its turn
} rows[] = {
    {HEAD WAIT "  ld.global.u32 %r1, [%rd1];\n  st.global.u32 [%rd1], %r1;\n" TAIL, ""},
    // a way around the wait, to the end, and to an access
    {HEAD "  @%p1 bra $L_2;\n" WAIT "$L_2:\n" TAIL, "leaves the way"},
    {HEAD "  @%p1 bra $L_2;\n" WAIT "$L_2:\n  st.global.u32 [%rd1], %r1;\n" TAIL, "touches"},
    {HEAD "  @%p1 ret;\n" WAIT TAIL, "leaves the way"},
    {HEAD TAIL, "leaves the way"},
    {HEAD "  @%p1 griddepcontrol.wait;\n" TAIL, "leaves the way"},
    {HEAD "  call.uni f, (%rd1);\n" WAIT TAIL, "leaves the way"},
    {HEAD "  brx.idx %r1, t;\n" WAIT TAIL, "leaves the way"},
    {HEAD "  bra $L_9;\n" WAIT TAIL, "ends before"},
    // accesses
    {HEAD "  st.global.u32 [%rd2], %r1;\n" WAIT TAIL, "touches"},
    {HEAD "  st.u32 [%rd2], %r1;\n" WAIT TAIL, "touches"},
    {HEAD "  ld.u32 %r1, [%rd2];\n" WAIT TAIL, "touches"},
    {HEAD "  atom.global.add.u32 %r1, [%rd2], 1;\n" WAIT TAIL, "touches"},
    {HEAD "  red.global.add.u32 [%rd2], 1;\n" WAIT TAIL, "touches"},
    {HEAD "  ld.global.v2.u32 {%r1, %r2}, [%rd1+4];\n" WAIT TAIL, "pointer 0"},
    {HEAD "  ld.global.u32 %r1, [%rd2];\n" WAIT TAIL, ""},
    {HEAD "  cp.async.cg.shared.global [%r9], [%rd3], 16, %r1;\n" WAIT TAIL, "pointer 2"},
    {HEAD "  cp.async.cg.shared.global [%r9], [%rd2], 16, %r1;\n"
          "  cp.async.commit_group;\n  st.shared.u32 [%r9], %r1;\n" WAIT TAIL,
     ""},
    {HEAD "  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r9], [%rd2], %r1, "
          "[%r2];\n" WAIT TAIL,
     ""},
    {HEAD "  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r9], [%rd3], %r1, "
          "[%r2];\n" WAIT TAIL,
     "pointer 2"},
    // addresses that are computed, on any way
    {HEAD "  cvta.to.global.u64 %rd4, %rd2;\n  add.s64 %rd5, %rd4, 8;\n"
          "  ld.global.u32 %r1, [%rd5];\n" WAIT TAIL,
     ""},
    {HEAD "  selp.b64 %rd4, %rd2, %rd1, %p1;\n  ld.global.u32 %r1, [%rd4];\n" WAIT TAIL,
     "pointer 0"},
    {HEAD "  ld.global.u64 %rd4, [%rd2];\n  ld.global.u32 %r1, [%rd4];\n" WAIT TAIL,
     "comes from memory"},
    {HEAD "$L_1:\n  ld.global.u32 %r1, [%rd5];\n" WAIT
          "  mov.u64 %rd5, %rd3;\n  bra.uni $L_1;\n}\n",
     "pointer 2"},
    // tensors: the constant one, another, one of an address that is not known, one behind the wait
    {HEAD "  mov.b64 %rd6, k_param_0;\n  add.s64 %rd7, %rd6, 128;\n  cvta.param.u64 %rd8, %rd7;\n"
          "  fence.mbarrier_init.release.cluster;\n"
          "  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], "
          "[%rd8, {%r2, %r3}], [%r4];\n" WAIT TAIL,
     ""},
    {HEAD "  mov.b64 %rd6, k_param_0;\n  cvta.param.u64 %rd8, %rd6;\n"
          "  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], "
          "[%rd8, {%r2, %r3}], [%r4];\n" WAIT TAIL,
     "out of a tensor"},
    {HEAD "  mov.b64 %rd6, k_param_0;\n  add.s64 %rd7, %rd6, %rd9;\n  cvta.param.u64 %rd8, %rd7;\n"
          "  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], "
          "[%rd8, {%r2, %r3}], [%r4];\n" WAIT TAIL,
     "out of a tensor"},
    {HEAD "  cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r1], [%r2], "
          "%r3, [%r4];\n" WAIT
          "  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], "
          "[%rd8, {%r2, %r3}], [%r4];\n" TAIL,
     ""},
    // ways that join again, and a loop before the wait
    {HEAD "  @%p1 bra $L_1;\n  mov.u32 %r1, 2;\n  bra.uni $L_2;\n$L_1:\n  mov.u32 %r1, 3;\n"
          "$L_2:\n  @!%p2 bra $L_2;\n" WAIT "  ld.global.u32 %r1, [%rd1];\n" TAIL,
     ""},
    // a second entry, without constants of its own
    {HEAD WAIT TAIL ".visible .entry other()\n{\n  ld.global.u32 %r1, [%rd2];\n" WAIT TAIL,
     "other: touches"},
    {HEAD WAIT, "cut off"},
    {"nothing", "no entry"},
};

TEST(test_kernel_ptx_turn__planted) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        char why[600];
        const bool is_good = ptx_takes_turns(rows[i].ptx, g_constants, why, sizeof why);
        if (is_good != (rows[i].why[0] == '\0') || strstr(why, rows[i].why) == NULL) {
            fail_msg("row %zu: \"%s\", expected \"%s\"", i, why, rows[i].why);
        }
    }
}

TEST_MAIN()
