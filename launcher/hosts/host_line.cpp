// The grammar of one host file entry: split into words, then one or more hosts, then keys.
//
// A hand-written parser rather than regular expressions: std::regex recurses per character (a long
// line would overflow the stack) and could not say which part is wrong.
#include "launcher/hosts/host_line.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/line.hpp"
#include "base/numbers.hpp"

namespace elasticrun::launcher::hosts {
namespace {

constexpr std::string_view known_keys = "slots port user identity price type spare rack address";

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// The words of a line up to its comment. Blanks inside quotes do not separate words; "slots = 4"
// (Open MPI allows it) is one word.
Result<std::vector<std::string>> words_of(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false;
  bool begun = false;
  const auto end_word = [&] {
    if (!begun) return;
    const bool joins = words.size() > 1 && (words.back().back() == '=' || word.front() == '=');
    if (joins)
      words.back() += word;
    else
      words.push_back(word);
    word.clear();
    begun = false;
  };
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && c == '#') {
      break;
    } else if (!quoted && is_blank(c)) {
      end_word();
    } else {
      word += c;
      begun = true;
    }
  }
  if (quoted) return Error{"a quote is not closed; write it as in identity=\"my key\""};
  end_word();
  return words;
}

}  // namespace

Result<void> check_name(std::string_view name) {
  if (name.empty()) return Error{"there is no host name"};
  if (name.size() > 253) return Error{"the host name is longer than 253 characters"};
  // ssh would take a name with a leading dash for an option.
  if (name.front() == '-' || name.front() == '.')
    return Error{
        fmt::format("'{}' is no host name; it cannot begin with '{}'", shown(name), name.front())};
  for (const char c : name) {
    if (is_letter(c) || is_digit(c) || c == '-' || c == '.' || c == '_') continue;
    return Error{fmt::format("'{}' is no host name; letters, digits, '-', '_' and '.' make one",
                             shown(name))};
  }
  const bool numeric = std::ranges::all_of(name, [](char c) { return is_digit(c) || c == '.'; });
  in_addr ignored{};
  if (numeric && std::ranges::count(name, '.') == 3 &&
      inet_pton(AF_INET, std::string(name).c_str(), &ignored) != 1)
    return Error{fmt::format("'{}' is no IPv4 address", name)};
  return {};
}

Result<void> check_ipv6(std::string_view text) {
  const auto zone = text.find('%');
  const std::string address(text.substr(0, zone));
  in6_addr ignored{};
  if (address.find('\0') == std::string::npos &&
      inet_pton(AF_INET6, address.c_str(), &ignored) == 1 &&
      (zone == text.npos || check_name(text.substr(zone + 1))))
    return {};
  return Error{fmt::format("'[{}]' is no IPv6 address", shown(text))};
}

