# The socket side of the rendezvous: Asio and TLS, no decision.
add_library(elasticrun_rendezvous_server STATIC
  ${CMAKE_CURRENT_LIST_DIR}/host_keys.cpp ${CMAKE_CURRENT_LIST_DIR}/server.cpp)
target_link_libraries(elasticrun_rendezvous_server PUBLIC elasticrun_net_tls elasticrun_wire
                                                   PRIVATE elasticrun_warnings)
