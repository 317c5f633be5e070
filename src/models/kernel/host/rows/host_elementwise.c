// kernel/host/rows/host_elementwise.c — chains of element-wise ops on f32: rondo.Elementwise, and
// each element-wise op of a model as a chain of one.
//
// The output is walked in blocks that fit the first-level cache. For each block, one vector loop
// per op of the chain runs over it, so the chain is read once and written once however long it is,
// and the cost of choosing the loop is paid once per block. An operand is one of
//
//   dense    its elements stand in the output's order: the loop reads it in place
//   single   one element for all: the loop takes it as a scalar
//   spread   broadcast in some other way: the block is first laid out in scratch memory
//
// Results between ops live in scratch registers of one block each, reused once they are dead.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/simd/simd.h"

enum {
    BLOCK = 1024,       // elements; 4 KiB a register
    REGISTER_MAX = 12,  // of results between ops and spread operands, 48 KiB of stack
    STEP_MAX = 64,
    INPUT_MAX = 32,
    RESULT = -1,  // operand register: the output itself
};

typedef enum operand_kind { OPERAND_DENSE, OPERAND_SINGLE, OPERAND_SPREAD } operand_kind;

// How an input is broadcast to the output: extents and its own strides, innermost last.
typedef struct operand {
    operand_kind kind;
    int32_t rank;
    int64_t extent[RONDO_RANK_MAX];
    int64_t stride[RONDO_RANK_MAX];
    int32_t register_index;  // spread: where its block is laid out
} operand;

// Where a loop finds a value: input i, or register r as INPUT_MAX + r, or the output.
typedef struct step {
    rondo__scalar_op op;
    int32_t operand_count;
    int32_t from[2];
    int32_t to;
    float alpha, beta;
} step;

typedef struct elementwise_kernel {
    rondo__host_kernel head;
    const rondo__simd *simd;
    int64_t count;
    int64_t grain;  // blocks
    int32_t input_count;
    operand operands[INPUT_MAX];
    int32_t step_count;
    step steps[STEP_MAX];
} elementwise_kernel;

// ---- running ----------------------------------------------------------------------------------

// Lays out `count` elements of a spread operand from output position `first` on.
static void spread(const operand *from, const float *x, int64_t first, int64_t count, float *y) {
    int64_t index[RONDO_RANK_MAX];
    int64_t rest = first;
    int64_t offset = 0;
    for (int32_t i = from->rank - 1; i >= 0; --i) {
        index[i] = rest % from->extent[i];
        rest /= from->extent[i];
        offset += index[i] * from->stride[i];
    }
    const int32_t last = from->rank - 1;
    const int64_t length = from->extent[last];
    int64_t done = 0;
    while (done < count) {
        int64_t run = length - index[last];
        run = run < count - done ? run : count - done;
        if (from->stride[last] == 0) {
            const float value = x[offset];
            for (int64_t i = 0; i < run; ++i) {
                y[done + i] = value;
            }
        } else {
            memcpy(y + done, x + offset, (size_t)run * sizeof(float));
        }
        done += run;
        offset -= index[last] * from->stride[last];
        index[last] = 0;
        for (int32_t i = last - 1; i >= 0; --i) {
            offset += from->stride[i];
            if (++index[i] < from->extent[i]) {
                break;
            }
            offset -= from->extent[i] * from->stride[i];
            index[i] = 0;
        }
    }
}

static const float *locate(const elementwise_kernel *kernel, int32_t from,
                           const void *const *inputs, float (*registers)[BLOCK], int64_t first) {
    if (from >= INPUT_MAX) {
        return registers[from - INPUT_MAX];
    }
    const operand *input = &kernel->operands[from];
    switch (input->kind) {
        case OPERAND_DENSE:
            return (const float *)inputs[from] + first;
        case OPERAND_SINGLE:
            return inputs[from];
        case OPERAND_SPREAD:
            break;
    }
    return registers[input->register_index];
}

static bool is_single(const elementwise_kernel *kernel, int32_t from) {
    return from < INPUT_MAX && kernel->operands[from].kind == OPERAND_SINGLE;
}

