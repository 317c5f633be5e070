// op/op_fused.c — the internal ops that passes make: entries and plain references (see op/fused.h).
//
// The references compute in double and apply bias, residual and activation as fused.h says, so that
// a fused plan can be compared with the model as written.
#include <string.h>

#include "base/memory.h"
#include "op/broadcast.h"
#include "op/convolution.h"
#include "op/fused.h"
#include "op/matrix.h"
#include "op/op.h"
#include "op/pooling.h"
#include "op/reference.h"

typedef struct epilogue {
    rondo__activation activation;
    float alpha;
    float beta;
} epilogue;

static rondo_status read_epilogue(const rondo__op *op, epilogue *out_epilogue) {
    const char *text = rondo__op_get_string(op, "activation", "none");
    const int activation = rondo__activation_parse(text);
    if (activation < 0) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute activation is \"%.40s\", which is unknown",
                             text);
    }
    out_epilogue->activation = (rondo__activation)activation;
    out_epilogue->alpha = rondo__op_get_float(op, "alpha", 0.0f);
    out_epilogue->beta = rondo__op_get_float(op, "beta", 0.0f);
    return RONDO_STATUS_OK;
}

static void apply_epilogue(const epilogue *ending, int64_t count, double *values) {
    if (ending->activation == RONDO__ACTIVATION_NONE) {
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        values[i] = (double)rondo__activation_apply(ending->activation, ending->alpha, ending->beta,
                                                    (float)values[i]);
    }
}

// values[i] += the elements of `tensor`.
static rondo_status add_tensor(const rondo_tensor *tensor, double *values) {
    double *wide;
    RETURN_IF_ERROR(rondo__widen(tensor, &wide));
    const int64_t count = rondo_shape_get_count(&tensor->shape);
    for (int64_t i = 0; i < count; i++) {
        values[i] += wide[i];
    }
    rondo__free(wide);
    return RONDO_STATUS_OK;
}

// The elements of `tensor`, channels-first: [batch, span, channels] becomes [batch, channels, span]
// when it is channels-last.
static rondo_status widen_planes(const rondo_tensor *tensor, bool channels_last, int64_t batch,
                                 int64_t channels, int64_t span, double **out_values) {
    double *wide;
    RETURN_IF_ERROR(rondo__widen(tensor, &wide));
    if (!channels_last) {
        *out_values = wide;
        return RONDO_STATUS_OK;
    }
    double *planes;
    rondo_status status = rondo__doubles_create(batch * channels * span, &planes);
    if (status == RONDO_STATUS_OK) {
        rondo__transpose_planes(wide, batch, span, channels, planes);
        *out_values = planes;
    }
    rondo__free(wide);
    return status;
}

// Replaces channels-first planes by their channels-last form.
static rondo_status restore_layout(int64_t batch, int64_t channels, int64_t span, double **values) {
    double *last;
    RETURN_IF_ERROR(rondo__doubles_create(batch * channels * span, &last));
    rondo__transpose_planes(*values, batch, channels, span, last);
    rondo__free(*values);
    *values = last;
    return RONDO_STATUS_OK;
}

// ---- rondo.Conv ---------------------------------------------------------------------------------

static bool is_channels_last(const rondo__op *op) {
    return rondo__op_get_int(op, "channels_last", 0) != 0;
}

static rondo_status check_residual(const rondo__op *op, const rondo_shape *z,
                                   const rondo_shape *y) {
    if (!rondo_shape_is_equal(z, y)) {
        char z_text[96];
        char y_text[96];
        return RONDO_OP_FAIL(op, BAD_DATA,
                             "input z has shape %s, the output %s; they must be equal",
                             rondo_shape_format(z, z_text, sizeof z_text),
                             rondo_shape_format(y, y_text, sizeof y_text));
    }
    return RONDO_STATUS_OK;
}

