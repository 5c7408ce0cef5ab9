# cmake --install build --prefix DIR: programs, the library with its headers and CMake package, manual pages.
include(CMakePackageConfigHelpers)

install(TARGETS elasticrun_program elasticrun-agent elasticctl RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

# The C interface is the ABI; SOVERSION changes when it does.
set_target_properties(elasticrun PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0)
target_include_directories(elasticrun INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/worker/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
# The header is C++20, whatever the user's project says.
target_compile_features(elasticrun INTERFACE cxx_std_20)
install(TARGETS elasticrun EXPORT elasticrunTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/worker/include/elasticrun
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/elasticrun)
install(EXPORT elasticrunTargets NAMESPACE elasticrun:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/scripts/cmake/elasticrunConfig.cmake.in
  ${PROJECT_BINARY_DIR}/elasticrunConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/elasticrunConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/elasticrunConfig.cmake
              ${PROJECT_BINARY_DIR}/elasticrunConfigVersion.cmake DESTINATION ${package_dir})

configure_file(${PROJECT_SOURCE_DIR}/scripts/cmake/elasticrun.pc.in ${PROJECT_BINARY_DIR}/elasticrun.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/elasticrun.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
# What the manual pages name as examples.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs DESTINATION ${CMAKE_INSTALL_DATADIR}/elasticrun)

foreach(section 1 3 5 7)
  file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/man/*.${section})
  install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()
