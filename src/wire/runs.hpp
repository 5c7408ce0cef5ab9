// How lists that grow with a world travel: as runs of what is alike, since every host gets them.
//
// Workers of one order have numbers in a row, hosts have them in the order of the host file, and
// each host has as many slots as its neighbours: a first world of a thousand hosts is one run. What
// has been replaced since makes runs of its own. Only the codec uses these; messages have plain
// lists.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "wire/messages.hpp"

namespace elasticrun::wire {

// Members of consecutive ranks and numbers, `per_host` of them on each host in slots in a row; the
// last host may have fewer.
struct MemberRun {
  WorkerId worker;
  HostId host;
  std::int32_t slot = 0;
  std::uint32_t count = 1;
  std::uint32_t per_host = 1;
  bool holds_state = false;
};
std::vector<MemberRun> runs_of(const std::vector<Member>& members);
// An error where they are more than world_size_max, or no runs.
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
