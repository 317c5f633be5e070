// DLPack in and out, with hand-made capsules of both forms.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "rondo/dlpack.h"
#include "support/fake/fake_cuda.h"
#include "support/test.h"

enum { FLOAT8_E4M3 = 8 };  // of the standard, and no type here

// A producer: one block of memory, its capsule, and how often the deleter ran.
typedef struct producer {
    float elements[24];
    int64_t extents[4];
    int64_t strides[4];
    int delete_count;
    rondo_dlpack_managed plain;
    rondo_dlpack_versioned versioned;
} producer;

static void delete_plain(rondo_dlpack_managed *self) {
    ++((producer *)self->context)->delete_count;
}

static void delete_versioned(rondo_dlpack_versioned *self) {
    ++((producer *)self->context)->delete_count;
}

// [2, 3, 4] of f32 in host memory.
static void fill_producer(producer *p) {
    *p = (producer){.extents = {2, 3, 4}, .strides = {12, 4, 1}};
    for (int i = 0; i < 24; ++i) {
        p->elements[i] = (float)i;
    }
    p->plain = (rondo_dlpack_managed){
        .tensor = {.data = p->elements,
                   .device = {.type = RONDO_DLPACK_CPU},
                   .rank = 3,
                   .type = {.code = RONDO_DLPACK_FLOAT, .bits = 32, .lanes = 1},
                   .extents = p->extents,
                   .strides = p->strides},
        .context = p,
        .deleter = delete_plain};
    p->versioned = (rondo_dlpack_versioned){.major = 1,
                                            .minor = 7,
                                            .context = p,
                                            .deleter = delete_versioned,
                                            .tensor = p->plain.tensor};
}

static void assert_refused(producer *p, rondo_dlpack_info *out_info, rondo_status expected,
                           const char *text) {
    rondo_tensor tensor;
    memset(&tensor, 0xff, sizeof tensor);
    assert_int_equal(rondo_tensor_from_dlpack(&p->plain, &tensor, out_info), expected);
    assert_null(tensor.data);
    assert_null(tensor.storage);
    assert_int_equal(p->delete_count, 0);  // still the caller's
    if (strstr(rondo_error_get_last()->message, text) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", rondo_error_get_last()->message, text);
    }
}

TEST(test_device_dlpack__in_shares_the_bytes) {
    producer p;
    fill_producer(&p);
    rondo_tensor tensor;
    rondo_tensor second;
    assert_int_equal(rondo_tensor_from_dlpack(&p.plain, &tensor, NULL), RONDO_STATUS_OK);
    assert_ptr_equal(tensor.data, p.elements);
    assert_int_equal(tensor.dtype, RONDO_DTYPE_F32);
    assert_int_equal(tensor.shape.rank, 3);
    assert_int_equal(tensor.shape.extent[1], 3);
    assert_int_equal(rondo_tensor_get_bytes(&tensor), sizeof p.elements);
    rondo_tensor_share(&tensor, &second);
    rondo_tensor_deinit(&tensor);
    assert_int_equal(p.delete_count, 0);
    assert_true(((float *)second.data)[23] == 23.0f);
    rondo_tensor_deinit(&second);
    assert_int_equal(p.delete_count, 1);
}

