#include "tests/house/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>

namespace elasticrun::house {
namespace {

std::string parent(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

bool is_cmake(const std::string& path) {
  return path == "CMakeLists.txt" || path.ends_with("/CMakeLists.txt") || path.ends_with(".cmake");
}

// Whether the text names the file as a whole word: my_lines.cpp does not name lines.cpp.
bool names(const std::string& text, const std::string& file) {
  for (std::size_t at = text.find(file); at != std::string::npos; at = text.find(file, at + 1)) {
    const auto part = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
    };
    const bool left = at == 0 || !part(text[at - 1]);
    const std::size_t end = at + file.size();
    if (left && (end == text.size() || !part(text[end]))) return true;
  }
  return false;
}

bool is_of_product(const std::string& path) {
  return is_cpp(path) && !is_test(path) && !is_example(path) && !is_public_header(path);
}

}  // namespace

Violations top_level_violations(const std::vector<std::string>& entries) {
  static const std::set<std::string> allowed = {
      "CMakeLists.txt", "src",   "launcher", "rendezvous", "worker", "configs",
      "scripts",        "tests", "man",      "README.md",  "LICENSE"};
  Violations found;
  for (const std::string& name : entries) {
    if (allowed.contains(name) || name.starts_with(".") || name.starts_with("build")) continue;
    found.push_back(name + ": the top level is fixed; put it into one of its folders");
  }
  return found;
}

Violations folder_violations(const std::vector<Source>& tree) {
  static const std::set<std::string> allowed = {"base",       "wire", "net",      "save",
                                                "autoscaler", "job",  "simulate", "cli"};
  Violations found;
  for (const Source& source : tree) {
    if (!source.path.starts_with("src/")) continue;
    const std::string below = source.path.substr(4);
    const std::string folder = below.substr(0, below.find('/'));
    const bool file = folder == below;
    const bool known =
        file ? below == "main.cpp" || below == "ctl.cpp" || below == "README.md" || is_cmake(below)
             : allowed.contains(folder);
    if (!known)
      found.push_back(source.path + ": src holds main, ctl and the folders of the include table");
  }
  return found;
}

Violations crowded_rooms(const std::vector<Source>& tree) {
  constexpr std::size_t most = 20;
  std::map<std::string, std::set<std::string>> rooms;
  for (const Source& source : tree)
    if (is_of_product(source.path))
      rooms[parent(source.path)].insert(source.path.substr(0, source.path.rfind('.')));
  Violations found;
  for (const auto& [room, names] : rooms)
    if (names.size() > most)
      found.push_back(room +
                      ": more than 20 files, headers and sources counted once: it is two rooms");
  return found;
}

Violations crowded_namespaces(const std::vector<Source>& tree) {
  constexpr std::size_t most = 40;
  static const std::regex space("namespace (elasticrun[\\w:]*) \\{");
  static const std::regex type("(?:struct|class|enum class) (\\w+)[^;]*\\{.*");
  std::map<std::string, std::set<std::string>> types;
  for (const Source& source : tree) {
    if (!is_of_product(source.path) || !source.path.ends_with(".hpp")) continue;
    std::string inside;
    for (const std::string& text : lines(source.text)) {
      std::smatch match;
      if (std::regex_match(text, match, space)) inside = match[1];
      if (std::regex_match(text, match, type)) types[inside].insert(match[1]);
    }
  }
  Violations found;
  for (const auto& [name, declared] : types)
    if (declared.size() > most)
      found.push_back(
          fmt::format("namespace {}: {} types, more than {}", name, declared.size(), most));
  return found;
}

Violations namespace_violations(const Source& source) {
  static const std::regex line("\\s*namespace elasticrun((?:::\\w+)*) \\{.*");
  if (!is_of_product(source.path)) return {};
  const std::string path = "/" + source.path.substr(0, source.path.rfind('.')) + "/";
  for (const std::string& text : lines(source.text)) {
    std::smatch match;
    if (!std::regex_match(text, match, line)) continue;
    std::size_t at = 0;
    const std::string parts = match[1];
    for (std::size_t i = 0; i < parts.size();) {
      const std::size_t end = std::min(parts.find("::", i + 2), parts.size());
      at = path.find("/" + parts.substr(i + 2, end - i - 2) + "/", at);
      if (at == path.npos)
        return {source.path + ": namespace elasticrun" + parts + " is no room above it"};
      i = end;
    }
  }
  return {};
}

Violations missing_from_page(const Source& page, const std::vector<Source>& tree) {
  static const std::regex path("`([\\w][\\w./-]*/[\\w./-]+)`");
  const auto is_named = [](std::string file, const std::string& name) {
    for (; !file.empty(); file = parent(file)) {
      const std::string bare = file.substr(0, file.rfind('.'));
      for (const std::string& one : {file, bare})
        if (one == name || one.ends_with("/" + name)) return true;
    }
    return false;
  };
  Violations found;
  for (std::sregex_iterator at(page.text.begin(), page.text.end(), path), end; at != end; ++at) {
    const std::string name = (*at)[1];
    if (std::none_of(tree.begin(), tree.end(),
                     [&](const Source& source) { return is_named(source.path, name); }))
      found.push_back(page.path + ": there is no " + name);
  }
  return found;
}

Violations unbuilt_sources(const std::vector<Source>& tree) {
  Violations found;
  for (const Source& source : tree) {
    if (!source.path.ends_with(".cpp") && !source.path.ends_with(".c")) continue;
    // CMake names fuzzers without the ending, for their programs are called as the files are.
    const bool fuzzer = source.path.starts_with("tests/fuzz/");
    const std::string path = fuzzer ? source.path.substr(0, source.path.rfind('.')) : source.path;
    const bool built = std::any_of(tree.begin(), tree.end(), [&](const Source& file) {
      if (!is_cmake(file.path)) return false;
      const std::string folder = parent(file.path);
      if (folder.empty()) return names(file.text, path);
      return source.path.starts_with(folder + "/") &&
             names(file.text, path.substr(folder.size() + 1));
    });
    if (!built)
      found.push_back(source.path + ": no CMakeLists.txt names it, so nobody compiles it");
  }
  return found;
}

Violations script_violations(const Source& source) {
  if (parent(source.path) != "scripts") return {};
  const std::vector<std::string> text = lines(source.text);
  if (text.size() > 3 && text[0].starts_with("#!") && text[1].starts_with("# What: ") &&
      text[2].starts_with("# When: ") && text[3].starts_with("# Example: "))
    return {};
  return {source.path + ": begin with three lines, '# What:', '# When:', '# Example:'"};
}

}  // namespace elasticrun::house
