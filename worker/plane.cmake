# The data plane and the state transfer. Hidden symbols: it goes into libelasticrun beside the user's code.
find_path(XXHASH_INCLUDE xxhash.h REQUIRED)
find_library(XXHASH_LIBRARY NAMES libxxhash.a xxhash REQUIRED)
find_path(GLOO_INCLUDE gloo/context.h REQUIRED)
find_path(SODIUM_INCLUDE sodium.h REQUIRED)
find_library(SODIUM_LIBRARY NAMES libsodium.a sodium REQUIRED)

add_library(elasticrun_worker_plane STATIC
  auto_plane.cpp gloo_group.cpp gloo_transport.cpp gpu.cpp gpu_arithmetic.cpp host_arithmetic.cpp layout.cpp
  layout_difference.cpp machine_kind.cpp
  nccl_communicator.cpp nccl_group.cpp nccl_library.cpp nccl_path.cpp nccl_shelf.cpp peer_connector.cpp
  peer_greeting.cpp reduction.cpp fingerprint.cpp state.cpp state_comparison.cpp state_copy.cpp state_image.cpp
  state_transfer.cpp state_watch.cpp)
if(NOT ELASTICRUN_SANITIZE)
  # Its loops over the gradients are the only ones of ours that vectors help: two to three times as fast.
  set_source_files_properties(host_arithmetic.cpp PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-O3>)
endif()
# Kernels as text that the driver translates; scripts/gpu-kernels makes it of gpu_kernels.cu.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS gpu_kernels.ptx)
file(READ gpu_kernels.ptx kernels)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/worker/gpu_kernels.inc CONTENT "R\"ptx(@kernels@)ptx\"" @ONLY)
target_include_directories(elasticrun_worker_plane PRIVATE ${PROJECT_BINARY_DIR})
target_include_directories(elasticrun_worker_plane SYSTEM PRIVATE ${XXHASH_INCLUDE})
if(NOT EXISTS ${GLOO_INCLUDE}/gloo/common/memory.h)
  target_include_directories(elasticrun_worker_plane SYSTEM PRIVATE
    ${CMAKE_CURRENT_LIST_DIR}/gloo_compat)
endif()
target_link_libraries(elasticrun_worker_plane
  PUBLIC elasticrun_base elasticrun_net elasticrun_worker_core
  PRIVATE elasticrun_warnings gloo fmt::fmt ${SODIUM_LIBRARY} ${XXHASH_LIBRARY} Threads::Threads
          ${CMAKE_DL_LIBS})
set_target_properties(elasticrun_worker_plane PROPERTIES
  POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