TEST(test_device_dlpack__in_offsets_and_strides) {
    producer p;
    rondo_tensor tensor;
    // A part of the buffer, from element 12 on, without strides.
    fill_producer(&p);
    p.extents[0] = 1;
    p.plain.tensor.byte_offset = 12 * sizeof(float);
    p.plain.tensor.strides = NULL;
    p.plain.deleter = NULL;  // the producer need not know
    assert_int_equal(rondo_tensor_from_dlpack(&p.plain, &tensor, NULL), RONDO_STATUS_OK);
    assert_true(((float *)tensor.data)[0] == 12.0f);
    rondo_tensor_deinit(&tensor);
    // The stride of an extent of 1 says nothing.
    fill_producer(&p);
    p.extents[0] = 1;
    p.strides[0] = -77;
    assert_int_equal(rondo_tensor_from_dlpack(&p.plain, &tensor, NULL), RONDO_STATUS_OK);
    rondo_tensor_deinit(&tensor);
    assert_int_equal(p.delete_count, 1);
    // Nor do those of an empty tensor, which needs no address either.
    fill_producer(&p);
    p.extents[2] = 0;
    p.strides[1] = 5;
    p.plain.tensor.data = NULL;
    assert_int_equal(rondo_tensor_from_dlpack(&p.plain, &tensor, NULL), RONDO_STATUS_OK);
    assert_int_equal(rondo_shape_get_count(&tensor.shape), 0);
    rondo_tensor_deinit(&tensor);
    // A scalar has no extents.
    fill_producer(&p);
    p.plain.tensor.rank = 0;
    p.plain.tensor.extents = NULL;
    p.plain.tensor.strides = NULL;
    assert_int_equal(rondo_tensor_from_dlpack(&p.plain, &tensor, NULL), RONDO_STATUS_OK);
    assert_int_equal(rondo_shape_get_count(&tensor.shape), 1);
    rondo_tensor_deinit(&tensor);
    // Transposed.
    fill_producer(&p);
    p.strides[1] = 1;
    p.strides[2] = 3;
    assert_refused(&p, NULL, RONDO_STATUS_INVALID, "dimension 2 steps 3");
    // Every second row.
    fill_producer(&p);
    p.extents[0] = 1;
    p.strides[1] = 8;
    assert_refused(&p, NULL, RONDO_STATUS_INVALID, "contiguous");
    fill_producer(&p);
    p.plain.tensor.byte_offset = 2;
    assert_refused(&p, NULL, RONDO_STATUS_INVALID, "byte offset of 2");
}

TEST(test_device_dlpack__in_refuses_by_name) {
    producer p;
    rondo_dlpack_info info = {.struct_size = sizeof info};
    rondo_tensor tensor;
    fill_producer(&p);
    p.plain.tensor.type = (rondo_dlpack_type){.code = RONDO_DLPACK_COMPLEX, .bits = 32, .lanes = 1};
    assert_refused(&p, &info, RONDO_STATUS_UNSUPPORTED, "complex");
    p.plain.tensor.type = (rondo_dlpack_type){.code = RONDO_DLPACK_INT, .bits = 4, .lanes = 1};
    assert_refused(&p, &info, RONDO_STATUS_UNSUPPORTED, "packed");
    p.plain.tensor.type = (rondo_dlpack_type){.code = RONDO_DLPACK_FLOAT, .bits = 32, .lanes = 4};
    assert_refused(&p, &info, RONDO_STATUS_UNSUPPORTED, "4 lanes");
    p.plain.tensor.type = (rondo_dlpack_type){.code = 99, .bits = 3, .lanes = 1};
    assert_refused(&p, &info, RONDO_STATUS_UNSUPPORTED, "code 99");
    fill_producer(&p);
    p.plain.tensor.device = (rondo_dlpack_device){.type = RONDO_DLPACK_CUDA, .id = 3};
    assert_refused(&p, NULL, RONDO_STATUS_INVALID, "CUDA device 3");
    p.plain.tensor.device.type = 10;
    assert_refused(&p, &info, RONDO_STATUS_UNSUPPORTED, "ROCm");
    p.plain.tensor.device.type = -4;
    assert_refused(&p, &info, RONDO_STATUS_UNSUPPORTED, "type -4");
    fill_producer(&p);
    p.plain.tensor.rank = RONDO_RANK_MAX + 1;
    assert_refused(&p, NULL, RONDO_STATUS_INVALID, "rank 9");
    fill_producer(&p);
    p.plain.tensor.extents = NULL;
    assert_refused(&p, NULL, RONDO_STATUS_INVALID, "no extents");
    fill_producer(&p);
    p.extents[1] = -1;
    assert_refused(&p, NULL, RONDO_STATUS_INVALID, "no shape");
    fill_producer(&p);
    p.plain.tensor.data = NULL;
    assert_refused(&p, NULL, RONDO_STATUS_INVALID, "no address");
    assert_int_equal(rondo_tensor_from_dlpack(NULL, &tensor, NULL), RONDO_STATUS_INVALID);
    assert_int_equal(rondo_tensor_from_dlpack(&p.plain, NULL, NULL), RONDO_STATUS_INVALID);
}

