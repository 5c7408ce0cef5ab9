// How a host that has sshd and nothing of ours gets an agent: the shell lines that are run there,
// and what they answer. Pure text.
//
// The first line becomes the agent where it usually is, without any other process; so a second run
// costs next to nothing. Where it is not, a second line looks for it in all caches of the user and
// tells what is missing, and a third takes the file from its standard input
// under a name of its own and renames it when it is whole, so that any number of jobs can do this
// at once on one host or on one home that many hosts share. Not SFTP: it needs a shell beside it
// all the same, is switched off in places, and libssh's waits inside its calls, for all hosts at
// once.
//
// The user's login shell runs the line, whichever that is; it only starts `sh`, and the text is one
// word in single quotes without quotes, backslashes or exclamation marks in it, which sh, csh and
// fish read alike. A login shell may print what it likes: what is for us stands on lines that begin
// with a mark which nobody else can know.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "launcher/ssh/agent_image.hpp"

namespace elasticrun::launcher::ssh {

// Where the agent may be kept, tried in this order: 1 the user's cache, 2 XDG_RUNTIME_DIR, 3
// TMPDIR, 4 /tmp. In 3 and 4 only a directory that belongs to the user is trusted.
inline constexpr int last_place = 4;

struct Bootstrap {
  std::string mark;  // random word: begins our lines, names unfinished copies
  std::string hash;  // of the agent
  std::string system;
  std::size_t size = 0;  // of the agent, in bytes
  std::string wrap;      // what the agent is started inside of; see wrap.hpp
};

// Becomes the agent in the user's home, which answers ready; all shells understand it alike, and
// say something of their own when there is none.
std::string start_agent_command(const Bootstrap& bootstrap);
// Answers found (and becomes the agent, which answers ready), copy, foreign or nowhere; looks at
// places from `first` on.
std::string find_agent_command(const Bootstrap& bootstrap, int first);
// Takes the agent from standard input, to its end; answers copied or failed.
std::string copy_agent_command(const Bootstrap& bootstrap, int place);
// Ends an agent and all it has started.
std::string end_agent_command(const Bootstrap& bootstrap, int pid);

struct Answer {
  // Three are the agent's own: ready, damaged (own_file.hpp), and stream: from the next byte on the
  // channel is its control stream. A file that is found and says neither of the first two is
  // broken, too. Its size is looked at only where it is searched for: that costs a process.
  enum class What { found, ready, damaged, copy, foreign, nowhere, copied, failed, stream };
  What what{};
  int place = 0;
  int pid = 0;  // of the agent's watchdog, with found and ready
  // foreign: its system; nowhere: each place and why not; failed: the directory; stream: why
  std::string text;
};
// The first of our lines in what has been printed so far; none yet: nothing. `rest` is what follows
// that line.
std::optional<Answer> find_answer(std::string_view printed, const std::string& mark,
                                  std::string_view& rest);

}  // namespace elasticrun::launcher::ssh
