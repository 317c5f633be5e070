# Toolchain file: Linux on arm64, by Debian's cross compilers (g++-aarch64-linux-gnu) against the folder
# that tools/arm64-sysroot fills. Tests run under qemu-aarch64 (Debian: qemu-user) where it is installed.
# SPDX-License-Identifier: Apache-2.0

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

set(RONDO_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../build-arm64-sysroot
  CACHE PATH "Folder with the libraries and headers of arm64")
get_filename_component(CMAKE_SYSROOT ${RONDO_SYSROOT} ABSOLUTE)
if(NOT EXISTS ${CMAKE_SYSROOT}/usr/include)
  message(FATAL_ERROR "${CMAKE_SYSROOT} has no arm64 packages: run tools/arm64-sysroot")
endif()
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES RONDO_SYSROOT)

set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR}
  ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)

# onnx.proto is text and comes from the building machine.
if(EXISTS /usr/include/onnx/onnx.proto)
  set(ONNX_PROTO_DIR /usr/include CACHE PATH "Folder with onnx/onnx.proto")
endif()

find_program(RONDO_QEMU NAMES qemu-aarch64 qemu-aarch64-static)
if(RONDO_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${RONDO_QEMU} -L ${CMAKE_SYSROOT})
endif()
