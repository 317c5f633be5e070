// kernel/cuda/elementwise/cuda_update.c — rondo.Update: one generated kernel changes many
// variables, block by block; rondo.Finite; and rondo.RoundParts.
// SPDX-License-Identifier: Apache-2.0
#include "op/fused/update.h"

#include "collective/communicator.h"
#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"
#include "kernel/cuda/elementwise/cuda_pointwise.h"

enum {
    VECTOR = 4,
    BLOCK_ELEMENTS = VECTOR * RONDO__CUDA_BLOCK,
    FINITE_TENSORS_MAX = 40,  // and of RoundParts
    FINITE_BLOCK_ELEMENTS = 16 * RONDO__CUDA_BLOCK
};

// The sum of blocks, and the words that say where each tensor's begin.
static int64_t count_blocks(int64_t elements, int64_t block) {
    return (elements + block - 1) / block;
}

static int64_t get_count(const rondo__cuda_kernel *kernel, size_t input) {
    return rondo_shape_get_count(&rondo__cuda_input(kernel, input)->shape);
}

static const char find_tensor[] =
    "    int t = 0;\n"
    "    while (t + 1 < TENSORS && (i64)blockIdx.x >= a.first[t + 1]) {\n"
    "        t++;\n"
    "    }\n"
    "    const i64 block = (i64)blockIdx.x - a.first[t];\n"
    "    const i64 count = a.count[t];\n";

// Of a tensor of which this rank has a part; `count` is the end of that.
static const char find_part[] =
    "    int t = 0;\n"
    "    while (t + 1 < TENSORS && (i64)blockIdx.x >= a.first[t + 1]) {\n"
    "        t++;\n"
    "    }\n"
    "    const i64 block = (i64)blockIdx.x - a.first[t];\n"
    "    const i64 count = a.from[t] + a.count[t];\n";

// ---- rondo.Update -------------------------------------------------------------------------------

static const char *get_type(const rondo__cuda_kernel *kernel, const rondo__update_form *form,
                            int32_t index) {
    return rondo__cuda_type_name(
        rondo__cuda_input(kernel, rondo__update_input(form, 0, index))->dtype);
}

// s: a scalar, x: an operand, t: a result.
static void append_operand(rondo__text *text, const rondo__update_form *form, int32_t operand) {
    const int32_t width = form->width;
    if (operand < form->scalar_count) {
        rondo__text_append(text, "s%d", operand);
    } else if (operand < form->scalar_count + width) {
        rondo__text_append(text, "x%d", operand - form->scalar_count);
    } else {
        rondo__text_append(text, "t%d", operand - form->scalar_count - width);
    }
}

static bool has_numbers(rondo__scalar_op op) {
    return op == RONDO__SCALAR_Clip || op == RONDO__SCALAR_LeakyRelu || op == RONDO__SCALAR_Elu ||
           op == RONDO__SCALAR_HardSigmoid || op == RONDO__SCALAR_Affine;
}

static void append_ops(rondo__text *text, const rondo__cuda_kernel *kernel,
                       const rondo__update_form *form) {
    const rondo__attribute *names = rondo__op_find(kernel->request->op, "ops");
    for (int32_t i = 0; i < form->op_count; i++) {
        rondo__text_append(text, "            const float t%d = op_%s(", i, names->strings[i]);
        append_operand(text, form, form->operands[i][0]);
        if (form->operands[i][1] >= 0) {
            rondo__text_append(text, ", ");
            append_operand(text, form, form->operands[i][1]);
        }
        if (has_numbers(form->ops[i])) {
            rondo__text_append(text, ", ");
            rondo__pointwise_append_float(text, form->alphas[i]);
            rondo__text_append(text, ", ");
            rondo__pointwise_append_float(text, form->betas[i]);
        }
        rondo__text_append(text, ");\n");
    }
}

