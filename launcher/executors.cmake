# Agents on this machine: processes, the line that starts an agent, cutting of lines.
add_library(elasticrun_launcher_local STATIC agent_start.cpp lines.cpp local_executor.cpp)
target_link_libraries(elasticrun_launcher_local PUBLIC elasticrun_base elasticrun_wire
                                                       Threads::Threads
                                                PRIVATE elasticrun_warnings)
