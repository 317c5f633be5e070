# make install: headers, both libraries, the tool, pkg-config file, CMake package, man pages.

include(CMakePackageConfigHelpers)

install(TARGETS rondo_static rondo_shared EXPORT rondo-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/rondo DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h")
if(TARGET rondo_cli)
  install(TARGETS rondo_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

set(RONDO_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/rondo)
install(EXPORT rondo-targets NAMESPACE rondo:: DESTINATION ${RONDO_CMAKE_DIR})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/rondo-config.cmake.in
  ${PROJECT_BINARY_DIR}/rondo-config.cmake INSTALL_DESTINATION ${RONDO_CMAKE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/rondo-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/rondo-config.cmake
  ${PROJECT_BINARY_DIR}/rondo-config-version.cmake DESTINATION ${RONDO_CMAKE_DIR})

configure_file(${CMAKE_CURRENT_LIST_DIR}/rondo.pc.in ${PROJECT_BINARY_DIR}/rondo.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/rondo.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

file(GLOB RONDO_MAN_PAGES ${PROJECT_SOURCE_DIR}/docs/man/*.1)
if(RONDO_MAN_PAGES)
  install(FILES ${RONDO_MAN_PAGES} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
