// kernel/cuda/product/cuda_matmul_cublaslt.c — products through cuBLASLt. Its matrices are
// column-major, so a row-major y = a x b is asked for as y' = b' x a': what it calls A is our b,
// and its bias along rows is ours along n.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/cuda/product/cuda_matmul_cublaslt.h"

#include "backend/cuda/driver/cuda_device.h"
#include "base/error.h"
#include "base/memory.h"
#include "kernel/cuda/elementwise/cuda_pointwise.h"
#include "kernel/cuda/product/cublaslt_api.h"

enum { WORKSPACE_BYTES = 32 << 20 };

typedef struct lt_state {
    const rondo__lt_api *api;
    rondo__cuda_device *device;
    rondo__lt_handle handle;
    rondo__lt_product product;
    rondo__lt_layout a, b, c, d;
    rondo__lt_algorithm algorithm;
    size_t workspace_bytes;
    float scale, beta;
    double scale_wide, beta_wide;
    bool is_wide;  // f64
    bool has_bias, has_residual;
    rondo__address a_address, b_address, bias, residual, y, workspace;
} lt_state;

static rondo_status fail(const rondo__lt_api *api, int code, const char *call) {
    return RONDO_FAIL_DRIVER(RONDO_STATUS_DRIVER, code, api->cublasLtGetStatusName(code), call,
                             "cuBLASLt refused the product");
}

#define LT_CALL(api, name, ...)                     \
    do {                                            \
        const int code_ = (api)->name(__VA_ARGS__); \
        if (code_ != RONDO__LT_SUCCESS) {           \
            return fail((api), code_, #name);       \
        }                                           \
    } while (0)

static void destroy_state(void *data) {
    lt_state *state = data;
    bool was_pushed = false;
    if (state->api != NULL && rondo__cuda_enter(state->device, &was_pushed) == RONDO_STATUS_OK) {
        rondo__lt_layout layouts[] = {state->a, state->b, state->c, state->d};
        for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
            if (layouts[i] != NULL) {
                (void)state->api->cublasLtMatrixLayoutDestroy(layouts[i]);
            }
        }
        if (state->product != NULL) {
            (void)state->api->cublasLtMatmulDescDestroy(state->product);
        }
        if (state->handle != NULL) {
            (void)state->api->cublasLtDestroy(state->handle);
        }
        rondo__cuda_leave(state->device, was_pushed);
    }
    rondo__free(state);
}

static rondo_status run_product(void *data, rondo_stream *stream,
                                const rondo__cuda_arguments *arguments) {
    lt_state *state = data;
    bool was_pushed = false;
    rondo_status status = RONDO_STATUS_OK;

    const void *a = rondo__address_resolve(&state->a_address, arguments);
    const void *b = rondo__address_resolve(&state->b_address, arguments);
    void *y = rondo__address_resolve(&state->y, arguments);
    const void *c = state->has_residual ? rondo__address_resolve(&state->residual, arguments) : y;
    void *workspace =
        state->workspace_bytes > 0 ? rondo__address_resolve(&state->workspace, arguments) : NULL;
    RETURN_IF_ERROR(rondo__cuda_enter(state->device, &was_pushed));
    int code = RONDO__LT_SUCCESS;
    if (state->has_bias) {
        const void *bias = rondo__address_resolve(&state->bias, arguments);
        code = state->api->cublasLtMatmulDescSetAttribute(
            state->product, RONDO__LT_PRODUCT_BIAS_POINTER, &bias, sizeof(bias));
    }
    if (code == RONDO__LT_SUCCESS) {
        const void *scale = state->is_wide ? (const void *)&state->scale_wide : &state->scale;
        const void *beta = state->is_wide ? (const void *)&state->beta_wide : &state->beta;
        code = state->api->cublasLtMatmul(
            state->handle, state->product, scale, b, state->a, a, state->b, beta, c, state->c, y,
            state->d, &state->algorithm, workspace, state->workspace_bytes, stream->native);
    }
    if (code != RONDO__LT_SUCCESS) {
        status = fail(state->api, code, "cublasLtMatmul");
    }
    rondo__cuda_leave(state->device, was_pushed);
    return status;
}

// ---- description ------------------------------------------------------------------------------

