# libelasticrun, as users link it: only the C interface is visible, everything of ours and of Boost is
# inside, so that the user's compiler and libraries never meet ours.
add_library(elasticrun SHARED
  agent_courier.cpp c_api.cpp connection.cpp former.cpp gate.cpp own_loop.cpp presence.cpp solo.cpp
  trainer.cpp)
add_library(elasticrun::elasticrun ALIAS elasticrun)
target_compile_definitions(elasticrun PRIVATE ELASTICRUN_VERSION="${PROJECT_VERSION}")
target_include_directories(elasticrun PRIVATE ${CMAKE_CURRENT_LIST_DIR}/include)
target_link_libraries(elasticrun PRIVATE
  elasticrun_worker_core elasticrun_worker_plane elasticrun_net elasticrun_wire elasticrun_base
  elasticrun_warnings gloo Threads::Threads)
set_target_properties(elasticrun PROPERTIES
  CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
  LINK_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/elasticrun.map)
# The map hides what -fvisibility cannot: templates of the standard library, which are declared visible.
target_link_options(elasticrun PRIVATE
  -Wl,--exclude-libs,ALL -Wl,--version-script=${CMAKE_CURRENT_LIST_DIR}/elasticrun.map)