static void append_arguments(rondo__text *text, const rondo__cuda_kernel *kernel,
                             const rondo__update_form *form) {
    rondo__text_append(text, "\nstruct update_arguments {\n");
    if (form->is_conditional) {
        rondo__text_append(text, "    const b8 *applies;\n");
    }
    const size_t first = form->is_conditional ? 1 : 0;
    for (int32_t i = 0; i < form->scalar_count; i++) {
        const rondo_dtype dtype = rondo__cuda_input(kernel, first + (size_t)i)->dtype;
        rondo__text_append(text, "    const %s *s%d;\n", rondo__cuda_type_name(dtype), i);
    }
    rondo__text_append(text, "    i64 count[TENSORS];\n    i64 first[TENSORS];\n");
    if (form->is_shared) {
        rondo__text_append(text, "    i64 from[TENSORS];\n");
    }
    for (int32_t i = 0; i < form->width; i++) {
        rondo__text_append(text, "    const %s *x%d[TENSORS];\n", get_type(kernel, form, i), i);
    }
    for (int32_t k = 0; k < form->result_count; k++) {
        rondo__text_append(text, "    %s *y%d[TENSORS];\n", get_type(kernel, form, form->keeps[k]),
                           k);
    }
    rondo__text_append(text, "};\n");
}

// Where the update does not apply, outputs elsewhere are what they keep.
static void append_copies(rondo__text *text, const rondo__update_form *form) {
    rondo__text_append(text, "    if (!convert<bool>(*a.applies)) {\n");
    for (int32_t k = 0; k < form->result_count; k++) {
        rondo__text_append(text,
                           "        for (int k = 0; k < 4 && begin + k < count &&\n"
                           "             a.y%d[t] != a.x%d[t]; k++) {\n"
                           "            a.y%d[t][begin + k] = a.x%d[t][begin + k];\n"
                           "        }\n",
                           k, form->keeps[k], k, form->keeps[k]);
    }
    rondo__text_append(text, "        return;\n    }\n");
}

static void append_moves(rondo__text *text, const rondo__cuda_kernel *kernel,
                         const rondo__update_form *form, bool is_load) {
    const int32_t count = is_load ? form->width : form->result_count;
    rondo__text_append(text, "    if (begin + 4 <= count) {\n");
    for (int32_t i = 0; i < count; i++) {
        const char *type = get_type(kernel, form, is_load ? i : form->keeps[i]);
        if (is_load) {
            rondo__text_append(text, "        v%d = *(const pack<%s, 4> *)(a.x%d[t] + begin);\n", i,
                               type, i);
        } else {
            rondo__text_append(text, "        *(pack<%s, 4> *)(a.y%d[t] + begin) = r%d;\n", type, i,
                               i);
        }
    }
    rondo__text_append(text,
                       "    } else {\n        for (int k = 0; k < 4 && begin + k < count; "
                       "k++) {\n");
    for (int32_t i = 0; i < count; i++) {
        if (is_load) {
            rondo__text_append(text, "            v%d.value[k] = a.x%d[t][begin + k];\n", i, i);
        } else {
            rondo__text_append(text, "            a.y%d[t][begin + k] = r%d.value[k];\n", i, i);
        }
    }
    rondo__text_append(text, "        }\n    }\n");
}

static void append_kernel(rondo__text *text, const rondo__cuda_kernel *kernel,
                          const rondo__update_form *form) {
    append_arguments(text, kernel, form);
    rondo__text_append(text,
                       "extern \"C\" __global__ void __launch_bounds__(256)\n"
                       "update(const update_arguments a) {\n"
                       "    take_turn();\n%s"
                       "    const i64 begin = %s(block * 256 + threadIdx.x) * 4;\n",
                       form->is_shared ? find_part : find_tensor,
                       form->is_shared ? "a.from[t] + " : "");
    if (form->is_conditional) {
        append_copies(text, form);
    }
    for (int32_t i = 0; i < form->scalar_count; i++) {
        rondo__text_append(text, "    const float s%d = convert<float>(*a.s%d);\n", i, i);
    }
    for (int32_t i = 0; i < form->width; i++) {
        rondo__text_append(text, "    pack<%s, 4> v%d;\n", get_type(kernel, form, i), i);
    }
    for (int32_t k = 0; k < form->result_count; k++) {
        rondo__text_append(text, "    pack<%s, 4> r%d;\n", get_type(kernel, form, form->keeps[k]),
                           k);
    }
    append_moves(text, kernel, form, true);
    rondo__text_append(text, "#pragma unroll\n    for (int k = 0; k < 4; k++) {\n");
    for (int32_t i = 0; i < form->width; i++) {
        rondo__text_append(text, "            const float x%d = convert<float>(v%d.value[k]);\n", i,
                           i);
    }
    append_ops(text, kernel, form);
    for (int32_t k = 0; k < form->result_count; k++) {
        rondo__text_append(text, "            r%d.value[k] = convert<%s>(t%d);\n", k,
                           get_type(kernel, form, form->keeps[k]), form->results[k]);
    }
    rondo__text_append(text, "    }\n");
    append_moves(text, kernel, form, false);
    rondo__text_append(text, "}\n");
}