static void run_block(const elementwise_kernel *kernel, const void *const *inputs, float *output,
                      int64_t first, int64_t count) {
    float registers[REGISTER_MAX][BLOCK];
    for (int32_t i = 0; i < kernel->input_count; ++i) {
        const operand *input = &kernel->operands[i];
        if (input->kind == OPERAND_SPREAD) {
            spread(input, inputs[i], first, count, registers[input->register_index]);
        }
    }
    for (int32_t i = 0; i < kernel->step_count; ++i) {
        const step *now = &kernel->steps[i];
        float *y = now->to == RESULT ? output + first : registers[now->to];
        const float *a = locate(kernel, now->from[0], inputs, registers, first);
        if (now->operand_count == 1) {
            float one;
            if (is_single(kernel, now->from[0])) {
                kernel->simd->unary[now->op](a, &one, 1, now->alpha, now->beta);
                for (int64_t j = 0; j < count; ++j) {
                    y[j] = one;
                }
            } else {
                kernel->simd->unary[now->op](a, y, count, now->alpha, now->beta);
            }
            continue;
        }
        const float *b = locate(kernel, now->from[1], inputs, registers, first);
        const bool is_a_single = is_single(kernel, now->from[0]);
        const bool is_b_single = is_single(kernel, now->from[1]);
        if (is_a_single && is_b_single) {
            float one;
            kernel->simd->binary[now->op](a, b, &one, 1);
            for (int64_t j = 0; j < count; ++j) {
                y[j] = one;
            }
        } else if (is_a_single) {
            kernel->simd->binary_scalar_a[now->op](a, b, y, count);
        } else if (is_b_single) {
            kernel->simd->binary_scalar_b[now->op](a, b, y, count);
        } else {
            kernel->simd->binary[now->op](a, b, y, count);
        }
    }
}

typedef struct elementwise_run {
    const elementwise_kernel *kernel;
    const void *const *inputs;
    float *output;
} elementwise_run;

static void run_blocks(void *data, int64_t first, int64_t end) {
    const elementwise_run *run = data;
    for (int64_t block = first; block < end; ++block) {
        const int64_t rest = run->kernel->count - block * BLOCK;
        run_block(run->kernel, run->inputs, run->output, block * BLOCK,
                  rest < BLOCK ? rest : BLOCK);
    }
}

static rondo_status run_elementwise(rondo__host_kernel *head, const void *const *inputs,
                                    void *const *outputs, void *workspace) {
    (void)workspace;
    const elementwise_kernel *kernel = (const elementwise_kernel *)head;
    elementwise_run run = {kernel, inputs, outputs[0]};
    rondo__workers_loop((kernel->count + BLOCK - 1) / BLOCK, kernel->grain, run_blocks, &run);
    return RONDO_STATUS_OK;
}

// ---- preparing --------------------------------------------------------------------------------

// Works out how `shape` is broadcast to `output`, joining axes that run together.
static void init_operand(const rondo_shape *shape, const rondo_shape *output, operand *out) {
    int64_t count = 1;
    int64_t stride = 1;
    int64_t extents[RONDO_RANK_MAX];
    int64_t strides[RONDO_RANK_MAX];
    int32_t rank = 0;  // axes so far, innermost first
    for (int32_t i = 0; i < output->rank; ++i) {
        const int64_t extent = output->extent[output->rank - 1 - i];
        const int32_t own_axis = shape->rank - 1 - i;
        const int64_t own = own_axis >= 0 ? shape->extent[own_axis] : 1;
        const int64_t own_stride = own == 1 ? 0 : stride;
        count *= own;
        stride *= own;
        if (extent == 1) {
            continue;
        }
        const bool joins =
            rank > 0 && (own_stride == 0 ? strides[rank - 1] == 0
                                         : strides[rank - 1] != 0 &&
                                               own_stride == strides[rank - 1] * extents[rank - 1]);
        if (joins) {
            extents[rank - 1] *= extent;
        } else {
            extents[rank] = extent;
            strides[rank] = own_stride;
            ++rank;
        }
    }
    out->kind = OPERAND_SPREAD;
    if (count == 1) {
        out->kind = OPERAND_SINGLE;
    } else if (rank == 1 && strides[0] == 1) {
        out->kind = OPERAND_DENSE;
    }
    out->rank = rank;
    for (int32_t i = 0; i < rank; ++i) {
        out->extent[i] = extents[rank - 1 - i];
        out->stride[i] = strides[rank - 1 - i];
    }
}

