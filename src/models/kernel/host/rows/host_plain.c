// kernel/host/rows/host_plain.c — one op over elements of any type: the loops of
// simd/simd_plain.c over rows of the broadcast operands, by several threads.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/simd/simd.h"
#include "op/broadcast.h"

enum { CHUNK = 8 * 1024 };  // elements of one piece of work

typedef struct plain_kernel {
    rondo__host_kernel head;
    rondo__plain_loop loop;
    rondo__broadcast walk;
    int64_t pieces;                // of a row
    int64_t grain;                 // pieces
    int64_t from_bytes, to_bytes;  // of an element
} plain_kernel;

typedef struct plain_run {
    const plain_kernel *kernel;
    const char *operands[2];
    char *y;
} plain_run;

static void run_pieces(void *data, int64_t first, int64_t end) {
    const plain_run *run = data;
    const plain_kernel *kernel = run->kernel;
    rondo__broadcast walk = kernel->walk;
    const int64_t *steps = walk.row_stride, *offset = walk.offset, bytes = kernel->from_bytes;
    int64_t row = first / kernel->pieces, part = first % kernel->pieces;
    rondo__broadcast_seek(&walk, row);
    for (int64_t unit = first; unit < end; ++row, part = 0) {
        // What is left of a row, or of the units.
        const int64_t at = part * CHUNK;
        const int64_t left = kernel->pieces - part, asked = end - unit;
        const int64_t units = left < asked ? left : asked;
        const int64_t count = units < left ? units * CHUNK : walk.row_length - at;
        kernel->loop(run->operands[0] + (offset[0] + at * steps[0]) * bytes,
                     run->operands[1] + (offset[1] + at * steps[1]) * bytes, steps[0], steps[1],
                     run->y + (row * walk.row_length + at) * kernel->to_bytes, count);
        rondo__broadcast_advance(&walk);
        unit += units;
    }
}

static rondo_status run_plain(rondo__host_kernel *head, const void *const *inputs,
                              void *const *outputs, void *workspace) {
    (void)workspace;
    const plain_kernel *kernel = (const plain_kernel *)head;
    const void *second = head->input_count > 1 ? inputs[1] : inputs[0];
    plain_run run = {kernel, {inputs[0], second}, outputs[0]};
    rondo__workers_loop(kernel->walk.row_count * kernel->pieces, kernel->grain, run_pieces, &run);
    return RONDO_STATUS_OK;
}

// ---- preparing --------------------------------------------------------------------------------

#define NUMBER_f32 RONDO_DTYPE_F32
#define NUMBER_i64 RONDO_DTYPE_I64
#define NUMBER_i32 RONDO_DTYPE_I32
#define NUMBER_bool RONDO_DTYPE_BOOL

typedef struct plain_row {
    rondo__op_id op;
    rondo_dtype from, to;
    rondo__plain loop;
    bool takes_two;
} plain_row;

#define ROW(op, from, to, takes_two) \
    { RONDO__OP_##op, NUMBER_##from, NUMBER_##to, RONDO__PLAIN_##op##_##from, takes_two }
#define CAST_ROW(from, to) \
    { RONDO__OP_Cast, NUMBER_##from, NUMBER_##to, RONDO__PLAIN_Cast_##from##_##to, false }
#define COMPARISON_ROWS(from)                                                  \
    ROW(Less, from, bool, true), ROW(LessOrEqual, from, bool, true),           \
        ROW(Greater, from, bool, true), ROW(GreaterOrEqual, from, bool, true), \
        ROW(Equal, from, bool, true)
#define ARITHMETIC_ROWS(type) \
    ROW(Add, type, type, true), ROW(Sub, type, type, true), ROW(Mul, type, type, true)

static const plain_row rows[] = {
    ROW(Sin, f32, f32, false),    ROW(Cos, f32, f32, false),    ROW(Atan, f32, f32, false),
    ROW(Mish, f32, f32, false),   ROW(Round, f32, f32, false),  ROW(Sign, f32, f32, false),
    ROW(IsNaN, f32, bool, false), ROW(IsInf, f32, bool, false), ROW(Not, bool, bool, false),
    ROW(And, bool, bool, true),   ROW(Or, bool, bool, true),    ROW(Xor, bool, bool, true),
    COMPARISON_ROWS(f32),         COMPARISON_ROWS(i64),         COMPARISON_ROWS(i32),
    ROW(PRelu, f32, f32, true),   ARITHMETIC_ROWS(i64),         ARITHMETIC_ROWS(i32),
    CAST_ROW(f32, i64),           CAST_ROW(f32, i32),           CAST_ROW(i64, f32),
    CAST_ROW(i64, i32),           CAST_ROW(i32, i64),           CAST_ROW(bool, f32),
    CAST_ROW(bool, i64),          CAST_ROW(f32, bool),          CAST_ROW(i64, bool),
};

static const plain_row *find_row(const rondo__kernel_request *request) {
    const rondo__op_id id =
        request->op->def->id == RONDO__OP_CastLike ? RONDO__OP_Cast : request->op->def->id;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        if (rows[i].op == id && rows[i].from == request->inputs[0].dtype &&
            rows[i].to == request->outputs[0].dtype &&
            (!rows[i].takes_two || request->inputs[1].dtype == rows[i].from)) {
            return &rows[i];
        }
    }
    return NULL;
}

static bool asks_for_more(const rondo__op *op) {
    return op->def->id == RONDO__OP_IsInf && (rondo__op_get_int(op, "detect_negative", 1) == 0 ||
                                              rondo__op_get_int(op, "detect_positive", 1) == 0);
}

rondo_status rondo__host_prepare_plain(const rondo__kernel_request *request,
                                       rondo__kernel **out_kernel) {
    const plain_row *row = find_row(request);
    const rondo_shape *y = &request->outputs[0].shape;
    if (row == NULL || request->output_count != 1 || asks_for_more(request->op) ||
        (row->takes_two && request->input_count != 2)) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    const size_t operand_count = row->takes_two ? 2 : 1;
    const rondo_shape *const operands[2] = {&request->inputs[0].shape,
                                            &request->inputs[operand_count - 1].shape};
    rondo__host_kernel *head =
        rondo__host_kernel_create(request, sizeof(plain_kernel), "simd", run_plain, NULL);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    plain_kernel *kernel = (plain_kernel *)head;
    kernel->loop = rondo__simd_get()->plain[row->loop];
    rondo__broadcast_init(&kernel->walk, y, operands, operand_count);
    kernel->pieces = (kernel->walk.row_length + CHUNK - 1) / CHUNK;
    kernel->from_bytes = (int64_t)rondo_dtype_get_bytes(row->from);
    kernel->to_bytes = (int64_t)rondo_dtype_get_bytes(row->to);
    const double bytes =
        (double)rondo_shape_get_count(y) * (double)(2 * kernel->from_bytes + kernel->to_bytes);
    kernel->grain = rondo__host_get_grain(kernel->walk.row_count * kernel->pieces, bytes, 0.0);
    for (size_t i = 0; i < operand_count; ++i) {
        if (rondo_shape_get_count(operands[i]) == rondo_shape_get_count(y) &&
            kernel->from_bytes == kernel->to_bytes) {
            head->base.in_place_inputs |= UINT64_C(1) << i;
        }
    }
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}
