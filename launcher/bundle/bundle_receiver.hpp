// Workers whose program this host lacks, and the copy that they wait for.
//
// One that lies there from an earlier job is read through before it is used: its name says what is
// to be in it. However many workers of a host wait, one copy comes. It is taken at the speed of the
// disk: the controller sends no more than a window beyond what is written. A thread of its own
// reads and writes, because a network file system may let one wait for seconds, and an agent that
// is silent for that long counts as lost. There is such a thread only while it is needed: shims
// are forks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "launcher/bundle/bundle_cache.hpp"
#include "wire/messages.hpp"

namespace boost::asio {
class io_context;
}

namespace elasticrun::launcher::bundle {

class BundleReceiver {
 public:
  // `start` may be called inside calls of ours, the others as well.
  struct Handlers {
    std::function<void(const wire::BundleWanted&)> ask;
    // The program lies in this file.
    std::function<void(const wire::StartWorker&, const std::string& program)> start;
    std::function<void(WorkerId, std::int32_t code, const std::string& reason)> failed;
  };
  BundleReceiver(boost::asio::io_context& io, std::string private_directory, Handlers handlers);
  ~BundleReceiver();

  // Starts it from its bundle: at once, or when that has come.
  void start(const wire::StartWorker& order);
  // Whether it was waiting; it waits no more.
  bool call_off(WorkerId worker);
  void take(const wire::BundlePart& part);
  // The connection is another one, and parts that were under way are lost: asks for what follows
  // those that have come.
  void ask_again();

 private:
  struct Copy;
  void look_for(const std::string& bundle, Copy& copy);
  void begin(const std::string& bundle);
  void written(const std::string& bundle, std::int64_t bytes);
  void stored(const std::string& bundle, const std::string& folder);
  void failed(const std::string& bundle, const std::string& reason);
  std::unique_ptr<Copy> take_out(const std::string& bundle);
  void start_from(const std::string& folder, wire::StartWorker order);
  void keep_fresh();

  struct Timer;
  boost::asio::io_context& io_;
  const std::string private_directory_;
  const Handlers handlers_;
  std::map<std::string, std::unique_ptr<Copy>> copies_;  // looked for or on their way, by hash
  std::map<std::string, std::string> whole_;             // folders whose content was checked
  std::map<std::string, net::Fd> used_;                  // folders, and what holds them
  std::unique_ptr<Timer> timer_;
};

}  // namespace elasticrun::launcher::bundle
