# Debian 12's packages; scripts/deps installs them and says what each is for.
#
# All but libc, libstdc++ and Gloo is linked statically: the programs run on machines without these
# packages, and libelasticrun brings nothing into the user's process that might be there in another version.
#
# All that is missing is named at once: one error per configure run would be a day of errors.
set(missing_packages "")
set(used_packages "")
macro(elasticrun_find debian_package package)
  list(APPEND used_packages ${debian_package})
  find_package(${package} ${ARGN} QUIET)
  if(NOT ${package}_FOUND)
    list(APPEND missing_packages ${debian_package})
  endif()
endmacro()

# A library whose CMake package is missing or knows only the shared form becomes elasticrun_with_<name>.
macro(elasticrun_find_library debian_package name header)
  list(APPEND used_packages ${debian_package})
  find_path(${name}_INCLUDE ${header})
  find_library(${name}_LIBRARY NAMES lib${name}.a ${name})
  mark_as_advanced(${name}_INCLUDE ${name}_LIBRARY)
  if(${name}_INCLUDE AND ${name}_LIBRARY)
    add_library(elasticrun_with_${name} UNKNOWN IMPORTED)
    set_target_properties(elasticrun_with_${name} PROPERTIES
      IMPORTED_LOCATION ${${name}_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${${name}_INCLUDE})
  else()
    list(APPEND missing_packages ${debian_package})
  endif()
endmacro()

include(GNUInstallDirs)
set(OPENSSL_USE_STATIC_LIBS ON)
set(ZLIB_USE_STATIC_LIBS ON)
elasticrun_find(libc6-dev Threads)
elasticrun_find(libboost1.81-dev Boost 1.81)
elasticrun_find(libssl-dev OpenSSL 3.0)
elasticrun_find(libfmt-dev fmt 9)
elasticrun_find(libcli11-dev CLI11 2.1)
elasticrun_find(libgloo-dev Gloo)
elasticrun_find_library(libssh-dev ssh libssh/libssh.h)
elasticrun_find_library(libsodium-dev sodium sodium.h)
elasticrun_find_library(libxxhash-dev xxhash xxhash.h)
elasticrun_find_library(libminizip-dev minizip minizip/zip.h)
elasticrun_find(zlib1g-dev ZLIB)
if(ELASTICRUN_TESTS)
  elasticrun_find(doctest-dev doctest 2.4)
endif()
if(missing_packages)
  list(JOIN missing_packages " " missing_packages)
  message(FATAL_ERROR "missing: ${missing_packages}\nscripts/deps installs them.")
endif()
