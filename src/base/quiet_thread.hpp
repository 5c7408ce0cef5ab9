// A thread to which no signal is delivered: signals are for the main thread, or for the program
// that the library runs in.
#pragma once

#include <functional>
#include <thread>

namespace elasticrun {

std::thread start_quiet_thread(const char* name, std::function<void()> body);

}  // namespace elasticrun
