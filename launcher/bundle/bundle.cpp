// See bundle.hpp.
#include "launcher/bundle/bundle.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/exit_code.hpp"
#include "launcher/bundle/bundle_digest.hpp"
#include "launcher/bundle/libraries.hpp"
#include "launcher/bundle/python_files.hpp"
#include "launcher/machine/program_search.hpp"
#include "launcher/machine/python_source.hpp"

namespace elasticrun::launcher::bundle {
namespace {

namespace fs = std::filesystem;

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
    const std::string path = machine::path_from(cwd, file);
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
  BundleFile file{std::move(name),
                  std::move(path),
                  executable,
                  0,
                  net::Fd(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC)),
                  {}};
  struct stat about {};
  if (file.fd.get() < 0 || ::fstat(file.fd.get(), &about) != 0)
    return Error{fmt::format("'{}' cannot be read: {}", file.path, std::strerror(errno))};
  file.bytes = about.st_size;
  return ok(std::move(file));
}

Result<void> keep_in_memory(BundleFile& file) {
  auto bytes = read_part(file, 0, static_cast<std::size_t>(file.bytes));
  if (!bytes) return bytes.error();
  file.kept = std::move(*bytes);
  file.bytes = static_cast<std::int64_t>(file.kept.size());
  file.fd = net::Fd();
  return {};
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

// `what` is for the message.
Result<void> check_limits(const std::string& what, std::int64_t bytes, std::size_t files) {
  if (bytes <= bundle_bytes_max && files <= bundle_files_max) return {};
  return Error{
      fmt::format("{} are {} MiB in {} files, more than --ship copies ({} MiB, {} files); put them "
                  "on each host",
                  what, bytes >> 20, files, bundle_bytes_max >> 20, bundle_files_max)};
}

Result<void> seal(Bundle& bundle, const std::string& what) {
  for (const BundleFile& file : bundle.files) bundle.bytes += file.bytes;
  if (auto allowed = check_limits(what, bundle.bytes, bundle.files.size()); !allowed)
    return allowed;
  BundleDigest hash;
  for (const BundleFile& file : bundle.files)
    if (const auto read = add_to(hash, file); !read) return read.error();
  bundle.hash = hash.text();
  return {};
}

BundleTrouble trouble(int code, const std::string& what) {
  return {code, fmt::format("--ship: {}", what)};
}

std::variant<Bundle, BundleTrouble> gather_program(const std::string& program,
                                                   const std::vector<std::string>& env,
                                                   const std::string& cwd) {
  const auto fails = [&](int code, const std::string& what) {
    return trouble(code, fmt::format("program '{}' {}", program, what));
  };
  const Found found = find_program(program, env, cwd);
  if (found.path.empty()) return fails(exit_code::not_found, "not found on this machine");
  if (found.error != 0)
    return fails(exit_code::not_executable,
                 fmt::format("cannot be run: {}", std::strerror(found.error)));
  Bundle bundle;
  auto itself = open_file(bundle_file_of(program), found.path, true);
  if (!itself) return trouble(exit_code::not_executable, itself.error().text);
  if (const std::string loader = loader_of(itself->fd.get()); !loader.empty()) {
    const auto libraries = libraries_of(loader, found.path, env, cwd);
    if (!libraries) return fails(exit_code::not_found, "cannot be run: " + libraries.error().text);
    for (const Library& library : *libraries) {
      if (!is_bundle_file(library.name) || library.name == itself->name) continue;
      auto file = open_file(library.name, library.path, false);
      if (!file) return trouble(exit_code::not_executable, file.error().text);
      bundle.files.push_back(std::move(*file));
    }
  }
  bundle.files.push_back(std::move(*itself));
  const auto sealed = seal(bundle, fmt::format("'{}' and its libraries", found.path));
  if (!sealed) return trouble(exit_code::not_executable, sealed.error().text);
  return bundle;
}

// The files that a host needs to run `found`, which is the command's file of Python.
Result<std::vector<PythonFile>> files_around(const machine::PythonSource& source,
                                             const std::string& found, const std::string& cwd) {
  if (source.module) {
    const std::size_t slash = found.find('/');
    return python_files(cwd, slash == found.npos ? "" : found.substr(0, slash));
  }
  // As the interpreter does, which looks for modules beside the file that a link leads to.
  const fs::path path(machine::path_from(cwd, found));
  std::error_code error;
  auto files = python_files(fs::canonical(path, error).parent_path(), "");
  if (!files) return files;
  const std::string name = bundle_file_of(found);
  std::erase_if(*files, [&](const PythonFile& file) { return file.name == name; });
  files->push_back({name, path, static_cast<std::int64_t>(fs::file_size(path, error))});
  return files;
}

// `runs_itself`: the last file is the program.
Result<Bundle> bundle_of(const std::vector<PythonFile>& files, const std::string& what,
                         bool runs_itself) {
  std::int64_t bytes = 0;
  for (const PythonFile& file : files) bytes += file.bytes;
  if (const auto allowed = check_limits(what, bytes, files.size()); !allowed)
    return allowed.error();  // before so many files are opened
  Bundle bundle;
  for (const PythonFile& one : files) {
    auto file = open_file(one.name, one.path, runs_itself && &one == &files.back());
    if (!file) return file.error();
    if (file->bytes <= text_bytes_max)
      if (const auto kept = keep_in_memory(*file); !kept) return kept.error();
    bundle.files.push_back(std::move(*file));
  }
  if (const auto sealed = seal(bundle, what); !sealed) return sealed.error();
  return ok(std::move(bundle));
}

std::variant<Bundle, BundleTrouble> gather_python(const machine::PythonSource& source,
                                                  const std::string& cwd) {
  const auto found = std::ranges::find_if(source.files, [&](const std::string& file) {
    std::error_code error;
    return fs::is_regular_file(machine::path_from(cwd, file), error);
  });
  if (found == source.files.end() && source.module) return Bundle{};
  if (found == source.files.end())
    return trouble(exit_code::not_found,
                   fmt::format("script '{}' not found on this machine", source.files[0]));
  const auto files = files_around(source, *found, cwd);
  if (!files) return trouble(exit_code::not_executable, files.error().text);
  auto bundle = bundle_of(*files, fmt::format("'{}' and the files of Python beside it", *found),
                          source.argument == 0);
  if (!bundle) return trouble(exit_code::not_executable, bundle.error().text);
  return std::move(*bundle);
}

}  // namespace

