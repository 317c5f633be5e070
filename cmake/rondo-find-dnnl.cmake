# Makes the target DNNL::dnnl. Included by our build and by the installed CMake package.
#
# The header and the library are looked for first: Debian 12's own CMake package of oneDNN demands
# OpenCL, which neither oneDNN nor Rondo needs there. Elsewhere the package is called dnnl or DNNL (a
# case that matters on Linux).
# SPDX-License-Identifier: Apache-2.0
if(NOT TARGET DNNL::dnnl)
  find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.h)
  find_library(DNNL_LIBRARY dnnl)
  if(DNNL_INCLUDE_DIR AND DNNL_LIBRARY)
    add_library(DNNL::dnnl UNKNOWN IMPORTED)
    set_target_properties(DNNL::dnnl PROPERTIES
      IMPORTED_LOCATION ${DNNL_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${DNNL_INCLUDE_DIR})
  endif()
endif()
foreach(package dnnl DNNL)
  if(NOT TARGET DNNL::dnnl)
    find_package(${package} CONFIG QUIET)
  endif()
endforeach()
