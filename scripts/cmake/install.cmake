# cmake --install build --prefix DIR: programs, the library with its headers and CMake package, the package
# for Python, manual pages. In a wheel (worker/python/pyproject.toml) all but what is for C++.
include(CMakePackageConfigHelpers)

if(SKBUILD)
  set(CMAKE_INSTALL_BINDIR ${SKBUILD_SCRIPTS_DIR})
  set(CMAKE_INSTALL_DATADIR ${SKBUILD_DATA_DIR}/share)
  set(CMAKE_INSTALL_MANDIR ${SKBUILD_DATA_DIR}/share/man)
endif()

install(TARGETS elasticrun_program elasticrun-agent elasticctl RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# What the manual pages name as examples.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs DESTINATION ${CMAKE_INSTALL_DATADIR}/elasticrun)
foreach(section 1 3 5 7)
  file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/man/*.${section})
  install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()
if(SKBUILD)
  add_custom_target(wheel)
  add_dependencies(wheel elasticrun_program elasticrun-agent elasticctl elasticrun)
  # Under one name, for a wheel has no links. scikit-build-core adds the package around it.
  install(TARGETS elasticrun LIBRARY DESTINATION elasticrun/lib)
  # Its licence, and those of what is linked into it or may be put beside it (scripts/wheel); Boost's wants
  # no place in binaries, and Debian's text is long.
  list(FILTER used_packages EXCLUDE REGEX boost)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${SKBUILD_METADATA_DIR}/licenses)
  foreach(package ${used_packages} libhiredis0.14 libibverbs1 libnl-3-200)
    install(FILES /usr/share/doc/${package}/copyright DESTINATION ${SKBUILD_METADATA_DIR}/licenses
            RENAME ${package} OPTIONAL)
  endforeach()
  return()
endif()

# Python of Debian looks here when the prefix is /usr.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/worker/python/elasticrun DESTINATION lib/python3/dist-packages
        FILES_MATCHING PATTERN *.py)

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
