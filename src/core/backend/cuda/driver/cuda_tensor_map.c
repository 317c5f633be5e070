// backend/cuda/driver/cuda_tensor_map.c — see cuda_tensor_map.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/driver/cuda_tensor_map.h"

#include <string.h>

#include "backend/cuda/driver/cuda_device.h"
#include "base/error.h"

enum { ELEMENT_BYTES = 2, IMAGE_RANK = 4 };

// A test's stand-in for a device, on which kernels are compiled and none runs.
static bool is_stand_in(const rondo_device *device) {
    return device->backend != &rondo__backend_cuda;
}

bool rondo__cuda_can_map_tensors(rondo_device *device) {
    return is_stand_in(device) ||
           (rondo__cuda_device_of(device)->api->capabilities & RONDO__CUDA_CAN_MAP_TENSORS) != 0;
}

static int get_swizzle(const rondo__tensor_form *form) {
    switch (form->box_columns) {
        case 16:
            return RONDO__CU_TENSOR_MAP_SWIZZLE_32B;
        case 32:
            return RONDO__CU_TENSOR_MAP_SWIZZLE_64B;
        default:
            return RONDO__CU_TENSOR_MAP_SWIZZLE_128B;
    }
}

static rondo__cu_result map_matrix(const rondo__cuda_api *api, const rondo__tensor_form *form,
                                   void *address, rondo__cu_tensor_map *out_map) {
    const uint64_t pitch_bytes = form->pitch[0] * ELEMENT_BYTES;
    const uint32_t box[] = {form->box_columns, form->box_rows}, element_step[] = {1, 1};
    return api->cuTensorMapEncodeTiled(
        out_map, RONDO__CU_TENSOR_MAP_FLOAT16, 2, address, form->extent, &pitch_bytes, box,
        element_step, RONDO__CU_TENSOR_MAP_INTERLEAVE_NONE, get_swizzle(form),
        RONDO__CU_TENSOR_MAP_L2_PROMOTION_256B, RONDO__CU_TENSOR_MAP_OUTSIDE_IS_ZERO);
}

static rondo__cu_result map_images(const rondo__cuda_api *api, const rondo__tensor_form *form,
                                   void *address, rondo__cu_tensor_map *out_map) {
    uint64_t stride_bytes[IMAGE_RANK - 1];
    for (int d = 0; d + 1 < IMAGE_RANK; ++d) {
        stride_bytes[d] = form->pitch[d] * ELEMENT_BYTES;
    }
    const int lower[] = {-form->before[0], -form->before[1]};
    const int upper[] = {form->behind[0], form->behind[1]};
    const uint32_t element_step[] = {1, form->step[0], form->step[1], 1};
    return api->cuTensorMapEncodeIm2col(
        out_map, RONDO__CU_TENSOR_MAP_FLOAT16, IMAGE_RANK, address, form->extent, stride_bytes,
        lower, upper, form->box_columns, form->box_rows, element_step,
        RONDO__CU_TENSOR_MAP_INTERLEAVE_NONE, get_swizzle(form),
        RONDO__CU_TENSOR_MAP_L2_PROMOTION_256B, RONDO__CU_TENSOR_MAP_OUTSIDE_IS_ZERO);
}

rondo_status rondo__cuda_map_tensor(rondo_device *device_, const rondo__tensor_form *form,
                                    void *address, uint64_t out_words[RONDO__TENSOR_MAP_WORDS]) {
    rondo__cuda_device *device = rondo__cuda_device_of(device_);
    rondo__cu_tensor_map map;
    bool was_pushed = false;
    if (is_stand_in(device_)) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__cuda_api_require(device->api, RONDO__CUDA_CAN_MAP_TENSORS));
    RETURN_IF_ERROR(rondo__cuda_enter(device, &was_pushed));
    const rondo__cu_result code = form->is_image ? map_images(device->api, form, address, &map)
                                                 : map_matrix(device->api, form, address, &map);
    rondo__cuda_leave(device, was_pushed);
    if (code != RONDO__CU_SUCCESS) {
        return RONDO__CUDA_FAIL(
            device, code, form->is_image ? "cuTensorMapEncodeIm2col" : "cuTensorMapEncodeTiled",
            "cannot describe a tensor of %llu columns in boxes of %u x %u",
            (unsigned long long)form->extent[0], (unsigned)form->box_columns,
            (unsigned)form->box_rows);
    }
    memcpy(out_words, map.word, sizeof map.word);
    return RONDO_STATUS_OK;
}
