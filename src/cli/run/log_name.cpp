// See log_name.hpp.
#include "cli/run/log_name.hpp"

#include <fmt/format.h>

#include <string_view>

namespace elasticrun::cli::run {
namespace {

// Most bytes of the host's name in the file name, which may have 255 bytes.
constexpr std::size_t host_bytes_max = 200;

// Whether the character is one of those that host names and addresses consist of.
bool is_plain(char c, bool first) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return letter || (c >= '0' && c <= '9') || c == '_' || c == ':' ||
         (!first && (c == '.' || c == '-'));
}

std::string plain(std::string_view host) {
  std::string name;
  for (const char c : host.substr(0, host_bytes_max)) name += is_plain(c, name.empty()) ? c : '_';
  return name.empty() ? "_" : name;
}

}  // namespace

std::string log_name(const job::report::WorkerLabel& label, std::int32_t stream) {
  return fmt::format("{}.{}.worker{}.{}", plain(label.host_name), label.slot, label.worker.value,
                     stream == 1 ? "out" : "err");
}

}  // namespace elasticrun::cli::run
