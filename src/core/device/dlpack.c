// device/dlpack.c — tensors in from and out to other libraries.
//
// Coming in, their managed tensor becomes a storage: the last tensor that shares it runs the
// deleter. Going out, one heap block holds what the other library sees, the extents and strides it
// points at, and a share of the tensor's storage:
//
//   [ rondo_dlpack_managed or _versioned | tensor (a share) | extents | strides ]
//
// Source: the DLPack standard, C interface; struct layouts of versions 0.8 and 1.0.
// SPDX-License-Identifier: Apache-2.0
#include "rondo/dlpack.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/write_struct.h"
#include "tensor/elements.h"
#include "tensor/narrow.h"
#include "tensor/storage.h"

_Static_assert(sizeof(rondo_dlpack_device) == 8, "DLDevice");
_Static_assert(sizeof(rondo_dlpack_type) == 4, "DLDataType");
_Static_assert(sizeof(void *) != 8 || sizeof(rondo_dlpack_tensor) == 48, "DLTensor");
_Static_assert(sizeof(void *) != 8 || sizeof(rondo_dlpack_managed) == 64, "DLManagedTensor");
_Static_assert(sizeof(void *) != 8 || sizeof(rondo_dlpack_versioned) == 80,
               "DLManagedTensorVersioned");

// ---- element types and devices ----------------------------------------------------------------

typedef struct type_pair {
    rondo_dtype dtype;
    uint8_t code;
    uint8_t bits;
} type_pair;

static const type_pair type_pairs[] = {
    {RONDO_DTYPE_F32, RONDO_DLPACK_FLOAT, 32},
    {RONDO_DTYPE_F64, RONDO_DLPACK_FLOAT, 64},
    {RONDO_DTYPE_F16, RONDO_DLPACK_FLOAT, 16},
    {RONDO_DTYPE_BF16, RONDO_DLPACK_BFLOAT, 16},
    {RONDO_DTYPE_I8, RONDO_DLPACK_INT, 8},
    {RONDO_DTYPE_I16, RONDO_DLPACK_INT, 16},
    {RONDO_DTYPE_I32, RONDO_DLPACK_INT, 32},
    {RONDO_DTYPE_I64, RONDO_DLPACK_INT, 64},
    {RONDO_DTYPE_U8, RONDO_DLPACK_UINT, 8},
    {RONDO_DTYPE_U16, RONDO_DLPACK_UINT, 16},
    {RONDO_DTYPE_U32, RONDO_DLPACK_UINT, 32},
    {RONDO_DTYPE_U64, RONDO_DLPACK_UINT, 64},
    {RONDO_DTYPE_BOOL, RONDO_DLPACK_BOOL, 8},
    {RONDO_DTYPE_C64, RONDO_DLPACK_COMPLEX, 64},
    {RONDO_DTYPE_C128, RONDO_DLPACK_COMPLEX, 128},
    {RONDO_DTYPE_I4, RONDO_DLPACK_INT, 4},
    {RONDO_DTYPE_U4, RONDO_DLPACK_UINT, 4},
    {RONDO_DTYPE_I2, RONDO_DLPACK_INT, 2},
    {RONDO_DTYPE_U2, RONDO_DLPACK_UINT, 2},
    {RONDO_DTYPE_F4E2M1, RONDO_DLPACK_FLOAT4_E2M1FN, 4},
    {RONDO_DTYPE_F8E4M3FN, RONDO_DLPACK_FLOAT8_E4M3FN, 8},
    {RONDO_DTYPE_F8E4M3FNUZ, RONDO_DLPACK_FLOAT8_E4M3FNUZ, 8},
    {RONDO_DTYPE_F8E5M2, RONDO_DLPACK_FLOAT8_E5M2, 8},
    {RONDO_DTYPE_F8E5M2FNUZ, RONDO_DLPACK_FLOAT8_E5M2FNUZ, 8},
    {RONDO_DTYPE_F8E8M0, RONDO_DLPACK_FLOAT8_E8M0FNU, 8},
};
enum { TYPE_PAIR_COUNT = sizeof type_pairs / sizeof *type_pairs };

static const char *get_code_name(uint8_t code) {
    static const char *const names[] = {
        "int",
        "uint",
        "float",
        "opaque handle",
        "bfloat",
        "complex",
        "bool",
        "float8_e3m4",
        "float8_e4m3",
        "float8_e4m3b11fnuz",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
        "float6_e2m3fn",
        "float6_e3m2fn",
        "float4_e2m1fn",
    };
    return code < sizeof names / sizeof *names ? names[code] : "unknown";
}

