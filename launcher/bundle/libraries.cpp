// See libraries.hpp.
#include "launcher/bundle/libraries.hpp"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/time.hpp"
#include "net/sockets.hpp"

namespace elasticrun::launcher::bundle {
namespace {

constexpr Duration listing_time = std::chrono::seconds(30);
constexpr std::size_t list_bytes_max = 4u << 20;
constexpr std::size_t loader_bytes_max = 4096;

template <class T>
std::optional<T> read_at(int fd, std::uint64_t offset) {
  T value;
  if (::pread(fd, &value, sizeof value, static_cast<off_t>(offset)) !=
      static_cast<ssize_t>(sizeof value))
    return std::nullopt;
  return value;
}

template <class Header, class Segment>
std::string loader_in(int fd) {
  const auto header = read_at<Header>(fd, 0);
  if (!header) return {};
  for (unsigned i = 0; i < header->e_phnum; ++i) {
    const auto segment = read_at<Segment>(fd, header->e_phoff + std::uint64_t{i} * sizeof(Segment));
    if (!segment || segment->p_type != PT_INTERP) continue;
    if (segment->p_filesz == 0 || segment->p_filesz > loader_bytes_max) return {};
    std::string path(segment->p_filesz, '\0');
    if (::pread(fd, path.data(), path.size(), static_cast<off_t>(segment->p_offset)) !=
        static_cast<ssize_t>(path.size()))
      return {};
    return path.c_str();  // without the terminating zero
  }
  return {};
}

bool is_of_the_system(std::string_view path) {
  if (path.starts_with("/usr/")) path.remove_prefix(4);
  for (const std::string_view folder : {"/lib/", "/lib32/", "/lib64/", "/libx32/"})
    if (path.starts_with(folder)) return true;
  return false;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  return text;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

// Starts argv[0] with its output and errors going to `out`. Returns 0 or an error number.
int spawn(pid_t& child, const std::vector<std::string>& argv, const std::vector<std::string>& env,
          const std::string& cwd, int out) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, out, STDERR_FILENO);
  ::posix_spawn_file_actions_addchdir_np(&actions, cwd.c_str());
  const int error = ::posix_spawn(&child, argv[0].c_str(), &actions, nullptr, pointers(argv).data(),
                                  pointers(env).data());
  ::posix_spawn_file_actions_destroy(&actions);
  return error;
}

// Reads until the end of the stream. False: it did not end in time, was too long or failed.
bool read_all(int fd, std::string& text) {
  const Time until = std::chrono::steady_clock::now() + listing_time;
  std::array<char, 4096> buffer;
  for (;;) {
    const auto left = milliseconds(until - std::chrono::steady_clock::now());
    pollfd waiting{fd, POLLIN, 0};
    const int ready = left > 0 ? ::poll(&waiting, 1, static_cast<int>(left) + 1) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n <= 0) return n == 0;
    text.append(buffer.data(), static_cast<std::size_t>(n));
    if (text.size() > list_bytes_max) return false;
  }
}

// The cause in a message of the loader, such as "./train: error while loading shared libraries:
// libx.so: cannot open ...": the part after "shared libraries: ".
std::string complaint(const std::string& text) {
  std::string_view line(text);
  line = line.substr(0, line.find('\n'));
  constexpr std::string_view begin = "shared libraries: ";
  if (const auto at = line.find(begin); at != line.npos) line.remove_prefix(at + begin.size());
  return std::string(line);
}

}  // namespace

std::string loader_of(int fd) {
  const auto ident = read_at<std::array<unsigned char, EI_NIDENT>>(fd, 0);
  if (!ident || std::memcmp(ident->data(), ELFMAG, SELFMAG) != 0) return {};
  if ((*ident)[EI_CLASS] == ELFCLASS32) return loader_in<Elf32_Ehdr, Elf32_Phdr>(fd);
  return loader_in<Elf64_Ehdr, Elf64_Phdr>(fd);
}

std::vector<Library> brought_along(std::string_view list) {
  constexpr std::string_view arrow = " => ";
  std::vector<Library> found;
  while (!list.empty()) {
    const std::size_t end = list.find('\n');
    std::string_view line = trimmed(list.substr(0, end));
    list.remove_prefix(end == list.npos ? list.size() : end + 1);
    const std::size_t at = line.find(arrow);
    if (at == line.npos) continue;
    const std::string_view name = line.substr(0, at);
    line.remove_prefix(at + arrow.size());
    const std::size_t address = line.rfind(" (0x");
    if (address == line.npos) continue;  // "not found"
    const std::filesystem::path path(line.substr(0, address));
    const std::string normal = path.lexically_normal().string();
    if (name.find('/') != name.npos || !path.has_filename() || is_of_the_system(normal)) continue;
    found.push_back({std::string(name), normal});
  }
  return found;
}

Result<std::vector<Library>> libraries_of(const std::string& loader, const std::string& program,
                                          const std::vector<std::string>& env,
                                          const std::string& cwd) {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0)
    return Error{fmt::format("cannot make a pipe: {}", std::strerror(errno))};
  const net::Fd read_end(pipe[0]);
  net::Fd write_end(pipe[1]);
  pid_t child = -1;
  if (const int error = spawn(child, {loader, "--list", program}, env, cwd, write_end.get()))
    return Error{fmt::format("its loader {}: {}", loader, std::strerror(error))};
  write_end = net::Fd();
  std::string list;
  const bool whole = read_all(read_end.get(), list);
  if (!whole) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!whole)
    return Error{fmt::format("its loader {} did not list its libraries within {}", loader,
                             to_text(listing_time))};
  if (status != 0) return Error{complaint(list)};
  return brought_along(list);
}

}  // namespace elasticrun::launcher::bundle
