// What is read from the file in which a worker says why it failed.
#include "launcher/agent/workers/error_file.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace elasticrun::launcher::agent::workers {
namespace {

class Folder {
 public:
  Folder() { REQUIRE(::mkdtemp(path_.data())); }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  std::string file() const { return error_file(path_, WorkerId(7)); }
  std::string take(const std::string& text) const {
    std::ofstream(file(), std::ios::binary) << text;
    const WrittenError error = take_error(file());
    CHECK((error.at_ns > 0) == !error.text.empty());
    return error.text;
  }

 private:
  std::string path_ = (std::filesystem::temp_directory_path() / "error-XXXXXX").string();
};

TEST_CASE("the message of torch's @record, of other JSON, and of plain text") {
  const Folder folder;
  const std::string long_text(400, 'x');
  struct Case {
    std::string text, message;
  };
  const Case cases[] = {
      {R"({"message": {"message": "RuntimeError: boom", "extraInfo": {"timestamp": "1"}}})",
       "RuntimeError: boom"},
      {R"({"message": "boom"})", "boom"},
      {R"({"message": {"message": "two\nlines"}})", "two"},
      {R"({"other": 1})", ""},
      {"{}", ""},
      {"", ""},
      {"\n  boom\r\nmore", "boom"},
      {"{\"message\": ", "{\"message\":"},
      {"bell \a and \x1b[31m red", "bell ? and ?[31m red"},
      {"caf\xc3\xa9", "caf\xc3\xa9"},
      {"no text \xff\xfe", "no text ??"},
      {long_text, long_text.substr(0, 300)},
      {long_text.substr(0, 299) + "\xc3\xa9", long_text.substr(0, 299)},
      {std::string(70'000, 'x'), long_text.substr(0, 300)},
      {std::string(1'100'000, 'x'), ""},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text.substr(0, 80));
    CHECK(folder.take(c.text) == c.message);
    CHECK_FALSE(std::filesystem::exists(folder.file()));
  }
}

TEST_CASE("no file, a link, a pipe and a folder say nothing, and nothing waits for them") {
  const Folder folder;
  CHECK(take_error(folder.file()).text == "");
  std::filesystem::create_symlink("/etc/passwd", folder.file());
  CHECK(take_error(folder.file()).text == "");
  CHECK_FALSE(std::filesystem::is_symlink(folder.file()));
  REQUIRE(::mkfifo(folder.file().c_str(), 0600) == 0);
  CHECK(take_error(folder.file()).text == "");
  std::filesystem::create_directory(folder.file());
  CHECK(take_error(folder.file()).text == "");
}

}  // namespace
}  // namespace elasticrun::launcher::agent::workers
