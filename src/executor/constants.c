// executor/constants.c — weights on the device, shared by an executor's plans.
#include <string.h>

#include "base/memory.h"
#include "executor/plan.h"

rondo_status rondo__constant_acquire(rondo_executor *executor, const rondo_tensor *tensor,
                                     rondo__device_constant **out_constant) {
    *out_constant = NULL;
    size_t bytes = rondo_tensor_get_bytes(tensor);
    for (size_t i = 0; i < executor->constant_count; ++i) {
        rondo__device_constant *known = executor->constants[i];
        if (known->tensor.data == tensor->data && rondo_tensor_get_bytes(&known->tensor) == bytes) {
            known->use_count += 1;
            *out_constant = known;
            return RONDO_STATUS_OK;
        }
    }
    rondo_status status =
        rondo__array_reserve((void **)&executor->constants, &executor->constant_capacity,
                             executor->constant_count + 1, sizeof *executor->constants);
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    rondo__device_constant *constant = rondo__calloc(1, sizeof *constant);
    if (constant == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_tensor_retain(tensor, &constant->tensor);
    constant->use_count = 1;
    if (rondo_device_is_host(executor->device)) {
        constant->address = tensor->data;
    } else {
        // An empty tensor gets an address too: kernels may not look at it, but NULL means absent.
        status = rondo__executor_allocate(executor, bytes > 0 ? bytes : 1, &constant->address);
        if (status == RONDO_STATUS_OK && bytes > 0) {
            status = rondo_stream_copy(executor->stream, constant->address, tensor->data, bytes,
                                       RONDO_COPY_HOST_TO_DEVICE);
        }
        if (status != RONDO_STATUS_OK) {
            goto free_constant;
        }
    }
    executor->constants[executor->constant_count++] = constant;
    *out_constant = constant;
    return RONDO_STATUS_OK;

free_constant:
    rondo__executor_free(executor, constant->address, bytes > 0 ? bytes : 1);
    rondo_tensor_deinit(&constant->tensor);
    rondo__free(constant);
    return status;
}

void rondo__constant_release(rondo_executor *executor, rondo__device_constant *constant) {
    if (constant == NULL || --constant->use_count > 0) {
        return;
    }
    for (size_t i = 0; i < executor->constant_count; ++i) {
        if (executor->constants[i] == constant) {
            executor->constants[i] = executor->constants[--executor->constant_count];
            break;
        }
    }
    if (!rondo_device_is_host(executor->device)) {
        const size_t bytes = rondo_tensor_get_bytes(&constant->tensor);
        rondo__executor_free(executor, constant->address, bytes > 0 ? bytes : 1);
    }
    rondo_tensor_deinit(&constant->tensor);
    rondo__free(constant);
}
