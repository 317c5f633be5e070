// rondo/tensor.h — element types, shapes and dense tensors.
//
// A tensor is a small value struct: element type, shape, address, and (when it owns its bytes) a
// retained storage. All tensors are dense and row-major; there are no strides.
//
// The bytes lie in host memory or, where `device` says so, in that of a device: a device tensor.
// The processor must not read those, and calls that would do so refuse them.
//
// Elements are numbers, strings (rondo_string), or tensors again: what ONNX calls a sequence is a
// tensor of one axis whose elements are tensors, and an optional is one that has one element or
// none. Strings, sequences and optionals are always in host memory.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_TENSOR_H
#define RONDO_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/device.h"
#include "rondo/export.h"
#include "rondo/status.h"

RONDO_EXTERN_C_BEGIN

// X(name, value, bytes per element, text). Values are permanent; the tool prints and reads text.
//
// C64 and C128 are pairs, real part first. I4 to F8E8M0 are narrow: one element a byte, in its low
// bits. The others are written as 0 and not read; ONNX files pack 2 or 4 elements a byte.
#define RONDO_DTYPE_MAP(X)                            \
    X(NONE, 0, 0, "none")                             \
    X(F32, 1, 4, "f32")                               \
    X(F64, 2, 8, "f64")                               \
    X(F16, 3, 2, "f16")                               \
    X(BF16, 4, 2, "bf16")                             \
    X(I8, 5, 1, "i8")                                 \
    X(I16, 6, 2, "i16")                               \
    X(I32, 7, 4, "i32")                               \
    X(I64, 8, 8, "i64")                               \
    X(U8, 9, 1, "u8")                                 \
    X(U16, 10, 2, "u16")                              \
    X(U32, 11, 4, "u32")                              \
    X(U64, 12, 8, "u64")                              \
    X(BOOL, 13, 1, "bool")                            \
    X(STRING, 14, sizeof(rondo_string), "string")     \
    X(SEQUENCE, 15, sizeof(rondo_tensor), "sequence") \
    X(OPTIONAL, 16, sizeof(rondo_tensor), "optional") \
    X(C64, 17, 8, "c64")                              \
    X(C128, 18, 16, "c128")                           \
    X(I4, 19, 1, "i4")                                \
    X(U4, 20, 1, "u4")                                \
    X(I2, 21, 1, "i2")                                \
    X(U2, 22, 1, "u2")                                \
    X(F4E2M1, 23, 1, "f4e2m1")                        \
    X(F8E4M3FN, 24, 1, "f8e4m3fn")                    \
    X(F8E4M3FNUZ, 25, 1, "f8e4m3fnuz")                \
    X(F8E5M2, 26, 1, "f8e5m2")                        \
    X(F8E5M2FNUZ, 27, 1, "f8e5m2fnuz")                \
    X(F8E8M0, 28, 1, "f8e8m0")

typedef int32_t rondo_dtype;
enum {
#define RONDO_DTYPE_ENUM(name, value, bytes, text) RONDO_DTYPE_##name = (value),
    RONDO_DTYPE_MAP(RONDO_DTYPE_ENUM)
#undef RONDO_DTYPE_ENUM
        RONDO_DTYPE_COUNT
};

// The most axes that a tensor has, everywhere: what would have more is refused by name.
enum { RONDO_RANK_MAX = 8 };

// Rank 0 is a scalar. Extents are at least 0; entries beyond `rank` are 0.
typedef struct rondo_shape {  // ABI: fixed
    int32_t rank;
    int64_t extent[RONDO_RANK_MAX];
} rondo_shape;

// An element of a string tensor: `size` bytes, UTF-8 by custom. Zeros inside are possible. Strings
// that the library makes have a zero behind the last byte, too, which `size` does not count.
typedef struct rondo_string {  // ABI: fixed
    const char *data;          // may be NULL when `size` is 0
    size_t size;
} rondo_string;

// Reference-counted bytes behind one or more tensors; opaque.
typedef struct rondo_storage rondo_storage;

// A dense row-major tensor. Copying the struct copies a borrow; see rondo_tensor_share.
typedef struct rondo_tensor {  // ABI: fixed
    rondo_dtype dtype;
    rondo_shape shape;
    void *data;              // first element; may be NULL when there are no elements
    rondo_storage *storage;  // what keeps `data` alive; NULL when the caller does
    rondo_device *device;    // whose memory it is; NULL: host memory, pinned or not. Borrowed, but
                             // kept by a storage
} rondo_tensor;

// Bytes of one element; 0 for RONDO_DTYPE_NONE and unknown values.
RONDO_API size_t rondo_dtype_get_bytes(rondo_dtype dtype);

// "f32", "i64" and so on; "none" for unknown values.
RONDO_API const char *rondo_dtype_get_name(rondo_dtype dtype);

// Number of elements; -1 for NULL, and when an extent is negative, the rank is out of range or the
// product overflows: that of the other extents where one is 0, so that strides and the sizes of
// rows, which are products of some of them, always fit.
RONDO_API int64_t rondo_shape_get_count(const rondo_shape *shape);

// True when rank and all extents are equal; false when one of them is NULL.
RONDO_API bool rondo_shape_is_equal(const rondo_shape *a, const rondo_shape *b);