TEST(test_device_dlpack__every_element_type) {
    static const struct {
        rondo_dtype dtype;
        uint8_t code;
        uint8_t bits;
    } rows[] = {
        {RONDO_DTYPE_BOOL, RONDO_DLPACK_BOOL, 8},
        {RONDO_DTYPE_BF16, RONDO_DLPACK_BFLOAT, 16},
        {RONDO_DTYPE_F16, RONDO_DLPACK_FLOAT, 16},
        {RONDO_DTYPE_F32, RONDO_DLPACK_FLOAT, 32},
        {RONDO_DTYPE_F64, RONDO_DLPACK_FLOAT, 64},
        {RONDO_DTYPE_I8, RONDO_DLPACK_INT, 8},
        {RONDO_DTYPE_I16, RONDO_DLPACK_INT, 16},
        {RONDO_DTYPE_I32, RONDO_DLPACK_INT, 32},
        {RONDO_DTYPE_I64, RONDO_DLPACK_INT, 64},
        {RONDO_DTYPE_U8, RONDO_DLPACK_UINT, 8},
        {RONDO_DTYPE_U16, RONDO_DLPACK_UINT, 16},
        {RONDO_DTYPE_U32, RONDO_DLPACK_UINT, 32},
        {RONDO_DTYPE_U64, RONDO_DLPACK_UINT, 64},
        {RONDO_DTYPE_C64, RONDO_DLPACK_COMPLEX, 64},
        {RONDO_DTYPE_C128, RONDO_DLPACK_COMPLEX, 128},
        {RONDO_DTYPE_F8E4M3FN, RONDO_DLPACK_FLOAT8_E4M3FN, 8},
        {RONDO_DTYPE_F8E4M3FNUZ, RONDO_DLPACK_FLOAT8_E4M3FNUZ, 8},
        {RONDO_DTYPE_F8E5M2, RONDO_DLPACK_FLOAT8_E5M2, 8},
        {RONDO_DTYPE_F8E5M2FNUZ, RONDO_DLPACK_FLOAT8_E5M2FNUZ, 8},
        {RONDO_DTYPE_F8E8M0, RONDO_DLPACK_FLOAT8_E8M0FNU, 8},
    };
    // All numbers but those of fewer than 8 bits, which have a test of their own.
    assert_int_equal(sizeof rows / sizeof *rows + 5, RONDO_DTYPE_COUNT - 4);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        rondo_shape shape = {.rank = 2, .extent = {2, 3}};
        rondo_tensor tensor;
        rondo_tensor back;
        rondo_dlpack_managed *managed;
        assert_int_equal(rondo_tensor_init(rows[i].dtype, &shape, &tensor), RONDO_STATUS_OK);
        assert_int_equal(rondo_tensor_to_dlpack(&tensor, NULL, NULL, &managed), RONDO_STATUS_OK);
        assert_int_equal(managed->tensor.type.code, rows[i].code);
        assert_int_equal(managed->tensor.type.bits, rows[i].bits);
        assert_int_equal(managed->tensor.type.lanes, 1);
        assert_int_equal(rondo_tensor_from_dlpack(managed, &back, NULL), RONDO_STATUS_OK);
        assert_int_equal(back.dtype, rows[i].dtype);
        assert_ptr_equal(back.data, tensor.data);
        rondo_tensor_deinit(&tensor);
        rondo_tensor_deinit(&back);
    }
}

TEST(test_device_dlpack__small_floats_are_bytes) {
    producer p;
    rondo_dlpack_info info = {.struct_size = sizeof info};
    rondo_tensor tensor;
    fill_producer(&p);
    p.plain.tensor.type = (rondo_dlpack_type){.code = FLOAT8_E4M3, .bits = 8, .lanes = 1};
    assert_refused(&p, NULL, RONDO_STATUS_UNSUPPORTED, "float8_e4m3");
    assert_int_equal(rondo_tensor_from_dlpack(&p.plain, &tensor, &info), RONDO_STATUS_OK);
    assert_int_equal(tensor.dtype, RONDO_DTYPE_U8);
    assert_int_equal(info.type.code, FLOAT8_E4M3);
    // And out again under its own name.
    rondo_dlpack_managed *managed;
    assert_int_equal(rondo_tensor_to_dlpack(&tensor, &info.device, &info.type, &managed),
                     RONDO_STATUS_OK);
    assert_int_equal(managed->tensor.type.code, FLOAT8_E4M3);
    rondo_tensor_deinit(&tensor);
    assert_int_equal(p.delete_count, 0);
    managed->deleter(managed);
    assert_int_equal(p.delete_count, 1);
}

