// See bundle_digest.hpp.
#include "launcher/bundle/bundle_digest.hpp"

#include <fmt/format.h>

#include <utility>

namespace elasticrun::launcher::bundle {
namespace {

constexpr std::size_t name_bytes_max = 255;   // of a file or folder: Linux's limit (NAME_MAX)
constexpr std::size_t path_bytes_max = 1024;  // of the whole name
constexpr int depth_max = 16;                 // folders and the file

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= name_bytes_max && name != "." && name != "..";
}

}  // namespace

void BundleDigest::add(std::string_view bytes) {
  present_.add(bytes);
  bytes_ += bytes.size();
}

// The name's length comes before it, so that its end is clear whatever characters it contains.
void BundleDigest::end_file(std::string_view name, bool executable) {
  const ContentHash content = std::exchange(present_, ContentHash());
  files_.insert(fmt::format("{} {} {} {} {}", content.text(), std::exchange(bytes_, 0), executable,
                            name.size(), name));
}

std::string BundleDigest::text() const {
  ContentHash whole;
  for (const std::string& file : files_) whole.add(file);
  return whole.text();
}

bool is_bundle_file(std::string_view name) {
  if (name.size() > path_bytes_max || name.find('\0') != name.npos) return false;
  for (int depth = 1; depth <= depth_max; ++depth) {
    const std::size_t slash = name.find('/');
    if (!is_plain_name(name.substr(0, slash))) return false;
    if (slash == name.npos) return true;
    name.remove_prefix(slash + 1);
  }
  return false;
}

std::string bundle_file_of(std::string_view program) {
  return std::string(program.substr(program.rfind('/') + 1));  // npos + 1 is 0
}

}  // namespace elasticrun::launcher::bundle
