// See error_file.hpp.
#include "launcher/agent/workers/error_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cerrno>
#include <string_view>

#include "base/line.hpp"
#include "net/sockets.hpp"

namespace elasticrun::launcher::agent::workers {
namespace {

namespace json = boost::json;

constexpr std::size_t file_max = 1u << 20;
constexpr std::size_t message_max = 300;

// The file's text, and when it was last written.
WrittenError read_small_file(const std::string& path) {
  const net::Fd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat facts {};
  if (file.get() < 0 || ::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return {};
  std::string text(std::min<std::size_t>(facts.st_size, file_max) + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t n = ::read(file.get(), text.data() + size, text.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    size += static_cast<std::size_t>(n);
  }
  text.resize(size > file_max ? 0 : size);
  return {std::move(text), facts.st_mtim.tv_sec * 1'000'000'000 + facts.st_mtim.tv_nsec};
}

// The text of the innermost "message"; what is no JSON is the message itself.
std::string message_in(const std::string& text) {
  json::error_code error;
  const json::value parsed = json::parse(text, error);
  const json::value* inner = &parsed;
  while (!error && inner->is_object()) {
    const json::value* next = inner->get_object().if_contains("message");
    if (!next) return {};
    inner = next;
  }
  return !error && inner->is_string() ? std::string(inner->get_string()) : text;
}

// Its first line that is not empty, fit for a message.
std::string first_line(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of("\r\n \t"), text.size()));
  text = beginning(text.substr(0, text.find_first_of("\r\n")), message_max);
  return as_line(text.substr(0, text.find_last_not_of(' ') + 1));
}

}  // namespace

std::string error_file(const std::string& directory, WorkerId worker) {
  return fmt::format("{}/error-{}.json", directory, worker.value);
}

std::string error_in(const std::string& file) {
  return first_line(message_in(read_small_file(file).text));
}

WrittenError take_error(const std::string& file) {
  WrittenError error = read_small_file(file);
  (void)!::unlink(file.c_str());
  error.text = first_line(message_in(error.text));
  if (error.text.empty()) return {};
  return error;
}

}  // namespace elasticrun::launcher::agent::workers
