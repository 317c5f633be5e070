# Warnings and sanitizers, as two interface targets that our own sources use.
# Generated code (onnx.pb-c.c) uses neither the warnings nor -Werror.
# SPDX-License-Identifier: Apache-2.0

add_library(rondo_warnings INTERFACE)
target_compile_options(rondo_warnings INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wundef -Wvla
  -Wcast-qual -Wwrite-strings -Wdouble-promotion -Wformat=2
  $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes;-Wmissing-prototypes>)
if(RONDO_WERROR)
  target_compile_options(rondo_warnings INTERFACE -Werror)
endif()

add_library(rondo_sanitize INTERFACE)
if(RONDO_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "RONDO_FUZZ needs clang (libFuzzer): configure with -DCMAKE_C_COMPILER=clang")
  endif()
  set(RONDO_SANITIZE "address,undefined,fuzzer-no-link")
endif()
if(RONDO_SANITIZE)
  target_compile_options(rondo_sanitize INTERFACE
    -fsanitize=${RONDO_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(rondo_sanitize INTERFACE -fsanitize=${RONDO_SANITIZE})
  if(CMAKE_C_COMPILER_ID STREQUAL GNU)  # which sees less of ranges in such a build
    target_compile_options(rondo_sanitize INTERFACE -Wno-format-truncation -Wno-maybe-uninitialized)
  endif()
endif()

# Loops over numbers that compilers should unroll and vectorise.
set(RONDO_LOOP_OPTIONS -O3 -fno-math-errno -fno-trapping-math)
if(CMAKE_C_COMPILER_ID MATCHES "Clang")
  list(APPEND RONDO_LOOP_OPTIONS -Wno-pass-failed)  # a loop that stays scalar is no defect
endif()

# rondo_add_simd_levels(objects levels source...): the sources, which `objects` has compiled for any
# processor, once more for each instruction set in `levels`. RONDO_LIBRARY_OBJECTS gets all of them.
macro(rondo_add_simd_levels objects levels)
  list(APPEND RONDO_LIBRARY_OBJECTS $<TARGET_OBJECTS:${objects}>)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    target_compile_definitions(${objects} PRIVATE RONDO_SIMD_X86)
    set(avx2_options -mavx2 -mfma)
    set(avx512_options -mavx2 -mfma -mavx512f -mavx512bw -mavx512dq -mavx512vl
      -mprefer-vector-width=512)
    set(avx512vnni_options ${avx512_options} -mavx512vnni)
    set(avx2wide_options ${avx2_options} -DRONDO_BYTE_WIDE)
    set(avx512wide_options ${avx512_options} -DRONDO_BYTE_WIDE)
    get_target_property(requirements ${objects} LINK_LIBRARIES)
    foreach(level ${levels})
      add_library(${objects}_${level} OBJECT ${ARGN})
      target_link_libraries(${objects}_${level} PRIVATE ${requirements})
      target_compile_options(${objects}_${level} PRIVATE ${${level}_options})
      target_compile_definitions(${objects}_${level} PRIVATE RONDO_SIMD_LEVEL=${level})
      list(APPEND RONDO_LIBRARY_OBJECTS $<TARGET_OBJECTS:${objects}_${level}>)
    endforeach()
  endif()
endmacro()
