// Run-length encoding of lists that grow with the world, since every host gets these lists.
//
// Workers that were started together have consecutive numbers, hosts are numbered in the order of
// the host file, and mostly each host has as many slots as its neighbours: a first world of a
// thousand hosts is one run. Workers that have been replaced since make further runs. Only the
// codec uses runs; the messages have plain lists.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "wire/messages.hpp"

namespace elasticrun::wire {

// Members with consecutive ranks and worker numbers: `per_host` of them on each of consecutive
// hosts, in consecutive slots. The last host may have fewer.
struct MemberRun {
  WorkerId worker;
  HostId host;
  std::int32_t slot = 0;
  std::uint32_t count = 1;
  std::uint32_t per_host = 1;
  bool holds_state = false;
};
std::vector<MemberRun> runs_of(const std::vector<Member>& members);
// An error where there are more than world_size_max members, or a run is not valid.
Result<std::vector<Member>> members_of(const std::vector<MemberRun>& runs);

struct NumberRun {
  double value = 0;
  std::uint32_t count = 1;
};
std::vector<NumberRun> runs_of(const std::vector<double>& numbers);
Result<std::vector<double>> numbers_of(const std::vector<NumberRun>& runs);

BOOST_DESCRIBE_STRUCT(MemberRun, (), (worker, host, slot, count, per_host, holds_state))
BOOST_DESCRIBE_STRUCT(NumberRun, (), (value, count))

}  // namespace elasticrun::wire