static rondo_status infer_conv(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    rondo__convolution convolution;
    epilogue ignored;
    RETURN_IF_ERROR(read_epilogue(infer->op, &ignored));
    RETURN_IF_ERROR(rondo__convolution_init(infer->op, &inputs[0].shape, &inputs[1].shape,
                                            is_channels_last(infer->op), &convolution));
    if (rondo__infer_has_input(infer, 2)) {
        RETURN_IF_ERROR(
            rondo__convolution_check_bias(infer->op, &inputs[2].shape, convolution.filters));
    }
    if (rondo__infer_has_input(infer, 3)) {
        RETURN_IF_ERROR(check_residual(infer->op, &inputs[3].shape, &convolution.output));
    }
    return rondo__infer_set_output(infer, 0, inputs[0].dtype, &convolution.output);
}

static rondo_status compute_conv(rondo__compute *compute) {
    const rondo__op *op = compute->op;
    const bool channels_last = is_channels_last(op);
    const rondo_tensor *x = compute->inputs[0];
    rondo__convolution convolution;
    epilogue ending;
    RETURN_IF_ERROR(read_epilogue(op, &ending));
    RETURN_IF_ERROR(rondo__convolution_init(op, &x->shape, &compute->inputs[1]->shape,
                                            channels_last, &convolution));
    const int64_t output_count = rondo_shape_get_count(&convolution.output);
    double *wide_x = NULL;
    double *wide_w = NULL;
    double *wide_b = NULL;
    double *y = NULL;
    rondo_status status = widen_planes(x, channels_last, convolution.batch, convolution.channels,
                                       convolution.input_span, &wide_x);
    if (status != RONDO_STATUS_OK) {
        goto done;
    }
    status = rondo__widen(compute->inputs[1], &wide_w);
    if (status != RONDO_STATUS_OK) {
        goto done;
    }
    status = rondo__doubles_create(output_count, &y);
    if (status != RONDO_STATUS_OK) {
        goto done;
    }
    if (rondo__compute_has_input(compute, 2)) {
        status = rondo__widen(compute->inputs[2], &wide_b);
        if (status != RONDO_STATUS_OK) {
            goto done;
        }
        rondo__convolution_fill_bias(&convolution, wide_b, y);
    }
    rondo__convolution_run(&convolution, wide_x, wide_w, y);
    if (channels_last) {
        status =
            restore_layout(convolution.batch, convolution.filters, convolution.output_span, &y);
        if (status != RONDO_STATUS_OK) {
            goto done;
        }
    }
    if (rondo__compute_has_input(compute, 3)) {
        status = add_tensor(compute->inputs[3], y);
        if (status != RONDO_STATUS_OK) {
            goto done;
        }
    }
    apply_epilogue(&ending, output_count, y);
    status = rondo__narrow(compute, 0, y);
done:
    rondo__free(y);
    rondo__free(wide_b);
    rondo__free(wide_w);
    rondo__free(wide_x);
    return status;
}

// ---- rondo.MatMul -------------------------------------------------------------------------------

static rondo_status init_product(const rondo__op *op, const rondo_shape *a, const rondo_shape *b,
                                 const rondo_shape *bias, const rondo_shape *z,
                                 rondo__product *out_product) {
    RETURN_IF_ERROR(rondo__product_init(op, a, b, rondo__op_get_int(op, "trans_a", 0) != 0,
                                        rondo__op_get_int(op, "trans_b", 0) != 0, out_product));
    if (bias != NULL && (bias->rank != 1 || bias->extent[0] != out_product->n)) {
        char text[96];
        return RONDO_OP_FAIL(op, BAD_DATA, "input bias has shape %s, [%lld] is expected",
                             rondo_shape_format(bias, text, sizeof text),
                             (long long)out_product->n);
    }
    return z == NULL ? RONDO_STATUS_OK : check_residual(op, z, &out_product->output);
}

static rondo_status infer_matmul(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    rondo__product product;
    epilogue ignored;
    RETURN_IF_ERROR(read_epilogue(infer->op, &ignored));
    RETURN_IF_ERROR(init_product(infer->op, &inputs[0].shape, &inputs[1].shape,
                                 rondo__infer_has_input(infer, 2) ? &inputs[2].shape : NULL,
                                 rondo__infer_has_input(infer, 3) ? &inputs[3].shape : NULL,
                                 &product));
    return rondo__infer_set_output(infer, 0, inputs[0].dtype, &product.output);
}

