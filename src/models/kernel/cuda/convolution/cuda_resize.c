// kernel/cuda/convolution/cuda_resize.c — Resize and Upsample. What an output position sees is
// worked out here, once, by the op's own functions; see resize.cu.
// SPDX-License-Identifier: Apache-2.0
#include "op/image/resize.h"

#include <string.h>

#include "base/memory.h"
#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"
#include "op/reference.h"

// As resize.cu has them.
typedef struct narrow_tap {
    float weight;
    int32_t index;
} narrow_tap;
typedef struct wide_tap {
    double weight;
    int32_t index;
    int32_t unused;
} wide_tap;

typedef struct resize_axis {
    int32_t axis;  // -1: it keeps its elements
    int64_t extent, stride, first;
    rondo__resize_taps taps;
} resize_axis;

typedef struct resize_table {
    const rondo__resize_plan *plan;
    bool is_wide;
    int32_t rank;  // axes between the first and the last that change
    resize_axis axes[RONDO_RANK_MAX];
    int64_t tap_count;
} resize_table;

// Its bytes decide the table.
typedef struct resize_form {
    char kind[8];
    int64_t is_wide;
    rondo__resize_plan plan;
} resize_form;

static void put_tap(const resize_table *table, void *taps, int64_t at, int64_t index,
                    double weight) {
    if (table->is_wide) {
        ((wide_tap *)taps)[at] = (wide_tap){.weight = weight, .index = (int32_t)index};
    } else {
        ((narrow_tap *)taps)[at] = (narrow_tap){.weight = (float)weight, .index = (int32_t)index};
    }
}

static rondo_status fill_table(const rondo__weight_want *want, void *taps) {
    const resize_table *table = want->data;
    for (int32_t d = 0; d < table->rank; d++) {
        const resize_axis *axis = &table->axes[d];
        const int64_t count = axis->taps.count;
        double *weights = rondo__calloc((size_t)count, sizeof(double));
        int64_t *indices = rondo__calloc((size_t)count, sizeof(int64_t));
        const bool is_good = weights != NULL && indices != NULL;
        for (int64_t x = 0; x < axis->extent && is_good; x++) {
            bool is_inside = true;
            indices[0] = x;
            weights[0] = 1.0;
            if (axis->axis >= 0) {
                is_inside = rondo__resize_find_taps(table->plan, axis->axis, x, &axis->taps,
                                                    indices, weights);
            }
            for (int64_t t = 0; t < count; t++) {
                put_tap(table, taps, axis->first + x * count + t, is_inside ? indices[t] : -1,
                        weights[t]);
            }
        }
        rondo__free(weights);
        rondo__free(indices);
        if (!is_good) {
            return RONDO_STATUS_NO_MEMORY;
        }
    }
    return RONDO_STATUS_OK;
}

// The axes from the first to the last that change; false, and refused, for absurd ones.
static bool list_axes(rondo__cuda_kernel *kernel, const rondo__resize_plan *plan,
                      resize_table *table, int32_t *out_from, int32_t *out_to) {
    int32_t from = 0, to = plan->input.rank;
    while (from < to && rondo__resize_keeps_axis(plan, from)) {
        from++;
    }
    while (to > from && rondo__resize_keeps_axis(plan, to - 1)) {
        to--;
    }
    for (int32_t d = from; d < to; d++) {
        const bool is_kept = rondo__resize_keeps_axis(plan, d);
        resize_axis *axis = &table->axes[table->rank++];
        *axis = (resize_axis){
            .axis = is_kept ? -1 : d,
            .extent = plan->output.extent[d],
            .stride = rondo__cuda_product(&plan->input, d + 1, plan->input.rank),
            .first = table->tap_count,
            .taps = {.count = 1},
        };
        if (plan->input.extent[d] > INT32_MAX || axis->extent > INT32_MAX) {
            rondo__cuda_refuse(kernel, "an axis of 2^31 elements");
            return false;
        }
        if (!is_kept &&
            !rondo__cuda_check(
                kernel, rondo__resize_count_taps(kernel->request->op, plan, d, &axis->taps))) {
            return false;
        }
        table->tap_count += axis->extent * axis->taps.count;
    }
    *out_from = from;
    *out_to = to;
    return true;
}

static bool own_table(rondo__cuda_kernel *kernel, const resize_table *table, size_t input,
                      rondo__address *out_address) {
    resize_form form;
    memset(&form, 0, sizeof form);
    memcpy(form.kind, "resize", 6);
    form.is_wide = table->is_wide ? 1 : 0;
    memcpy(&form.plan, table->plan, sizeof form.plan);
    rondo__weight_want want = {
        .form = &form,
        .form_bytes = sizeof form,
        .bytes =
            (size_t)table->tap_count * (table->is_wide ? sizeof(wide_tap) : sizeof(narrow_tap)),
        .fill = fill_table,
        .data = table,
    };
    return rondo__cuda_own_input(kernel, input, &want, out_address);
}

