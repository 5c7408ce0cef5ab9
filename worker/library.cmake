# What runs the core: threads, the connection, the loops of training.
add_library(elasticrun_worker_engine STATIC
  agent_courier.cpp backend.cpp connection.cpp former.cpp gate.cpp opening.cpp own_loop.cpp presence.cpp solo.cpp trainer.cpp trainer_checks.cpp divergence.cpp)
target_include_directories(elasticrun_worker_engine PUBLIC ${CMAKE_CURRENT_LIST_DIR}/include)
target_link_libraries(elasticrun_worker_engine
  PUBLIC elasticrun_worker_core elasticrun_worker_plane elasticrun_net
  PRIVATE elasticrun_warnings)

# libelasticrun, as users link it: only the C interface is visible, everything of ours and of Boost is
# inside, so that the user's compiler and libraries never meet ours.
add_library(elasticrun SHARED c_api.cpp)
add_library(elasticrun::elasticrun ALIAS elasticrun)
target_compile_definitions(elasticrun PRIVATE ELASTICRUN_VERSION="${PROJECT_VERSION}")
target_link_libraries(elasticrun PRIVATE elasticrun_worker_engine elasticrun_warnings)
# The map hides what -fvisibility cannot: templates of the standard library, which are declared visible.
target_link_options(elasticrun PRIVATE
  -Wl,--exclude-libs,ALL -Wl,--version-script=${CMAKE_CURRENT_LIST_DIR}/elasticrun.map)
set_target_properties(elasticrun PROPERTIES LINK_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/elasticrun.map)
set_target_properties(elasticrun elasticrun_worker_engine PROPERTIES
  CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
