// See bundle_digest.hpp.
#include "launcher/bundle/bundle_digest.hpp"

#include <fmt/format.h>

#include <utility>

namespace elasticrun::launcher::bundle {
namespace {

constexpr std::size_t name_bytes_max = 255;  // Linux's limit (NAME_MAX)

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
  return !name.empty() && name.size() <= name_bytes_max && name != "." && name != ".." &&
         name.find('/') == name.npos && name.find('\0') == name.npos;
}

std::string bundle_file_of(std::string_view program) {
  return std::string(program.substr(program.rfind('/') + 1));  // npos + 1 is 0
}

}  // namespace elasticrun::launcher::bundle