// Writes "[2, 3, 4]" into `buffer`, always terminated, cut when too long. Returns `buffer`.
RONDO_API char *rondo_shape_format(const rondo_shape *shape, char *buffer, size_t buffer_bytes);

// Allocates a zero-filled tensor in host memory, aligned to 64 bytes. Strings are empty.
//
// Errors:    INVALID (dtype, shape; SEQUENCE and OPTIONAL have calls of their own).
// Ownership: caller owns *out_tensor; free with rondo_tensor_deinit.
RONDO_API RONDO_MUST_USE rondo_status rondo_tensor_init(rondo_dtype dtype, const rondo_shape *shape,
                                                        rondo_tensor *out_tensor);

// Allocates a tensor in a device's memory, aligned to 256 bytes, not initialised. On the host
// device that is host memory, so such a program runs on both.
//
// Errors:    INVALID (dtype, shape; elements that are no numbers), NO_DEVICE_MEMORY.
// Ownership: caller owns *out_tensor; free with rondo_tensor_deinit, when work that uses it is
//            done. It keeps the device.
// Capture:   unsafe.
RONDO_API RONDO_MUST_USE rondo_status rondo_tensor_init_device(rondo_device *device,
                                                               rondo_dtype dtype,
                                                               const rondo_shape *shape,
                                                               rondo_tensor *out_tensor);

// Whether the processor may read the bytes: host memory, or that of the host device. True for NULL.
RONDO_API bool rondo_tensor_is_on_host(const rondo_tensor *tensor);

// Copies the elements of `source` to `destination` in stream order. Both have the same dtype and
// shape; each lies in host memory or on a device, of which one is the stream's. Between two GPUs
// the driver copies directly where it can.
//
// Errors:    INVALID (dtypes, shapes or devices that do not fit; elements that are no numbers; the
//            tensors overlap), those of rondo_stream_copy.
// Ownership: both stay until the copy has run.
// Capture:   recorded; as rondo_stream_copy.
RONDO_API RONDO_MUST_USE rondo_status rondo_tensor_copy(rondo_stream *stream,
                                                        const rondo_tensor *source,
                                                        const rondo_tensor *destination);

// Makes a string tensor of copies of `strings`, in row-major order.
//
//   const rondo_string words[] = {{"good", 4}, {"morning", 7}};
//   rondo_tensor_init_strings(&(rondo_shape){.rank = 1, .extent = {2}}, words, &tensor);
//   ... ((const rondo_string *)tensor.data)[1] ...
//
// Errors:    INVALID (shape, NULL).
// Ownership: caller owns *out_tensor; free with rondo_tensor_deinit. The strings live as long as
//            the last tensor that shares them.
RONDO_API RONDO_MUST_USE rondo_status rondo_tensor_init_strings(const rondo_shape *shape,
                                                                const rondo_string *strings,
                                                                rondo_tensor *out_tensor);

// Makes a sequence of `count` tensors: its shape is [count], its elements share the bytes of
// `items` as rondo_tensor_share does.
//
// items      of one element type, which is none of SEQUENCE and OPTIONAL; NULL when count is 0.
//
// Ownership: caller owns *out_tensor; free with rondo_tensor_deinit.
RONDO_API RONDO_MUST_USE rondo_status rondo_tensor_init_sequence(const rondo_tensor *items,
                                                                 size_t count,
                                                                 rondo_tensor *out_tensor);

// Makes an optional that holds `item` (a tensor or a sequence, shared), or nothing when that is
// NULL. Its shape is [1] or [0].
//
// Ownership: caller owns *out_tensor; free with rondo_tensor_deinit.
RONDO_API RONDO_MUST_USE rondo_status rondo_tensor_init_optional(const rondo_tensor *item,
                                                                 rondo_tensor *out_tensor);

// Element `index` of a sequence or optional, borrowed from it; NULL when there is none.
RONDO_API const rondo_tensor *rondo_tensor_get_item(const rondo_tensor *tensor, size_t index);

// Makes *out_tensor share the bytes of `tensor` and keep them alive (when `tensor` owns them). If
// `tensor` is NULL, *out_tensor becomes empty.
//
// Ownership: free *out_tensor with rondo_tensor_deinit.
RONDO_API void rondo_tensor_share(const rondo_tensor *tensor, rondo_tensor *out_tensor);

// Gives up this tensor's share of its bytes and zeroes the struct. NULL and zeroed ones are fine.
//
// Threads:   safe on different structs, also when they share bytes.
RONDO_API void rondo_tensor_deinit(rondo_tensor *tensor);

// Bytes of all elements (of strings, sequences and optionals: of the structs); 0 for NULL, an empty
// tensor or an invalid shape.
RONDO_API size_t rondo_tensor_get_bytes(const rondo_tensor *tensor);

// Between IEEE 754 half and single precision; round to nearest even, infinities and NaN kept.
RONDO_API uint16_t rondo_f16_from_float(float value);
RONDO_API float rondo_f16_to_float(uint16_t bits);

// Between a narrow element and single precision. A float goes as ONNX's Cast does: to nearest even
// and within the limits, upwards to a power of two (F8E8M0), towards zero and wrapped for integers.
// 0 for other types.
RONDO_API uint8_t rondo_narrow_from_float(rondo_dtype dtype, float value);
RONDO_API float rondo_narrow_to_float(rondo_dtype dtype, uint8_t bits);

RONDO_EXTERN_C_END

#endif  // RONDO_TENSOR_H