bool rondo__cuda_suits_cublaslt(const rondo__cuda_matmul *p) {
    if (!rondo__cuda_is_float(p->dtype) && p->dtype != RONDO_DTYPE_F64) {
        return false;
    }
    // The addend has the type of the result.
    if (p->y_dtype != p->dtype && p->epilogue.has_residual && !p->epilogue.gates) {
        return false;
    }
    // One batch extent, or none.
    for (int d = 0; d + 1 < RONDO__MATMUL_BATCH_RANK; d++) {
        if (p->batch_extent[d] != 1) {
            return false;
        }
    }
    return (p->a_column == 1 || p->a_row == 1) && (p->b_column == 1 || p->b_row == 1) &&
           p->m < INT32_MAX && p->n < INT32_MAX && p->k < INT32_MAX && p->k > 0;
}

size_t rondo__cuda_get_cublaslt_version(const rondo__cuda_kernel *kernel) {
    const rondo__lt_api *api = NULL;
    return rondo__cuda_may_have_libraries(kernel) &&
                   rondo__cublaslt_get_api(&api) == RONDO_STATUS_OK
               ? api->cublasLtGetVersion()
               : 0;
}

bool rondo__cuda_has_cublaslt(const rondo__cuda_kernel *kernel) {
    return rondo__cuda_get_cublaslt_version(kernel) != 0;
}

static int get_type(rondo_dtype dtype) {
    switch (dtype) {
        case RONDO_DTYPE_F16:
            return RONDO__LT_TYPE_F16;
        case RONDO_DTYPE_BF16:
            return RONDO__LT_TYPE_BF16;
        case RONDO_DTYPE_F64:
            return RONDO__LT_TYPE_F64;
        default:
            return RONDO__LT_TYPE_F32;
    }
}

static rondo_status make_layout(const lt_state *state, int type, int64_t rows, int64_t columns,
                                int64_t pitch, int64_t batches, int64_t batch_stride,
                                rondo__lt_layout *out_layout) {
    const int32_t count = (int32_t)batches;
    LT_CALL(state->api, cublasLtMatrixLayoutCreate, out_layout, type, (uint64_t)rows,
            (uint64_t)columns, pitch);
    if (batches > 1) {
        LT_CALL(state->api, cublasLtMatrixLayoutSetAttribute, *out_layout,
                RONDO__LT_LAYOUT_BATCH_COUNT, &count, sizeof(count));
        LT_CALL(state->api, cublasLtMatrixLayoutSetAttribute, *out_layout,
                RONDO__LT_LAYOUT_BATCH_STRIDE, &batch_stride, sizeof(batch_stride));
    }
    return RONDO_STATUS_OK;
}

static int64_t at_least(int64_t value, int64_t least) {
    return value > least ? value : least;
}

static rondo_status describe(lt_state *state, const rondo__cuda_matmul *p, int epilogue) {
    const int type = get_type(p->dtype), y_type = get_type(p->y_dtype);
    const int compute = state->is_wide ? RONDO__LT_COMPUTE_F64 : RONDO__LT_COMPUTE_F32;
    const int scale_type = state->is_wide ? RONDO__LT_TYPE_F64 : RONDO__LT_TYPE_F32;
    const int32_t trans_b = p->b_column == 1 ? RONDO__LT_PLAIN : RONDO__LT_TRANSPOSED;
    const int32_t trans_a = p->a_column == 1 ? RONDO__LT_PLAIN : RONDO__LT_TRANSPOSED;
    const int64_t batches = p->batch_count, last = RONDO__MATMUL_BATCH_RANK - 1;
    const bool b_plain = trans_b == RONDO__LT_PLAIN, a_plain = trans_a == RONDO__LT_PLAIN;

    LT_CALL(state->api, cublasLtCreate, &state->handle);
    LT_CALL(state->api, cublasLtMatmulDescCreate, &state->product, compute, scale_type);
    LT_CALL(state->api, cublasLtMatmulDescSetAttribute, state->product, RONDO__LT_PRODUCT_TRANS_A,
            &trans_b, sizeof(trans_b));
    LT_CALL(state->api, cublasLtMatmulDescSetAttribute, state->product, RONDO__LT_PRODUCT_TRANS_B,
            &trans_a, sizeof(trans_a));
    LT_CALL(state->api, cublasLtMatmulDescSetAttribute, state->product, RONDO__LT_PRODUCT_EPILOGUE,
            &epilogue, sizeof(epilogue));
    RETURN_IF_ERROR(make_layout(state, type, b_plain ? p->n : p->k, b_plain ? p->k : p->n,
                                at_least(b_plain ? p->b_row : p->b_column, b_plain ? p->n : p->k),
                                batches, p->b_batch[last], &state->a));
    RETURN_IF_ERROR(make_layout(state, type, a_plain ? p->k : p->m, a_plain ? p->m : p->k,
                                at_least(a_plain ? p->a_row : p->a_column, a_plain ? p->k : p->m),
                                batches, p->a_batch[last], &state->b));
    RETURN_IF_ERROR(make_layout(state, y_type, p->n, p->m, p->n, batches, p->m * p->n, &state->c));
    return make_layout(state, y_type, p->n, p->m, p->n, batches, p->m * p->n, &state->d);
}