// Types are those of the first tensor.
static bool has_equal_types(const rondo__cuda_kernel *kernel, const rondo__update_form *form) {
    bool are_equal = true;
    for (int32_t t = 1; t < form->tensor_count; t++) {
        for (int32_t i = 0; i < form->width; i++) {
            are_equal =
                are_equal && rondo__cuda_input(kernel, rondo__update_input(form, t, i))->dtype ==
                                 rondo__cuda_input(kernel, rondo__update_input(form, 0, i))->dtype;
        }
    }
    return are_equal;
}

static void push_counts(rondo__cuda_kernel *kernel, rondo__step *step, const int64_t *counts,
                        size_t tensor_count, int64_t block) {
    int64_t first = 0;
    for (size_t t = 0; t < tensor_count; t++) {
        rondo__step_int(step, counts[t]);
    }
    for (size_t t = 0; t < tensor_count; t++) {
        rondo__step_int(step, first);
        first += count_blocks(counts[t], block);
    }
    if (first >= INT64_C(1) << 30) {
        rondo__cuda_refuse(kernel, "more elements than a grid holds");
    }
}

static void push_update(rondo__cuda_kernel *kernel, rondo__step *step,
                        const rondo__update_form *form, const int64_t *counts,
                        const int64_t *from) {
    for (size_t i = 0; i < rondo__update_head(form); i++) {
        rondo__step_input(step, i);
    }
    push_counts(kernel, step, counts, (size_t)form->tensor_count, BLOCK_ELEMENTS);
    for (int32_t t = 0; t < form->tensor_count && form->is_shared; t++) {
        rondo__step_int(step, from[t]);
    }
    for (int32_t i = 0; i < form->width; i++) {
        for (int32_t t = 0; t < form->tensor_count; t++) {
            rondo__step_input(step, rondo__update_input(form, t, i));
        }
    }
    for (int32_t k = 0; k < form->result_count; k++) {
        for (int32_t t = 0; t < form->tensor_count; t++) {
            rondo__step_output(step, (size_t)(t * form->result_count + k));
        }
    }
}

void rondo__cuda_prepare_update(rondo__cuda_kernel *kernel) {
    const rondo__kernel_request *request = kernel->request;
    rondo__update_form form;
    int64_t counts[RONDO__UPDATE_KEPT_MAX];
    int64_t from[RONDO__UPDATE_KEPT_MAX];
    int64_t blocks = 0;
    rondo__defines defines = {0};
    rondo__text text = {0};
    if (!rondo__update_read(request->op, request->input_count, request->output_count, &form) ||
        request->output_count > RONDO__UPDATE_KEPT_MAX || !has_equal_types(kernel, &form)) {
        rondo__cuda_refuse(kernel, "an update of this form");
        return;
    }
    for (int32_t t = 0; t < form.tensor_count; t++) {
        size_t first;
        size_t count;
        rondo__communicator_get_part(form.is_shared ? request->communicator : NULL,
                                     (size_t)get_count(kernel, rondo__update_input(&form, t, 0)),
                                     &first, &count);
        counts[t] = (int64_t)count;
        from[t] = (int64_t)first;
        blocks += count_blocks(counts[t], BLOCK_ELEMENTS);
        for (int32_t k = 0; k < form.result_count; k++) {
            const size_t output = (size_t)(t * form.result_count + k);
            kernel->head.kept[kernel->head.kept_count++] =
                (rondo__kernel_kept){.input = (int32_t)rondo__update_input(&form, t, form.keeps[k]),
                                     .output = (int32_t)output};
            if (!rondo__cuda_wants_output(kernel, output)) {
                rondo__cuda_refuse(kernel, "an update that nobody wants");
            }
        }
    }
    rondo__define_option(&defines, "-fmad=false");  // each op rounds, as it does alone
    rondo__text_append(&text, "%s#define TENSORS %d\n", rondo__cu_elementwise, form.tensor_count);
    append_kernel(&text, kernel, &form);
    if (rondo__cuda_check(kernel, rondo__text_get_status(&text))) {
        rondo__step *step = rondo__cuda_add_launch(kernel, text.bytes, &defines, "update", blocks,
                                                   RONDO__CUDA_BLOCK);
        push_update(kernel, step, &form, counts, from);
    }
    rondo__text_deinit(&text);
}

