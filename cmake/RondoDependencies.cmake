# What Rondo is built with. tools/setup installs all of it from the distribution.
# SPDX-License-Identifier: Apache-2.0

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

# Hashes of contents; headers only.
find_path(XXHASH_DIR xxhash.h)
if(NOT XXHASH_DIR)
  message(FATAL_ERROR "xxhash.h was not found (Debian and Ubuntu: libxxhash-dev); tools/setup installs it")
endif()

if(NOT RONDO_MODELS)
  return()
endif()

pkg_check_modules(PROTOBUF_C REQUIRED IMPORTED_TARGET libprotobuf-c)

# Regular expressions of ops on text.
pkg_check_modules(RE2 IMPORTED_TARGET re2)
if(NOT RE2_FOUND)
  message(FATAL_ERROR "RE2 was not found by pkg-config (Debian and Ubuntu: libre2-dev); "
    "tools/setup installs it")
endif()

# What the tool reads of reports.
pkg_check_modules(JANSSON IMPORTED_TARGET jansson)
if(NOT JANSSON_FOUND)
  message(FATAL_ERROR "jansson was not found by pkg-config (Debian and Ubuntu: libjansson-dev); "
    "tools/setup installs it")
endif()

# Compressed .npz archives, which the tool reads; without it only stored ones.
find_package(ZLIB QUIET)

# Pictures for rondo run --image; without them only PPM and BMP.
find_package(PNG QUIET)
find_package(JPEG QUIET)
foreach(package PNG JPEG)
  if(NOT ${package}_FOUND)
    message(STATUS "Without ${package}: rondo run --image reads no such files (tools/setup installs it)")
  endif()
endforeach()

find_program(PROTOC_C NAMES protoc-c)
if(NOT PROTOC_C)
  message(FATAL_ERROR "protoc-c was not found (Debian and Ubuntu: protobuf-c-compiler); "
    "tools/setup installs it")
endif()
find_path(ONNX_PROTO_DIR onnx/onnx.proto)
if(NOT ONNX_PROTO_DIR)
  message(FATAL_ERROR "onnx/onnx.proto was not found (Debian and Ubuntu: libonnx-dev); "
    "tools/setup installs it")
endif()

# Sums of training runs on several hosts: a module for each MPI that is there, which the library
# loads at run time. Without them ranks use sockets.
pkg_check_modules(OPEN_MPI QUIET IMPORTED_TARGET ompi-c)
pkg_check_modules(MPICH QUIET IMPORTED_TARGET mpich)
