// A thread that no signal is delivered to: they are the business of the main thread, or of the
// program that the library lives in.
#pragma once

#include <functional>
#include <thread>

namespace elasticrun {

std::thread start_quiet_thread(const char* name, std::function<void()> body);

}  // namespace elasticrun