static rondo_status compute_matmul(rondo__compute *compute) {
    const rondo__op *op = compute->op;
    const rondo_tensor *bias = rondo__compute_has_input(compute, 2) ? compute->inputs[2] : NULL;
    const rondo_tensor *z = rondo__compute_has_input(compute, 3) ? compute->inputs[3] : NULL;
    rondo__product product;
    epilogue ending;
    RETURN_IF_ERROR(read_epilogue(op, &ending));
    RETURN_IF_ERROR(init_product(op, &compute->inputs[0]->shape, &compute->inputs[1]->shape,
                                 bias == NULL ? NULL : &bias->shape, z == NULL ? NULL : &z->shape,
                                 &product));
    const int64_t count = rondo_shape_get_count(&product.output);
    double *a = NULL;
    double *b = NULL;
    double *wide_bias = NULL;
    double *y = NULL;
    rondo_status status = rondo__widen(compute->inputs[0], &a);
    if (status != RONDO_STATUS_OK) {
        goto done;
    }
    status = rondo__widen(compute->inputs[1], &b);
    if (status != RONDO_STATUS_OK) {
        goto done;
    }
    status = rondo__doubles_create(count, &y);
    if (status != RONDO_STATUS_OK) {
        goto done;
    }
    rondo__product_run(&product, a, b, y);
    const double scale = (double)rondo__op_get_float(op, "alpha_scale", 1.0f);
    for (int64_t i = 0; i < count; i++) {
        y[i] *= scale;
    }
    if (bias != NULL) {
        status = rondo__widen(bias, &wide_bias);
        if (status != RONDO_STATUS_OK) {
            goto done;
        }
        for (int64_t i = 0; i < count; i++) {
            y[i] += wide_bias[i % product.n];
        }
    }
    if (z != NULL) {
        status = add_tensor(z, y);
        if (status != RONDO_STATUS_OK) {
            goto done;
        }
    }
    apply_epilogue(&ending, count, y);
    status = rondo__narrow(compute, 0, y);
done:
    rondo__free(y);
    rondo__free(wide_bias);
    rondo__free(b);
    rondo__free(a);
    return status;
}

// ---- pools --------------------------------------------------------------------------------------

static rondo_status infer_pool(rondo__infer *infer) {
    rondo__pool pool;
    RETURN_IF_ERROR(rondo__pool_init(infer->op, &infer->inputs[0].shape, true, &pool));
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, &pool.output);
}

static rondo_status compute_pool(rondo__compute *compute, bool is_max) {
    const rondo_tensor *x = compute->inputs[0];
    rondo__pool pool;
    RETURN_IF_ERROR(rondo__pool_init(compute->op, &x->shape, true, &pool));
    double *wide = NULL;
    double *y = NULL;
    rondo_status status = widen_planes(x, true, pool.batch, pool.channels, pool.input_span, &wide);
    if (status != RONDO_STATUS_OK) {
        goto done;
    }
    status = rondo__doubles_create(rondo_shape_get_count(&pool.output), &y);
    if (status != RONDO_STATUS_OK) {
        goto done;
    }
    if (is_max) {
        rondo__pool_run_max(&pool, wide, -(double)__builtin_inff(), y, NULL, false);
    } else {
        const bool includes_pad = rondo__op_get_int(compute->op, "count_include_pad", 0) != 0;
        rondo__pool_run_average(&pool, wide, includes_pad, y);
    }
    status = restore_layout(pool.batch, pool.channels, pool.output_span, &y);
    if (status != RONDO_STATUS_OK) {
        goto done;
    }
    status = rondo__narrow(compute, 0, y);
done:
    rondo__free(y);
    rondo__free(wide);
    return status;
}

static rondo_status compute_max_pool(rondo__compute *compute) {
    return compute_pool(compute, true);
}

static rondo_status compute_average_pool(rondo__compute *compute) {
    return compute_pool(compute, false);
}

static rondo_status get_global_shape(const rondo__op *op, const rondo_shape *x,
                                     rondo_shape *out_shape) {
    if (x->rank < 3) {
        return RONDO_OP_FAIL(op, BAD_DATA, "input X has rank %d, at least 3 is needed", x->rank);
    }
    *out_shape = *x;
    for (int32_t i = 1; i < x->rank - 1; i++) {
        out_shape->extent[i] = 1;
    }
    return RONDO_STATUS_OK;
}