namespace {

Result<int> parse_slots(std::string_view text) {
  const auto number = whole_number(text);
  if (number && *number >= 1 && *number <= slots_per_host_max) return static_cast<int>(*number);
  return Error{fmt::format("slots must be a number from 1 to {}, not '{}'", slots_per_host_max,
                           shown(text))};
}

// The end of the error when the number of slots looks like a port: a user who is used to URLs may
// write "a:2222".
std::string port_hint(std::string_view text) {
  const auto number = whole_number(text);
  const bool port = number && *number > slots_per_host_max && *number <= 65535;
  return port ? "; write a port of ssh as port=..." : "";
}

// The part of an entry before the keys: [user@]host[:slots].
struct Head {
  std::string user;
  std::vector<std::string> names;
  int slots = 0;
};

Result<Head> parse_head(std::string_view word) {
  Head head;
  if (const auto at = word.rfind('@'); at != word.npos) {
    head.user = word.substr(0, at);
    if (const auto valid = check_user(head.user); !valid) return valid.error();
    word.remove_prefix(at + 1);
  }
  const auto close = word.find(']');
  std::string_view name = word;
  if (word.starts_with('[') && close != word.npos && word.substr(0, close).find(':') != word.npos) {
    name = word.substr(1, close - 1);
    word.remove_prefix(close + 1);
    if (!word.empty() && word.front() != ':')
      return Error{fmt::format("'{}' after ']' is not understood; write [::1]:4", shown(word))};
    if (const auto valid = check_ipv6(name); !valid) return valid.error();
    head.names.emplace_back(name);
  } else {
    const auto colon = word.find(':');
    if (colon != word.rfind(':'))
      return Error{fmt::format("'{}' has several colons; write IPv6 in brackets, as in [::1]:4",
                               shown(word))};
    name = word.substr(0, colon);
    word.remove_prefix(std::min(name.size(), word.size()));
    auto names = expand_ranges(name);
    if (!names) return names.error();
    head.names = std::move(*names);
    for (const auto& one : head.names)
      if (const auto valid = check_name(one); !valid) return valid.error();
  }
  if (word.empty()) return head;
  auto slots = parse_slots(word.substr(1));
  if (!slots) return Error{slots.error().text + port_hint(word.substr(1))};
  head.slots = *slots;
  return head;
}

// Our name for a key: other launchers have other names for slots and user. Empty for their keys
// that we ignore: the most slots a host may be overloaded with, and its processor topology.
std::string common_name(std::string_view key) {
  std::string name(key);
  std::ranges::replace(name, '-', '_');
  for (const char* same : {"count", "cpu", "cpus"})
    if (name == same) return "slots";
  for (const char* same : {"username", "user_name"})
    if (name == same) return "user";
  for (const char* other :
       {"max_slots", "slots_max", "count_max", "cpu_max", "cpus_max", "boards", "sockets", "cores",
        "sockets_per_board", "cores_per_socket", "binding", "ifname"})
    if (name == other) return "";
  return name;
}

Result<void> set_spare(Host& host, std::string_view value) {
  const bool yes = value == "yes" || value == "true" || value == "1" || value.empty();
  if (!yes && value != "no" && value != "false" && value != "0")
    return Error{fmt::format("spare is yes or no, not '{}'", shown(value))};
  host.spare = yes;
  return {};
}

Result<void> set_number(Host& host, std::string_view key, std::string_view value) {
  if (key == "slots") {
    const auto slots = parse_slots(value);
    if (!slots) return slots.error();
    host.slots = *slots;
  } else if (key == "port") {
    const auto port = whole_number(value);
    if (!port || *port < 1 || *port > 65535)
      return Error{fmt::format("port must be a number from 1 to 65535, not '{}'", shown(value))};
    host.port = static_cast<std::uint16_t>(*port);
  } else {
    const auto price = amount(value);
    if (!price)
      return Error{fmt::format("price must be a number as in 2.5, not '{}'", shown(value))};
    host.price = *price;
  }
  return {};
}

Result<void> set_text(Host& host, std::string_view key, std::string_view value) {
  Result<void> valid;
  if (key == "user") {
    valid = check_user(value);
    host.user = value;
  } else if (key == "address") {
    valid = value.find(':') == value.npos ? check_name(value) : check_ipv6(value);
    host.address = value;
  } else if (key == "identity") {
    host.identity = value;
  } else if (key == "type") {
    host.type = value;
  } else if (key == "rack") {
    host.rack = value;
  } else {
    return Error{fmt::format("unknown key '{}'; the keys are {}", shown(key), known_keys)};
  }
  return valid;
}

// Applies one word after the host. `seen` are the keys so far.
Result<void> set_key(Host& host, std::string_view word, std::vector<std::string>& seen) {
  const auto equal = word.find('=');
  const std::string key = common_name(word.substr(0, equal));
  if (equal == word.npos && key != "spare")
    return Error{fmt::format("'{}' is not understood; after the host come key=value: {}",
                             shown(word), known_keys)};
  const std::string_view value = equal == word.npos ? "" : word.substr(equal + 1);
  if (equal != word.npos && value.empty())
    return Error{fmt::format("'{}' has no value", shown(word))};
  if (key.empty() && equal > 0) return {};
  if (std::ranges::find(seen, key) != seen.end())
    return Error{fmt::format("{} is given twice", shown(key))};
  seen.push_back(key);
  if (key == "spare") return set_spare(host, value);
  if (key == "slots" || key == "port" || key == "price") return set_number(host, key, value);
  return set_text(host, key, value);
}

// Expands one number or one range a-b from inside brackets, and appends the numbers to `out`.
std::optional<Error> expand_item(std::string_view item, std::vector<std::string>& out) {
  const auto dash = item.find('-');
  const std::string_view low = item.substr(0, dash);
  const std::string_view high = dash == item.npos ? low : item.substr(dash + 1);
  const auto good = [](std::string_view digits) {
    return !digits.empty() && digits.size() <= 9 && std::ranges::all_of(digits, is_digit);
  };
  if (!good(low) || !good(high))
    return Error{fmt::format("'[{}]' is no range; write it as in n[01-16,20]", shown(item))};
  const auto first = *whole_number(low);
  const auto last = *whole_number(high);
  if (first > last)
    return Error{fmt::format("the range '{}' runs backwards; write [{}-{}]", item, high, low)};
  if (static_cast<std::size_t>(last - first) >= hosts_max)
    return Error{fmt::format("the range '{}' is larger than {} hosts", item, hosts_max)};
  for (auto n = first; n <= last; ++n) out.push_back(fmt::format("{:0{}}", n, low.size()));
  return std::nullopt;
}

// Removes the hosts from the front of `words` and returns them as one list: "a,b" as pdsh and Slurm
// write it, or "a, b" in several words. The keys stay in `words`.
std::string take_heads(std::vector<std::string>& words) {
  std::string heads = std::move(words.front());
  std::size_t used = 1;
  while (used < words.size() && (heads.ends_with(',') || words[used].starts_with(',')))
    heads += words[used++];
  words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(used));
  return heads;
}

