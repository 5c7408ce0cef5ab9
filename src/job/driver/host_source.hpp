// Where the job's hosts come from while it runs: the host file, read again when it changes, or
// a program that is run periodically (a driver). Whatever goes wrong with either, the hosts stay as
// they are, and the problem is reported. The job never waits for file or program: a file server
// that does not answer only delays changes of the hosts.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "job/core/hosts/source_notes.hpp"
#include "job/spec.hpp"
#include "launcher/executors/hook_process.hpp"

namespace boost::asio {
class io_context;
}

namespace elasticrun::job::driver {

// What messages call the source of the hosts: the path of the host file, or "--host-discovery".
std::string source_name(const JobSpec& spec);

class HostSource {
 public:
  struct Handlers {
    // The hosts have changed. Never called from inside a function of this class.
    std::function<void(const std::vector<launcher::hosts::Host>&)> hosts;
    std::function<void(const std::string& line)> line;  // a line to print for the user
    std::function<void(const HostsNoted&)> note;        // to print, and to record as an event
  };
  // `spec` names the hosts known at the start, and must outlive this object.
  HostSource(boost::asio::io_context& io, const JobSpec& spec, Handlers handlers);
  ~HostSource();

  void start();
  // After this no program or timer of this object runs, and no handler is called.
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
  void note(const std::optional<HostsNoted>& note);

  const JobSpec& spec_;
  Handlers handlers_;
  std::unique_ptr<State> state_;
};

}  // namespace elasticrun::job::driver
