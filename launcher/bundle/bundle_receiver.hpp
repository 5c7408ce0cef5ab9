// Receives bundles on the agent's side, and starts the workers that wait for them.
//
// A bundle left by an earlier job is read completely before it is used: its name is the hash of its
// content. However many workers of a host wait for a bundle, it is sent once. The disk sets the
// pace: the controller sends no more than a window beyond what is written. A separate thread reads
// and writes, because a network file system may block for seconds, and an agent that is silent for
// that long counts as lost. The thread exists only while it is needed, because the agent forks to
// make shims.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "launcher/bundle/bundle_cache.hpp"
#include "wire/agent/messages.hpp"

namespace boost::asio {
class io_context;
}

namespace elasticrun::launcher::bundle {

class BundleReceiver {
 public:
  // All of these may be called from inside calls to this object.
  struct Handlers {
    std::function<void(const wire::agent::BundleWanted&)> ask;
    // `program` is the path of the program's copy; empty: the order names what to run.
    std::function<void(const wire::agent::StartWorker&, const std::string& program)> start;
    std::function<void(WorkerId, std::int32_t code, const std::string& reason)> failed;
  };
  BundleReceiver(boost::asio::io_context& io, std::string private_directory, Handlers handlers);
  ~BundleReceiver();

  // Starts the worker from its bundle: at once, or when the bundle has been received.
  void start(const wire::agent::StartWorker& order);
  // Cancels the start of a worker that waits for its bundle. Returns whether it was waiting.
  bool call_off(WorkerId worker);
  void take(const wire::agent::BundlePart& part);
  // To be called on a new connection, when the parts in flight on the old one are lost: asks the
  // controller to go on after the last part received.
  void ask_again();

 private:
  struct Copy;
  void look_for(const std::string& bundle, Copy& copy);
  void begin(const std::string& bundle);
  void written(const std::string& bundle, std::int64_t bytes);
  void stored(const std::string& bundle, const std::string& folder);
  void failed(const std::string& bundle, const std::string& reason);
  std::unique_ptr<Copy> take_out(const std::string& bundle);
  void start_from(const std::string& folder, wire::agent::StartWorker order);
  void keep_fresh();

  struct Timer;
  boost::asio::io_context& io_;
  const std::string private_directory_;
  const Handlers handlers_;
  std::map<std::string, std::unique_ptr<Copy>> copies_;  // being searched or received, by hash
  std::map<std::string, std::string> whole_;             // hash -> folder whose content was checked
  std::map<std::string, net::Fd> used_;                  // folders in use, each with its lock
  std::unique_ptr<Timer> timer_;
};

}  // namespace elasticrun::launcher::bundle