// ---- rondo.Finite -------------------------------------------------------------------------------

static const char begin_text[] =
    "\nstruct begin_arguments {\n    b8 *y;\n};\n"
    "extern \"C\" __global__ void begin(const begin_arguments a) {\n"
    "    take_turn();\n"
    "    if (threadIdx.x == 0) {\n"
    "        *a.y = convert<b8>(true);\n"
    "    }\n"
    "}\n";

// x - x is 0 where x is finite. Several threads may write the same.
static const char finite_text[] =
    "\nstruct finite_arguments {\n"
    "    b8 *y;\n    i64 count[TENSORS];\n    i64 first[TENSORS];\n    const X *x[TENSORS];\n};\n"
    "enum { PACK = 16 / sizeof(X) };\n"
    "extern \"C\" __global__ void __launch_bounds__(256) finite(const finite_arguments a) {\n"
    "    take_turn();\n"
    "%s"
    "    const X *x = a.x[t];\n"
    "    const bool is_even = (unsigned long long)x %% 16 == 0;\n"
    "    bool is_finite = true;\n"
    "#pragma unroll\n"
    "    for (int j = 0; j < 16 / PACK; j++) {\n"
    "        const i64 at = block * 4096 + (j * 256 + (int)threadIdx.x) * PACK;\n"
    "        if (is_even && at + PACK <= count) {\n"
    "            const pack<X, PACK> v = *(const pack<X, PACK> *)(x + at);\n"
    "#pragma unroll\n"
    "            for (int k = 0; k < PACK; k++) {\n"
    "                is_finite &= fabsf(convert<float>(v.value[k])) < infinity();\n"
    "            }\n"
    "        } else {\n"
    "            for (int k = 0; k < PACK && at + k < count; k++) {\n"
    "                is_finite &= fabsf(convert<float>(x[at + k])) < infinity();\n"
    "            }\n"
    "        }\n"
    "    }\n"
    "    if (!is_finite) {\n"
    "        *a.y = convert<b8>(false);\n"
    "    }\n"
    "}\n";

// Tensors of one type, some at a time.
static void add_finite(rondo__cuda_kernel *kernel, const size_t *inputs, size_t input_count) {
    rondo__text text = {0};
    rondo__defines defines = {0};
    int64_t counts[FINITE_TENSORS_MAX];
    int64_t blocks = 0;
    for (size_t i = 0; i < input_count; i++) {
        counts[i] = get_count(kernel, inputs[i]);
        blocks += count_blocks(counts[i], FINITE_BLOCK_ELEMENTS);
    }
    const rondo_dtype dtype = rondo__cuda_input(kernel, inputs[0])->dtype;
    rondo__text_append(&text, "%s#define TENSORS %zu\ntypedef %s X;\n", rondo__cu_elementwise,
                       input_count, rondo__cuda_type_name(dtype));
    rondo__text_append(&text, finite_text, find_tensor);
    if (rondo__cuda_check(kernel, rondo__text_get_status(&text))) {
        rondo__step *step = rondo__cuda_add_launch(kernel, text.bytes, &defines, "finite", blocks,
                                                   RONDO__CUDA_BLOCK);
        rondo__step_output(step, 0);
        push_counts(kernel, step, counts, input_count, FINITE_BLOCK_ELEMENTS);
        for (size_t i = 0; i < input_count; i++) {
            rondo__step_input(step, inputs[i]);
        }
    }
    rondo__text_deinit(&text);
}

