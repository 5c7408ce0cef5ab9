// Tries the rules for where files lie on bad examples, then on the tree.
#include "tests/house/layout.hpp"

#include <doctest/doctest.h>

#include <filesystem>

using namespace elasticrun::house;

TEST_CASE("the layout rules on examples") {
  CHECK(top_level_violations({".git", ".ci", "build", "build-x", "src", "README.md"}).empty());
  CHECK(top_level_violations({"docs", "src"}).size() == 1);

  CHECK(folder_violations({{"src/main.cpp", ""}, {"src/net/a.cpp", ""}, {"docs/a", ""}}).empty());
  CHECK(folder_violations({{"src/util/a.cpp", ""}}).size() == 1);
  CHECK(folder_violations({{"src/helper.cpp", ""}}).size() == 1);

  const Source lines{"launcher/line_splitter.cpp", ""};
  CHECK(unbuilt_sources({lines}).size() == 1);
  CHECK(unbuilt_sources({lines, {"launcher/CMakeLists.txt", "add_library(x line_splitter.cpp)"}})
            .empty());
  CHECK(unbuilt_sources({lines, {"launcher/parts.cmake", "add_library(x line_splitter.cpp)"}})
            .empty());
  CHECK(
      unbuilt_sources({lines, {"launcher/CMakeLists.txt", "add_library(x my_lines.cpp)"}}).size() ==
      1);
  CHECK(unbuilt_sources({lines, {"worker/CMakeLists.txt", "add_library(x line_splitter.cpp)"}})
            .size() == 1);
  CHECK(unbuilt_sources({{"launcher/agent/main.cpp", ""},
                         {"launcher/CMakeLists.txt", "add_executable(x agent/main.cpp)"}})
            .empty());

  CHECK(
      script_violations({"scripts/a", "#!/bin/sh\n# What: a\n# When: b\n# Example: c\n"}).empty());
  CHECK(script_violations({"scripts/a", "#!/bin/sh\n# What: a\n# Example: c\nx\n"}).size() == 1);
  CHECK(script_violations({"scripts/cmake/a.cmake", "x\n"}).empty());
}

TEST_CASE("the paths that a page names exist") {
  const std::vector<Source> tree = {{"src/job/core/job.hpp", ""}, {"scripts/test", ""}};
  const auto missing = [&](const char* text) {
    return missing_from_page({"src/README.md", text}, tree).size();
  };
  CHECK(missing("`src/job/core/job.hpp`, `core/job`, `job/core`, `scripts/test`, `job`") == 0);
  CHECK(missing("`core/jobs`") == 1);
  CHECK(missing("`ob/core`") == 1);
}

TEST_CASE("crowded rooms and wrong namespaces are found") {
  std::vector<Source> tree;
  for (char name = 'a'; name <= 't'; ++name) {
    tree.push_back({std::string("launcher/hosts/") + name + ".hpp", ""});
    tree.push_back({std::string("launcher/hosts/") + name + ".cpp", ""});
  }
  CHECK(crowded_rooms(tree).empty());
  tree.push_back({"launcher/hosts/u.hpp", ""});
  CHECK(crowded_rooms(tree).size() == 1);

  std::string header = "namespace elasticrun::launcher {\n";
  for (int i = 0; i < 40; ++i)
    header += "struct S" + std::to_string(i) + " {};\n  struct Nested {\n";
  CHECK(crowded_namespaces({{"launcher/a.hpp", header}}).empty());
  CHECK(crowded_namespaces({{"launcher/a.hpp", header + "enum class E : int { a };\n"}}).size() ==
        1);

  const auto wrong = [](const char* path, const std::string& space) {
    return !namespace_violations({path, "namespace elasticrun" + space + " {\n"}).empty();
  };
  CHECK_FALSE(wrong("src/base/ids.hpp", ""));
  CHECK_FALSE(wrong("launcher/hosts/plan.hpp", "::launcher::hosts"));
  CHECK_FALSE(wrong("src/job/core/hosts/roster.hpp", "::job::hosts"));
  CHECK_FALSE(wrong("src/job/core/job.hpp", "::job"));
  CHECK(wrong("launcher/hosts/plan.hpp", "::launcher::machine"));
  CHECK(wrong("launcher/hosts/plan.hpp", "::hosts::launcher"));
}

TEST_CASE("the tree keeps the layout") {
  std::vector<std::string> entries;
  for (const auto& entry : std::filesystem::directory_iterator(ELASTICRUN_ROOT))
    entries.push_back(entry.path().filename().string());
  const std::vector<Source> tree = read_tree(ELASTICRUN_ROOT);
  for (const std::string& violation : top_level_violations(entries)) FAIL_CHECK(violation);
  for (const std::string& violation : folder_violations(tree)) FAIL_CHECK(violation);
  for (const std::string& violation : unbuilt_sources(tree)) FAIL_CHECK(violation);
  for (const std::string& violation : crowded_rooms(tree)) FAIL_CHECK(violation);
  for (const std::string& violation : crowded_namespaces(tree)) FAIL_CHECK(violation);
  for (const Source& source : tree) {
    if (source.path.ends_with(".md"))
      for (const std::string& violation : missing_from_page(source, tree)) FAIL_CHECK(violation);
    for (const std::string& violation : script_violations(source)) FAIL_CHECK(violation);
    for (const std::string& violation : namespace_violations(source)) FAIL_CHECK(violation);
  }
}
