// kernel/host/host_prepared.c — ops whose reference is quick enough once what it makes of its
// constants is kept: DynamicQuantizeLSTM with constant weights, and the tree ensembles, which have
// nothing else.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/simd.h"
#include "op/quantize_lstm.h"
#include "op/tree_ensemble.h"

// ---- DynamicQuantizeLSTM ----------------------------------------------------------------------

typedef struct lstm_kernel {
    rondo__host_kernel head;
    rondo__quantize_lstm plan;
    const int16_t *w;
    const int16_t *r;
    rondo__dot_i16 dot;
} lstm_kernel;

static rondo_status run_lstm(rondo__host_kernel *head, const void *const *inputs,
                             void *const *outputs, void *workspace) {
    const lstm_kernel *kernel = (const lstm_kernel *)head;
    const void *places[RONDO__QLSTM_INPUT_COUNT] = {NULL};
    void *results[3] = {NULL};
    for (uint32_t i = 0; i < head->input_count; ++i) {
        places[i] = inputs[i];
    }
    for (uint32_t i = 0; i < head->output_count; ++i) {
        results[i] = outputs[i];
    }
    return rondo__quantize_lstm_run(head->op, &kernel->plan, kernel->w, kernel->r, places, results,
                                    workspace, kernel->dot);
}

static const rondo_tensor *get_constant(const rondo__kernel_request *request, size_t input) {
    return input < request->input_count ? request->inputs[input].constant : NULL;
}

static bool is_absent(const rondo__kernel_request *request, size_t input) {
    return input >= request->input_count || request->inputs[input].dtype == RONDO_DTYPE_NONE;
}

// What decides the unpacked weights beside W or R: in front of the zero points themselves.
typedef struct lstm_form {
    char kind[8];
    int64_t directions, hidden;
    int64_t zero_dtype, zero_rank;  // NONE and 0 where there are no zero points
} lstm_form;

typedef struct lstm_unpacking {
    const rondo__quantize_lstm *plan;
    const rondo_tensor *zero_point;
} lstm_unpacking;

static rondo_status fill_lstm(const rondo__weight_want *want, void *bytes) {
    const lstm_unpacking *how = want->data;
    rondo__quantize_lstm_unpack(how->plan, want->constant, how->zero_point, bytes);
    return RONDO_STATUS_OK;
}

static rondo_status unpack(const rondo__kernel_request *request, const rondo__quantize_lstm *plan,
                           size_t weights, size_t zero_points, const int16_t **out_columns) {
    const lstm_unpacking how = {.plan = plan, .zero_point = get_constant(request, zero_points)};
    const rondo_tensor *zero = how.zero_point;
    lstm_form head = {.kind = "qlstm", .directions = plan->directions, .hidden = plan->hidden};
    size_t zero_bytes = 0;
    if (zero != NULL) {
        head.zero_dtype = zero->dtype;
        head.zero_rank = zero->shape.rank;
        zero_bytes = rondo_tensor_get_bytes(zero);
    }
    char *form = rondo__malloc(sizeof head + zero_bytes);
    if (form == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    memcpy(form, &head, sizeof head);
    if (zero_bytes > 0) {
        memcpy(form + sizeof head, zero->data, zero_bytes);
    }
    const rondo_tensor *constant = get_constant(request, weights);
    const rondo__weight_want want = {
        .constant = constant,
        .form = form,
        .form_bytes = sizeof head + zero_bytes,
        .bytes = (size_t)rondo_shape_get_count(&constant->shape) * sizeof(int16_t),
        .fill = fill_lstm,
        .data = &how,
    };
    void *columns = NULL;
    const rondo_status status = rondo__weight_list_add(request->weights, &want, &columns);
    rondo__free(form);
    *out_columns = columns;
    return status;
}

rondo_status rondo__host_prepare_quantize_lstm(const rondo__kernel_request *request,
                                               rondo__kernel **out_kernel) {
    static const size_t kept[] = {RONDO__QLSTM_W, RONDO__QLSTM_R, RONDO__QLSTM_W_ZERO,
                                  RONDO__QLSTM_R_ZERO};
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; ++i) {
        if (!is_absent(request, kept[i]) && get_constant(request, kept[i]) == NULL) {
            return RONDO_STATUS_UNSUPPORTED;
        }
    }
    rondo__host_kernel *head =
        rondo__host_kernel_create(request, sizeof(lstm_kernel), "simd", run_lstm, NULL);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    lstm_kernel *kernel = (lstm_kernel *)head;
    kernel->dot = rondo__simd_get()->dot_i16;
    rondo_status status = rondo__quantize_lstm_plan(request->op, request->inputs,
                                                    request->input_count, &kernel->plan);
    if (status == RONDO_STATUS_OK) {
        status = unpack(request, &kernel->plan, RONDO__QLSTM_W, RONDO__QLSTM_W_ZERO, &kernel->w);
    }
    if (status == RONDO_STATUS_OK) {
        status = unpack(request, &kernel->plan, RONDO__QLSTM_R, RONDO__QLSTM_R_ZERO, &kernel->r);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__kernel_destroy(&head->base);
        return status;
    }
    head->base.workspace_bytes = rondo__quantize_lstm_get_work_bytes(&kernel->plan);
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}

// ---- trees ------------------------------------------------------------------------------------

typedef struct tree_kernel {
    rondo__host_kernel head;
    rondo__tree_ensemble *ensemble;
    rondo_tensor x;  // its address is set by each run
    rondo_dtype score_dtype;
} tree_kernel;

static void deinit_trees(rondo__host_kernel *head) {
    rondo__tree_ensemble_destroy(((tree_kernel *)head)->ensemble);
}

static rondo_status run_trees(rondo__host_kernel *head, const void *const *inputs,
                              void *const *outputs, void *workspace) {
    tree_kernel *kernel = (tree_kernel *)head;
    (void)workspace;
    memcpy(&kernel->x.data, &inputs[0], sizeof inputs[0]);
    const bool is_classifier = strcmp(head->op->def->name, "TreeEnsembleClassifier") == 0;
    void *labels = is_classifier ? outputs[0] : NULL;
    void *scores = !is_classifier ? outputs[0] : head->output_count > 1 ? outputs[1] : NULL;
    return rondo__tree_ensemble_apply(kernel->ensemble, head->op, &kernel->x, labels,
                                      kernel->score_dtype, scores);
}

rondo_status rondo__host_prepare_trees(const rondo__kernel_request *request,
                                       rondo__kernel **out_kernel) {
    const rondo_dtype dtype = request->inputs[0].dtype;
    if (dtype == RONDO_DTYPE_F16 || dtype == RONDO_DTYPE_BF16) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    rondo__host_kernel *head =
        rondo__host_kernel_create(request, sizeof(tree_kernel), "trees", run_trees, deinit_trees);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    tree_kernel *kernel = (tree_kernel *)head;
    kernel->x = (rondo_tensor){.dtype = dtype, .shape = request->inputs[0].shape};
    kernel->score_dtype =
        dtype == RONDO_DTYPE_F64 && strcmp(request->op->def->name, "TreeEnsemble") == 0
            ? RONDO_DTYPE_F64
            : RONDO_DTYPE_F32;
    const rondo_status status = rondo__tree_ensemble_create(request->op, &kernel->ensemble);
    if (status != RONDO_STATUS_OK) {
        rondo__kernel_destroy(&head->base);
        return status;
    }
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}