static rondo_status choose(lt_state *state, size_t plan) {
    rondo__lt_preference preference = NULL;
    rondo__lt_heuristic found[RONDO__CUBLASLT_PLANS] = {0};
    const uint64_t workspace_bytes = WORKSPACE_BYTES;
    const uint32_t alignment = 16;
    int count = 0;
    const rondo__lt_api *api = state->api;

    LT_CALL(api, cublasLtMatmulPreferenceCreate, &preference);
    int code = api->cublasLtMatmulPreferenceSetAttribute(preference, RONDO__LT_PREFERENCE_WORKSPACE,
                                                         &workspace_bytes, sizeof(workspace_bytes));
    for (int side = RONDO__LT_PREFERENCE_ALIGNMENT_A;
         side <= RONDO__LT_PREFERENCE_ALIGNMENT_D && code == RONDO__LT_SUCCESS; side++) {
        code = api->cublasLtMatmulPreferenceSetAttribute(preference, side, &alignment,
                                                         sizeof(alignment));
    }
    if (code == RONDO__LT_SUCCESS) {
        code = api->cublasLtMatmulAlgoGetHeuristic(state->handle, state->product, state->a,
                                                   state->b, state->c, state->d, preference,
                                                   RONDO__CUBLASLT_PLANS, found, &count);
    }
    (void)api->cublasLtMatmulPreferenceDestroy(preference);
    if (code != RONDO__LT_SUCCESS) {
        return fail(api, code, "cublasLtMatmulAlgoGetHeuristic");
    }
    if (plan >= (size_t)count || found[plan].status != RONDO__LT_SUCCESS) {
        return RONDO_FAIL(UNSUPPORTED, "cuBLASLt has %d plans for this product, not %zu", count,
                          plan + 1);
    }
    state->algorithm = found[plan].algorithm;
    state->workspace_bytes = found[plan].workspace_bytes;
    return RONDO_STATUS_OK;
}

// ---- the steps --------------------------------------------------------------------------------