// What an element outside of the crop holds, in its low bytes.
static int64_t get_outside(rondo_dtype dtype, double value) {
    int64_t bits = 0;
    if (rondo__dtype_is_integer(dtype)) {
        value = rondo__saturate(value, dtype);
    }
    rondo__convert_elements(RONDO_DTYPE_F64, &value, dtype, &bits, 1);
    return bits;
}

static void define_sums(rondo__defines *defines, const resize_table *table, rondo_dtype dtype) {
    int64_t common = table->axes[0].taps.count;
    for (int32_t d = 1; d < table->rank; d++) {
        common = table->axes[d].taps.count == common ? common : 0;
    }
    rondo__define_type(defines, "T", dtype);
    rondo__define_word(defines, "A", table->is_wide ? "double" : "float");
    rondo__define_int(defines, "TAPS", common <= 4 ? common : 0);
    rondo__define_int(defines, "WHOLE", rondo__dtype_is_integer(dtype) ? 1 : 0);
    if (rondo__dtype_is_integer(dtype)) {
        rondo__define_option(defines, "-fmad=false");  // as the reference rounds
    }
}

enum { PLANES = 4, GRID_Y_MAX = 65535 };

static void add_resize(rondo__cuda_kernel *kernel, const rondo__resize_plan *plan,
                       const resize_table *table, rondo__address taps, int32_t from, int32_t to) {
    const rondo_dtype dtype = rondo__cuda_input(kernel, 0)->dtype;
    const bool is_nearest = plan->mode == RONDO__RESIZE_NEAREST;
    const int64_t outer = rondo__cuda_product(&plan->output, 0, from);
    const int64_t span = rondo__cuda_product(&plan->output, from, plan->output.rank);
    rondo__defines defines = {0};
    if (is_nearest) {
        rondo__define_bytes(&defines, "T", rondo_dtype_get_bytes(dtype));
    } else {
        define_sums(&defines, table, dtype);
    }
    rondo__define_int(&defines, "RANK", table->rank);
    rondo__define_int(&defines, "PLANES", outer < PLANES ? 1 : PLANES);
    // A grid's stride may be added to the last of them.
    rondo__define_word(&defines, "INDEX", span < INT64_C(1) << 31 ? "u32" : "u64");
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_resize, &defines,
                                               is_nearest ? "resize_nearest" : "resize",
                                               rondo__cuda_blocks(span), RONDO__CUDA_BLOCK);
    if (step != NULL) {
        const int64_t groups = outer < PLANES ? outer : (outer + PLANES - 1) / PLANES;
        step->launch.grid[1] = (uint32_t)(groups > GRID_Y_MAX ? GRID_Y_MAX : groups);
    }
    rondo__step_int(step, span);
    rondo__step_input(step, 0);
    rondo__step_output(step, 0);
    rondo__step_address(step, taps);
    rondo__step_int(step, outer);
    rondo__step_int(step, rondo__cuda_product(&plan->input, to, plan->input.rank));
    rondo__step_int(step, rondo__cuda_product(&plan->input, from, plan->input.rank));
    rondo__step_int(step, span);
    rondo__step_int(step, get_outside(dtype, plan->extrapolation));
    rondo__step_float(step, rondo__saturate(-1e30, dtype));
    rondo__step_float(step, rondo__saturate(1e30, dtype));
    for (int field = 0; field < 4; field++) {
        for (int32_t d = 0; d < table->rank; d++) {
            const resize_axis *axis = &table->axes[d];
            rondo__step_int(step, field == 0   ? axis->extent
                                  : field == 1 ? axis->stride
                                  : field == 2 ? axis->taps.count
                                               : axis->first);
        }
    }
}

void rondo__cuda_prepare_resize(rondo__cuda_kernel *kernel) {
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    const rondo_tensor *values[RONDO__RESIZE_INPUT_COUNT] = {NULL};
    rondo__resize_plan plan;
    size_t owned = 0;
    int32_t from, to;

    for (size_t i = 1; i < RONDO__RESIZE_INPUT_COUNT; i++) {
        const rondo__tensor_info *info = rondo__cuda_input(kernel, i);
        values[i] = info->constant;
        if (info->dtype != RONDO_DTYPE_NONE && rondo_shape_get_count(&info->shape) > 0) {
            if (info->constant == NULL) {
                rondo__cuda_refuse(kernel, "a parameter that is computed on the device");
                return;
            }
            owned = i;
        }
    }
    if (!rondo__cuda_check(
            kernel, rondo__resize_make_plan(kernel->request->op, &x->shape, values, &plan))) {
        return;
    }
    const bool is_nearest = plan.mode == RONDO__RESIZE_NEAREST;
    resize_table table = {.plan = &plan, .is_wide = !is_nearest && !rondo__cuda_is_float(x->dtype)};
    rondo__address taps;
    if (!list_axes(kernel, &plan, &table, &from, &to)) {
        return;
    }
    if (table.rank == 0) {
        (void)rondo__cuda_add_copy(
            kernel, rondo__address_input(0), rondo__address_output(0),
            (size_t)rondo_shape_get_count(&x->shape) * rondo_dtype_get_bytes(x->dtype));
        return;
    }
    if (own_table(kernel, &table, owned, &taps)) {
        add_resize(kernel, &plan, &table, taps, from, to);
    }
}
