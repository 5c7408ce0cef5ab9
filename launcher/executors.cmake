# Agents on this machine: processes, the line that starts an agent, cutting of lines; and the program
# that finds hosts.
add_library(elasticrun_launcher_local STATIC agent_start.cpp host_discovery.cpp join_key.cpp lines.cpp local_executor.cpp)
target_link_libraries(elasticrun_launcher_local PUBLIC elasticrun_base elasticrun_launcher elasticrun_wire
                                                       Threads::Threads
                                                PRIVATE elasticrun_warnings)