// Elements of 4 and 2 bits have a byte each: the versioned form says so, and the plain one cannot.
TEST(test_device_dlpack__subbyte_elements_are_padded) {
    static const struct {
        rondo_dtype dtype;
        uint8_t code, bits;
    } rows[] = {{RONDO_DTYPE_I4, RONDO_DLPACK_INT, 4},
                {RONDO_DTYPE_U4, RONDO_DLPACK_UINT, 4},
                {RONDO_DTYPE_I2, RONDO_DLPACK_INT, 2},
                {RONDO_DTYPE_U2, RONDO_DLPACK_UINT, 2},
                {RONDO_DTYPE_F4E2M1, RONDO_DLPACK_FLOAT4_E2M1FN, 4}};
    const rondo_shape shape = {.rank = 1, .extent = {3}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        rondo_tensor tensor;
        rondo_tensor back;
        rondo_dlpack_managed *plain;
        rondo_dlpack_versioned *managed;
        const rondo_dlpack_type bytes = {.code = RONDO_DLPACK_UINT, .bits = 8, .lanes = 1};
        assert_int_equal(rondo_tensor_init(rows[i].dtype, &shape, &tensor), RONDO_STATUS_OK);
        assert_int_equal(rondo_tensor_to_dlpack(&tensor, NULL, NULL, &plain),
                         RONDO_STATUS_UNSUPPORTED);
        assert_int_equal(rondo_tensor_to_dlpack(&tensor, NULL, &bytes, &plain), RONDO_STATUS_OK);
        plain->deleter(plain);
        assert_int_equal(rondo_tensor_to_dlpack_versioned(&tensor, NULL, NULL, 0, &managed),
                         RONDO_STATUS_OK);
        assert_int_equal(managed->flags, RONDO_DLPACK_FLAG_SUBBYTE_PADDED);
        assert_int_equal(managed->tensor.type.code, rows[i].code);
        assert_int_equal(managed->tensor.type.bits, rows[i].bits);
        managed->flags = 0;
        assert_int_equal(rondo_tensor_from_dlpack_versioned(managed, &back, NULL),
                         RONDO_STATUS_UNSUPPORTED);
        assert_non_null(strstr(rondo_error_get_last()->message, "packed"));
        managed->flags = RONDO_DLPACK_FLAG_SUBBYTE_PADDED;
        assert_int_equal(rondo_tensor_from_dlpack_versioned(managed, &back, NULL), RONDO_STATUS_OK);
        assert_int_equal(back.dtype, rows[i].dtype);
        assert_ptr_equal(back.data, tensor.data);
        rondo_tensor_deinit(&tensor);
        rondo_tensor_deinit(&back);
    }
}

TEST(test_device_dlpack__versioned) {
    producer p;
    rondo_dlpack_info info = {.struct_size = sizeof info};
    rondo_tensor tensor;
    fill_producer(&p);
    p.versioned.flags = RONDO_DLPACK_FLAG_READ_ONLY | RONDO_DLPACK_FLAG_IS_COPIED;
    assert_int_equal(rondo_tensor_from_dlpack_versioned(&p.versioned, &tensor, NULL),
                     RONDO_STATUS_INVALID);
    assert_non_null(strstr(rondo_error_get_last()->message, "read-only"));
    assert_int_equal(p.delete_count, 0);
    assert_int_equal(rondo_tensor_from_dlpack_versioned(&p.versioned, &tensor, &info),
                     RONDO_STATUS_OK);
    assert_true(info.is_read_only);
    assert_true(info.is_copied);
    assert_int_equal(info.device.type, RONDO_DLPACK_CPU);
    rondo_tensor_deinit(&tensor);
    assert_int_equal(p.delete_count, 1);
    fill_producer(&p);
    p.versioned.major = 2;
    assert_int_equal(rondo_tensor_from_dlpack_versioned(&p.versioned, &tensor, &info),
                     RONDO_STATUS_UNSUPPORTED);
    assert_non_null(strstr(rondo_error_get_last()->message, "DLPack 2.7"));
    assert_int_equal(p.delete_count, 0);
}

