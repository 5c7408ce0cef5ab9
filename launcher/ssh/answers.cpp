// See answers.hpp.
#include "launcher/ssh/answers.hpp"

#include <fmt/format.h>
#include <glob.h>
#include <pwd.h>
#include <unistd.h>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "launcher/ssh/await_files.hpp"
#include "launcher/ssh/child_process.hpp"

namespace elasticrun::launcher::ssh {
namespace {

namespace asio = boost::asio;

// How long the files that were read are believed. The start of many hosts takes less; a file edited
// since then must count for a host that is added later.
constexpr Duration believed_for = std::chrono::seconds(5);

std::optional<ConfigFile> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return ConfigFile{path, std::move(text).str()};
}

// Finds the files of an Include as OpenSSH does: relative paths are below `folder`.
HostBlocks::Open opener(const std::string& folder) {
  return [folder](const std::string& path) {
    const bool whole = path.starts_with('/') || path.starts_with('~');
    std::vector<ConfigFile> files;
    glob_t found{};
    const std::string pattern = whole ? path : folder + "/" + path;
    if (::glob(pattern.c_str(), GLOB_TILDE, nullptr, &found) == 0)
      for (std::size_t i = 0; i < found.gl_pathc; ++i)
        if (auto file = read_file(found.gl_pathv[i])) files.push_back(std::move(*file));
    ::globfree(&found);
    return files;
  };
}

std::string own_folder() {
  const passwd* user = ::getpwuid(::getuid());  // not HOME, which ssh does not use either
  return (user ? std::string(user->pw_dir) : "") + "/.ssh";
}

HostBlocks read_blocks(const std::string& config_file, const std::string& folder) {
  HostBlocks blocks;
  const auto read = [&](const std::string& path, const std::string& below) {
    if (const auto file = read_file(path)) blocks.read(*file, opener(below));
  };
  if (config_file.empty()) {
    read(folder + "/config", folder);
    read("/etc/ssh/ssh_config", "/etc/ssh");
  } else if (config_file != "none") {
    read(config_file, folder);
  }
  return blocks;
}

// What `ssh -v` has written to standard error: the files that it has read, and its last line that
// is not debug output.
struct Words {
  std::vector<std::string> paths;
  std::string last;
};
Words words_in(const std::string& text) {
  constexpr std::string_view reading = "debug1: Reading configuration data ";
  Words words;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    while (line.ends_with('\r')) line.pop_back();
    if (line.starts_with(reading))
      words.paths.push_back(line.substr(reading.size()));
    else if (!line.empty() && !line.starts_with("debug"))
      words.last = line;
  }
  return words;
}

}  // namespace

struct SshAnswers::Group {
  explicit Group(asio::io_context& io) : decided(io, asio::steady_timer::time_point::max()) {}

  enum class State { open, alike, each_its_own } state = State::open;
  int asked = 0;
  std::string answer;  // to the first of the two questions
  asio::steady_timer decided;

  void decide(State found) {
    if (state == State::open) state = found;
    decided.cancel();
  }
};

struct SshAnswers::Question {
  std::string host;
  SshOverrides overrides;
  HostBlocks::Standing standing;
};

// One of the two questions of a group. If it ends without an answer, the group is decided at once,
// so that no other host waits for it: ssh is then asked about each host.
class SshAnswers::Asking {
 public:
  explicit Asking(std::shared_ptr<Group> group) : group_(std::move(group)) { ++group_->asked; }
  ~Asking() {
    if (!answered_) group_->decide(Group::State::each_its_own);
  }
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;
  void answered() { answered_ = true; }

 private:
  const std::shared_ptr<Group> group_;
  bool answered_ = false;
};

// Marks the ask() that reads the files for all. If it ends without having read them, another one
// does.
class SshAnswers::Reading {
 public:
  Reading(SshAnswers& answers, asio::io_context& io) : answers_(answers) {
    answers_.reading_ =
        std::make_shared<asio::steady_timer>(io, asio::steady_timer::time_point::max());
  }
  ~Reading() { std::exchange(answers_.reading_, nullptr)->cancel(); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  SshAnswers& answers_;
};

SshAnswers::SshAnswers(std::string config_file, Caller caller, executors::FileThread& files)
    : config_file_(std::move(config_file)),
      caller_(std::move(caller)),
      files_(files),
      folder_(own_folder()) {}
SshAnswers::~SshAnswers() = default;

asio::awaitable<void> SshAnswers::refresh(asio::io_context& io) {
  boost::system::error_code ignored;
  while (const auto reading = reading_)
    co_await reading->async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  const Time now = std::chrono::steady_clock::now();
  if (read_at_ != Time{} && now < read_at_ + believed_for) co_return;
  const Reading reading(*this, io);
  auto read = [file = config_file_, folder = folder_] { return read_blocks(file, folder); };
  blocks_ = co_await await_files(io, files_, read);
  read_at_ = now;
  groups_.clear();
}

asio::awaitable<Result<SshConfig>> SshAnswers::ask(asio::io_context& io, std::string host,
                                                   SshOverrides overrides) {
  co_await refresh(io);
  Question question{std::move(host), std::move(overrides), {}};
  const auto standing = blocks_.of(question.host);
  if (!standing) co_return co_await ask_ssh(io, question, nullptr);
  question.standing = *standing;
  std::string name = standing->blocks;
  for (const std::string& word : ssh_question({}, question.overrides)) name += '\n' + word;
  std::shared_ptr<Group>& entry = groups_[name];
  if (!entry) entry = std::make_shared<Group>(io);
  const std::shared_ptr<Group> group = entry;
  boost::system::error_code ignored;
  if (group->state == Group::State::open && group->asked >= 2)
    co_await group->decided.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  if (group->state == Group::State::alike)
    co_return parse_ssh_answer(with_hostname(group->answer, question.standing.hostname),
                               question.host, question.overrides, caller_);
  if (group->state == Group::State::each_its_own) co_return co_await ask_ssh(io, question, nullptr);
  Asking asking(group);
  Result<SshConfig> config = co_await ask_ssh(io, question, group.get());
  if (config) asking.answered();
  co_return config;
}

asio::awaitable<Result<SshConfig>> SshAnswers::ask_ssh(asio::io_context& io,
                                                       const Question& question, Group* group) {
  std::vector<std::string> arguments = ssh_question(question.host, question.overrides);
  arguments.insert(arguments.begin(), "-v");  // makes ssh report the files it reads
  auto find = [] { return find_program("ssh"); };
  const auto ssh = co_await await_files(io, files_, find);
  if (!ssh) co_return ssh.error();
  const auto answer = co_await run_command(io, *ssh, arguments);
  if (!answer) co_return answer.error();
  const Words words = words_in(answer->err);
  if (answer->exit_code != 0) co_return Error{words.last};
  const auto parse = [&](const std::string& text) {
    return parse_ssh_answer(text, question.host, question.overrides, caller_);
  };
  Result<SshConfig> config = parse(answer->out);
  if (!group || !config) co_return config;
  const std::string& hostname = question.standing.hostname;
  if (config->hostname != hostname || words.paths != blocks_.paths()) {
    group->decide(Group::State::each_its_own);
  } else if (group->answer.empty()) {
    group->answer = answer->out;
  } else {
    const Result<SshConfig> made = parse(with_hostname(group->answer, hostname));
    const bool same = made && *made == *config;
    group->decide(same ? Group::State::alike : Group::State::each_its_own);
  }
  co_return config;
}

}  // namespace elasticrun::launcher::ssh
