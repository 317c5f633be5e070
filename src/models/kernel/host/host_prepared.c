// kernel/host/host_prepared.c — ops whose reference is quick enough once it keeps what it has
// prepared from its constants: the tree ensembles.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "op/ml/tree_ensemble.h"

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
    const bool is_classifier = head->op->def->id == RONDO__ML_TreeEnsembleClassifier;
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
    kernel->score_dtype = dtype == RONDO_DTYPE_F64 && request->op->def->id == RONDO__ML_TreeEnsemble
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
