// See host_blocks.hpp. The order of the lines matters: the first HostName that applies wins.
#include "launcher/ssh/host_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.hpp"

namespace elasticrun::launcher::ssh {
namespace {

constexpr int depth_max = 16;  // of Includes, as in OpenSSH
constexpr std::string_view blanks = " \t\r\f";

std::string_view next_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

// "Key value value" and "Key = value value".
std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  const auto skip = [&](std::string_view what) {
    line.remove_prefix(std::min(line.find_first_not_of(what), line.size()));
  };
  for (skip(blanks); !line.empty() && line.front() != '#'; skip(blanks)) {
    const std::size_t end = line.find_first_of(words.empty() ? " \t\r\f=" : blanks);
    words.push_back(line.substr(0, end));
    line.remove_prefix(words.back().size());
    if (words.size() > 1) continue;
    skip(blanks);
    if (line.starts_with('=')) line.remove_prefix(1);
  }
  return words;
}

// `*` matches any text, `?` any character. Backtracks to the last star only, so the time is at most
// proportional to the product of the two lengths.
bool matches(std::string_view text, std::string_view pattern) {
  std::size_t t = 0, p = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

bool applies(const std::vector<std::string>& patterns, std::string_view name) {
  bool any = false;
  for (std::string_view pattern : patterns) {
    const bool negated = pattern.starts_with('!');
    if (!matches(name, pattern.substr(negated ? 1 : 0))) continue;
    if (negated) return false;
    any = true;
  }
  return any;
}

// %h is the name that ssh was called with. Returns nothing if there is a token we do not know.
std::optional<std::string> with_tokens(std::string_view hostname, const std::string& host) {
  std::string result;
  for (std::size_t i = 0; i < hostname.size(); ++i) {
    if (hostname[i] != '%') {
      result += hostname[i];
      continue;
    }
    const char token = ++i < hostname.size() ? hostname[i] : '\0';
    if (token != 'h' && token != '%') return std::nullopt;
    result += token == 'h' ? host : "%";
  }
  return result;
}

}  // namespace

void HostBlocks::read(const ConfigFile& file, const Open& open) { read(file, open, 0, 0); }

void HostBlocks::read(const ConfigFile& file, const Open& open, std::size_t parent, int depth) {
  understood_ &= depth <= depth_max;
  if (!understood_) return;
  paths_.push_back(file.path);
  std::size_t block = parent;
  for (std::string_view text = file.text; !text.empty();) {
    const std::string_view line = next_line(text);
    const Words words = words_of(line);
    if (words.empty()) continue;
    const std::string key = lower(words.front());
    const Words values(words.begin() + 1, words.end());
    const bool decides = key == "host" || key == "match" || key == "include" || key == "hostname";
    understood_ &= !key.starts_with("canonical") && key.find_first_of("\"'\\") == std::string::npos;
    // Versions of OpenSSH differ on quotes, and on comments that follow a value.
    if (decides) understood_ &= !values.empty() && line.find_first_of("\"'\\#$") == line.npos;
    if (!understood_) return;
    if (key == "host") {
      blocks_.push_back({Kind::patterns, {values.begin(), values.end()}, parent});
    } else if (key == "match") {
      add_match(values, parent);
    } else if (key == "include") {
      for (const std::string_view path : values)
        for (const ConfigFile& more : open(std::string(path))) read(more, open, block, depth + 1);
    } else {
      add_entry(block, std::string(key == "hostname" ? values.front() : std::string_view()));
    }
    if (key == "host" || key == "match") block = blocks_.size() - 1;
  }
}

void HostBlocks::add_match(const Words& words, std::size_t parent) {
  const bool last = words.size() == 2 && lower(words.front()) == "final";
  understood_ &= (last || words.size() == 1) && lower(words.back()) == "all";
  two_passes_ |= last;
  blocks_.push_back({last ? Kind::last_pass : Kind::always, {}, parent});
}

void HostBlocks::add_entry(std::size_t block, std::string hostname) {
  const bool same = !entries_.empty() && entries_.back().block == block;
  if (hostname.empty() && same && entries_.back().hostname.empty()) return;
  entries_.push_back({block, std::move(hostname)});
}

// One pass over the blocks. `name` is matched against patterns; `host` is what ssh was called with.
void HostBlocks::pass(const std::string& name, bool last, const std::string& host,
                      Standing& standing) const {
  std::vector<bool> on(blocks_.size());
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const Block& block = blocks_[i];
    on[i] = block.kind == Kind::always || (block.kind == Kind::last_pass && last) ||
            (block.kind == Kind::patterns && applies(block.patterns, name));
    if (i > 0) on[i] = on[i] && on[block.parent];
  }
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (!on[entry.block]) continue;
    if (entry.hostname.empty())
      standing.blocks += fmt::format("{} ", i);
    else if (standing.hostname.empty())
      standing.hostname = with_tokens(entry.hostname, host).value_or("%");
  }
}

std::optional<HostBlocks::Standing> HostBlocks::of(const std::string& host) const {
  // ssh changes names with other characters before it uses them, or gives them another meaning.
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyz0123456789.-_";
  if (!understood_ || host.empty() || host.find_first_not_of(plain) != host.npos)
    return std::nullopt;
  Standing standing;
  pass(host, false, host, standing);
  if (two_passes_) {
    if (standing.hostname.empty()) standing.hostname = host;
    standing.blocks += "| ";
    pass(lower(standing.hostname), true, host, standing);
  }
  if (standing.hostname.empty()) standing.hostname = host;
  if (standing.hostname.find('%') != std::string::npos) return std::nullopt;
  standing.hostname = lower(standing.hostname);
  return standing;
}

}  // namespace elasticrun::launcher::ssh
