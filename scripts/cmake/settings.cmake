# How our code is compiled. elasticrun_settings is linked by everything of ours, elasticrun_warnings
# privately, so that neither reaches third-party code or users of the installed library.
option(ELASTICRUN_TESTS "build the tests" ON)
option(ELASTICRUN_FUZZ "build the fuzz targets (clang only)" OFF)
set(ELASTICRUN_SANITIZE "" CACHE STRING "address;undefined or thread")
if(EXISTS ${PROJECT_SOURCE_DIR}/.git)
  set(dev_default ON)
else()
  set(dev_default OFF)
endif()
option(ELASTICRUN_DEV "warnings are errors; on when built from git" ${dev_default})

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
# ER_CHECK does not depend on NDEBUG. -O3 only makes this code larger; the one kernel asks for it itself
# (worker/gpu).
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

# Most of the time of a build goes into headers and the templates in them, which files that are
# compiled together read once: a whole build takes half as long. OFF is for work on a few files, and
# for clang-tidy.
option(ELASTICRUN_UNITY "compile sixteen files of a library or program at a time" ON)
set(CMAKE_UNITY_BUILD ${ELASTICRUN_UNITY})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 16)
# For files that have a helper of the same name as others, or headers that do not go with theirs.
function(elasticrun_compile_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

add_library(elasticrun_settings INTERFACE)
target_compile_definitions(elasticrun_settings INTERFACE
  BOOST_ASIO_NO_DEPRECATED ELASTICRUN_VERSION="${PROJECT_VERSION}")
if(ELASTICRUN_SANITIZE)
  string(REPLACE ";" "," sanitizers "${ELASTICRUN_SANITIZE}")
  set(sanitize -fsanitize=${sanitizers} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  if(sanitizers MATCHES undefined)
    # A look at every pointer, which takes a third of the build's time. The first and the last the address
    # sanitizer sees as well, and these processors load from any address.
    list(APPEND sanitize -fno-sanitize=null,alignment,object-size)
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    # Its check of function types does not link with coroutines (clang 14).
    list(APPEND sanitize -fno-sanitize=function)
  endif()
  if(sanitizers MATCHES thread)
    # It does not know fences (g++ refuses them). Asio's are beside its locks, which it does know.
    target_compile_definitions(elasticrun_settings INTERFACE BOOST_ASIO_DISABLE_FENCED_BLOCK)
  endif()
  # -g1: file and line for the reports, without the cost of debug information for every Boost template.
  # Tests are compiled without optimization, which takes longer than they do (tests/CMakeLists.txt).
  define_property(TARGET PROPERTY ELASTICRUN_OPTIMIZE INITIALIZE_FROM_VARIABLE ELASTICRUN_OPTIMIZE)
  set(ELASTICRUN_OPTIMIZE -O1)
  target_compile_options(elasticrun_settings INTERFACE
    ${sanitize} -g1 $<TARGET_PROPERTY:ELASTICRUN_OPTIMIZE>)
  target_link_options(elasticrun_settings INTERFACE ${sanitize})
elseif(CMAKE_BUILD_TYPE STREQUAL Release)
  # The controller and the agents listen on the network: an overrun must end the process, not be used.
  target_compile_options(elasticrun_settings INTERFACE
    -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-strong)
  target_link_options(elasticrun_settings INTERFACE -Wl,-z,relro,-z,now)
endif()

add_library(elasticrun_warnings INTERFACE)
target_compile_options(elasticrun_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-align -Wunused
  $<$<BOOL:${ELASTICRUN_DEV}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # g++ 12 reports every coroutine frame as a mismatched delete, and takes what a moved variant does not
  # hold, or what a sanitizer's code stands between, for uninitialised.
  target_compile_options(elasticrun_warnings INTERFACE
    -Wno-mismatched-new-delete -Wno-maybe-uninitialized -Wno-missing-field-initializers)
  if(ELASTICRUN_UNITY)
    # A local name may be that of another file's constant; and files are not headers.
    target_compile_options(elasticrun_warnings INTERFACE
      -Wno-shadow -Wshadow=local -Wno-subobject-linkage)
  endif()
else()
  target_compile_options(elasticrun_warnings INTERFACE -Wno-missing-field-initializers)
endif()
