// See file.hpp.
#include "base/file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace elasticrun {

Result<std::string> read_file(const std::string& path, std::size_t most) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return Error{path + " is a folder, not a file"};
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  char block[16384];
  while (file.read(block, sizeof block), file.gcount() > 0) {
    text.append(block, static_cast<std::size_t>(file.gcount()));
    if (text.size() > most) return Error{fmt::format("{} is larger than {} MiB", path, most >> 20)};
  }
  if (!file.eof())
    return Error{fmt::format("cannot read {}: {}", path, std::strerror(errno ? errno : EIO))};
  return ok(std::move(text));
}

}  // namespace elasticrun
