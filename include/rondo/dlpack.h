// rondo/dlpack.h — tensors in from and out to other libraries, without copies.
//
// DLPack is the struct that PyTorch, NumPy, CuPy, JAX and others pass to each other. It comes in
// two forms: the old one, and the versioned one of DLPack 1.0. Both are declared here under names
// of our own, so that this header and dlpack.h can be included together; a pointer to theirs is
// cast.
//
//   rondo_dlpack_info info;
//   rondo_tensor_from_dlpack((rondo_dlpack_managed *)theirs, &tensor, &info);  // theirs is taken
//   ... use tensor.data on tensor.device; NULL: in host memory ...
//   rondo_tensor_deinit(&tensor);  // their deleter runs
//
// DLPack says nothing of streams: who hands a tensor over has to make its work visible first, by an
// event that the reader's stream waits for or by a wait on the host.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_DLPACK_H
#define RONDO_DLPACK_H

#include <stdbool.h>
#include <stdint.h>

#include "rondo/device.h"
#include "rondo/export.h"
#include "rondo/status.h"
#include "rondo/tensor.h"

RONDO_EXTERN_C_BEGIN

// ---- the structs of the standard --------------------------------------------------------------

enum {
    RONDO_DLPACK_MAJOR = 1,  // the version written here; any minor version of it can be read
    RONDO_DLPACK_MINOR = 1,
};

// Kinds of device that Rondo knows, by the standard's numbers.
enum {
    RONDO_DLPACK_CPU = 1,
    RONDO_DLPACK_CUDA = 2,
    RONDO_DLPACK_CUDA_HOST = 3,  // pinned host memory
    RONDO_DLPACK_CUDA_MANAGED = 13,
};

// Kinds of element, by the standard's numbers. The last six are floats of 8 and 4 bits.
enum {
    RONDO_DLPACK_INT = 0,
    RONDO_DLPACK_UINT = 1,
    RONDO_DLPACK_FLOAT = 2,
    RONDO_DLPACK_BFLOAT = 4,
    RONDO_DLPACK_COMPLEX = 5,
    RONDO_DLPACK_BOOL = 6,
    RONDO_DLPACK_FLOAT8_E4M3FN = 10,
    RONDO_DLPACK_FLOAT8_E4M3FNUZ = 11,
    RONDO_DLPACK_FLOAT8_E5M2 = 12,
    RONDO_DLPACK_FLOAT8_E5M2FNUZ = 13,
    RONDO_DLPACK_FLOAT8_E8M0FNU = 14,
    RONDO_DLPACK_FLOAT4_E2M1FN = 17,
};

// Flags of the versioned form.
#define RONDO_DLPACK_FLAG_READ_ONLY UINT64_C(1)
#define RONDO_DLPACK_FLAG_IS_COPIED UINT64_C(2)
#define RONDO_DLPACK_FLAG_SUBBYTE_PADDED UINT64_C(4)  // one element of fewer than 8 bits a byte

typedef struct rondo_dlpack_device {  // ABI: fixed; DLDevice
    int32_t type;                     // RONDO_DLPACK_CPU, RONDO_DLPACK_CUDA, ...
    int32_t id;                       // which GPU; 0 for the host
} rondo_dlpack_device;

typedef struct rondo_dlpack_type {  // ABI: fixed; DLDataType
    uint8_t code;                   // RONDO_DLPACK_FLOAT, ...
    uint8_t bits;
    uint16_t lanes;  // elements side by side; 1 for what Rondo reads
} rondo_dlpack_type;

typedef struct rondo_dlpack_tensor {  // ABI: fixed; DLTensor
    void *data;                       // the first element is at data + byte_offset
    rondo_dlpack_device device;
    int32_t rank;
    rondo_dlpack_type type;
    int64_t *extents;
    int64_t *strides;  // in elements; NULL: row-major without gaps
    uint64_t byte_offset;
} rondo_dlpack_tensor;

typedef struct rondo_dlpack_managed {  // ABI: fixed; DLManagedTensor
    rondo_dlpack_tensor tensor;
    void *context;
    void (*deleter)(struct rondo_dlpack_managed *self);  // may be NULL
} rondo_dlpack_managed;

typedef struct rondo_dlpack_versioned {  // ABI: fixed; DLManagedTensorVersioned
    uint32_t major;
    uint32_t minor;
    void *context;
    void (*deleter)(struct rondo_dlpack_versioned *self);  // may be NULL
    uint64_t flags;                                        // RONDO_DLPACK_FLAG_*
    rondo_dlpack_tensor tensor;
} rondo_dlpack_versioned;