// Grid Engine writes "host slots queue@host processors": its slots, as a key of ours.
bool is_of_grid_engine(const std::vector<std::string>& keys) {
  return keys.size() == 3 && std::ranges::all_of(keys[0], is_digit) &&
         keys[1].find('@') != std::string::npos && keys[1].find('=') == std::string::npos;
}
void translate_grid_engine(std::vector<std::string>& keys) {
  if (is_of_grid_engine(keys)) keys = {"slots=" + keys[0]};
}

Result<std::vector<Host>> hosts_of(const Head& head, const std::vector<std::string>& keys) {
  Host host;
  host.user = head.user;
  host.slots = head.slots;
  std::vector<std::string> seen;
  if (head.slots > 0) seen.emplace_back("slots");
  if (!head.user.empty()) seen.emplace_back("user");
  for (const std::string& key : keys)
    if (const auto done = set_key(host, key, seen); !done) return done.error();
  std::vector<Host> hosts(head.names.size(), host);
  for (std::size_t i = 0; i < hosts.size(); ++i) hosts[i].name = head.names[i];
  return hosts;
}

}  // namespace

bool names_a_queue(std::string_view line) {
  auto words = words_of(line);
  if (!words || words->empty()) return false;
  take_heads(*words);
  return is_of_grid_engine(*words);
}

std::size_t end_of_item(std::string_view list) {
  std::size_t end = 0;
  for (int depth = 0; end < list.size() && (list[end] != ',' || depth > 0); ++end)
    depth += list[end] == '[' ? 1 : list[end] == ']' ? -1 : 0;
  return end;
}

// In a ProxyCommand the name replaces %r, unquoted, and a shell reads the result. OpenSSH refuses
// some characters there since 9.6, '\' and '$' since 10.6. It does not refuse them in a name from a
// User line of its configuration, for which the user is responsible.
Result<void> check_user(std::string_view user) {
  constexpr std::string_view also = "._-@+";
  const bool fine = std::ranges::all_of(
      user, [&](char c) { return is_letter(c) || is_digit(c) || also.find(c) != also.npos; });
  if (fine && !user.empty() && user.front() != '-') return {};
  if (user.find_first_of("\\$") == user.npos)
    return Error{fmt::format("'{}' is no user name", shown(user))};
  return Error{
      fmt::format("'{}' is no user name here: as ssh, this takes '\\' and '$' only from a User "
                  "line in the configuration of ssh",
                  shown(user))};
}

std::string shown(std::string_view text) {
  constexpr std::size_t most = 60;
  return as_line(text, most);
}

Result<std::vector<std::string>> expand_ranges(std::string_view pattern) {
  std::vector<std::string> names{""};
  while (!pattern.empty()) {
    const auto open = pattern.find('[');
    for (auto& name : names) name += pattern.substr(0, open);
    if (open == pattern.npos) break;
    const auto close = pattern.find(']', open);
    if (close == pattern.npos) return Error{"'[' without ']'; write ranges as in n[01-16,20]"};
    std::string_view inside = pattern.substr(open + 1, close - open - 1);
    std::vector<std::string> numbers;
    while (true) {
      const auto comma = inside.find(',');
      if (auto error = expand_item(inside.substr(0, comma), numbers)) return *error;
      if (numbers.size() * names.size() > hosts_max)
        return Error{fmt::format("the ranges give more than {} hosts", hosts_max)};
      if (comma == inside.npos) break;
      inside.remove_prefix(comma + 1);
    }
    std::vector<std::string> longer;
    longer.reserve(names.size() * numbers.size());
    for (const auto& name : names)
      for (const auto& number : numbers) longer.push_back(name + number);
    names = std::move(longer);
    pattern.remove_prefix(close + 1);
  }
  return names;
}

Result<std::vector<Host>> parse_host_line(std::string_view line) {
  if (line.size() > host_line_bytes_max)
    return Error{fmt::format("the line is longer than {} characters", host_line_bytes_max)};
  auto words = words_of(line);
  if (!words) return words.error();
  std::vector<Host> hosts;
  if (words->empty()) return hosts;
  const std::string heads = take_heads(*words);
  translate_grid_engine(*words);
  std::string_view rest = heads;
  while (true) {
    const std::size_t end = end_of_item(rest);
    auto head = parse_head(rest.substr(0, end));
    if (!head) return head.error();
    auto some = hosts_of(*head, *words);
    if (!some) return some.error();
    if (hosts.size() + some->size() > hosts_max)
      return Error{fmt::format("the line gives more than {} hosts", hosts_max)};
    std::ranges::move(*some, std::back_inserter(hosts));
    if (end == rest.size()) break;
    rest.remove_prefix(end + 1);
  }
  const bool shared = hosts.size() > 1 && !hosts.front().address.empty();
  if (shared) return Error{"several hosts cannot share one address; give each host its own line"};
  return hosts;
}

}  // namespace elasticrun::launcher::hosts
