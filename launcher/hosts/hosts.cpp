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

// Collects the hosts of all entries and finds duplicates. `word` is what an entry's number counts:
// "line" or "item".
class Gatherer {
 public:
  explicit Gatherer(std::string_view word) : word_(word) {}

  // Adds the hosts of one entry.
  Result<void> add(std::string_view entry, int number) {
    auto parsed = parse_host_line(entry);
    if (!parsed) return parsed.error();
    for (Host& host : *parsed) {
      host.line = number;
      std::string key = key_of(host);
      key = lower(key);
      const auto [place, fresh] = first_.emplace(std::move(key), number);
      if (!fresh)
        return Error{fmt::format("{} is given twice; it was first given in {} {}", key_of(host),
                                 word_, place->second)};
      if (hosts_.size() == hosts_max) return Error{fmt::format("more than {} hosts", hosts_max)};
      hosts_.push_back(std::move(host));
    }
    return {};
  }

  std::vector<Host> take() { return std::move(hosts_); }
  bool empty() const { return hosts_.empty(); }

 private:
  std::string_view word_;
  std::vector<Host> hosts_;
  std::map<std::string, int> first_;  // number of the first entry, by lower-case key
};

}  // namespace

Result<std::vector<Host>> parse_hosts(std::string_view text, std::string_view file) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // byte order mark of some editors
  Gatherer gatherer("line");
  for (int number = 1; !text.empty(); ++number) {
    const auto end = std::min(text.find('\n'), text.size());
    if (const auto added = gatherer.add(text.substr(0, end), number); !added)
      return Error{fmt::format("{}:{}: {}", file, number, added.error().text)};
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (gatherer.empty())
    return Error{fmt::format("{}: no host in it; write one a line, as in 'node1 slots=4'", file)};
  return gatherer.take();
}

Result<std::vector<Host>> parse_host_list(std::string_view text, std::string_view where) {
  Gatherer gatherer("item");
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
