#include "tests/house/core.hpp"

#include <algorithm>
#include <regex>

namespace elasticrun::house {
namespace {

constexpr std::size_t lines_max = 300;
constexpr int fields_max = 15;

// Counts the fields declared in a line of a class that begins at the left margin: their names end
// with an underscore, and a line may hold several.
int fields_in(const std::string& line) {
  static const std::regex declaration("^  [A-Za-z][^()]*[ >&*]\\w+_(?: =.*|\\{.*\\})?[;,].*");
  static const std::regex name("\\b[a-z]\\w*_(?=;|,| =|\\{)");
  if (!std::regex_match(line, declaration)) return 0;
  const std::string code = line.substr(0, line.find("//"));
  return static_cast<int>(std::distance(std::sregex_iterator(code.begin(), code.end(), name), {}));
}

}  // namespace

Violations core_violations(const Source& source) {
  Violations found;
  if (!source.path.starts_with("src/job/core/")) return found;
  const auto all = lines(source.text);
  if (all.size() > lines_max) found.push_back(source.path + ": more than 300 lines");
  std::string name;
  int fields = 0;
  for (const std::string& line : all) {
    if (line.starts_with("class ") || line.starts_with("struct ")) {
      name = line.substr(0, line.find(" {"));
      fields = 0;
    }
    fields += fields_in(line);
    if (fields > fields_max) {
      found.push_back(source.path + ": " + name + " has more than 15 fields: it is two machines");
      fields = -1000;
    }
    if (line.find("std::function") != std::string::npos)
      found.push_back(source.path + ": a call back out of the core; give it, or return, a value");
  }
  return found;
}

}  // namespace elasticrun::house