TEST(test_device_dlpack__out_keeps_the_bytes) {
    rondo_shape shape = {.rank = 3, .extent = {2, 1, 4}};
    rondo_tensor tensor;
    assert_int_equal(rondo_tensor_init(RONDO_DTYPE_I32, &shape, &tensor), RONDO_STATUS_OK);
    ((int32_t *)tensor.data)[7] = 41;
    rondo_dlpack_device device = {.type = RONDO_DLPACK_CUDA_HOST};
    rondo_dlpack_versioned *managed;
    assert_int_equal(rondo_tensor_to_dlpack_versioned(&tensor, &device, NULL,
                                                      RONDO_DLPACK_FLAG_READ_ONLY, &managed),
                     RONDO_STATUS_OK);
    rondo_tensor_deinit(&tensor);
    assert_int_equal(managed->major, 1);
    assert_int_equal(managed->flags, RONDO_DLPACK_FLAG_READ_ONLY);
    const rondo_dlpack_tensor *view = &managed->tensor;
    assert_int_equal(view->device.type, RONDO_DLPACK_CUDA_HOST);
    assert_int_equal(view->rank, 3);
    assert_int_equal(view->extents[0], 2);
    assert_int_equal(view->strides[0], 4);
    assert_int_equal(view->strides[1], 4);
    assert_int_equal(view->strides[2], 1);
    assert_int_equal(view->byte_offset, 0);
    assert_int_equal(((int32_t *)view->data)[7], 41);
    managed->deleter(managed);

    rondo_dlpack_managed *plain = NULL;
    rondo_dlpack_type other = {.code = RONDO_DLPACK_FLOAT8_E5M2, .bits = 8, .lanes = 1};
    rondo_dlpack_device unknown = {.type = 8};
    float element = 0;
    rondo_tensor borrowed = {.dtype = RONDO_DTYPE_F32, .shape = {.rank = 0}, .data = &element};
    assert_int_equal(rondo_tensor_to_dlpack(&borrowed, NULL, &other, &plain), RONDO_STATUS_INVALID);
    assert_non_null(strstr(rondo_error_get_last()->message, "float8_e5m2"));
    assert_null(plain);
    assert_int_equal(rondo_tensor_to_dlpack(&borrowed, &unknown, NULL, &plain),
                     RONDO_STATUS_UNSUPPORTED);
    assert_non_null(strstr(rondo_error_get_last()->message, "Metal"));
    borrowed.shape.rank = -1;
    assert_int_equal(rondo_tensor_to_dlpack(&borrowed, NULL, NULL, &plain), RONDO_STATUS_INVALID);
    borrowed.shape.rank = 0;
    borrowed.dtype = RONDO_DTYPE_NONE;
    assert_int_equal(rondo_tensor_to_dlpack(&borrowed, NULL, NULL, &plain), RONDO_STATUS_INVALID);
    assert_int_equal(rondo_tensor_to_dlpack(NULL, NULL, NULL, &plain), RONDO_STATUS_INVALID);
    // Addresses are nothing that anybody else could read, whatever type they are to pass for.
    borrowed.dtype = RONDO_DTYPE_STRING;
    rondo_dlpack_type wide = {.code = RONDO_DLPACK_COMPLEX, .bits = 128, .lanes = 1};
    assert_int_equal(rondo_tensor_to_dlpack(&borrowed, NULL, NULL, &plain),
                     RONDO_STATUS_UNSUPPORTED);
    assert_int_equal(rondo_tensor_to_dlpack(&borrowed, NULL, &wide, &plain),
                     RONDO_STATUS_UNSUPPORTED);
    assert_non_null(strstr(rondo_error_get_last()->message, "string"));
    borrowed.dtype = RONDO_DTYPE_F32;
    assert_int_equal(rondo_tensor_to_dlpack(&borrowed, NULL, NULL, &plain), RONDO_STATUS_OK);
    assert_ptr_equal(plain->tensor.data, &element);
    plain->deleter(plain);
}

