// Which files beside a script, or in a package, are copied with it: real folders.
#include "launcher/bundle/python_files.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace elasticrun::launcher::bundle {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

struct Tree {
  Tree() {
    std::string name = fs::temp_directory_path() / "tree-XXXXXX";
    REQUIRE(::mkdtemp(name.data()));
    path = name;
    root = path / "root";
    fs::create_directory(root);
  }
  ~Tree() { fs::remove_all(path); }
  // A file of that size; with " -> target" at its end, a link.
  void make(const std::string& file, std::uintmax_t bytes = 1) const {
    const auto arrow = file.find(" -> ");
    const fs::path there = root / file.substr(0, arrow);
    fs::create_directories(there.parent_path());
    if (arrow != file.npos) return fs::create_symlink(file.substr(arrow + 4), there);
    std::ofstream(there) << "x";
    fs::resize_file(there, bytes);
  }
  Names found(const std::string& package = "") const {
    const auto files = python_files(root, package);
    REQUIRE_MESSAGE(files.has_value(), files.error().text);
    Names names;
    for (const PythonFile& file : *files) {
      names.push_back(file.name);
      CHECK(file.path == (root / file.name).string());
      CHECK(file.bytes == static_cast<std::int64_t>(fs::file_size(file.path)));
    }
    std::ranges::sort(names);
    return names;
  }
  fs::path path, root;
};

TEST_CASE("a script brings the modules beside it and the text files among them") {
  struct Case {
    const char* file;
    bool taken;
  };
  const Case cases[] = {
      {"train.py", true},
      {"helper.py", true},
      {"fast.cpython-311-x86_64-linux-gnu.so", true},
      {"config.json", true},
      {"model.yaml", true},
      {"notes.md", false},
      {"weights.pt", false},
      {"train.pyc", false},
      {".env.json", false},
      {"__pycache__/helper.cpython-311.pyc", false},
      {"__pycache__/odd.py", false},
      {".git/hooks/odd.py", false},
      // packages, with or without __init__.py
      {"nets/__init__.py", true},
      {"nets/small.py", true},
      {"nets/data/vocabulary.txt", true},
      {"nets/data/deep/kernels.so", true},
      {"plain/sub/module.py", true},
      {"plain/sub/settings.toml", true},
      {"plain/sub/labels/1.txt", false},
      // data, and what other tools have built
      {"data/labels/1.txt", false},
      {"build/libodd.so", false},
      {"venv/pyvenv.cfg", false},
      {"venv/lib/python3.11/site-packages/odd.py", false},
      {"conda/conda-meta/history", false},
      {"conda/odd.py", false},
      // links
      {"same.py -> helper.py", true},
      {"nets/above.py -> ../helper.py", true},
      {"out.py -> ../outside.py", false},
      {"gone.py -> none.py", false},
      {"round -> .", false},
      {"linked -> nets", false},
  };
  const Tree tree;
  std::ofstream(tree.path / "outside.py") << "x";
  Names expected;
  for (const Case& c : cases) {
    tree.make(c.file);
    const std::string name = c.file;
    if (c.taken) expected.push_back(name.substr(0, name.find(" -> ")));
  }
  tree.make("full.txt", text_bytes_max);
  tree.make("large.txt", text_bytes_max + 1);
  tree.make("large.py", text_bytes_max + 1);
  for (const char* name : {"full.txt", "large.py"}) expected.emplace_back(name);
  std::ranges::sort(expected);
  CHECK(tree.found() == expected);
  // of this package a link to helper.py leads out
  CHECK(tree.found("nets") == Names{"nets/__init__.py", "nets/data/deep/kernels.so",
                                    "nets/data/vocabulary.txt", "nets/small.py"});
  CHECK(tree.found("none").empty());
}

TEST_CASE("what is too deep for a bundle is left out") {
  const Tree tree;
  std::string folder;
  for (int depth = 0; depth < 20; ++depth) tree.make((folder += "a/") + "b.py");
  CHECK(tree.found().size() == 15);
}

TEST_CASE("a folder with too many files is not looked through") {
  const Tree tree;
  for (const char* name : {"train.py", "data/1", "data/2", "data/more/3"}) tree.make(name);
  CHECK(python_files(tree.root, "", 6).has_value());
  const auto files = python_files(tree.root, "", 5);
  REQUIRE_FALSE(files.has_value());
  CHECK(files.error().text ==
        fmt::format("'{}' has more than 5 files below it; move the script and its modules to a "
                    "folder of their own",
                    tree.root.string()));
}

}  // namespace
}  // namespace elasticrun::launcher::bundle
