// kernel/host/rows/host_plain.c — one op over elements of any type where each operand has as many
// elements as the result, or one: the loops of simd/simd_plain.c by several threads.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/simd/simd.h"

enum { CHUNK = 8 * 1024 };  // elements of one piece of work

typedef struct plain_kernel {
    rondo__host_kernel head;
    rondo__plain_loop loop;
    int64_t count;
    int64_t grain;  // chunks
    int64_t steps[2];
    int64_t from_bytes, to_bytes;  // of an element
} plain_kernel;

typedef struct plain_run {
    const plain_kernel *kernel;
    const char *operands[2];
    char *y;
} plain_run;

static void run_chunks(void *data, int64_t first, int64_t end) {
    const plain_run *run = data;
    const plain_kernel *kernel = run->kernel;
    const int64_t from = first * CHUNK;
    const int64_t to = end * CHUNK < kernel->count ? end * CHUNK : kernel->count;
    kernel->loop(run->operands[0] + from * kernel->steps[0] * kernel->from_bytes,
                 run->operands[1] + from * kernel->steps[1] * kernel->from_bytes, kernel->steps[0],
                 kernel->steps[1], run->y + from * kernel->to_bytes, to - from);
}

static rondo_status run_plain(rondo__host_kernel *head, const void *const *inputs,
                              void *const *outputs, void *workspace) {
    (void)workspace;
    const plain_kernel *kernel = (const plain_kernel *)head;
    const void *second = head->input_count > 1 ? inputs[1] : inputs[0];
    plain_run run = {kernel, {inputs[0], second}, outputs[0]};
    rondo__workers_loop((kernel->count + CHUNK - 1) / CHUNK, kernel->grain, run_chunks, &run);
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
    ARITHMETIC_ROWS(i64),         ARITHMETIC_ROWS(i32),         CAST_ROW(f32, i64),
    CAST_ROW(f32, i32),           CAST_ROW(i64, f32),           CAST_ROW(i64, i32),
    CAST_ROW(i32, i64),           CAST_ROW(bool, f32),          CAST_ROW(bool, i64),
    CAST_ROW(f32, bool),          CAST_ROW(i64, bool),
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

// False where the operand is broadcast in another way than as one element.
static bool read_step(const rondo__tensor_info *operand, int64_t count, int64_t *out_step) {
    const int64_t own = rondo_shape_get_count(&operand->shape);
    *out_step = own == count ? 1 : 0;
    return own == count || own == 1;
}

static bool asks_for_more(const rondo__op *op) {
    return op->def->id == RONDO__OP_IsInf && (rondo__op_get_int(op, "detect_negative", 1) == 0 ||
                                              rondo__op_get_int(op, "detect_positive", 1) == 0);
}

rondo_status rondo__host_prepare_plain(const rondo__kernel_request *request,
                                       rondo__kernel **out_kernel) {
    const plain_row *row = find_row(request);
    const int64_t count = rondo_shape_get_count(&request->outputs[0].shape);
    int64_t steps[2] = {0, 0};
    if (row == NULL || request->output_count != 1 || asks_for_more(request->op) ||
        (row->takes_two && request->input_count != 2)) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    for (size_t i = 0; i < (row->takes_two ? 2u : 1u); ++i) {
        if (!read_step(&request->inputs[i], count, &steps[i])) {
            return RONDO_STATUS_UNSUPPORTED;
        }
    }
    rondo__host_kernel *head =
        rondo__host_kernel_create(request, sizeof(plain_kernel), "simd", run_plain, NULL);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    plain_kernel *kernel = (plain_kernel *)head;
    kernel->loop = rondo__simd_get()->plain[row->loop];
    kernel->count = count;
    kernel->from_bytes = (int64_t)rondo_dtype_get_bytes(row->from);
    kernel->to_bytes = (int64_t)rondo_dtype_get_bytes(row->to);
    const double bytes = (double)count * (double)(2 * kernel->from_bytes + kernel->to_bytes);
    kernel->grain = rondo__host_get_grain((count + CHUNK - 1) / CHUNK, bytes, 0.0);
    for (size_t i = 0; i < 2; ++i) {
        kernel->steps[i] = steps[i];
        if (steps[i] == 1 && kernel->from_bytes == kernel->to_bytes) {
            head->base.in_place_inputs |= UINT64_C(1) << i;
        }
    }
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}