TEST(test_device_dlpack__names_of_devices) {
    rondo_device *host;
    rondo_dlpack_device name;
    assert_int_equal(rondo_device_open("host", &host), RONDO_STATUS_OK);
    assert_int_equal(rondo_dlpack_get_device(host, RONDO_MEMORY_DEVICE, &name), RONDO_STATUS_OK);
    assert_int_equal(name.type, RONDO_DLPACK_CPU);
    assert_int_equal(rondo_dlpack_get_device(host, RONDO_MEMORY_PINNED, &name), RONDO_STATUS_OK);
    assert_int_equal(name.type, RONDO_DLPACK_CPU);
    assert_int_equal(rondo_dlpack_get_device(host, (rondo_memory_kind)5, &name),
                     RONDO_STATUS_INVALID);
    assert_int_equal(rondo_dlpack_get_device(NULL, RONDO_MEMORY_DEVICE, &name),
                     RONDO_STATUS_INVALID);
    rondo_device_release(host);
}

static bool fail_now(void *user_data) {
    return (*(int *)user_data)-- == 0;
}

TEST(test_device_dlpack__without_memory) {
    producer p;
    rondo_tensor tensor;
    fill_producer(&p);
    int countdown = 0;
    rondo__memory_set_fault(fail_now, &countdown);
    rondo_status status = rondo_tensor_from_dlpack(&p.plain, &tensor, NULL);
    rondo__memory_set_fault(NULL, NULL);
    assert_int_equal(status, RONDO_STATUS_NO_MEMORY);
    assert_int_equal(p.delete_count, 0);
    assert_null(tensor.data);
    assert_int_equal(rondo_tensor_from_dlpack(&p.plain, &tensor, NULL), RONDO_STATUS_OK);
    rondo_dlpack_managed *managed;
    countdown = 0;
    rondo__memory_set_fault(fail_now, &countdown);
    status = rondo_tensor_to_dlpack(&tensor, NULL, NULL, &managed);
    rondo__memory_set_fault(NULL, NULL);
    assert_int_equal(status, RONDO_STATUS_NO_MEMORY);
    assert_null(managed);
    rondo_tensor_deinit(&tensor);
    assert_int_equal(p.delete_count, 1);
}

// What lies on a GPU knows its device, keeps it, and goes out with its name.
TEST(test_device_dlpack__tensors_of_a_gpu) {
    const fake_cuda_options two = {
        .device_count = 2, .driver_version = 13000, .has_get_proc_address = true};
    producer p;
    rondo_tensor tensor;
    rondo_dlpack_info info = {.struct_size = sizeof info};
    fake_cuda_reset(&two);
    fake_cuda_install();
    fill_producer(&p);
    p.plain.tensor.device = (rondo_dlpack_device){.type = RONDO_DLPACK_CUDA, .id = 1};
    assert_refused(&p, NULL, RONDO_STATUS_INVALID, "CUDA device 1");
    assert_int_equal(rondo_tensor_from_dlpack(&p.plain, &tensor, &info), RONDO_STATUS_OK);
    assert_string_equal(rondo_device_get_name(tensor.device), "cuda:1");
    assert_false(rondo_tensor_is_on_host(&tensor));
    rondo_dlpack_managed *out;
    assert_int_equal(rondo_tensor_to_dlpack(&tensor, NULL, NULL, &out), RONDO_STATUS_OK);
    assert_int_equal(out->tensor.device.type, RONDO_DLPACK_CUDA);
    assert_int_equal(out->tensor.device.id, 1);
    rondo_tensor_deinit(&tensor);
    assert_int_equal(p.delete_count, 0);
    out->deleter(out);
    assert_int_equal(p.delete_count, 1);
    // A GPU that is not there, and no memory: nothing was taken.
    p.plain.tensor.device.id = 5;
    assert_int_not_equal(rondo_tensor_from_dlpack(&p.plain, &tensor, &info), RONDO_STATUS_OK);
    p.plain.tensor.device.id = 0;
    for (int n = 0; n < 3; ++n) {
        int countdown = n;
        rondo__memory_set_fault(fail_now, &countdown);
        const rondo_status status = rondo_tensor_from_dlpack(&p.plain, &tensor, &info);
        rondo__memory_set_fault(NULL, NULL);
        if (status == RONDO_STATUS_OK) {
            rondo_tensor_deinit(&tensor);
        }
    }
    assert_true(p.delete_count >= 1 && p.delete_count <= 4);
    assert_int_equal(fake_cuda_count_objects(), 0);
    fake_cuda_uninstall();
}

TEST_MAIN()
