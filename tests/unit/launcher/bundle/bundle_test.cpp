// What is copied to hosts that lack the program, with real files and a real program whose library
// is in no system folder.
#include "launcher/bundle/bundle.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/text.hpp"
#include "launcher/bundle/bundle_digest.hpp"
#include "launcher/bundle/libraries.hpp"

namespace elasticrun::launcher::bundle {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

struct Folder {
  Folder() {
    std::string name = fs::temp_directory_path() / "bundle-XXXXXX";
    REQUIRE(::mkdtemp(name.data()));
    path = name;
  }
  ~Folder() { fs::remove_all(path); }
  std::string write(const std::string& name, const std::string& text, int mode = 0755) const {
    fs::create_directories((path / name).parent_path());
    std::ofstream(path / name, std::ios::binary) << text;
    fs::permissions(path / name, static_cast<fs::perms>(mode));
    return path / name;
  }
  // `command`: words with one blank between them.
  std::variant<Bundle, BundleTrouble> gather(const std::string& command,
                                             const Names& env = {}) const {
    const auto split = words(command);
    return gather_bundle(Names(split.begin(), split.end()), env, path);
  }
  Bundle bundle(const std::string& program, const Names& env = {}) const {
    auto gathered = gather(program, env);
    if (const auto* trouble = std::get_if<BundleTrouble>(&gathered)) FAIL(trouble->text);
    return std::move(std::get<Bundle>(gathered));
  }
  std::string trouble(int code, const std::string& program, const Names& env = {}) const {
    const auto gathered = gather(program, env);
    const auto* trouble = std::get_if<BundleTrouble>(&gathered);
    REQUIRE(trouble);
    CHECK(trouble->code == code);
    return trouble->text;
  }
  fs::path path;
};

Names names_of(const Bundle& bundle) {
  Names names;
  for (const BundleFile& file : bundle.files) names.push_back(file.name);
  return names;
}

TEST_CASE("a script is alone in its bundle, and is found as a shell finds it") {
  const Folder folder;
  folder.write("train", "#!/bin/sh\n");
  const Bundle bundle = folder.bundle("./train");
  CHECK(names_of(bundle) == Names{"train"});
  CHECK(bundle.bytes == 10);
  CHECK(bundle.files[0].executable);
  CHECK(is_content_hash(bundle.hash));
  CHECK(folder.bundle((folder.path / "train").string()).hash == bundle.hash);
  CHECK(folder.bundle("train", {"PATH=/nowhere:" + folder.path.string()}).hash == bundle.hash);
  // an empty entry means the current directory
  CHECK(folder.bundle("train", {"PATH=/nowhere:"}).hash == bundle.hash);
}

TEST_CASE("the hash covers the name, the kind and the bytes of each file") {
  const auto hash = [](const std::vector<std::tuple<std::string, bool, std::string>>& files) {
    BundleDigest seen;
    for (const auto& [name, executable, bytes] : files) {
      for (const char byte : bytes) seen.add({&byte, 1});  // in any pieces
      seen.end_file(name, executable);
    }
    return seen.text();
  };
  const std::string one = hash({{"a", true, "xy"}});
  CHECK(hash({{"a", true, "x"}, {"b", false, "y"}}) == hash({{"b", false, "y"}, {"a", true, "x"}}));
  CHECK(hash({{"a", true, "x"}, {"b", false, "y"}}) != hash({{"a", true, "y"}, {"b", false, "x"}}));
  CHECK(one == hash({{"a", true, "xy"}}));
  for (const auto& other :
       {hash({{"b", true, "xy"}}), hash({{"a", false, "xy"}}), hash({{"a", true, "xz"}}),
        hash({{"a", true, "xy"}, {"b", true, ""}}), hash({{"a", true, "x"}, {"", true, "y"}})})
    CHECK(other != one);
}

TEST_CASE("a program that is missing or cannot be run gives a one-line error") {
  const Folder folder;
  folder.write("text", "hello", 0644);
  fs::create_directory(folder.path / "train");
  CHECK(folder.trouble(127, "./none") == "--ship: program './none' not found on this machine");
  CHECK(folder.trouble(127, "none", {"PATH=/nowhere"}) ==
        "--ship: program 'none' not found on this machine");
  CHECK(folder.trouble(127, "train", {"PATH=" + folder.path.string()}).find("not found") !=
        std::string::npos);
  CHECK(folder.trouble(126, "./text") ==
        "--ship: program './text' cannot be run: Permission denied");
  CHECK(folder.trouble(126, "./train") ==
        "--ship: program './train' cannot be run: Is a directory");
}

TEST_CASE("more than 2 GiB are refused before they are read") {
  const Folder folder;
  fs::resize_file(folder.write("large", ""), std::uintmax_t{3} << 30);
  const std::string text = folder.trouble(126, "./large");
  CHECK_MESSAGE(text.find("3072 MiB") != std::string::npos, text);
  CHECK_MESSAGE(text.find("more than --ship copies (2048 MiB") != std::string::npos, text);
}

TEST_CASE("a library outside the system's folders is part of the bundle") {
  const Folder folder;
  const fs::path library = BROUGHT_LIBRARY;
  const std::string found = "LD_LIBRARY_PATH=" + library.parent_path().string();
  const Bundle bundle = folder.bundle(BRINGER, {found});
  CHECK(names_of(bundle) ==
        Names{library.filename().string(), fs::path(BRINGER).filename().string()});
  CHECK_FALSE(bundle.files[0].executable);
  CHECK(bundle.bytes == static_cast<std::int64_t>(fs::file_size(library) + fs::file_size(BRINGER)));
  const std::string missing = folder.trouble(127, BRINGER);
  CHECK_MESSAGE(missing.find(library.filename().string() + ": cannot open") != std::string::npos,
                missing);
}

TEST_CASE("libraries are read from the loader's list") {
  const auto found = brought_along(
      "\tlinux-vdso.so.1 (0x00007fe63281f000)\n"
      "\tlibmine.so.1 => /opt/mine/lib/../lib/libmine.so.1 (0x00007fe63280d000)\n"
      "\tlibblank.so => /home/a b/libblank.so (0x00007fe63280d000)\n"
      "\tlibgone.so => not found\n"
      "\t/opt/fixed/libfixed.so => /opt/fixed/libfixed.so (0x00007fe632821000)\n"
      "\tliblocal.so => /usr/local/lib/liblocal.so (0x00007fe632821000)\n"
      "\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007fe63261c000)\n"
      "\tlibm.so.6 => /usr/lib64/libm.so.6 (0x00007fe63261c000)\n"
      "\t/lib64/ld-linux-x86-64.so.2 (0x00007fe632821000)\n");
  std::string text;
  for (const Library& library : found) text += library.name + "=" + library.path + "\n";
  CHECK(text ==
        "libmine.so.1=/opt/mine/lib/libmine.so.1\n"
        "libblank.so=/home/a b/libblank.so\n"
        "liblocal.so=/usr/local/lib/liblocal.so\n");
}

TEST_CASE("only an ELF program has a loader") {
  const Folder folder;
  const auto loader = [](const std::string& path) {
    const net::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    return loader_of(fd.get());
  };
  CHECK(fs::exists(loader(BRINGER)));
  CHECK(loader(BROUGHT_LIBRARY).empty());
  CHECK(loader(folder.write("script", "#!/bin/sh\n")).empty());
  CHECK(loader(folder.write("empty", "")).empty());
  std::ifstream program(BRINGER, std::ios::binary);
  std::string head(100, '\0');
  program.read(head.data(), 100);
  CHECK(loader(folder.write("cut", head)).empty());
}

TEST_CASE("a program that is replaced after gathering is sent as it was") {
  const Folder folder;
  const std::string path = folder.write("train", "#!/bin/sh\n");
  const Bundle bundle = folder.bundle("./train");
  fs::remove(path);
  folder.write("train", "something else");
  CHECK(read_part(bundle.files[0], 2, 100).value() == "/bin/sh\n");  // the file that was gathered
  CHECK(read_part(bundle.files[0], 10, 100).value().empty());
}

TEST_CASE("a Python script or module brings its files along") {
  const Folder folder;
  for (const char* name : {"jobs/train.py", "jobs/helper.py", "jobs/nets/__init__.py",
                           "jobs/nets/sizes.json", "other.py", "jobs/train.txt/a"})
    folder.write(name, "", 0644);
  const auto names = [&](const std::string& command) {
    Names found = names_of(folder.bundle(command));
    std::ranges::sort(found);
    return fmt::format("{}", fmt::join(found, " "));
  };
  const std::string jobs = "helper.py nets/__init__.py nets/sizes.json train.py";
  CHECK(names("python3 -u jobs/train.py --epochs 3") == jobs);
  CHECK(names(fmt::format("python3 {}/jobs/train.py", folder.path.string())) == jobs);
  CHECK(names("./jobs/train.py") == jobs);
  CHECK(names("python3 -m jobs.train") ==
        "jobs/helper.py jobs/nets/__init__.py jobs/nets/sizes.json jobs/train.py");
  CHECK(names("python3 -m other") ==
        "jobs/helper.py jobs/nets/__init__.py jobs/nets/sizes.json jobs/train.py other.py");
  CHECK(names("python3 jobs/train.txt/a") == "a");
  fs::create_symlink("jobs/train.py", folder.path / "start.py");
  CHECK(names("python3 start.py") ==
        "helper.py nets/__init__.py nets/sizes.json start.py train.py");
  // not found from here: perhaps it is installed
  for (const char* command : {"python3 -m package.train", "python3 -m jobs", "python3 -m ...other"})
    CHECK(folder.bundle(command).hash.empty());
  CHECK(folder.trouble(127, "python3 none.py") ==
        "--ship: script 'none.py' not found on this machine");
  CHECK(folder.trouble(127, "python3 jobs").find("script 'jobs' not found") != std::string::npos);
}

TEST_CASE("only a script that runs itself is executable in its bundle") {
  const Folder folder;
  folder.write("train.py", "#!/usr/bin/env python3\n");
  folder.write("helper.py", "");
  for (const auto& [command, executable] :
       {std::pair("./train.py", true), std::pair("python3 train.py", false)}) {
    const Bundle bundle = folder.bundle(command);
    for (const BundleFile& file : bundle.files)
      CHECK(file.executable == (executable && file.name == "train.py"));
  }
}

TEST_CASE("a script that is edited after gathering is sent as it was") {
  const Folder folder;
  folder.write("train.py", "import helper");
  const std::string before = folder.bundle("python3 train.py").hash;
  const Bundle bundle = folder.bundle("python3 train.py");
  std::ofstream(folder.path / "train.py") << "edited in place";
  CHECK(read_part(bundle.files[0], 0, 6).value() == "import");
  CHECK(read_part(bundle.files[0], 7, 100).value() == "helper");
  CHECK(read_part(bundle.files[0], 13, 100).value().empty());
  CHECK(bundle.hash == before);
  CHECK(folder.bundle("python3 train.py").hash != before);
}

TEST_CASE("too many or too large files of Python are one line") {
  const Folder folder;
  folder.write("train.py", "");
  folder.write("odd.so", "");
  fs::resize_file(folder.path / "odd.so", std::uintmax_t{3} << 30);
  CHECK(folder.trouble(126, "python3 train.py") ==
        "--ship: 'train.py' and the files of Python beside it are 3072 MiB in 2 files, more than "
        "--ship copies (2048 MiB, 1024 files); put them on each host");
  fs::remove(folder.path / "odd.so");
  for (std::size_t i = 0; i < bundle_files_max; ++i) folder.write(fmt::format("n/{}.py", i), "");
  const std::string text = folder.trouble(126, "python3 train.py");
  CHECK_MESSAGE(text.find("0 MiB in 1025 files") != std::string::npos, text);
}

TEST_CASE("names and hashes are checked, so that files stay in their folder") {
  const auto deep = [](std::size_t folders, const std::string& name) {
    std::string path;
    while (folders-- > 0) path += name + "/";
    return path + name;
  };
  for (const std::string& name :
       Names{"a", "libx.so.1", "...", "a b", "\xff", "-rf", "a/b.py", "a/.../b",
             std::string(255, 'a'), deep(15, "a"), deep(3, std::string(255, 'a'))})
    CHECK_MESSAGE(is_bundle_file(name), name);
  for (const std::string& name :
       Names{"", ".", "..", "/", "/a", "a/", "a//b", "./a", "../a", "a/./b", "a/../b", "a/..",
             std::string("a\0b", 3), std::string("a/\0", 3), std::string(256, 'a'), deep(16, "a"),
             deep(4, std::string(255, 'a'))})
    CHECK_FALSE_MESSAGE(is_bundle_file(name), name);
  CHECK(is_content_hash("00112233445566778899aabbccddeeff"));
  for (const char* text :
       {"", "../../../../../../../../../etc/a", "00112233445566778899AABBCCDDEEFF"})
    CHECK(!is_content_hash(text));
  CHECK(bundle_file_of("/a/b/train") == "train");
  CHECK(bundle_file_of("train") == "train");
}

}  // namespace
}  // namespace elasticrun::launcher::bundle
