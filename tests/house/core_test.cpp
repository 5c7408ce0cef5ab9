// Tries the rules of the core on bad examples, then on the tree.
#include "tests/house/core.hpp"

#include <doctest/doctest.h>

using namespace elasticrun::house;

namespace {

Source with(const std::string& text) { return {"src/job/core/a.hpp", text}; }

std::string fields(int count) {
  std::string text = "class A {\n  int f() const { return a0_; }\n";
  for (int i = 0; i < count; ++i) text += "  std::map<int, int> a" + std::to_string(i) + "_;\n";
  return text + "};\n";
}

}  // namespace

TEST_CASE("the rules of the core on examples") {
  CHECK(core_violations(with(fields(15))).empty());
  CHECK(core_violations(with(fields(16))).size() == 1);
  CHECK(core_violations(with(fields(10) + fields(10))).empty());
  CHECK(core_violations(with(fields(13) + "class B {\n")).empty());
  std::string pairs = fields(14);
  pairs.insert(pairs.find("};"), "  int more_ = 0, most_ = 0;  // of them, and so on_\n");
  CHECK(core_violations(with(pairs)).size() == 1);
  CHECK(core_violations(with("std::function<void()> f;\n")).size() == 1);
  CHECK(core_violations({"src/job/driver/a.hpp", "std::function<void()> f;\n"}).empty());
  std::string text;
  for (int i = 0; i < 301; ++i) text += "x\n";
  CHECK(core_violations(with(text)).size() == 1);
}

TEST_CASE("the tree keeps the rules of the core") {
  for (const Source& source : read_tree(ELASTICRUN_ROOT))
    for (const std::string& violation : core_violations(source)) FAIL_CHECK(violation);
}
