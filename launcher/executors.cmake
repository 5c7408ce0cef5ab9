# Agents on this machine: processes, the line that starts an agent, cutting of lines; and programs of
# others that are asked something.
add_library(elasticrun_launcher_local STATIC agent_start.cpp file_thread.cpp join_key.cpp leashed_program.cpp lines.cpp local_executor.cpp)
target_link_libraries(elasticrun_launcher_local PUBLIC elasticrun_base elasticrun_launcher elasticrun_wire
                                                       Threads::Threads
                                                PRIVATE elasticrun_warnings)