// Gives registers to spread operands and to results, each free again after its last use. The last
// step writes the output. False when there are not enough.
static bool assign_registers(elementwise_kernel *kernel, const int32_t *results_last_use,
                             int32_t (*wanted)[2]) {
    int32_t free_after[REGISTER_MAX];  // step after which the register is free; -1: free
    int32_t result_register[STEP_MAX];
    for (int32_t i = 0; i < REGISTER_MAX; ++i) {
        free_after[i] = -1;
    }
    int32_t next = 0;
    for (int32_t i = 0; i < kernel->input_count; ++i) {
        if (kernel->operands[i].kind == OPERAND_SPREAD) {
            if (next == REGISTER_MAX) {
                return false;
            }
            free_after[next] = STEP_MAX;
            kernel->operands[i].register_index = next++;
        }
    }
    for (int32_t i = 0; i < kernel->step_count; ++i) {
        step *now = &kernel->steps[i];
        for (int32_t j = 0; j < now->operand_count; ++j) {
            const int32_t source = wanted[i][j];
            now->from[j] = source < kernel->input_count
                               ? source
                               : INPUT_MAX + result_register[source - kernel->input_count];
        }
        if (i == kernel->step_count - 1) {
            now->to = RESULT;
            break;
        }
        int32_t found = -1;
        for (int32_t r = 0; r < REGISTER_MAX && found < 0; ++r) {
            found = free_after[r] < i ? r : -1;
        }
        if (found < 0) {
            return false;
        }
        free_after[found] = results_last_use[i];
        result_register[i] = found;
        now->to = found;
    }
    return true;
}

// The chain as read from the op: operands numbered as in op/fused/fused.h.
typedef struct chain {
    int32_t step_count;
    step steps[STEP_MAX];
    int32_t operands[STEP_MAX][2];
} chain;

static bool append_step(chain *steps, rondo__scalar_op op, int32_t a, int32_t b, float alpha,
                        float beta) {
    if (steps->step_count == STEP_MAX) {
        return false;
    }
    const int32_t at = steps->step_count++;
    steps->steps[at] = (step){
        .op = op,
        .operand_count = rondo__scalar_op_get_operand_count(op),
        .alpha = alpha,
        .beta = beta,
    };
    steps->operands[at][0] = a;
    steps->operands[at][1] = b;
    return true;
}

static bool read_fused_chain(const rondo__op *op, chain *out) {
    const rondo__attribute *names = rondo__op_find(op, "ops");
    size_t operand_count = 0, alpha_count = 0, beta_count = 0;
    const int64_t *operands = rondo__op_get_ints(op, "operands", &operand_count);
    const float *alphas = rondo__op_get_floats(op, "alphas", &alpha_count);
    const float *betas = rondo__op_get_floats(op, "betas", &beta_count);
    if (names == NULL || names->kind != RONDO__ATTRIBUTE_STRINGS ||
        operand_count != 3 * names->count) {
        return false;
    }
    for (size_t i = 0; i < names->count; ++i) {
        const int code = rondo__scalar_op_parse(names->strings[i]);
        if (code < 0 ||
            !append_step(out, (rondo__scalar_op)code, (int32_t)operands[3 * i],
                         (int32_t)operands[3 * i + 1], i < alpha_count ? alphas[i] : 0.0f,
                         i < beta_count ? betas[i] : 0.0f)) {
            return false;
        }
    }
    return out->step_count > 0;
}

// Clip: bounds are attributes, or inputs that may be absent.
static bool read_clip(const rondo__kernel_request *request, chain *out) {
    int32_t value = 0;
    if (request->op->opset < 11) {
        return append_step(out, RONDO__SCALAR_Clip, 0, -1,
                           rondo__op_get_float(request->op, "min", -__FLT_MAX__),
                           rondo__op_get_float(request->op, "max", __FLT_MAX__));
    }
    const int32_t first_result = (int32_t)request->input_count;
    if (rondo__host_has_input(request, 1)) {
        if (!append_step(out, RONDO__SCALAR_Max, value, 1, 0.0f, 0.0f)) {
            return false;
        }
        value = first_result;
    }
    if (rondo__host_has_input(request, 2)) {
        return append_step(out, RONDO__SCALAR_Min, value, 2, 0.0f, 0.0f);
    }
    return out->step_count > 0;
}

// gamma times Elu. Minus zero as what is added keeps the sign of zeros.
static bool read_selu(const rondo__op *op, chain *out) {
    const float alpha = rondo__op_get_float(op, "alpha", 1.67326319217681884765625f);
    const float gamma = rondo__op_get_float(op, "gamma", 1.05070102214813232421875f);
    return append_step(out, RONDO__SCALAR_Elu, 0, -1, alpha, 0.0f) &&
           append_step(out, RONDO__SCALAR_Affine, 1, -1, gamma, -0.0f);
}

