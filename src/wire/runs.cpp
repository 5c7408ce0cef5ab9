// See runs.hpp.
#include "wire/runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "wire/limits.hpp"

namespace elasticrun::wire {
namespace {

// True: the member comes after `done` members of the run, on the host after `hosts` others, in the
// slot after `slots` others. In wide integers, so that no sum overflows.
bool is_at(const Member& member, const MemberRun& run, std::uint64_t done, std::uint64_t hosts,
           std::uint64_t slots) {
  return member.worker.value == run.worker.value + done &&
         member.host.value == run.host.value + hosts &&
         member.slot == run.slot + static_cast<std::int64_t>(slots) &&
         member.holds_state == run.holds_state;
}

// Adds the member to the run if it belongs there; otherwise returns false.
bool takes(MemberRun& run, const Member& member) {
  const bool first_host = run.per_host == run.count;
  if (first_host && is_at(member, run, run.count, 0, run.count))
    ++run.per_host;
  else if (!is_at(member, run, run.count, run.count / run.per_host, run.count % run.per_host))
    return false;
  ++run.count;
  return true;
}

// True: the run is not empty, and the numbers of its last worker, host and slot are in range.
bool sound(const MemberRun& run) {
  if (run.count == 0 || run.per_host == 0) return false;
  const std::uint64_t others = run.count - 1;
  const std::int64_t slots = std::min(run.per_host, run.count) - 1;
  return std::in_range<std::uint32_t>(run.worker.value + others) &&
         std::in_range<std::uint32_t>(run.host.value + others / run.per_host) &&
         std::in_range<std::int32_t>(run.slot + slots);
}

template <class Run>
Result<void> check_size(const std::vector<Run>& runs) {
  std::uint64_t size = 0;
  for (const Run& run : runs) size += run.count;
  if (size <= world_size_max) return {};
  return Error{fmt::format("{} members are more than {}", size, world_size_max)};
}

}  // namespace

std::vector<MemberRun> runs_of(const std::vector<Member>& members) {
  std::vector<MemberRun> runs;
  for (const Member& member : members)
    if (runs.empty() || !takes(runs.back(), member))
      runs.push_back({member.worker, member.host, member.slot, 1, 1, member.holds_state});
  return runs;
}

Result<std::vector<Member>> members_of(const std::vector<MemberRun>& runs) {
  if (const auto checked = check_size(runs); !checked) return checked.error();
  std::vector<Member> members;
  for (const MemberRun& run : runs) {
    if (!sound(run)) return Error{"expected a run of members"};
    for (std::uint32_t i = 0; i < run.count; ++i)
      members.push_back({WorkerId(run.worker.value + i), HostId(run.host.value + i / run.per_host),
                         run.slot + static_cast<std::int32_t>(i % run.per_host), run.holds_state});
  }
  return members;
}

std::vector<NumberRun> runs_of(const std::vector<double>& numbers) {
  const auto same_bits = [](double a, double b) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
  };
  std::vector<NumberRun> runs;
  for (const double number : numbers)
    if (!runs.empty() && same_bits(runs.back().value, number))
      ++runs.back().count;
    else
      runs.push_back({number, 1});
  return runs;
}

Result<std::vector<double>> numbers_of(const std::vector<NumberRun>& runs) {
  if (const auto checked = check_size(runs); !checked) return checked.error();
  std::vector<double> numbers;
  for (const NumberRun& run : runs) numbers.insert(numbers.end(), run.count, run.value);
  return numbers;
}

}  // namespace elasticrun::wire
