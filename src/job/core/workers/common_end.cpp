// See common_end.hpp.
#include "job/core/workers/common_end.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "base/exit_code.hpp"

namespace elasticrun::job::workers {

namespace {

// A program brings these signals on itself; others come from outside, from a user or the kernel.
bool is_crash(int signal) {
  constexpr int crashes[] = {SIGILL,  SIGTRAP, SIGABRT, SIGBUS,  SIGFPE,
                             SIGSEGV, SIGPIPE, SIGSYS,  SIGXCPU, SIGXFSZ};
  return std::ranges::count(crashes, signal) > 0;
}

}  // namespace

std::optional<CommonEnd::Mistake> CommonEnd::mistake() const {
  if (ends_.empty()) return {};
  const End& first = ends_.front();
  const bool failed = first.signal != 0 ? is_crash(first.signal) : first.code != 0;
  const bool alike = std::ranges::all_of(ends_, [&](const End& end) {
    return end.own && end.code == first.code && end.signal == first.signal;
  });
  if (!failed || !alike) return {};
  const char* const others = ends_.size() == 1   ? ""
                             : first.signal != 0 ? ", and so were the others"
                                                 : ", and so did the others";
  return Mistake{first.signal != 0 ? exit_code::signal_base + first.signal : first.code,
                 fmt::format("{} {}{}", first.worker, first.how, others)};
}

}  // namespace elasticrun::job::workers