static const char *get_device_name(int32_t type) {
    static const char *const names[] = {
        [1] = "CPU",        [2] = "CUDA",       [3] = "CUDA host",     [4] = "OpenCL",
        [7] = "Vulkan",     [8] = "Metal",      [9] = "VPI",           [10] = "ROCm",
        [11] = "ROCm host", [12] = "extension", [13] = "CUDA managed", [14] = "oneAPI",
        [15] = "WebGPU",    [16] = "Hexagon",   [17] = "MAIA",         [18] = "Trainium",
    };
    bool is_known = type > 0 && (size_t)type < sizeof names / sizeof *names;
    return is_known && names[type] != NULL ? names[type] : "unknown";
}

static bool is_float8(rondo_dlpack_type type) {
    return type.bits == 8 && type.code >= 7 && type.code <= RONDO_DLPACK_FLOAT8_E8M0FNU;
}

// `are_bytes_welcome`: an 8-bit float that is no type here may come as U8. `is_padded`: elements of
// fewer than 8 bits have a byte each.
static rondo_status read_type(rondo_dlpack_type type, bool are_bytes_welcome, bool is_padded,
                              rondo_dtype *out_dtype) {
    for (size_t i = 0; i < TYPE_PAIR_COUNT && type.lanes == 1; ++i) {
        if (type_pairs[i].code == type.code && type_pairs[i].bits == type.bits) {
            if (type.bits < 8 && !is_padded) {
                return RONDO_FAIL_AS(
                    "rondo_tensor_from_dlpack", UNSUPPORTED,
                    "the elements, %s of %u bits, are packed; give them a byte each, in the "
                    "versioned form with RONDO_DLPACK_FLAG_SUBBYTE_PADDED",
                    get_code_name(type.code), (unsigned)type.bits);
            }
            *out_dtype = type_pairs[i].dtype;
            return RONDO_STATUS_OK;
        }
    }
    if (is_float8(type) && type.lanes == 1) {
        if (are_bytes_welcome) {
            *out_dtype = RONDO_DTYPE_U8;
            return RONDO_STATUS_OK;
        }
        return RONDO_FAIL_AS(
            "rondo_tensor_from_dlpack", UNSUPPORTED,
            "tensors have no element type %s; pass out_info to get the elements as u8, "
            "or convert them first",
            get_code_name(type.code));
    }
    return RONDO_FAIL_AS(
        "rondo_tensor_from_dlpack", UNSUPPORTED,
        "tensors have no element type %s (code %u) of %u bits and %u lanes; convert "
        "it first",
        get_code_name(type.code), (unsigned)type.code, (unsigned)type.bits, (unsigned)type.lanes);
}

static rondo_status check_device(rondo_dlpack_device device, bool must_be_host) {
    switch (device.type) {
        case RONDO_DLPACK_CPU:
        case RONDO_DLPACK_CUDA_HOST:
            return RONDO_STATUS_OK;
        case RONDO_DLPACK_CUDA:
        case RONDO_DLPACK_CUDA_MANAGED:
            if (!must_be_host) {
                return RONDO_STATUS_OK;
            }
            return RONDO_FAIL_AS(
                "rondo_tensor_from_dlpack", INVALID,
                "the tensor lies on %s device %d, not in host memory; pass out_info "
                "to accept that, or copy it to the host first",
                get_device_name(device.type), (int)device.id);
        default:
            return RONDO_FAIL_AS("rondo_tensor_from_dlpack", UNSUPPORTED,
                                 "the tensor lies on %s device %d (type %d), which Rondo does not "
                                 "know; move it to the host or to a CUDA device first",
                                 get_device_name(device.type), (int)device.id, (int)device.type);
    }
}

// ---- in ---------------------------------------------------------------------------------------

// Fails unless the strides are those of a row-major tensor without gaps.
static rondo_status check_strides(const rondo_dlpack_tensor *theirs) {
    if (theirs->strides == NULL) {
        return RONDO_STATUS_OK;
    }
    int64_t wanted = 1;  // cannot overflow: the product of the extents fits
    for (int32_t i = theirs->rank; i-- > 0;) {
        if (theirs->extents[i] != 1 && theirs->strides[i] != wanted) {
            return RONDO_FAIL_AS(
                "rondo_tensor_from_dlpack", INVALID,
                "the tensor is strided: dimension %d steps %lld elements, row-major "
                "without gaps would be %lld; make it contiguous first",
                (int)i, (long long)theirs->strides[i], (long long)wanted);
        }
        wanted *= theirs->extents[i];
    }
    return RONDO_STATUS_OK;
}

