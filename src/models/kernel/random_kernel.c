// kernel/random_kernel.c — see random_kernel.h.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/random_kernel.h"

#include "base/error.h"
#include "base/memory.h"
#include "op/draws.h"

typedef enum random_kind {
    KIND_NORMAL,
    KIND_UNIFORM,
    KIND_BERNOULLI,
    KIND_DROPOUT,
} random_kind;

typedef struct random_kernel {
    rondo__kernel base;
    rondo_generator *generator;  // retained
    random_kind kind;
    rondo_dtype in_dtype;
    rondo_dtype dtype;
    size_t count;
    bool has_mask;
    double first;  // mean, low or ratio
    double second;
} random_kernel;

static rondo_status launch(rondo__kernel *base, rondo_stream *stream, const void *const *inputs,
                           void *const *outputs, void *workspace) {
    const random_kernel *k = (const random_kernel *)base;
    switch (k->kind) {
        case KIND_NORMAL:
            return rondo_random_normal(k->generator, stream, k->dtype, outputs[0], k->count,
                                       k->first, k->second);
        case KIND_UNIFORM:
            return rondo_random_uniform(k->generator, stream, k->dtype, outputs[0], k->count,
                                        k->first, k->second);
        case KIND_BERNOULLI:
            return rondo_random_bernoulli_each(k->generator, stream, k->in_dtype, inputs[0],
                                               k->dtype, outputs[0], k->count);
        case KIND_DROPOUT:
        default:
            return rondo_random_dropout(k->generator, stream, k->dtype, inputs[0],
                                        outputs[0] != NULL ? outputs[0] : workspace,
                                        k->has_mask ? outputs[1] : NULL, k->count, k->first);
    }
}

static void destroy(rondo__kernel *base) {
    random_kernel *k = (random_kernel *)base;
    rondo_generator_release(k->generator);
    rondo__free(k);
}

rondo_status rondo__kernel_prepare_random(const rondo__kernel_request *request,
                                          rondo__kernel **out_kernel) {
    const rondo__op *op = request->op;
    if (request->generator == NULL) {
        return RONDO_OP_FAIL(op, INTERNAL, "draws random numbers, and got no generator");
    }
    if (op->def->id == RONDO__OP_Multinomial) {
        return rondo__op_fail_unsupported(op, "there is no kernel; the host draws");
    }
    random_kernel *k = rondo__calloc(1, sizeof *k);
    if (k == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = RONDO_STATUS_OK;
    const bool has_output = request->outputs[0].dtype != RONDO_DTYPE_NONE;
    const rondo__tensor_info *like = has_output ? &request->outputs[0] : &request->inputs[0];
    k->dtype = like->dtype;
    k->count = (size_t)rondo_shape_get_count(&like->shape);
    if (op->def->id == RONDO__OP_Bernoulli) {
        k->kind = KIND_BERNOULLI;
        k->in_dtype = request->inputs[0].dtype;
    } else if (op->def->id == RONDO__OP_Dropout) {
        const bool has_ratio =
            request->input_count > 1 && request->inputs[1].dtype != RONDO_DTYPE_NONE;
        k->kind = KIND_DROPOUT;
        k->base.workspace_bytes = has_output ? 0 : k->count * rondo_dtype_get_bytes(k->dtype);
        k->base.in_place_inputs = 1;
        const bool has_flags = request->output_count < 2 ||
                               request->outputs[1].dtype == RONDO_DTYPE_NONE ||
                               request->outputs[1].dtype == RONDO_DTYPE_BOOL;
        if (!has_flags) {
            rondo__free(k);
            return rondo__op_fail_unsupported(op, "the mask is of bools only; the host draws");
        }
        k->has_mask = request->output_count > 1 && request->outputs[1].dtype != RONDO_DTYPE_NONE;
        status = rondo__op_get_ratio(op, has_ratio ? request->inputs[1].constant : NULL, &k->first);
    } else {
        k->kind = op->def->id == RONDO__OP_RandomNormal || op->def->id == RONDO__OP_RandomNormalLike
                      ? KIND_NORMAL
                      : KIND_UNIFORM;
        rondo__op_get_distribution(op, &k->first, &k->second);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__free(k);
        return status;
    }
    k->base.launch = launch;
    k->base.destroy = destroy;
    k->base.implementation = "philox";
    k->generator = request->generator;
    rondo_generator_retain(k->generator);
    *out_kernel = &k->base;
    return RONDO_STATUS_OK;
}
