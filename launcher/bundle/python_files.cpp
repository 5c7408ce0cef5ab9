// See python_files.hpp.
#include "launcher/bundle/python_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "launcher/bundle/bundle_digest.hpp"

namespace elasticrun::launcher::bundle {
namespace {

namespace fs = std::filesystem;
using Entries = std::vector<fs::directory_entry>;

constexpr std::string_view text_endings[] = {".json", ".yaml", ".yml", ".toml",
                                             ".txt",  ".cfg",  ".ini"};

std::string name_of(const fs::directory_entry& entry) { return entry.path().filename().string(); }

bool is_module(const fs::directory_entry& entry) { return entry.path().extension() == ".py"; }
bool is_compiled_module(const fs::directory_entry& entry) {
  return entry.path().extension() == ".so";
}
bool is_text(const fs::directory_entry& entry) {
  return std::ranges::count(text_endings, entry.path().extension().string()) > 0;
}

bool holds(const Entries& entries, std::string_view name) {
  return std::ranges::any_of(entries, [&](const auto& entry) { return name_of(entry) == name; });
}

// Made by venv and virtualenv, or by conda.
bool is_environment(const Entries& entries) {
  return holds(entries, "pyvenv.cfg") || holds(entries, "conda-meta");
}

class Search {
 public:
  Search(const std::string& folder, std::size_t most) : most_(most) {
    std::error_code error;
    inside_ = fs::canonical(folder, error).string() + "/";
  }

  // Takes what is wanted of a folder and of those below. `name`: of the folder below the root;
  // empty: it is the root. False: that is too much to look through.
  bool enter(const std::string& folder, const std::string& name, bool in_package) {
    Entries entries;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      if (++seen_ > most_) return false;
      if (!name_of(*at).starts_with('.')) entries.push_back(*at);
    }
    if (is_environment(entries)) return true;
    in_package = in_package || holds(entries, "__init__.py");
    const bool among_modules = in_package || std::ranges::any_of(entries, is_module);
    for (const fs::directory_entry& entry : entries) {
      const std::string below =
          fmt::format("{}{}{}", name, name.empty() ? "" : "/", name_of(entry));
      if (!is_bundle_file(below)) continue;
      if (!entry.is_directory(error))
        take(entry, below, among_modules);
      else if (!entry.is_symlink(error) && name_of(entry) != "__pycache__" &&
               !enter(entry.path(), below, in_package))
        return false;
    }
    return true;
  }

  std::vector<PythonFile> found() && { return std::move(found_); }

 private:
  void take(const fs::directory_entry& entry, const std::string& name, bool among_modules) {
    const bool text = is_text(entry);
    if (!is_module(entry) && !(among_modules && (text || is_compiled_module(entry)))) return;
    std::error_code error;
    const auto bytes = static_cast<std::int64_t>(entry.file_size(error));
    if (error || !entry.is_regular_file(error) || (text && bytes > text_bytes_max)) return;
    if (entry.is_symlink(error) && !leads_inside(entry)) return;
    found_.push_back({name, entry.path(), bytes});
  }

  bool leads_inside(const fs::directory_entry& link) const {
    std::error_code error;
    return fs::canonical(link.path(), error).string().starts_with(inside_);
  }

  const std::size_t most_;
  std::string inside_;
  std::size_t seen_ = 0;
  std::vector<PythonFile> found_;
};

}  // namespace

Result<std::vector<PythonFile>> python_files(const std::string& root, const std::string& package,
                                             std::size_t most) {
  const std::string folder = package.empty() ? root : fmt::format("{}/{}", root, package);
  Search search(folder, most);
  if (!search.enter(folder, package, false))
    return Error{
        fmt::format("'{}' has more than {} files below it; move the script and its "
                    "modules to a folder of their own",
                    folder, most)};
  return ok(std::move(search).found());
}

}  // namespace elasticrun::launcher::bundle