// The part of the epilogue that the library cannot do, in place on y.
static void add_ending(rondo__cuda_kernel *kernel, const rondo__cuda_matmul *p, bool adds_bias,
                       bool activates) {
    const bool gates = p->epilogue.gates;
    rondo__pointwise pointwise = {
        .input_count = 1,
        .output = p->y,
        .output_dtype = p->y_dtype,
        .output_shape = {.rank = 3, .extent = {p->batch_count, p->m, p->n}},
    };
    pointwise.inputs[0].address = p->y;
    pointwise.inputs[0].dtype = p->y_dtype;
    pointwise.inputs[0].shape = pointwise.output_shape;
    rondo__text_append(&pointwise.body, "            %s t = x0;\n",
                       p->y_dtype == RONDO_DTYPE_F64 ? "double" : "float");
    if (adds_bias) {
        pointwise.inputs[1].address = p->epilogue.bias;
        pointwise.inputs[1].dtype = p->dtype;
        pointwise.inputs[1].shape = (rondo_shape){
            .rank = 2, .extent = {p->bias_row != 0 ? p->m : 1, p->bias_column != 0 ? p->n : 1}};
        pointwise.input_count = 2;
        rondo__text_append(&pointwise.body, "            t += ");
        rondo__pointwise_append_float(&pointwise.body, p->factor);
        rondo__text_append(&pointwise.body, " * x1;\n");
    }
    if (gates) {
        const size_t at = pointwise.input_count++;
        pointwise.inputs[at].address = p->epilogue.residual;
        pointwise.inputs[at].dtype = p->dtype;
        pointwise.inputs[at].shape = pointwise.output_shape;
        rondo__text_append(&pointwise.body, "            const float sum = t;\n");
        rondo__text_append(&pointwise.body, "            t = x%zu;\n", at);
    }
    if (activates) {
        rondo__text_append(&pointwise.body, "            t = activate<%d>(t, ",
                           (int)p->epilogue.activation);
        rondo__pointwise_append_float(&pointwise.body, p->epilogue.alpha);
        rondo__text_append(&pointwise.body, ", ");
        rondo__pointwise_append_float(&pointwise.body, p->epilogue.beta);
        rondo__text_append(&pointwise.body, ");\n");
    }
    rondo__text_append(&pointwise.body, "            y = %st;\n", gates ? "sum * " : "");
    rondo__cuda_add_pointwise(kernel, &pointwise);
}

void rondo__cuda_add_cublaslt_plan(rondo__cuda_kernel *kernel, const rondo__cuda_matmul *p,
                                   size_t plan) {
    const rondo__cuda_epilogue *ending = &p->epilogue;
    bool was_pushed = false;
    const rondo__lt_api *api = NULL;

    if (!rondo__cuda_suits_cublaslt(p)) {
        rondo__cuda_refuse(kernel, "strides that cuBLASLt does not take");
        return;
    }
    if (!rondo__cuda_check(kernel, rondo__cublaslt_get_api(&api))) {
        return;
    }
    lt_state *state = rondo__calloc(1, sizeof(*state));
    if (state == NULL) {
        (void)rondo__cuda_check(kernel, RONDO_STATUS_NO_MEMORY);
        return;
    }
    const bool is_wide = p->dtype == RONDO_DTYPE_F64;
    // [n] added to each row, of the result's type, is the library's; other biases, and activations,
    // are ours: its epilogue RELU makes 0 of NaN.
    const bool library_bias = ending->has_bias && p->bias_row == 0 && p->bias_column == 1 &&
                              p->factor >= 1.0f && p->factor <= 1.0f && !is_wide &&
                              p->y_dtype == p->dtype;
    const bool our_bias = ending->has_bias && !library_bias;
    const bool our_activation = ending->activation != RONDO__ACTIVATION_NONE;
    const bool adds_residual = ending->has_residual && !ending->gates;
    const int epilogue = library_bias ? RONDO__LT_EPILOGUE_BIAS : RONDO__LT_EPILOGUE_NONE;
    *state = (lt_state){
        .api = api,
        .device = rondo__cuda_device_of(kernel->device),
        .scale = p->scale,
        .scale_wide = (double)p->scale,
        .beta = adds_residual ? 1.0f : 0.0f,
        .beta_wide = adds_residual ? 1.0 : 0.0,
        .is_wide = is_wide,
        .has_bias = library_bias,
        .has_residual = adds_residual,
        .a_address = p->a,
        .b_address = p->b,
        .y = p->y,
        .bias = ending->bias,
        .residual = ending->residual,
    };
    rondo_status status = rondo__cuda_enter(state->device, &was_pushed);
    if (status == RONDO_STATUS_OK) {
        status = describe(state, p, epilogue);
        if (status == RONDO_STATUS_OK) {
            status = choose(state, plan);
        }
        rondo__cuda_leave(state->device, was_pushed);
    }
    if (!rondo__cuda_check(kernel, status)) {
        destroy_state(state);
        return;
    }
    if (state->workspace_bytes > 0) {
        state->workspace =
            rondo__address_workspace(rondo__cuda_reserve_workspace(kernel, state->workspace_bytes));
    }
    (void)rondo__cuda_add_call(kernel, run_product, state, destroy_state);
    kernel->head.implementation = "cublaslt";
    if (our_bias || our_activation || ending->gates) {
        add_ending(kernel, p, our_bias, our_activation);
    }
}
