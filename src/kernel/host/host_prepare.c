#include <string.h>

#include "base/error.h"
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "op/fused.h"

typedef struct table_entry {
    const char *domain;
    const char *name;
    rondo_status (*prepare)(const rondo__kernel_request *request, rondo__kernel **out_kernel);
} table_entry;

// Tried in order; several entries for one op are choices, best first.
#define ELEMENTWISE_ENTRY(name, operands) {"", #name, rondo__host_prepare_elementwise},
static const table_entry table[] = {
    RONDO_SCALAR_OP_MAP(ELEMENTWISE_ENTRY){"", "Sum", rondo__host_prepare_elementwise},
    {"rondo", "Elementwise", rondo__host_prepare_elementwise},
    {"", "MatMul", rondo__host_prepare_product},
    {"", "Gemm", rondo__host_prepare_product},
    {"rondo", "MatMul", rondo__host_prepare_product},
    {"", "Conv", rondo__host_prepare_convolution},
    {"rondo", "Conv", rondo__host_prepare_convolution},
    {NULL, NULL, NULL},
};

rondo_status rondo__kernel_prepare_host(const rondo__kernel_request *request,
                                        rondo__kernel **out_kernel) {
    *out_kernel = NULL;
    const rondo__op_def *def = request->op->def;
    if (request->input_count + request->output_count > RONDO__HOST_ADDRESS_MAX) {
        return rondo__op_fail_unsupported(request->op,
                                          "more than 500 inputs and outputs in one launch");
    }
    rondo__host_threads_use();
    if (request->use_reference) {
        return rondo__host_prepare_reference(request, out_kernel);
    }
    if ((def->flags & RONDO__OP_VIEW) != 0 && request->output_count == 1) {
        return rondo__host_prepare_view(request, out_kernel);
    }
    for (const table_entry *entry = table; entry->name != NULL; ++entry) {
        if (strcmp(entry->name, def->name) != 0 || strcmp(entry->domain, def->domain) != 0) {
            continue;
        }
        rondo_status status = entry->prepare(request, out_kernel);
        if (status != RONDO_STATUS_UNSUPPORTED) {
            return status;
        }
    }
    return rondo__host_prepare_reference(request, out_kernel);
}
