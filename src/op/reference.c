#include "op/reference.h"

#include "base/memory.h"

rondo_status rondo__doubles_create(int64_t count, double **out_values) {
    *out_values = NULL;
    if (count < 0) {
        return RONDO_FAIL(NO_MEMORY, "an array of doubles would have more than 2^63 elements");
    }
    double *values = rondo__calloc(count == 0 ? 1 : (size_t)count, sizeof *values);
    if (values == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    *out_values = values;
    return RONDO_STATUS_OK;
}

rondo_status rondo__widen(const rondo_tensor *tensor, double **out_values) {
    *out_values = NULL;
    if (tensor == NULL) {
        return RONDO_STATUS_OK;
    }
    const int64_t count = rondo_shape_get_count(&tensor->shape);
    double *values;
    RETURN_IF_ERROR(rondo__doubles_create(count, &values));
    rondo__convert_elements(tensor->dtype, tensor->data, RONDO_DTYPE_F64, values, (size_t)count);
    *out_values = values;
    return RONDO_STATUS_OK;
}

rondo_status rondo__narrow(rondo__compute *compute, size_t output, const double *values) {
    if (!rondo__compute_wants_output(compute, output)) {
        return RONDO_STATUS_OK;
    }
    void *data;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, output, &data));
    const rondo__tensor_info *info = &compute->inferred[output];
    rondo__convert_elements(RONDO_DTYPE_F64, values, info->dtype, data,
                            (size_t)rondo_shape_get_count(&info->shape));
    return RONDO_STATUS_OK;
}
