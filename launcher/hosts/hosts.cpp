// Host files and lists: splits the text into entries, puts the line or item into each error, finds
// duplicates.
//
// The first mistake ends the parse: no job should start from a file with a mistake in it, and one
// line of error is what a user reads.
#include "launcher/hosts/hosts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "launcher/hosts/host_line.hpp"

namespace elasticrun::launcher::hosts {
namespace {

bool same_name(std::string_view a, std::string_view b) { return lower(a) == lower(b); }

// A host with nothing but its name.
bool is_bare(const Host& host) {
  Host bare;
  bare.name = host.name;
  bare.line = host.line;
  return host == bare;
}

// Collects the hosts of all entries and finds duplicates. `word` is what an entry's number counts:
// "line" or "item". In a file, a line with a bare host that was given before is one more slot: so
// batch systems (PBS, LSF) write how many slots a job has where.
class Gatherer {
 public:
  explicit Gatherer(std::string_view word, bool counts) : word_(word), counts_(counts) {}

  // Adds the hosts of one entry.
  Result<void> add(std::string_view entry, int number) {
    auto parsed = parse_host_line(entry);
    if (!parsed) return parsed.error();
    for (Host& host : *parsed) {
      host.line = number;
      std::string key = key_of(host);
      key = lower(key);
      const auto [place, fresh] = first_.emplace(std::move(key), hosts_.size());
      if (!fresh) {
        const std::size_t first = place->second;
        const bool alone = parsed->size() == 1 && alone_[first];
        if (counts_ && alone && is_bare(host) && is_bare(hosts_[first])) {
          ++repeats_[first];
          continue;
        }
        if (counts_ && alone && in_queue_[first] && names_a_queue(entry)) {
          hosts_[first].slots = std::min(hosts_[first].slots + host.slots, slots_per_host_max);
          continue;
        }
        return Error{fmt::format("{} is given twice; it was first given in {} {}", key_of(host),
                                 word_, hosts_[first].line)};
      }
      if (hosts_.size() == hosts_max) return Error{fmt::format("more than {} hosts", hosts_max)};
      hosts_.push_back(std::move(host));
      alone_.push_back(parsed->size() == 1);
      in_queue_.push_back(names_a_queue(entry));
    }
    return {};
  }

  // Where one host is repeated, each bare one is counted.
  Result<std::vector<Host>> take() {
    if (repeats_.empty()) return std::move(hosts_);
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      if (!is_bare(hosts_[i])) continue;
      const auto repeats = repeats_.find(i);
      hosts_[i].slots = 1 + (repeats == repeats_.end() ? 0 : repeats->second);
      if (hosts_[i].slots > slots_per_host_max)
        return Error{fmt::format("{} is given {} times, and a host has at most {} slots",
                                 hosts_[i].name, hosts_[i].slots, slots_per_host_max)};
    }
    return std::move(hosts_);
  }
  bool empty() const { return hosts_.empty(); }

 private:
  std::string_view word_;
  bool counts_;
  std::vector<Host> hosts_;
  std::vector<bool> alone_;                   // of each host: its entry gives no other
  std::vector<bool> in_queue_;                // of each host: the slots are those of a queue
  std::map<std::string, std::size_t> first_;  // index of the first entry, by lower-case key
  std::map<std::size_t, int> repeats_;        // by index: how often it is given again
};

}  // namespace

Result<std::vector<Host>> parse_hosts(std::string_view text, std::string_view file) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // byte order mark of some editors
  Gatherer gatherer("line", true);
  for (int number = 1; !text.empty(); ++number) {
    const auto end = std::min(text.find('\n'), text.size());
    if (const auto added = gatherer.add(text.substr(0, end), number); !added)
      return Error{fmt::format("{}:{}: {}", file, number, added.error().text)};
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (gatherer.empty())
    return Error{fmt::format("{}: no host in it; write one a line, as in 'node1 slots=4'", file)};
  auto hosts = gatherer.take();
  if (!hosts) return Error{fmt::format("{}: {}", file, hosts.error().text)};
  return hosts;
}

Result<std::vector<Host>> parse_host_list(std::string_view text, std::string_view where) {
  Gatherer gatherer("item", false);
  int number = 0;
  while (true) {
    const std::size_t end = end_of_item(text);
    const std::string_view item = text.substr(0, end);
    ++number;
    if (item.find_first_not_of(" \t") == item.npos)
      return Error{fmt::format("{}: item {} is empty; write a list as in a:4,b:4", where, number)};
    if (const auto added = gatherer.add(item, number); !added)
      return Error{fmt::format("{}: {}", where, added.error().text)};
    if (end == text.size()) break;
    text.remove_prefix(end + 1);
  }
  if (gatherer.empty()) return Error{fmt::format("{}: no host in it", where)};
  return gatherer.take();
}

bool is_complete(std::string_view text) { return text.empty() || text.back() == '\n'; }

std::string key_of(const Host& host) {
  if (host.port == 0) return host.name;
  return fmt::format("{} port={}", host.name, host.port);
}

bool is_this_machine(const Host& host, const OwnNames& own) {
  if (host.port != 0 || !host.identity.empty()) return false;
  if (!host.user.empty() && host.user != own.user) return false;
  const std::string_view name = host.name;
  if (same_name(name, "localhost") || name == "::1") return true;
  const bool numeric = name.find_first_not_of("0123456789.") == name.npos;
  if (numeric && name.starts_with("127.")) return true;
  return std::ranges::any_of(own.names, [&](const auto& mine) { return same_name(name, mine); });
}

}  // namespace elasticrun::launcher::hosts
