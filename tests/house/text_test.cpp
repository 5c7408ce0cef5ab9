// Tries the rules for a file's text on bad examples, then on the tree.
#include "tests/house/text.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace elasticrun::house;

namespace {

std::string repeat(std::string_view text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

std::size_t text_count(const std::string& path, const std::string& text) {
  return text_violations({path, text}, {{"src/base/pair.hpp", ""}}).size();
}

}  // namespace

TEST_CASE("the text rules on examples") {
  CHECK(text_count("src/base/a.hpp", "// What.\n#pragma once\n") == 0);
  CHECK(text_count("src/base/a.hpp", "// What.\n") == 1);
  CHECK(text_count("worker/include/elasticrun/a.h", "/* What. */\n#ifndef ELASTICRUN_A_H\n") == 0);
  CHECK(text_count("src/base/a.cpp", "#include <vector>\n") == 1);
  CHECK(text_count("src/base/pair.cpp", "#include \"base/pair.hpp\"\n") == 0);
  CHECK(text_count("src/base/alone.cpp", "#include \"base/alone.hpp\"\n") == 1);
  CHECK(text_count("src/base/a.cpp", "// What.\n" + repeat("x", 100) + "\n") == 0);
  CHECK(text_count("src/base/a.cpp", "// What.\n" + repeat("x", 101) + "\n") == 1);
  CHECK(text_count("tests/unit/a.cpp", "// What.\nR\"(" + repeat("x", 101) + ")\"\n") == 0);
  CHECK(text_count("src/base/a.cpp", "// What.\nR\"(" + repeat("x", 101) + ")\"\n") == 1);
  CHECK(text_count("src/base/a.cpp", "// What.\n" + repeat("é", 100) + "\n") == 0);
  CHECK(text_count("src/base/a.cpp", "// What.\n" + repeat("x\n", 399)) == 0);
  CHECK(text_count("src/base/a.cpp", "// What.\n" + repeat("x\n", 400)) == 1);
  CHECK(text_count("src/base/a.cpp", "// What.\n\tx;\n") == 1);
  CHECK(text_count("src/base/a.cpp", "// What.\nx; \n") == 1);
  CHECK(text_count("src/base/a.cpp", "// What.\nx;") == 1);
  CHECK(text_count("src/base/a.cpp", "") == 1);
  CHECK(text_count("src/base/a.cpp",
                   "// What. TO"
                   "DO\n") == 1);
  CHECK(text_count("src/base/a.cpp", "// mkdtemp(\"er-XXXXXX\")\n") == 0);
  CHECK(text_count("README.md", "\tx") == 0);
}

TEST_CASE("the call rules on examples") {
  const struct {
    std::string path, code;
    std::size_t violations;
  } rows[] = {
      {"launcher/hosts/plan.cpp", "x = rand();", 1},
      {"launcher/hosts/plan.cpp", "x = std::rand();", 1},
      {"launcher/hosts/plan.cpp", "x = my_rand();", 0},
      {"launcher/hosts/plan.cpp", "srand(1);", 1},
      {"launcher/hosts/plan.cpp", "::usleep(1);", 1},
      {"launcher/hosts/plan.cpp", "std::this_thread::sleep_for(1s);", 1},
      {"launcher/hosts/plan.cpp", "// sleep(1);", 0},
      {"worker/examples/a/main.cpp", "std::this_thread::sleep_for(1s);", 0},
      {"worker/examples/a/main.cpp", "std::system(\"ls\");", 1},
      {"launcher/hosts/plan.cpp", "boost::system::error_code e;", 0},
      {"launcher/hosts/plan.cpp", "strcpy(a, b);", 1},
      {"launcher/hosts/plan.cpp", "snprintf(a, 1, b);", 0},
      {"launcher/agent/main.cpp", "thread.detach();", 1},
      {"launcher/agent/main.cpp", "std::thread(f).detach();", 1},
      {"launcher/executors/local_executor.cpp", "child->process.detach();", 0},
      {"launcher/executors/file_thread.cpp", "file_thread.detach();", 0},
      {"launcher/hosts/plan.cpp", "now = std::chrono::steady_clock::now();", 1},
      {"launcher/hosts/plan.cpp", "now = Clock::now(); t = time(nullptr);", 1},
      {"src/net/session.cpp", "now = std::chrono::steady_clock::now();", 0},
      {"tests/unit/a_test.cpp", "x = rand();", 0},
  };
  for (const auto& row : rows) {
    CAPTURE(row.code);
    CHECK(call_violations({row.path, row.code + "\n"}).size() == row.violations);
  }
}

TEST_CASE("long functions are found, long tables and classes are not") {
  const auto count = [](const std::string& text) {
    return function_violations({"src/base/a.cpp", text}).size();
  };
  const std::string body = repeat("  x;\n", 60);
  CHECK(count("namespace a {\nvoid f(int a = 1) {\n" + body + "}\n}\n") == 0);
  CHECK(count("namespace a {\nvoid f(int a = 1) {\n" + body + "  x;\n}\n}\n") == 1);
  CHECK(count("class A : public B {\n" + body + body + "  void f() { x; }\n};\n") == 0);
  CHECK(count("class A {\n  A() : a_{1} {\n" + body + body + "}\n};\n") == 1);
  CHECK(count("const int table[] = {\n" + body + body + "};\n") == 0);
  CHECK(count("void f() {\n  if (x) {\n" + body + "  }\n}\n") == 1);
  CHECK(count("template <class T>\nvoid f() {\n" + body + body + "}\n") == 1);
}

TEST_CASE("the tree keeps the text rules") {
  const std::vector<Source> tree = read_tree(ELASTICRUN_ROOT);
  for (const Source& source : tree) {
    for (const std::string& violation : text_violations(source, tree)) FAIL_CHECK(violation);
    for (const std::string& violation : call_violations(source)) FAIL_CHECK(violation);
    for (const std::string& violation : function_violations(source)) FAIL_CHECK(violation);
  }
}
