# Warnings and sanitizers, as two interface targets that our own sources use.
# Generated code (onnx.pb-c.c) uses neither the warnings nor -Werror.
# SPDX-License-Identifier: Apache-2.0

add_library(rondo_warnings INTERFACE)
target_compile_options(rondo_warnings INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wundef -Wvla
  -Wcast-qual -Wwrite-strings -Wdouble-promotion -Wformat=2)
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
endif()
