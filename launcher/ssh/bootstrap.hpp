// How a host that has sshd but nothing of ours gets an agent: the shell lines that are run there,
// and the answers they print. Pure text.
//
// The first line becomes the agent (by exec) from its usual place without starting any other
// process, so a second run costs next to nothing. If the agent is not there, a second line looks
// for it in all caches of the user and reports what is missing. A third line takes the file from
// its standard input, under a temporary name of its own, and renames it when it is complete. So any
// number of jobs can do this at once on one host, or on one home directory that many hosts share.
// Not SFTP: it needs a shell as well, some sites switch it off, and libssh's SFTP waits inside its
// calls, which would hold up all hosts.
//
// The user's login shell runs the line, whichever shell that is. The line only starts `sh`, and the
// script is one word in single quotes without quotes, backslashes or exclamation marks, which sh,
// csh and fish read alike. A login shell may print what it likes: lines for us begin with a random
// mark that no other program can know.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "launcher/ssh/agent_image.hpp"

namespace elasticrun::launcher::ssh {

// Number of the last place where the agent may be kept. They are tried in this order: 1 the user's
// cache, 2 XDG_RUNTIME_DIR, 3 TMPDIR, 4 /tmp. In 3 and 4 only a directory that belongs to the user
// is trusted.
inline constexpr int last_place = 4;

struct Bootstrap {
  std::string mark;  // random word: begins our lines, names unfinished copies
  std::string hash;  // content hash of the agent
  std::string system;
  std::size_t size = 0;  // size of the agent in bytes
  std::string wrap;      // command that the agent is started inside of; see wrap.hpp
};

// The command that becomes the agent in the user's home, which then answers `ready`. All shells
// understand it alike, and print an error of their own when the agent is not there.
std::string start_agent_command(const Bootstrap& bootstrap);
// The command that looks for the agent in the places from `first` on. It answers `found` (and
// becomes the agent, which answers `ready`), `copy`, `foreign` or `nowhere`.
std::string find_agent_command(const Bootstrap& bootstrap, int first);
// The command that stores the agent from its standard input, read to the end; it answers `copied`
// or `failed`.
std::string copy_agent_command(const Bootstrap& bootstrap, int place);
// The command that ends an agent and everything it has started.
std::string end_agent_command(const Bootstrap& bootstrap, int pid);

struct Answer {
  // The agent itself prints three of these: ready, damaged (own_file.hpp) and stream, after which
  // the channel is its control stream from the next byte on. A file that was found but answers
  // neither ready nor damaged counts as broken, too. Its size is checked only by the command that
  // searches, because that costs a process.
  enum class What { found, ready, damaged, copy, foreign, nowhere, copied, failed, stream };
  What what{};
  int place = 0;
  int pid = 0;  // found, ready: pid of the agent's watchdog
  // foreign: the host's system; nowhere: each place and why it cannot be used; failed: the
  // directory; stream: why the agent cannot dial
  std::string text;
};
// Returns the first of our lines in what was printed so far, or nothing if there is none yet.
// `rest` becomes the text after that line.
std::optional<Answer> find_answer(std::string_view printed, const std::string& mark,
                                  std::string_view& rest);

}  // namespace elasticrun::launcher::ssh