std::variant<Bundle, BundleTrouble> gather_bundle(const std::vector<std::string>& command,
                                                  const std::vector<std::string>& env,
                                                  const std::string& cwd) {
  const auto source = machine::python_source(command);
  return source ? gather_python(*source, cwd) : gather_program(command[0], env, cwd);
}

bool program_can_be_copied(const std::vector<std::string>& command,
                           const std::vector<std::string>& env, const std::string& cwd) {
  const auto source = machine::python_source(command);
  if (source && source->argument != 0) return false;
  const Found found = find_program(command[0], env, cwd);
  return !found.path.empty() && found.error == 0;
}

Result<std::string> read_part(const BundleFile& file, std::int64_t offset, std::size_t most) {
  if (file.fd.get() < 0) return ok(file.kept.substr(static_cast<std::size_t>(offset), most));
  std::string bytes(most, '\0');
  ssize_t n = 0;
  while ((n = ::pread(file.fd.get(), bytes.data(), most, offset)) < 0 && errno == EINTR) {
  }
  if (n < 0) return Error{fmt::format("'{}' cannot be read: {}", file.path, std::strerror(errno))};
  bytes.resize(static_cast<std::size_t>(n));
  return ok(std::move(bytes));
}

}  // namespace elasticrun::launcher::bundle
