// kernel/cuda/product/cuda_byte_product.c — what the ways to multiply 8-bit integers share.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/cuda/product/cuda_byte_product.h"

#include <string.h>

#include "base/checked.h"
#include "cu_sources.h"
#include "kernel/cuda/product/cuda_matmul.h"

enum {
    SUM_DEPTH_MAX = 1 << 17,  // products of longer rows may leave 32 bits
    PITCH_BYTES = 16,         // packed columns are whole copies
};

// ---- what is asked ----------------------------------------------------------------------------

static const rondo__tensor_info *get_input(const rondo__cuda_kernel *kernel, int index) {
    return rondo__cuda_input(kernel, index < 0 ? SIZE_MAX : (size_t)index);
}

static rondo__byte_parameter get_parameter(const rondo__cuda_kernel *kernel, int index) {
    const rondo__tensor_info *info = get_input(kernel, index);
    rondo__byte_parameter parameter = {0};
    if (info->dtype != RONDO_DTYPE_NONE) {
        parameter.count = rondo_shape_get_count(&info->shape);
        parameter.at = rondo__address_input((size_t)index);
    }
    return parameter;
}

// Whether the zero point is known, and is this byte everywhere.
static bool is_known_as(const rondo__tensor_info *zero, uint8_t value) {
    const int64_t count = zero->constant == NULL ? 0 : rondo_shape_get_count(&zero->shape);
    const uint8_t *bytes = count > 0 ? zero->constant->data : NULL;
    for (int64_t i = 0; i < count; i++) {
        if (bytes[i] != value) {
            return false;
        }
    }
    return count > 0;
}

static rondo__byte_operand read_operand(rondo__cuda_kernel *kernel, int data, int zero, int scale) {
    const rondo_dtype dtype = get_input(kernel, data)->dtype;
    const rondo__tensor_info *info = get_input(kernel, zero);
    const bool has_zero = info->dtype != RONDO_DTYPE_NONE;
    const bool is_zero = !has_zero || is_known_as(info, 0);
    if (dtype != RONDO_DTYPE_U8 && dtype != RONDO_DTYPE_I8) {
        rondo__cuda_refuse(kernel, "an operand of this type");
    }
    if (has_zero && info->dtype != dtype) {
        rondo__cuda_refuse(kernel, "a zero point of another type than its operand");
    }
    return (rondo__byte_operand){
        .data = rondo__address_input((size_t)data),
        .dtype = dtype,
        .zero = get_parameter(kernel, zero),
        .scale = get_parameter(kernel, scale),
        .is_off_middle = dtype == RONDO_DTYPE_I8 ? !is_zero : !has_zero || !is_known_as(info, 128),
        .is_off_zero = !is_zero,
    };
}

static void check_types(rondo__cuda_kernel *kernel, const rondo__byte_places *places,
                        rondo__byte_product *product) {
    const int scales[] = {places->x_scale, places->w_scale, places->y_scale};
    const rondo_dtype bias = get_input(kernel, places->bias)->dtype;
    const bool is_real = product->y_dtype == RONDO_DTYPE_F32;
    for (size_t i = 0; i < 3; i++) {
        const rondo_dtype dtype = get_input(kernel, scales[i])->dtype;
        if (dtype != RONDO_DTYPE_NONE && product->scale_dtype != RONDO_DTYPE_NONE &&
            dtype != product->scale_dtype) {
            rondo__cuda_refuse(kernel, "scales of different types");
        }
        product->scale_dtype = dtype != RONDO_DTYPE_NONE ? dtype : product->scale_dtype;
    }
    if (bias != RONDO_DTYPE_NONE && bias != (is_real ? RONDO_DTYPE_F32 : RONDO_DTYPE_I32)) {
        rondo__cuda_refuse(kernel, "a bias of this type");
    }
    if (is_real && (product->scale_dtype != RONDO_DTYPE_F32 || product->x.scale.count > 1)) {
        rondo__cuda_refuse(kernel, "scales of this type or shape");
    }
}

static void read_ending(rondo__cuda_kernel *kernel, const rondo__byte_places *places,
                        rondo__byte_product *product) {
    const rondo__op *op = kernel->request->op;
    const int activation = rondo__activation_parse(rondo__op_get_string(op, "activation", "none"));
    product->y = rondo__address_output(0);
    product->y_dtype = rondo__cuda_output(kernel, 0)->dtype;
    product->y_scale = get_parameter(kernel, places->y_scale);
    product->y_zero = get_parameter(kernel, places->y_zero);
    product->bias = get_parameter(kernel, places->bias);
    product->residual = get_parameter(kernel, places->residual);
    product->is_bias_in_steps = rondo__op_get_int(op, "bias_in_steps", 0) != 0;
    product->activation = activation < 0 ? RONDO__ACTIVATION_NONE : (rondo__activation)activation;
    product->alpha = rondo__op_get_float(op, "alpha", 0.0f);
    product->beta = rondo__op_get_float(op, "beta", 0.0f);
    if (activation < 0) {
        rondo__cuda_refuse(kernel, "attribute activation");
    }
    check_types(kernel, places, product);
}