static rondo_status infer_global_average_pool(rondo__infer *infer) {
    rondo_shape shape;
    RETURN_IF_ERROR(get_global_shape(infer->op, &infer->inputs[0].shape, &shape));
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, &shape);
}

static rondo_status compute_global_average_pool(rondo__compute *compute) {
    const rondo_tensor *x = compute->inputs[0];
    const int64_t batch = x->shape.extent[0];
    const int64_t channels = x->shape.extent[x->shape.rank - 1];
    const int64_t span = rondo__shape_multiply(&x->shape, 1, x->shape.rank - 1);
    double *wide = NULL;
    double *y = NULL;
    rondo_status status = rondo__widen(x, &wide);
    if (status != RONDO_STATUS_OK) {
        goto done;
    }
    status = rondo__doubles_create(batch * channels, &y);
    if (status != RONDO_STATUS_OK) {
        goto done;
    }
    const double *source = wide;
    for (int64_t n = 0; n < batch; n++) {
        double *means = y + n * channels;
        for (int64_t i = 0; i < span; i++) {
            for (int64_t c = 0; c < channels; c++) {
                means[c] += *source++;
            }
        }
        for (int64_t c = 0; c < channels; c++) {
            means[c] /= (double)span;
        }
    }
    status = rondo__narrow(compute, 0, y);
done:
    rondo__free(y);
    rondo__free(wide);
    return status;
}

// ---- rondo.Elementwise --------------------------------------------------------------------------

typedef struct scalar_step {
    rondo__scalar_op op;
    int32_t operands[2];  // below input_count: an input; above: an earlier step
    float alpha;
    float beta;
} scalar_step;

enum { ELEMENTWISE_INPUT_MAX = 64, ELEMENTWISE_STEP_MAX = 256 };

static rondo_status read_steps(const rondo__op *op, size_t input_count, scalar_step *out_steps,
                               size_t *out_count) {
    const rondo__attribute *names = rondo__op_find(op, "ops");
    const size_t count =
        names == NULL || names->kind != RONDO__ATTRIBUTE_STRINGS ? 0 : names->count;
    if (count == 0 || count > ELEMENTWISE_STEP_MAX || input_count > ELEMENTWISE_INPUT_MAX) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute ops lists %zu ops, input count is %zu", count,
                             input_count);
    }
    size_t operand_count, alpha_count, beta_count;
    const int64_t *operands = rondo__op_get_ints(op, "operands", &operand_count);
    const float *alphas = rondo__op_get_floats(op, "alphas", &alpha_count);
    const float *betas = rondo__op_get_floats(op, "betas", &beta_count);
    if (operand_count != 3 * count || (alphas != NULL && alpha_count != count) ||
        (betas != NULL && beta_count != count)) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attributes operands, alphas, betas do not fit %zu ops",
                             count);
    }
    for (size_t i = 0; i < count; i++) {
        const int parsed = rondo__scalar_op_parse(names->strings[i]);
        if (parsed < 0) {
            return RONDO_OP_FAIL(op, BAD_DATA, "attribute ops[%zu] is \"%.40s\", which is unknown",
                                 i, names->strings[i]);
        }
        scalar_step *step = &out_steps[i];
        *step = (scalar_step){.op = (rondo__scalar_op)parsed,
                              .operands = {-1, -1},
                              .alpha = alphas == NULL ? 0.0f : alphas[i],
                              .beta = betas == NULL ? 0.0f : betas[i]};
        for (int k = 0; k < rondo__scalar_op_get_operand_count(step->op); k++) {
            const int64_t operand = operands[3 * i + (size_t)k];
            if (operand < 0 || operand >= (int64_t)(input_count + i)) {
                return RONDO_OP_FAIL(op, BAD_DATA, "attribute operands[%zu] is %lld, out of range",
                                     3 * i + (size_t)k, (long long)operand);
            }
            step->operands[k] = (int32_t)operand;
        }
    }
    *out_count = count;
    return RONDO_STATUS_OK;
}

