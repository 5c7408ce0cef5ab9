// Where the job's hosts come from while it runs: the host file, read again when it changes, or
// a program, asked again and again (a driver). Whatever goes wrong with either, the hosts stay as
// they are, and that is said. Neither is waited for: a file server that does not answer only delays
// changes of the hosts.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "job/core/terms/source_notes.hpp"
#include "job/driver/hook_process.hpp"
#include "job/spec.hpp"

namespace boost::asio {
class io_context;
}

namespace elasticrun::job::driver {

// How --host-discovery is run, and what a person is told when it went wrong.
Hook discovery_hook(const JobSpec& spec);
Error discovery_trouble(const JobSpec& spec, std::string_view place, const Error& trouble);

// What a person calls the place where the hosts come from: a file, or the flag of a program.
std::string source_name(const JobSpec& spec);

class HostSource {
 public:
  struct Handlers {
    // They have changed. Never inside a call of ours.
    std::function<void(const std::vector<launcher::hosts::Host>&)> hosts;
    std::function<void(const std::string& line)> line;  // to be said to a person
    std::function<void(const job::HostsNoted&)> note;   // to be said and recorded
  };
  // The hosts of `spec` are those that are known; it must outlive this object.
  HostSource(boost::asio::io_context& io, const JobSpec& spec, Handlers handlers);
  ~HostSource();

  void start();
  // Nothing of it runs, and no handler is called, after this.
  void stop();

 private:
  struct State;
  void look_at_file_later();
  void look_at_file();
  void say_when_silent();
  struct Look;
  void take_look(const Look& look);
  void discover_later();
  void say_words(const std::string& words);
  void take(Result<std::vector<launcher::hosts::Host>> hosts);
  void note(const std::optional<job::HostsNoted>& note);

  const JobSpec& spec_;
  Handlers handlers_;
  std::unique_ptr<State> state_;
};

}  // namespace elasticrun::job::driver