static bool read_matrices(rondo__cuda_kernel *kernel, const rondo__byte_places *places,
                          rondo__byte_product *product) {
    rondo__cuda_matmul p = {0};
    if (!rondo__cuda_read_product(kernel, (size_t)places->x, (size_t)places->w, &p)) {
        return false;
    }
    product->rows = p.m;
    product->columns = p.n;
    product->depth = p.k;
    product->batches = p.batch_count;
    for (int d = 0; d < RONDO__BYTE_BATCH_RANK; d++) {
        product->batch_extent[d] = p.batch_extent[d];
        product->x_batch[d] = p.a_batch[d] / (p.m * p.k);
        product->w_batch[d] = p.b_batch[d] / (p.k * p.n);
    }
    return true;
}

static bool read_convolution(rondo__cuda_kernel *kernel, const rondo__byte_places *places,
                             rondo__byte_product *product) {
    const rondo__tensor_info *w = get_input(kernel, places->w);
    rondo__window *window = &product->window;
    if (!rondo__cuda_read_window(kernel, w->shape.extent + 2, window)) {
        return false;
    }
    product->is_convolution = true;
    product->groups = rondo__op_get_int(kernel->request->op, "group", 1);
    product->channels = window->channels_in / product->groups;
    product->taps = rondo__cuda_product(&w->shape, 2, w->shape.rank);
    product->rows = window->batch * window->out[0] * window->out[1] * window->out[2];
    product->columns = window->channels_out / product->groups;
    product->depth = product->channels * product->taps;
    product->batches = 1;
    return true;
}

bool rondo__byte_product_read(rondo__cuda_kernel *kernel, const rondo__byte_places *places,
                              bool is_convolution, rondo__byte_product *out_product) {
    *out_product = (rondo__byte_product){
        .x = read_operand(kernel, places->x, places->x_zero, places->x_scale),
        .w = read_operand(kernel, places->w, places->w_zero, places->w_scale),
    };
    read_ending(kernel, places, out_product);
    return (is_convolution ? read_convolution(kernel, places, out_product)
                           : read_matrices(kernel, places, out_product)) &&
           kernel->status == RONDO_STATUS_OK;
}

// ---- weights ----------------------------------------------------------------------------------

// Where byte (column, tap, channel) of the weights lies, in matrices of which there are `count`.
typedef struct packed_form {
    char kind[8];
    int64_t count, columns, taps, channels;
    int64_t column_stride, tap_stride, channel_stride;
    int64_t pitch;
    int64_t is_unsigned;
} packed_form;

static rondo_status fill_packed(const rondo__weight_want *want, void *packed) {
    const packed_form *form = want->form;
    const uint8_t flip = form->is_unsigned != 0 ? 0x80 : 0;
    const int64_t matrix = form->columns * form->taps * form->channels;
    int8_t *to = packed;
    int32_t *sums = (int32_t *)(void *)(to + form->count * form->columns * form->pitch);
    for (int64_t i = 0; i < form->count * form->columns; i++, to += form->pitch) {
        const uint8_t *from = (const uint8_t *)want->constant->data + i / form->columns * matrix +
                              i % form->columns * form->column_stride;
        for (int64_t t = 0; t < form->taps; t++) {
            int8_t *tap = to + t * rondo__round_up(form->channels, 4);
            for (int64_t c = 0; c < form->channels; c++) {
                tap[c] = (int8_t)(from[t * form->tap_stride + c * form->channel_stride] ^ flip);
                sums[i] += tap[c];
            }
        }
    }
    return RONDO_STATUS_OK;
}

static bool pack_constant(rondo__cuda_kernel *kernel, size_t index, const packed_form *form,
                          rondo__byte_product *product) {
    const int64_t columns = form->count * form->columns;
    const size_t bytes = (size_t)(columns * form->pitch);
    rondo__weight_want want = {
        .form = form,
        .form_bytes = sizeof *form,
        .bytes = bytes + (size_t)columns * sizeof(int32_t),
        .fill = fill_packed,
    };
    if (!rondo__cuda_own_input(kernel, index, &want, &product->w.data)) {
        return false;
    }
    product->w_sums = rondo__address_offset(product->w.data, bytes);
    return true;
}

