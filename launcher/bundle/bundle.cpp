// See bundle.hpp.
#include "launcher/bundle/bundle.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/exit_code.hpp"
#include "launcher/bundle/bundle_digest.hpp"
#include "launcher/bundle/libraries.hpp"
#include "launcher/machine/program_search.hpp"

namespace elasticrun::launcher::bundle {
namespace {

constexpr std::size_t read_bytes = 1u << 20;

struct Found {
  std::string path;  // empty: not there
  int error = 0;     // not 0: it is there, and cannot be run
};

// As in a shell, a file that exists but cannot be run does not end the search; it is returned, with
// its error, when nothing better is found.
Found find_program(const std::string& program, const std::vector<std::string>& env,
                   const std::string& cwd) {
  Found found;
  for (const std::string& file :
       machine::program_candidates(program, machine::value_of("PATH", env))) {
    const std::string path = file.starts_with('/') ? file : fmt::format("{}/{}", cwd, file);
    struct stat about {};
    if (::stat(path.c_str(), &about) != 0) continue;
    const int error = !S_ISREG(about.st_mode)             ? EISDIR
                      : ::access(path.c_str(), X_OK) != 0 ? errno
                                                          : 0;
    if (error != 0 && machine::is_searched(program) && S_ISDIR(about.st_mode)) continue;
    if (error == 0) return {path, 0};
    if (found.path.empty()) found = {path, error};
  }
  return found;
}

Result<BundleFile> open_file(std::string name, std::string path, bool executable) {
  BundleFile file{std::move(name), std::move(path), executable, 0,
                  net::Fd(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC))};
  struct stat about {};
  if (file.fd.get() < 0 || ::fstat(file.fd.get(), &about) != 0)
    return Error{fmt::format("'{}' cannot be read: {}", file.path, std::strerror(errno))};
  file.bytes = about.st_size;
  return ok(std::move(file));
}

Result<void> add_to(BundleDigest& hash, const BundleFile& file) {
  for (std::int64_t offset = 0; offset < file.bytes;) {
    const auto bytes = read_part(file, offset, read_bytes);
    if (!bytes) return bytes.error();
    if (bytes->empty())
      return Error{fmt::format("'{}' became shorter while it was read", file.path)};
    hash.add(*bytes);
    offset += static_cast<std::int64_t>(bytes->size());
  }
  hash.end_file(file.name, file.executable);
  return {};
}

Result<void> seal(Bundle& bundle) {
  for (const BundleFile& file : bundle.files) bundle.bytes += file.bytes;
  if (bundle.bytes > bundle_bytes_max || bundle.files.size() > bundle_files_max)
    return Error{
        fmt::format("'{}' and its libraries are {} MiB in {} files, more than --ship copies "
                    "({} MiB, {} files); put them on each host",
                    bundle.files.back().path, bundle.bytes >> 20, bundle.files.size(),
                    bundle_bytes_max >> 20, bundle_files_max)};
  BundleDigest hash;
  for (const BundleFile& file : bundle.files)
    if (const auto read = add_to(hash, file); !read) return read.error();
  bundle.hash = hash.text();
  return {};
}

}  // namespace

std::variant<Bundle, BundleTrouble> gather_bundle(const std::string& program,
                                                  const std::vector<std::string>& env,
                                                  const std::string& cwd) {
  const auto trouble = [&](int code, const std::string& what) {
    return BundleTrouble{code, fmt::format("--ship: program '{}' {}", program, what)};
  };
  const Found found = find_program(program, env, cwd);
  if (found.path.empty()) return trouble(exit_code::not_found, "not found on this machine");
  if (found.error != 0)
    return trouble(exit_code::not_executable,
                   fmt::format("cannot be run: {}", std::strerror(found.error)));
  Bundle bundle;
  auto itself = open_file(bundle_file_of(program), found.path, true);
  if (!itself) return BundleTrouble{exit_code::not_executable, "--ship: " + itself.error().text};
  if (const std::string loader = loader_of(itself->fd.get()); !loader.empty()) {
    const auto libraries = libraries_of(loader, found.path, env, cwd);
    if (!libraries)
      return trouble(exit_code::not_found, "cannot be run: " + libraries.error().text);
    for (const Library& library : *libraries) {
      if (!is_bundle_file(library.name) || library.name == itself->name) continue;
      auto file = open_file(library.name, library.path, false);
      if (!file) return BundleTrouble{exit_code::not_executable, "--ship: " + file.error().text};
      bundle.files.push_back(std::move(*file));
    }
  }
  bundle.files.push_back(std::move(*itself));
  if (const auto sealed = seal(bundle); !sealed)
    return BundleTrouble{exit_code::not_executable, "--ship: " + sealed.error().text};
  return bundle;
}

bool program_is_there(const std::string& program, const std::vector<std::string>& env,
                      const std::string& cwd) {
  const Found found = find_program(program, env, cwd);
  return !found.path.empty() && found.error == 0;
}

Result<std::string> read_part(const BundleFile& file, std::int64_t offset, std::size_t most) {
  std::string bytes(most, '\0');
  ssize_t n = 0;
  while ((n = ::pread(file.fd.get(), bytes.data(), most, offset)) < 0 && errno == EINTR) {
  }
  if (n < 0) return Error{fmt::format("'{}' cannot be read: {}", file.path, std::strerror(errno))};
  bytes.resize(static_cast<std::size_t>(n));
  return ok(std::move(bytes));
}

}  // namespace elasticrun::launcher::bundle