void rondo__cuda_prepare_finite(rondo__cuda_kernel *kernel) {
    static const rondo_dtype dtypes[] = {RONDO_DTYPE_F32, RONDO_DTYPE_F16};
    rondo__defines defines = {0};
    rondo__text text = {0};
    rondo__text_append(&text, "%s%s", rondo__cu_elementwise, begin_text);
    if (rondo__cuda_check(kernel, rondo__text_get_status(&text))) {
        rondo__step_output(rondo__cuda_add_launch(kernel, text.bytes, &defines, "begin", 1, 32), 0);
    }
    rondo__text_deinit(&text);
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        size_t inputs[FINITE_TENSORS_MAX];
        size_t count = 0;
        for (size_t i = 0; i < kernel->request->input_count; i++) {
            if (rondo__cuda_input(kernel, i)->dtype == dtypes[d] && get_count(kernel, i) > 0) {
                inputs[count++] = i;
            }
            if (count == FINITE_TENSORS_MAX ||
                (i + 1 == kernel->request->input_count && count > 0)) {
                add_finite(kernel, inputs, count);
                count = 0;
            }
        }
    }
}

// ---- rondo.RoundParts ---------------------------------------------------------------------------

static const char round_text[] =
    "\nstruct round_arguments {\n"
    "    i64 count[TENSORS];\n    i64 first[TENSORS];\n    i64 from[TENSORS];\n"
    "    const float *x[TENSORS];\n    f16 *y[TENSORS];\n};\n"
    "extern \"C\" __global__ void __launch_bounds__(256) round_parts(const round_arguments a) {\n"
    "    take_turn();\n"
    "%s"
    "#pragma unroll\n"
    "    for (int j = 0; j < 4; j++) {\n"
    "        const i64 at = a.from[t] + block * 4096 + (j * 256 + (int)threadIdx.x) * 4;\n"
    "        if (at + 4 <= count) {\n"
    "            pack<f16, 4> r;\n"
    "            const pack<float, 4> v = *(const pack<float, 4> *)(a.x[t] + at);\n"
    "#pragma unroll\n"
    "            for (int k = 0; k < 4; k++) {\n"
    "                r.value[k] = convert<f16>(op_Saturate(v.value[k]));\n"
    "            }\n"
    "            *(pack<f16, 4> *)(a.y[t] + at) = r;\n"
    "        } else {\n"
    "            for (int k = 0; k < 4 && at + k < count; k++) {\n"
    "                a.y[t][at + k] = convert<f16>(op_Saturate(a.x[t][at + k]));\n"
    "            }\n"
    "        }\n"
    "    }\n"
    "}\n";

static void add_rounding(rondo__cuda_kernel *kernel, size_t first, size_t tensor_count) {
    rondo__text text = {0};
    rondo__defines defines = {0};
    int64_t counts[FINITE_TENSORS_MAX];
    int64_t from[FINITE_TENSORS_MAX];
    int64_t blocks = 0;
    for (size_t i = 0; i < tensor_count; i++) {
        size_t begin;
        size_t count;
        rondo__communicator_get_part(kernel->request->communicator,
                                     (size_t)get_count(kernel, first + i), &begin, &count);
        counts[i] = (int64_t)count;
        from[i] = (int64_t)begin;
        blocks += count_blocks(counts[i], FINITE_BLOCK_ELEMENTS);
        if (!rondo__cuda_wants_output(kernel, first + i)) {
            rondo__cuda_refuse(kernel, "a rounding that nobody wants");
        }
    }
    rondo__text_append(&text, "%s#define TENSORS %zu\n", rondo__cu_elementwise, tensor_count);
    rondo__text_append(&text, round_text, find_part);
    if (rondo__cuda_check(kernel, rondo__text_get_status(&text))) {
        rondo__step *step = rondo__cuda_add_launch(kernel, text.bytes, &defines, "round_parts",
                                                   blocks, RONDO__CUDA_BLOCK);
        push_counts(kernel, step, counts, tensor_count, FINITE_BLOCK_ELEMENTS);
        for (size_t i = 0; i < tensor_count; i++) {
            rondo__step_int(step, from[i]);
        }
        for (size_t i = 0; i < tensor_count; i++) {
            rondo__step_input(step, first + i);
        }
        for (size_t i = 0; i < tensor_count; i++) {
            rondo__step_output(step, first + i);
        }
    }
    rondo__text_deinit(&text);
}

void rondo__cuda_prepare_round_parts(rondo__cuda_kernel *kernel) {
    const size_t count = kernel->request->input_count;
    for (size_t first = 0; first < count; first += FINITE_TENSORS_MAX) {
        add_rounding(kernel, first,
                     count - first < FINITE_TENSORS_MAX ? count - first : FINITE_TENSORS_MAX);
    }
}