// ---- in ---------------------------------------------------------------------------------------

// What a rondo_tensor does not say.
typedef struct rondo_dlpack_info {
    size_t struct_size;          // sizeof(rondo_dlpack_info)
    rondo_dlpack_device device;  // where the bytes lie
    rondo_dlpack_type type;      // as it came
    bool is_read_only;
    bool is_copied;  // the producer made this copy for the reader
} rondo_dlpack_info;

// Makes a tensor of another library's bytes, without a copy.
//
// managed    taken on success: its deleter runs once, when the last tensor that shares the bytes is
//            given up, on that thread. After a failure it is still the caller's, who deletes it. (A
//            caller that takes it out of a Python capsule renames the capsule to "used_dltensor".)
// out_info   NULL says that only plain tensors will do: in host memory, writable, of an element
//            type that Rondo has. With it, every device of the list above is accepted, and 8-bit
//            floats of other kinds come as RONDO_DTYPE_U8, bit for bit. A tensor on a GPU becomes a
//            device tensor: Rondo opens that device and retains it.
//
// Elements of fewer than 8 bits are read where they have a byte each, which only the versioned form
// can say.
//
// Shapes:    rank 0 to RONDO_RANK_MAX, row-major without gaps. Strides of extents 1, and those of
//            empty tensors, do not matter.
// Errors:    INVALID (a strided tensor: make it contiguous first; a NULL address; a shape that does
//            not fit; without out_info: another device, read-only), UNSUPPORTED (element type,
//            device, or version: each named), UNAVAILABLE (the GPU cannot be used here).
// Ownership: free *out_tensor with rondo_tensor_deinit.
// Capture:   a graph that uses the address needs the tensor for as long as it is replayed.
RONDO_API RONDO_MUST_USE rondo_status rondo_tensor_from_dlpack(rondo_dlpack_managed *managed,
                                                               rondo_tensor *out_tensor,
                                                               rondo_dlpack_info *out_info);

// The same for the versioned form.
//
// Errors:    as above; UNSUPPORTED when its major version is not 1.
RONDO_API RONDO_MUST_USE rondo_status rondo_tensor_from_dlpack_versioned(
    rondo_dlpack_versioned *managed, rondo_tensor *out_tensor, rondo_dlpack_info *out_info);

// ---- out --------------------------------------------------------------------------------------

// The DLPack name of memory that rondo_memory_allocate gives for this device and kind.
RONDO_API RONDO_MUST_USE rondo_status rondo_dlpack_get_device(const rondo_device *device,
                                                              rondo_memory_kind kind,
                                                              rondo_dlpack_device *out_device);

// Hands a tensor to another library, without a copy.
//
// tensor     may be given up afterwards: when it owns its bytes, the result keeps them alive. When
//            it does not, the caller keeps them until the deleter has run.
// device     where the bytes lie, for memory that the tensor does not tell, such as pinned memory;
//            NULL: where the tensor says.
// type       NULL: that of the tensor. Otherwise what the elements really are, of the same size: an
//            8-bit float in a tensor of U8, say.
//
// Errors:    INVALID (shape, element type, sizes that differ), UNSUPPORTED (strings, sequences and
//            optionals; elements of fewer than 8 bits, which the versioned form has).
// Ownership: the last owner of *out_managed calls its deleter once.
// Threads:   safe; the deleter may run on any thread.
RONDO_API RONDO_MUST_USE rondo_status rondo_tensor_to_dlpack(const rondo_tensor *tensor,
                                                             const rondo_dlpack_device *device,
                                                             const rondo_dlpack_type *type,
                                                             rondo_dlpack_managed **out_managed);

// The same in the versioned form.
//
// flags      RONDO_DLPACK_FLAG_*, passed on; RONDO_DLPACK_FLAG_SUBBYTE_PADDED is set where it
//            holds.
//
// Ownership: the last owner of *out_managed calls its deleter once.
RONDO_API RONDO_MUST_USE rondo_status rondo_tensor_to_dlpack_versioned(
    const rondo_tensor *tensor, const rondo_dlpack_device *device, const rondo_dlpack_type *type,
    uint64_t flags, rondo_dlpack_versioned **out_managed);

RONDO_EXTERN_C_END

#endif  // RONDO_DLPACK_H