// An op of a model as a chain; false for what has no such form.
static bool read_model_op(const rondo__kernel_request *request, chain *out) {
    const rondo__op *op = request->op;
    if (op->def->id == RONDO__OP_Clip) {
        return read_clip(request, out);
    }
    if (op->def->id == RONDO__OP_Selu) {
        return read_selu(op, out);
    }
    const bool is_sum = op->def->id == RONDO__OP_Sum;
    const bool is_tanh_gelu = op->def->id == RONDO__OP_Gelu &&
                              strcmp(rondo__op_get_string(op, "approximate", "none"), "none") != 0;
    const int code = is_sum         ? RONDO__SCALAR_Add
                     : is_tanh_gelu ? RONDO__SCALAR_GeluTanh
                                    : rondo__scalar_op_of(op->def->id);
    if (code < 0) {
        return false;
    }
    float alpha = 0.0f, beta = 0.0f;
    switch (code) {
        case RONDO__SCALAR_LeakyRelu:
            alpha = rondo__op_get_float(op, "alpha", 0.01f);
            break;
        case RONDO__SCALAR_Elu:
            alpha = rondo__op_get_float(op, "alpha", 1.0f);
            break;
        case RONDO__SCALAR_HardSigmoid:
            alpha = rondo__op_get_float(op, "alpha", 0.2f);
            beta = rondo__op_get_float(op, "beta", 0.5f);
            break;
        default:
            break;
    }
    if (rondo__scalar_op_get_operand_count((rondo__scalar_op)code) == 1) {
        return append_step(out, (rondo__scalar_op)code, 0, -1, alpha, beta);
    }
    if (request->input_count < 2) {
        return false;
    }
    int32_t value = 0;
    for (size_t i = 1; i < request->input_count; ++i) {  // Max, Min, Sum take any number
        if (!append_step(out, (rondo__scalar_op)code, value, (int32_t)i, 0.0f, 0.0f)) {
            return false;
        }
        value = (int32_t)(request->input_count + i - 1);
    }
    return true;
}

static bool init_kernel(const rondo__kernel_request *request, const chain *steps,
                        elementwise_kernel *kernel) {
    const rondo_shape *output = &request->outputs[0].shape;
    kernel->simd = rondo__simd_get();
    kernel->count = rondo_shape_get_count(output);
    kernel->input_count = (int32_t)request->input_count;
    for (size_t i = 0; i < request->input_count; ++i) {
        // An absent input is never an operand; as a single element it takes no register.
        if (request->inputs[i].dtype != RONDO_DTYPE_NONE) {
            init_operand(&request->inputs[i].shape, output, &kernel->operands[i]);
            // Each block of a dense input is read before the last step writes it.
            if (kernel->operands[i].kind == OPERAND_DENSE) {
                kernel->head.base.in_place_inputs |= UINT64_C(1) << i;
            }
        } else {
            kernel->operands[i].kind = OPERAND_SINGLE;
        }
    }
    kernel->step_count = steps->step_count;
    memcpy(kernel->steps, steps->steps, sizeof kernel->steps);
    int32_t last_use[STEP_MAX] = {0};
    int32_t wanted[STEP_MAX][2];
    int64_t reads = 1;
    for (int32_t i = 0; i < steps->step_count; ++i) {
        for (int32_t j = 0; j < steps->steps[i].operand_count; ++j) {
            const int32_t source = steps->operands[i][j];
            if (source < 0 || source >= kernel->input_count + i) {
                return false;
            }
            wanted[i][j] = source;
            if (source >= kernel->input_count) {
                last_use[source - kernel->input_count] = i;
            } else {
                reads += kernel->operands[source].kind != OPERAND_SINGLE;
            }
        }
    }
    // A chain moves count * reads values, but a transcendental step costs like several of them.
    const double bytes =
        (double)kernel->count * (double)(reads + steps->step_count) * sizeof(float);
    kernel->grain = rondo__host_get_grain((kernel->count + BLOCK - 1) / BLOCK, bytes, 0.0);
    return assign_registers(kernel, last_use, wanted);
}

rondo_status rondo__host_prepare_elementwise(const rondo__kernel_request *request,
                                             rondo__kernel **out_kernel) {
    if (request->output_count != 1 || request->input_count > INPUT_MAX ||
        request->outputs[0].dtype != RONDO_DTYPE_F32) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    for (size_t i = 0; i < request->input_count; ++i) {
        if (rondo__host_has_input(request, i) && request->inputs[i].dtype != RONDO_DTYPE_F32) {
            return RONDO_STATUS_UNSUPPORTED;
        }
    }
    chain steps = {0};
    const bool is_fused = (request->op->def->flags & RONDO__OP_INTERNAL) != 0;
    if (is_fused ? !read_fused_chain(request->op, &steps) : !read_model_op(request, &steps)) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    rondo__host_kernel *head = rondo__host_kernel_create(request, sizeof(elementwise_kernel),
                                                         "simd", run_elementwise, NULL);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    if (!init_kernel(request, &steps, (elementwise_kernel *)head)) {
        rondo__kernel_destroy(&head->base);
        return RONDO_STATUS_UNSUPPORTED;
    }
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}
