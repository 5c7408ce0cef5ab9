// A thread of the library: signals are the program's business and are not delivered there.
#pragma once

#include <functional>
#include <thread>

namespace elasticrun::worker {

std::thread start_quiet_thread(const char* name, std::function<void()> body);

}  // namespace elasticrun::worker