static rondo_status read_shape(const rondo_dlpack_tensor *theirs, rondo_shape *out_shape) {
    *out_shape = (rondo_shape){0};
    if (theirs->rank < 0 || theirs->rank > RONDO_RANK_MAX) {
        return RONDO_FAIL_AS("rondo_tensor_from_dlpack", INVALID,
                             "the tensor has rank %d; ranks are 0 to %d", (int)theirs->rank,
                             (int)RONDO_RANK_MAX);
    }
    if (theirs->rank > 0 && theirs->extents == NULL) {
        return RONDO_FAIL_AS("rondo_tensor_from_dlpack", INVALID,
                             "the tensor has rank %d and no extents", (int)theirs->rank);
    }
    out_shape->rank = theirs->rank;
    for (int32_t i = 0; i < theirs->rank; ++i) {
        out_shape->extent[i] = theirs->extents[i];
    }
    return RONDO_STATUS_OK;
}

// A tensor on a GPU retains that device.
typedef struct imported {
    void (*release)(void *managed);
    void *managed;
    rondo_device *device;
} imported;

static void release_imported(void *user_data) {
    imported *block = user_data;
    block->release(block->managed);
    rondo_device_release(block->device);
    rondo__free(block);
}

// Wraps `release` so that the device is kept; *out_tensor has no storage yet.
static rondo_status keep_device(rondo_dlpack_device theirs, void (*release)(void *), void *managed,
                                rondo_tensor *tensor) {
    char name[32];
    (void)snprintf(name, sizeof name, "cuda:%d", (int)theirs.id);
    imported *block = rondo__calloc(1, sizeof *block);
    if (block == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = rondo_device_open(name, &block->device);
    if (status == RONDO_STATUS_OK) {
        block->release = release;
        block->managed = managed;
        status = rondo__storage_wrap(release_imported, block, &tensor->storage);
    }
    if (status != RONDO_STATUS_OK) {
        rondo_device_release(block->device);
        rondo__free(block);
        return status;
    }
    tensor->device = block->device;
    return RONDO_STATUS_OK;
}

static bool is_on_gpu(rondo_dlpack_device device) {
    return device.type == RONDO_DLPACK_CUDA || device.type == RONDO_DLPACK_CUDA_MANAGED;
}

// The import of both forms. Takes nothing over; `release` runs only after success.
static rondo_status import(const rondo_dlpack_tensor *theirs, uint64_t flags, bool is_plain,
                           void (*release)(void *), void *managed, rondo_tensor *out_tensor) {
    RETURN_IF_ERROR(check_device(theirs->device, is_plain));
    if (is_plain && (flags & RONDO_DLPACK_FLAG_READ_ONLY) != 0) {
        return RONDO_FAIL_AS(
            "rondo_tensor_from_dlpack", INVALID,
            "the tensor is read-only; pass out_info to accept that, or copy it first");
    }
    rondo_dtype dtype = RONDO_DTYPE_NONE;
    const bool is_padded = (flags & RONDO_DLPACK_FLAG_SUBBYTE_PADDED) != 0;
    RETURN_IF_ERROR(read_type(theirs->type, !is_plain, is_padded, &dtype));
    rondo_shape shape;
    RETURN_IF_ERROR(read_shape(theirs, &shape));
    int64_t count = rondo_shape_get_count(&shape);
    if (count > 0) {
        RETURN_IF_ERROR(check_strides(theirs));
        if (theirs->data == NULL) {
            return RONDO_FAIL_AS("rondo_tensor_from_dlpack", INVALID,
                                 "the tensor has elements and no address");
        }
        if (theirs->byte_offset % rondo_dtype_get_bytes(dtype) != 0 ||
            theirs->byte_offset > (uint64_t)PTRDIFF_MAX) {
            return RONDO_FAIL_AS("rondo_tensor_from_dlpack", INVALID,
                                 "a byte offset of %llu does not fit elements of %zu bytes",
                                 (unsigned long long)theirs->byte_offset,
                                 rondo_dtype_get_bytes(dtype));
        }
    }
    void *data = count > 0 ? (char *)theirs->data + theirs->byte_offset : theirs->data;
    RETURN_IF_ERROR(rondo__tensor_init_storage(dtype, &shape, data, NULL, out_tensor));
    // Last: from here on their deleter is ours to call.
    rondo_status status = is_on_gpu(theirs->device)
                              ? keep_device(theirs->device, release, managed, out_tensor)
                              : rondo__storage_wrap(release, managed, &out_tensor->storage);
    if (status != RONDO_STATUS_OK) {
        *out_tensor = (rondo_tensor){0};
    }
    return status;
}

static void release_managed(void *user_data) {
    rondo_dlpack_managed *managed = user_data;
    if (managed->deleter != NULL) {
        managed->deleter(managed);
    }
}

static void release_versioned(void *user_data) {
    rondo_dlpack_versioned *managed = user_data;
    if (managed->deleter != NULL) {
        managed->deleter(managed);
    }
}

// What both forms begin with.
static rondo_status clear_results(const void *managed, rondo_tensor *out_tensor,
                                  rondo_dlpack_info *out_info, const char *call) {
    if (managed == NULL || out_tensor == NULL) {
        return RONDO_FAIL_AS(call, INVALID,
                             "a managed tensor and a place for the result are needed");
    }
    *out_tensor = (rondo_tensor){0};
    return out_info != NULL
               ? rondo__clear_struct(out_info, sizeof *out_info, call, "rondo_dlpack_info")
               : RONDO_STATUS_OK;
}

rondo_status rondo_tensor_from_dlpack(rondo_dlpack_managed *managed, rondo_tensor *out_tensor,
                                      rondo_dlpack_info *out_info) {
    RETURN_IF_ERROR(clear_results(managed, out_tensor, out_info, __func__));
    rondo_dlpack_info info = {.device = managed->tensor.device, .type = managed->tensor.type};
    RETURN_IF_ERROR(
        import(&managed->tensor, 0, out_info == NULL, release_managed, managed, out_tensor));
    if (out_info != NULL) {
        rondo__write_struct(out_info, &info);
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo_tensor_from_dlpack_versioned(rondo_dlpack_versioned *managed,
                                                rondo_tensor *out_tensor,
                                                rondo_dlpack_info *out_info) {
    RETURN_IF_ERROR(clear_results(managed, out_tensor, out_info, __func__));
    if (managed->major != RONDO_DLPACK_MAJOR) {
        return RONDO_FAIL(UNSUPPORTED, "the tensor is of DLPack %u.%u; versions %d.x are read",
                          (unsigned)managed->major, (unsigned)managed->minor,
                          (int)RONDO_DLPACK_MAJOR);
    }
    bool is_read_only = (managed->flags & RONDO_DLPACK_FLAG_READ_ONLY) != 0;
    rondo_dlpack_info info = {.device = managed->tensor.device,
                              .type = managed->tensor.type,
                              .is_read_only = is_read_only,
                              .is_copied = (managed->flags & RONDO_DLPACK_FLAG_IS_COPIED) != 0};
    RETURN_IF_ERROR(import(&managed->tensor, managed->flags, out_info == NULL, release_versioned,
                           managed, out_tensor));
    if (out_info != NULL) {
        rondo__write_struct(out_info, &info);
    }
    return RONDO_STATUS_OK;
}

// ---- out --------------------------------------------------------------------------------------

typedef struct exported {
    union {
        rondo_dlpack_managed plain;
        rondo_dlpack_versioned versioned;
    } form;  // first: the deleter gets its address
    rondo_tensor tensor;
    int64_t extents[RONDO_RANK_MAX];
    int64_t strides[RONDO_RANK_MAX];
} exported;

static void delete_exported(exported *block) {
    rondo_tensor_deinit(&block->tensor);
    rondo__free(block);
}

static void delete_plain(rondo_dlpack_managed *self) {
    delete_exported((exported *)(void *)self);
}

static void delete_versioned(rondo_dlpack_versioned *self) {
    delete_exported((exported *)(void *)self);
}

static rondo_status write_type(rondo_dtype dtype, const rondo_dlpack_type *wanted,
                               rondo_dlpack_type *out_type) {
    if (rondo_dtype_get_bytes(dtype) > 0 && !rondo__dtype_is_plain(dtype)) {
        return RONDO_FAIL_AS("rondo_tensor_to_dlpack", UNSUPPORTED,
                             "DLPack has no form for a tensor of element type %s",
                             rondo_dtype_get_name(dtype));
    }
    if (wanted != NULL) {
        if (wanted->lanes != 1 || (wanted->bits != 8 * rondo_dtype_get_bytes(dtype) &&
                                   wanted->bits != rondo__dtype_get_bits(dtype))) {
            return RONDO_FAIL_AS(
                "rondo_tensor_to_dlpack", INVALID,
                "elements of %s cannot be given out as %s of %u bits and %u lanes: "
                "the sizes differ",
                rondo_dtype_get_name(dtype), get_code_name(wanted->code), (unsigned)wanted->bits,
                (unsigned)wanted->lanes);
        }
        *out_type = *wanted;
        return RONDO_STATUS_OK;
    }
    for (size_t i = 0; i < TYPE_PAIR_COUNT; ++i) {
        if (type_pairs[i].dtype == dtype) {
            *out_type = (rondo_dlpack_type){
                .code = type_pairs[i].code, .bits = type_pairs[i].bits, .lanes = 1};
            return RONDO_STATUS_OK;
        }
    }
    return RONDO_FAIL_AS("rondo_tensor_to_dlpack", INVALID,
                         "%d is not an element type; use a RONDO_DTYPE_ value", (int)dtype);
}

static rondo_status export(const rondo_tensor *tensor, const rondo_dlpack_device *device,
                           const rondo_dlpack_type *type, exported **out_block,
                           rondo_dlpack_tensor *out_view) {
    if (rondo_shape_get_count(&tensor->shape) < 0) {
        char text[192];
        return RONDO_FAIL_AS("rondo_tensor_to_dlpack", INVALID, "%s of rank %d is no shape",
                             rondo_shape_format(&tensor->shape, text, sizeof text),
                             (int)tensor->shape.rank);
    }
    rondo_dlpack_tensor view = {.data = tensor->data, .rank = tensor->shape.rank};
    view.device = (rondo_dlpack_device){.type = RONDO_DLPACK_CPU};
    if (device != NULL) {
        view.device = *device;
    } else if (tensor->device != NULL) {
        RETURN_IF_ERROR(rondo_dlpack_get_device(tensor->device, RONDO_MEMORY_DEVICE, &view.device));
    }
    RETURN_IF_ERROR(check_device(view.device, false));
    RETURN_IF_ERROR(write_type(tensor->dtype, type, &view.type));
    exported *block = rondo__calloc(1, sizeof *block);
    if (block == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_tensor_share(tensor, &block->tensor);
    view.extents = block->extents;
    view.strides = block->strides;  // DLPack 1.2 wants them even where they say nothing new
    int64_t stride = 1;
    for (int32_t i = view.rank; i-- > 0;) {
        block->extents[i] = tensor->shape.extent[i];
        block->strides[i] = stride;
        // An empty tensor's strides mean nothing, but must not overflow.
        stride *= block->extents[i] > 0 ? block->extents[i] : 1;
    }
    *out_view = view;
    *out_block = block;
    return RONDO_STATUS_OK;
}

rondo_status rondo_tensor_to_dlpack(const rondo_tensor *tensor, const rondo_dlpack_device *device,
                                    const rondo_dlpack_type *type,
                                    rondo_dlpack_managed **out_managed) {
    if (tensor == NULL || out_managed == NULL) {
        return RONDO_FAIL(INVALID, "a tensor and a place for the result are needed");
    }
    *out_managed = NULL;
    exported *block;
    rondo_dlpack_tensor view;
    RETURN_IF_ERROR(export(tensor, device, type, &block, &view));
    if (view.type.bits < 8) {
        delete_exported(block);
        return RONDO_FAIL(UNSUPPORTED,
                          "elements of %s have a byte each, which this form cannot say; use "
                          "rondo_tensor_to_dlpack_versioned",
                          rondo_dtype_get_name(tensor->dtype));
    }
    block->form.plain =
        (rondo_dlpack_managed){.tensor = view, .context = block, .deleter = delete_plain};
    *out_managed = &block->form.plain;
    return RONDO_STATUS_OK;
}

rondo_status rondo_tensor_to_dlpack_versioned(const rondo_tensor *tensor,
                                              const rondo_dlpack_device *device,
                                              const rondo_dlpack_type *type, uint64_t flags,
                                              rondo_dlpack_versioned **out_managed) {
    if (tensor == NULL || out_managed == NULL) {
        return RONDO_FAIL(INVALID, "a tensor and a place for the result are needed");
    }
    *out_managed = NULL;
    exported *block;
    rondo_dlpack_tensor view;
    RETURN_IF_ERROR(export(tensor, device, type, &block, &view));
    const uint64_t padding = view.type.bits < 8 ? RONDO_DLPACK_FLAG_SUBBYTE_PADDED : 0;
    block->form.versioned = (rondo_dlpack_versioned){.major = RONDO_DLPACK_MAJOR,
                                                     .minor = RONDO_DLPACK_MINOR,
                                                     .context = block,
                                                     .deleter = delete_versioned,
                                                     .flags = flags | padding,
                                                     .tensor = view};
    *out_managed = &block->form.versioned;
    return RONDO_STATUS_OK;
}
