# The tests of src/models that are not found by name alone: on the emulated GPU, per instruction set.
# SPDX-License-Identifier: Apache-2.0

set(cases ${CMAKE_CURRENT_BINARY_DIR}/test_kernel_cases cuda:0)
rondo_get_part(part 37)
rondo_register_emulated(kernel_cases_sample short 600 ${cases} ${part})
rondo_register_emulated(kernel_cases long 1800 ${cases} @${RONDO_TEST_PART})
# Programs that run their tests on each device there is (support/on_devices.h).
foreach(name executor_bound_run executor_carried executor_run_arena executor_counted executor_faults executor_record_run executor_repeated executor_rest executor_single_op
    executor_sequences executor_states executor_stream executor_tables kernel_cast op_caches
    random_executor)
  rondo_register_emulated(${name} short 300 ${CMAKE_CURRENT_BINARY_DIR}/test_${name})
endforeach()
foreach(name executor_device_control executor_run)
  rondo_register_emulated(${name} long 600 ${CMAKE_CURRENT_BINARY_DIR}/test_${name})
endforeach()
# The same on a GPU that is as late as it may be (support/fake_cuda_lazy.c).
foreach(name executor_carried executor_counted executor_record_run executor_rest executor_sequences
    executor_states executor_stream)
  rondo_register_emulated(lazy_${name} short 300
    ${CMAKE_COMMAND} -E env RONDO_EMULATED_LAZY=1 ${CMAKE_CURRENT_BINARY_DIR}/test_${name})
endforeach()
foreach(name executor_device_control executor_run)
  rondo_register_emulated(lazy_${name} long 600
    ${CMAKE_COMMAND} -E env RONDO_EMULATED_LAZY=1 ${CMAKE_CURRENT_BINARY_DIR}/test_${name})
endforeach()
foreach(name cache_run device_dlpack executor_branches executor_devices executor_peers executor_placement
    executor_self_check executor_spill pool_pool random_executor)
  rondo_register_test(lazy.${name} short 300
    ${CMAKE_COMMAND} -E env RONDO_EMULATED_LAZY=1 ${CMAKE_CURRENT_BINARY_DIR}/test_${name})
endforeach()
# A million calls on states and variables, of a seed of the day.
math(EXPR long_calls "1000000 / ${RONDO_TEST_PARTS}")
rondo_register_test(unit.executor_sequences_long long 1200 test_executor_sequences ${long_calls} 0)
# The kernels for tensor cores: mma on one GPU, wgmma and clusters on the other.
foreach(capability 80 90)
  rondo_register_emulated(tensor_cores_${capability} long 1800
    ${CMAKE_COMMAND} -E env RONDO_TUNE=off RONDO_EMULATED_CAPABILITY=${capability} ${cases} Conv@${RONDO_TEST_PART})
  rondo_register_emulated(tensor_products_${capability} long 1800
    ${CMAKE_COMMAND} -E env RONDO_TUNE=off RONDO_EMULATED_CAPABILITY=${capability} ${cases} MatMul@${RONDO_TEST_PART})
endforeach()
# Each plan of those kernels, not only the one that would be chosen.
foreach(capability 80 90)
  set(plans ${CMAKE_COMMAND} -E env RONDO_EMULATED_CAPABILITY=${capability}
    ${CMAKE_CURRENT_BINARY_DIR}/test_kernel_cuda_tensor_plans)
  rondo_get_part(part ${plan_parts})
  rondo_register_emulated(tensor_plans_sample_${capability} short 300 ${plans} ${part})
  rondo_register_emulated(tensor_plans_${capability} long 1800 ${plans} ${RONDO_TEST_PART})
endforeach()
# A decode step's attention needs clusters.
rondo_register_emulated(append_attention short 300
  ${CMAKE_COMMAND} -E env RONDO_EMULATED_CAPABILITY=90 ${cases} rondo.AppendAttention)
rondo_register_emulated(row_product short 300
  ${CMAKE_COMMAND} -E env RONDO_EMULATED_CAPABILITY=90 ${cases} RowProduct@${RONDO_SWEEP_PART})
rondo_register_emulated(executor_tensor_map short 300
  ${CMAKE_COMMAND} -E env RONDO_EMULATED_CAPABILITY=90 ${CMAKE_CURRENT_BINARY_DIR}/test_executor_tensor_map)
rondo_register_emulated(attention_tensor long 1800
  ${CMAKE_COMMAND} -E env RONDO_EMULATED_CAPABILITY=80 ${cases} Attention@${RONDO_TEST_PART})
rondo_register_emulated(bits_tensor short 300
  ${CMAKE_COMMAND} -E env RONDO_EMULATED_CAPABILITY=80 ${cases} Bits@${RONDO_SWEEP_PART})
rondo_register_emulated(recurrent_tensor long 600
  ${CMAKE_COMMAND} -E env RONDO_EMULATED_CAPABILITY=80 ${cases} GRU@${RONDO_TEST_PART})
rondo_register_emulated(group_norm_clusters long 600
  ${CMAKE_COMMAND} -E env RONDO_EMULATED_CAPABILITY=90 ${cases} rondo.GroupNormalization@${RONDO_TEST_PART})
# Each instruction set has tiles of its own; what this processor lacks runs as the best it has.
foreach(level AVX512_CORE AVX2 SSE41)
  rondo_register_test(unit.test_kernel_bytes.${level} short 300 test_kernel_bytes)
  rondo_register_test(unit.test_kernel_bits.${level} short 300 test_kernel_cases host MatMulNBits)
  rondo_register_test(unit.test_kernel_long_product.${level} short 300 test_kernel_long_product)
  foreach(test bytes bits long_product)
    set_property(TEST unit.test_kernel_${test}.${level} APPEND PROPERTY
      ENVIRONMENT RONDO_MAX_CPU_ISA=${level})
  endforeach()
endforeach()
foreach(level AVX2 SSE41)
  rondo_register_test(unit.test_kernel_cases.${level} long 600 test_kernel_cases host @${RONDO_TEST_PART})
  set_property(TEST unit.test_kernel_cases.${level} APPEND PROPERTY ENVIRONMENT
    RONDO_MAX_CPU_ISA=${level})
endforeach()
