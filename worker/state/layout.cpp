// See layout.hpp.
#include "worker/state/layout.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>

namespace elasticrun::worker::state {

namespace {

std::string to_text(const Registration& one) {
  return fmt::format("{} {} {}:{} {}\n", one.kind, static_cast<int>(one.type), one.name.size(),
                     one.name, one.bytes);
}

std::uint64_t hash_of(const std::string& text) { return XXH3_64bits(text.data(), text.size()); }

// A name, which may have any length and any characters, made fit for one line.
std::string shown(std::string name) {
  constexpr std::size_t most = 80;
  if (name.size() > most) name = name.substr(0, most) + "...";
  std::ranges::replace_if(
      name, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return name;
}

}  // namespace

const char* kind_name(char kind) {
  return kind == 's' ? "state" : kind == 'g' ? "gradients" : kind == 'b' ? "buffers" : "source";
}

std::uint64_t hash_of(const Layout& layout) {
  std::string text;
  for (const Registration& one : layout) text += to_text(one);
  return hash_of(text);
}

std::vector<std::uint64_t> hashes_of(const Layout& layout) {
  std::vector<std::uint64_t> hashes;
  for (const Registration& one : layout) hashes.push_back(hash_of(to_text(one)));
  return hashes;
}

std::string words_for(const Layout& layout, std::size_t at) {
  if (at >= layout.size()) return "missing";
  const Registration& one = layout[at];
  const std::string size =
      one.kind == 's' || one.kind == 'l'
          ? fmt::format("{} bytes", one.bytes)
          : fmt::format("{} x {}", name_of(one.type), one.bytes / collective::size_of(one.type));
  return fmt::format("{} '{}' ({})", kind_name(one.kind), shown(one.name), size);
}

}  // namespace elasticrun::worker::state
