# make install: headers, both libraries, the tool, pkg-config file, CMake package, man pages.
# SPDX-License-Identifier: Apache-2.0

include(CMakePackageConfigHelpers)

install(TARGETS rondo_static rondo_shared EXPORT rondo-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/rondo DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
if(TARGET rondo_cli)
  install(TARGETS rondo_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

foreach(module rondo_mpi_openmpi rondo_mpi_mpich)
  if(TARGET ${module})
    install(TARGETS ${module} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/rondo)
  endif()
endforeach()

# What the static library needs.
set(RONDO_PC_LIBS "-lpthread -lm -ldl")
set(RONDO_PC_REQUIRES "")
if(RONDO_MODELS)
  string(APPEND RONDO_PC_LIBS " -lstdc++")
  set(RONDO_PC_REQUIRES "libprotobuf-c re2")
endif()

set(RONDO_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/rondo)
install(EXPORT rondo-targets NAMESPACE rondo:: DESTINATION ${RONDO_CMAKE_DIR})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/rondo-config.cmake.in
  ${PROJECT_BINARY_DIR}/rondo-config.cmake INSTALL_DESTINATION ${RONDO_CMAKE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/rondo-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/rondo-config.cmake
  ${PROJECT_BINARY_DIR}/rondo-config-version.cmake DESTINATION ${RONDO_CMAKE_DIR})

# The prefix is relative to the file, so that an installed tree can be moved.
file(RELATIVE_PATH RONDO_PC_TO_PREFIX
  /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" RONDO_PC_TO_PREFIX "${RONDO_PC_TO_PREFIX}")
configure_file(${CMAKE_CURRENT_LIST_DIR}/rondo.pc.in ${PROJECT_BINARY_DIR}/rondo.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/rondo.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Takes back what the last installation from this build directory put in place.
add_custom_target(uninstall
  COMMAND ${CMAKE_COMMAND} -P ${CMAKE_CURRENT_LIST_DIR}/rondo-uninstall.cmake
  WORKING_DIRECTORY ${PROJECT_BINARY_DIR}
  VERBATIM)

# The man pages are made from what the tool says about itself, so it must run here.
find_program(RONDO_AWK NAMES awk)
if(TARGET rondo_cli AND RONDO_AWK AND (NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR))
  set(man_pages)
  foreach(page rondo rondo-devices rondo-run rondo-bench rondo-profile rondo-test rondo-inspect
      rondo-tune rondo-train rondo-decode rondo-compare rondo-completion rondo-environment)
    string(REGEX REPLACE "^rondo-?" "" command ${page})
    if(command STREQUAL "environment")
      set(command help environment)
    else()
      list(APPEND command --help)
    endif()
    add_custom_command(
      OUTPUT ${PROJECT_BINARY_DIR}/man/${page}.1
      COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/man
      COMMAND rondo_cli ${command} > ${page}.help
      COMMAND ${RONDO_AWK} -v version=${PROJECT_VERSION} -f ${PROJECT_SOURCE_DIR}/tools/help_to_man.awk
        ${page}.help > ${PROJECT_BINARY_DIR}/man/${page}.1
      DEPENDS rondo_cli ${PROJECT_SOURCE_DIR}/tools/help_to_man.awk
      WORKING_DIRECTORY ${PROJECT_BINARY_DIR}
      COMMENT "Making the man page of ${page}"
      VERBATIM)
    list(APPEND man_pages ${PROJECT_BINARY_DIR}/man/${page}.1)
  endforeach()
  add_custom_target(rondo_man ALL DEPENDS ${man_pages})
  install(FILES ${man_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