static rondo_status infer_elementwise(rondo__infer *infer) {
    scalar_step steps[ELEMENTWISE_STEP_MAX];
    size_t step_count;
    RETURN_IF_ERROR(read_steps(infer->op, infer->input_count, steps, &step_count));
    rondo_shape shape;
    RETURN_IF_ERROR(rondo__broadcast_inputs(infer, &shape));
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, &shape);
}

static rondo_status compute_elementwise(rondo__compute *compute) {
    const rondo__op *op = compute->op;
    const size_t input_count = compute->input_count;
    scalar_step steps[ELEMENTWISE_STEP_MAX];
    size_t step_count;
    RETURN_IF_ERROR(read_steps(op, input_count, steps, &step_count));
    const rondo_shape shape = compute->inferred[0].shape;
    double *wide[ELEMENTWISE_INPUT_MAX] = {NULL};
    int64_t element_steps[ELEMENTWISE_INPUT_MAX][RONDO_RANK_MAX] = {{0}};
    double *y = NULL;
    const int64_t count = rondo_shape_get_count(&shape);
    rondo_status status = rondo__doubles_create(count, &y);
    if (status != RONDO_STATUS_OK) {
        goto done;
    }
    for (size_t i = 0; i < input_count; i++) {
        const rondo_shape *own = &compute->inputs[i]->shape;
        status = rondo__widen(compute->inputs[i], &wide[i]);
        if (status != RONDO_STATUS_OK) {
            goto done;
        }
        int64_t step = 1;
        for (int32_t k = 1; k <= own->rank; k++) {
            const int64_t extent = own->extent[own->rank - k];
            element_steps[i][shape.rank - k] = extent == 1 ? 0 : step;
            step *= extent;
        }
    }
    int64_t index[RONDO_RANK_MAX] = {0};
    float values[ELEMENTWISE_INPUT_MAX + ELEMENTWISE_STEP_MAX];
    for (int64_t at = 0; at < count; at++) {
        for (size_t i = 0; i < input_count; i++) {
            int64_t offset = 0;
            for (int32_t k = 0; k < shape.rank; k++) {
                offset += index[k] * element_steps[i][k];
            }
            values[i] = (float)wide[i][offset];
        }
        for (size_t s = 0; s < step_count; s++) {
            const scalar_step *step = &steps[s];
            const float a = values[step->operands[0]];
            const float b = step->operands[1] < 0 ? 0.0f : values[step->operands[1]];
            values[input_count + s] =
                rondo__scalar_op_apply(step->op, step->alpha, step->beta, a, b);
        }
        y[at] = (double)values[input_count + step_count - 1];
        rondo__index_advance(shape.rank, shape.extent, index);
    }
    status = rondo__narrow(compute, 0, y);
done:
    for (size_t i = 0; i < input_count; i++) {
        rondo__free(wide[i]);
    }
    rondo__free(y);
    return status;
}

#define FUSED_ENTRY(op_name, least, most, more_flags, infer_function, compute_function)      \
    {                                                                                        \
        .domain = "rondo", .name = op_name, .opset_min = 1, .opset_max = RONDO_OP_OPSET_MAX, \
        .input_min = least, .input_max = most, .output_min = 1, .output_max = 1,             \
        .flags = RONDO__OP_INTERNAL | (more_flags), .capture = RONDO__CAPTURE_YES,           \
        .infer = infer_function, .compute = compute_function                                 \
    }

const rondo__op_def rondo__op_table_fused[] = {
    FUSED_ENTRY("Conv", 2, 4, 0, infer_conv, compute_conv),
    FUSED_ENTRY("MatMul", 2, 4, 0, infer_matmul, compute_matmul),
    FUSED_ENTRY("MaxPool", 1, 1, 0, infer_pool, compute_max_pool),
    FUSED_ENTRY("AveragePool", 1, 1, 0, infer_pool, compute_average_pool),
    FUSED_ENTRY("GlobalAveragePool", 1, 1, 0, infer_global_average_pool,
                compute_global_average_pool),
    FUSED_ENTRY("Elementwise", 1, ELEMENTWISE_INPUT_MAX, RONDO__OP_ELEMENTWISE, infer_elementwise,
                compute_elementwise),
    {.name = NULL},
};
