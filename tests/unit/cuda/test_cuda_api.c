// Loading the driver's functions: from a new, an old, a crippled and an absent driver.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "backend/cuda/driver/cuda_api.h"
#include "rondo/status.h"
#include "support/fake/fake_cuda.h"
#include "support/test.h"

TEST(test_cuda_api__new_driver_has_everything) {
    fake_cuda_reset(NULL);
    rondo__cuda_api api;
    assert_int_equal(rondo__cuda_api_load(fake_cuda_resolve, NULL, &api), RONDO_STATUS_OK);
    assert_int_equal(api.capabilities, RONDO__CUDA_CAN_EVERYTHING);
    assert_int_equal(api.driver_version, 13000);
    assert_int_equal(rondo__cuda_api_require(&api, RONDO__CUDA_CAN_EVERYTHING), RONDO_STATUS_OK);
    // Each member is the function of its name, not of its neighbour.
    int count = 0;
    assert_int_equal(api.cuDeviceGetCount(&count), RONDO__CU_SUCCESS);
    assert_int_equal(count, 1);
    assert_int_equal(fake_cuda_count_calls("cuDeviceGetCount"), 1);
    assert_true(api.cuGraphGetEdges != NULL && api.cuGraphGetEdges_v2 != NULL);
    assert_true((void (*)(void))api.cuGraphGetEdges != (void (*)(void))api.cuGraphGetEdges_v2);
}

// Without cuGetProcAddress the suffixed exports are found by name.
TEST(test_cuda_api__plain_exports_do) {
    fake_cuda_reset(&(fake_cuda_options){.device_count = 1, .driver_version = 12040});
    rondo__cuda_api api;
    assert_int_equal(rondo__cuda_api_load(fake_cuda_resolve, NULL, &api), RONDO_STATUS_OK);
    assert_int_equal(api.capabilities, RONDO__CUDA_CAN_EVERYTHING);
    assert_non_null(api.cuMemAlloc);
}

TEST(test_cuda_api__older_driver_loses_capabilities) {
    fake_cuda_reset(&(fake_cuda_options){
        .device_count = 1, .driver_version = 11080, .has_get_proc_address = true});
    rondo__cuda_api api;
    assert_int_equal(rondo__cuda_api_load(fake_cuda_resolve, NULL, &api), RONDO_STATUS_OK);
    // Since CUDA 5.5 and 11.6.
    assert_int_equal(api.capabilities,
                     RONDO__CUDA_CAN_PRIORITISE_STREAMS | RONDO__CUDA_CAN_TOGGLE_NODES);
    assert_null(api.cuGraphExecUpdate);
    assert_int_equal(rondo__cuda_api_require(&api, RONDO__CUDA_CAN_UPDATE_EXECUTABLES),
                     RONDO_STATUS_UNSUPPORTED);
    assert_non_null(strstr(rondo_error_get_last()->message, "cuGraphExecUpdate_v2"));
    assert_non_null(strstr(rondo_error_get_last()->message, "12.0"));
}

TEST(test_cuda_api__one_missing_function_costs_its_capability) {
    fake_cuda_reset(&(fake_cuda_options){.device_count = 1,
                                         .driver_version = 13000,
                                         .missing_symbol = "cuFuncGetName",
                                         .has_get_proc_address = true});
    rondo__cuda_api api;
    assert_int_equal(rondo__cuda_api_load(fake_cuda_resolve, NULL, &api), RONDO_STATUS_OK);
    assert_int_equal(api.capabilities,
                     RONDO__CUDA_CAN_EVERYTHING & ~(unsigned)RONDO__CUDA_CAN_NAME_FUNCTIONS);
}

TEST(test_cuda_api__required_function_is_named) {
    fake_cuda_reset(&(fake_cuda_options){.device_count = 1,
                                         .driver_version = 13000,
                                         .missing_symbol = "cuUserObjectCreate",
                                         .has_get_proc_address = true});
    rondo__cuda_api api;
    assert_int_equal(rondo__cuda_api_load(fake_cuda_resolve, NULL, &api), RONDO_STATUS_UNAVAILABLE);
    assert_non_null(strstr(rondo_error_get_last()->message, "cuUserObjectCreate"));
}

TEST(test_cuda_api__driver_too_old) {
    fake_cuda_reset(&(fake_cuda_options){.device_count = 1, .driver_version = 10020});
    rondo__cuda_api api;
    assert_int_equal(rondo__cuda_api_load(fake_cuda_resolve, NULL, &api), RONDO_STATUS_UNAVAILABLE);
    assert_non_null(strstr(rondo_error_get_last()->message, "10.2"));
}

static void *resolve_nothing(void *user_data, const char *symbol) {
    (void)user_data;
    (void)symbol;
    return NULL;
}

TEST(test_cuda_api__not_a_driver) {
    rondo__cuda_api api;
    assert_int_equal(rondo__cuda_api_load(resolve_nothing, NULL, &api), RONDO_STATUS_UNAVAILABLE);
}

TEST_MAIN()
