// executor/constants.c — see constants.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/constants.h"

#include <stdint.h>
#include <string.h>

#include "base/memory.h"
#include "executor/limits.h"

static rondo__device_constant **get_bucket(const rondo_executor *executor, const void *data) {
    const uint64_t hash = (uint64_t)(uintptr_t)data * UINT64_C(0x9E3779B97F4A7C15);
    return &executor->buckets[(size_t)(hash >> 32) & (executor->bucket_count - 1)];
}

// Makes room for one more: as many buckets as constants, at least.
static rondo_status reserve_bucket(rondo_executor *executor) {
    if (executor->constant_count < executor->bucket_count) {
        return RONDO_STATUS_OK;
    }
    const size_t former_count = executor->bucket_count;
    const size_t count = former_count > 0 ? 2 * former_count : 64;
    rondo__device_constant **former = executor->buckets;
    rondo__device_constant **buckets = rondo__calloc(count, sizeof(*buckets));
    if (buckets == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    executor->buckets = buckets;
    executor->bucket_count = count;
    for (size_t i = 0; i < former_count; ++i) {
        for (rondo__device_constant *now = former[i], *next; now != NULL; now = next) {
            rondo__device_constant **bucket = get_bucket(executor, now->tensor.data);
            next = now->next;
            now->next = *bucket;
            *bucket = now;
        }
    }
    rondo__free(former);
    return RONDO_STATUS_OK;
}

rondo_status rondo__constant_acquire(rondo_executor *executor, const rondo_tensor *tensor,
                                     rondo__device_constant **out_constant) {
    *out_constant = NULL;
    size_t bytes = rondo_tensor_get_bytes(tensor);
    rondo_status status = reserve_bucket(executor);
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    rondo__device_constant **bucket = get_bucket(executor, tensor->data);
    for (rondo__device_constant *known = *bucket; known != NULL; known = known->next) {
        if (known->tensor.data == tensor->data && rondo_tensor_get_bytes(&known->tensor) == bytes) {
            known->use_count += 1;
            *out_constant = known;
            return RONDO_STATUS_OK;
        }
    }
    rondo__device_constant *constant = rondo__calloc(1, sizeof *constant);
    if (constant == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_tensor_share(tensor, &constant->tensor);
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
    constant->next = *bucket;
    *bucket = constant;
    executor->constant_count += 1;
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
    rondo__device_constant **link = get_bucket(executor, constant->tensor.data);
    while (*link != constant) {
        link = &(*link)->next;
    }
    *link = constant->next;
    executor->constant_count -= 1;
    if (!rondo_device_is_host(executor->device)) {
        const size_t bytes = rondo_tensor_get_bytes(&constant->tensor);
        rondo__executor_free(executor, constant->address, bytes > 0 ? bytes : 1);
    }
    rondo_tensor_deinit(&constant->tensor);
    rondo__free(constant);
}
