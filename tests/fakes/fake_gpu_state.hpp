// What the two halves of the fake share: streams that run tasks in order, and the book of calls.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "tests/fakes/fake_gpu.hpp"

struct CUstream_st;

namespace elasticrun::fake_gpu {

// Runs on the stream's thread when all before it has run; null is the default stream.
void enqueue(CUstream_st* stream, std::function<void()> task);

// Notes the call, and says what is planned for it. Blocks while it is to be stuck.
std::optional<Trouble> note(const std::string& call);
int nccl_version();
void count_communicators(int change);

}  // namespace elasticrun::fake_gpu
