// See program_search.hpp.
#include "launcher/machine/program_search.hpp"

#include <fmt/format.h>

namespace elasticrun::launcher::machine {

std::string_view value_of(std::string_view name, const std::vector<std::string>& env) {
  for (const std::string_view entry : env)
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
  return {};
}

std::string path_from(std::string_view working_directory, const std::string& path) {
  return path.starts_with('/') ? path : fmt::format("{}/{}", working_directory, path);
}

std::vector<std::string> program_candidates(const std::string& program, std::string_view path) {
  if (!is_searched(program)) return {program};
  if (path.empty()) path = "/usr/local/bin:/usr/bin:/bin";
  std::vector<std::string> found;
  for (;;) {
    const std::size_t colon = path.find(':');
    const std::string_view dir = path.substr(0, colon);
    found.push_back(fmt::format("{}/{}", dir.empty() ? "." : dir, program));
    if (colon == std::string_view::npos) return found;
    path.remove_prefix(colon + 1);
  }
}

}  // namespace elasticrun::launcher::machine
