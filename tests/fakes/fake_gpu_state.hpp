// What the two halves of the fake share: streams that run tasks in order, and the record of calls.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "tests/fakes/fake_gpu.hpp"

namespace elasticrun::fake_gpu {

// The task runs on the stream's thread after all tasks before it; null is the default stream.
void enqueue(CUstream_st* stream, std::function<void()> task);
// Returns a count of the work of all other streams of the same context.
std::function<int()> work_of_others(CUstream_st* stream);
void count_overlap();

// Records the call and returns the trouble planned for it. Blocks while the call is to be stuck.
std::optional<Trouble> note(const std::string& call);
void await_release();
int nccl_version();
void count_communicators(int change);

}  // namespace elasticrun::fake_gpu