// The same by a launch before each product.
static void pack_computed(rondo__cuda_kernel *kernel, const packed_form *form,
                          rondo__byte_product *product) {
    const size_t bytes = (size_t)(form->columns * form->pitch);
    rondo__defines defines = {0};
    const rondo__address from = product->w.data;
    product->w.data = rondo__address_workspace(rondo__cuda_reserve_workspace(kernel, bytes));
    product->w_sums = rondo__address_workspace(
        rondo__cuda_reserve_workspace(kernel, (size_t)form->columns * sizeof(int32_t)));
    rondo__define_int(&defines, "W_IS_UNSIGNED", form->is_unsigned);
    rondo__step *step =
        rondo__cuda_add_launch(kernel, rondo__cu_byte_pack, &defines, "pack_weights",
                               (form->columns + 7) / 8, RONDO__CUDA_BLOCK);
    rondo__step_address(step, from);
    rondo__step_address(step, product->w.data);
    rondo__step_address(step, product->w_sums);
    rondo__step_int(step, form->columns);
    rondo__step_int(step, form->taps);
    rondo__step_int(step, form->channels);
    rondo__step_int(step, form->column_stride);
    rondo__step_int(step, form->tap_stride);
    rondo__step_int(step, form->channel_stride);
    rondo__step_int(step, (form->channels + 3) / 4);
    rondo__step_int(step, form->pitch / 4);
}

bool rondo__byte_product_pack_weights(rondo__cuda_kernel *kernel, size_t index,
                                      rondo__byte_product *product) {
    const bool is_convolution = product->is_convolution;
    const int64_t columns = product->columns * (is_convolution ? product->groups : 1);
    const int64_t channels = is_convolution ? product->channels : product->depth;
    const int64_t taps = is_convolution ? product->taps : 1;
    const rondo_tensor *constant = rondo__cuda_input(kernel, index)->constant;
    const packed_form form = {
        .kind = "bytes",
        .count = constant == NULL
                     ? 1
                     : rondo_shape_get_count(&constant->shape) / (columns * channels * taps),
        .columns = columns,
        .taps = taps,
        .channels = channels,
        .column_stride = is_convolution ? channels * taps : 1,
        .tap_stride = 1,
        .channel_stride = is_convolution ? taps : columns,
        .pitch = rondo__round_up(taps * rondo__round_up(channels, 4), PITCH_BYTES),
        .is_unsigned = product->w.dtype == RONDO_DTYPE_U8,
    };
    product->is_packed = true;
    product->pitch = form.pitch;
    if (constant == NULL) {
        pack_computed(kernel, &form, product);
        return kernel->status == RONDO_STATUS_OK;
    }
    return pack_constant(kernel, index, &form, product);
}

// ---- what becomes of a sum --------------------------------------------------------------------

void rondo__byte_product_define(rondo__defines *defines, const rondo__byte_product *product,
                                bool takes_raw) {
    rondo__define_type(defines, "Y", product->y_dtype);
    if (product->scale_dtype != RONDO_DTYPE_NONE) {
        rondo__define_type(defines, "S", product->scale_dtype);
    }
    if (!takes_raw && product->depth >= SUM_DEPTH_MAX) {
        rondo__define_word(defines, "SUM", "i64");
    }
    rondo__define_int(defines, "X_IS_UNSIGNED", product->x.dtype == RONDO_DTYPE_U8);
    rondo__define_int(defines, "W_IS_UNSIGNED", product->w.dtype == RONDO_DTYPE_U8);
    rondo__define_int(defines, "X_HAS_ZERO",
                      takes_raw ? product->x.is_off_zero : product->x.is_off_middle);
    rondo__define_int(defines, "W_HAS_ZERO", product->w.is_off_middle);
    rondo__define_int(defines, "BIAS_IN_STEPS", product->is_bias_in_steps);
    rondo__define_int(defines, "ACTIVATION", product->activation);
}

static void push_parameter(rondo__step *step, const rondo__byte_parameter *parameter) {
    rondo__step_optional(step, parameter->count > 0 ? &parameter->at : NULL);
}

static int64_t get_count(const rondo__byte_parameter *parameter) {
    return parameter->count > 0 ? parameter->count : 1;
}

void rondo__byte_product_push(rondo__step *step, const rondo__byte_product *product,
                              int64_t depth) {
    push_parameter(step, &product->x.zero);
    push_parameter(step, &product->w.zero);
    push_parameter(step, &product->x.scale);
    push_parameter(step, &product->w.scale);
    push_parameter(step, &product->y_scale);
    push_parameter(step, &product->y_zero);
    push_parameter(step, &product->bias);
    push_parameter(step, &product->residual);
    rondo__step_int(step, get_count(&product->x.zero));
    rondo__step_int(step, get_count(&product->w.zero));
    rondo__step_int(step, get_count(&product->x.scale));
    rondo__step_int(step, get_count(&product->w.scale));
    rondo__step_int(step, get_count(&product->bias));
    rondo__step_int(step, depth);
    rondo__step_float(step, (double)product->alpha);
    rondo__step_float(step, (double)product->beta);
}
