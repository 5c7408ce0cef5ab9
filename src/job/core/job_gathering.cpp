// The first workers of a job, or of a further run of a plain program: which hosts they wait for,
// and when they begin (job.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "base/name_ranges.hpp"
#include "base/text.hpp"
#include "job/core/job.hpp"
#include "job/core/workers/staffing.hpp"

namespace elasticrun::job {

// In what way these slots are too few to begin with; nothing: they are enough.
std::optional<std::string> Job::too_few(const std::vector<SlotId>& slots) const {
  std::set<HostId> hosts;
  for (const SlotId slot : slots) hosts.insert(slot.host);
  const launcher::hosts::Limits& limits = spec_.limits;
  const int least = std::max({limits.min, run_size().value_or(1), 1});
  if (static_cast<int>(hosts.size()) < limits.min_hosts)
    return fmt::format("{} of at least {} hosts", hosts.size(), limits.min_hosts);
  if (static_cast<int>(slots.size()) < least)
    return fmt::format("hosts for {} of at least {} workers", slots.size(), least);
  return std::nullopt;
}

void Job::wait_for_more(const std::string& what, Time now) {
  if (ending_.short_of_workers()) return;
  ending_.short_since(now);
  tell_all_troubles(now);
  out_.log(report::LogLevel::info, fmt::format("{} are there; waiting up to {} for more", what,
                                               to_text(spec_.deadlines.minimum_timeout)));
}

// Slots for the first workers. Those of failed hosts are taken only where there are no others.
std::vector<SlotId> Job::first_choice(Time now) const {
  auto slots = workers::wanted_slots(slots_, workers_, std::numeric_limits<int>::max(), now);
  std::ranges::stable_partition(slots, [&](SlotId slot) { return !hosts_.failed(slot.host); });
  const int size = run_size().value_or(sizing_.target());
  slots.resize(std::min(slots.size(), static_cast<std::size_t>(size)));
  return slots;
}

void Job::gather(Time now) {
  const auto wanted = first_choice(now);
  ask_for_hosts(wanted);
  std::vector<SlotId> here;
  std::set<HostId> missing;
  for (const SlotId slot : wanted) {
    if (hosts_.up(slot.host))
      here.push_back(slot);
    else if (!hosts_.failed(slot.host))
      missing.insert(slot.host);
  }
  if (!missing.empty()) return tell_missing(missing, now);
  if (now >= first_.wake_at()) first_.tell_missing_at(never);
  const auto few = too_few(here);
  if (!few) return begin(here, now);
  const bool final = spec_.hosts_file.empty() && spec_.host_discovery.empty() &&
                     spec_.join_key.empty();  // no more hosts can come
  if (hosts_.failed() > 0 || !final || restarts_.runs() > 0)
    wait_for_more(*few, now);
  else if (hosts_.live().size() == hosts_.in(hosts::HostState::up).size())
    end(course::Cause::hosts_too_few,
        fmt::format("{} are there; add hosts, or slots, as in a:8", *few), now);
}

void Job::tell_missing(const std::set<HostId>& missing, Time now) {
  if (now < first_.wake_at()) return;
  first_.tell_missing_at(never);
  std::vector<std::string> names;
  for (const HostId host : missing) names.push_back(name_of(host));
  out_.log(report::LogLevel::info,
           fmt::format("waiting for {}: {}", counted(names.size(), "host"), fold_names(names)));
}

void Job::begin(const std::vector<SlotId>& here, Time now) {
  tell_all_troubles(now);
  if (here.size() < first_.chosen())
    out_.log(report::LogLevel::info,
             fmt::format("beginning with {} of {} workers; the others' hosts are not there",
                         here.size(), first_.chosen()));
  first_.begin(here);
  restarts_.run_begins(static_cast<int>(here.size()), now);
  if (restarts_.runs() == 1)
    requests_.saves.times().workers_began(now);
  else
    out_.log(report::LogLevel::info,
             fmt::format("run {}: {}", restarts_.runs(), counted(here.size(), "worker")));
  ending_.enough();
  start_missing(here, now);
}

}  // namespace elasticrun::job
