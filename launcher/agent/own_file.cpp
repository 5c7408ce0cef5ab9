// See own_file.hpp.
#include "launcher/agent/own_file.hpp"

#include <unistd.h>

#include <filesystem>
#include <string>

#include "launcher/bundle/content_hash.hpp"
#include "launcher/bundle/file_hash.hpp"

namespace elasticrun::launcher::agent {
namespace {

constexpr const char* own_file = "/proc/self/exe";
constexpr std::string_view prefix = "agent-";

// The hash in the name of a copy, "agent-HASH" or "agent-HASH.WORD"; empty: it is no copy.
std::string hash_in(const std::string& name) {
  if (!name.starts_with(prefix)) return "";
  std::string hash = name.substr(prefix.size(), name.find('.') - prefix.size());
  return bundle::is_content_hash(hash) ? hash : "";
}

std::filesystem::path own_path() {
  std::error_code error;
  return std::filesystem::read_symlink(own_file, error);
}

}  // namespace

bool own_file_is_damaged() {
  const std::string expected = hash_in(own_path().filename().string());
  if (expected.empty()) return false;
  const auto hash = bundle::hash_of_file(own_file);
  return !hash || *hash != expected;
}

void remove_own_file_of_one_use() {
  const std::filesystem::path path = own_path();
  const std::string name = path.filename().string();
  if (!hash_in(name).empty() && name.find('.') != name.npos) ::unlink(path.c_str());
}

}  // namespace elasticrun::launcher::agent
