// Workers whose program this host lacks, and the copy that they wait for.
//
// One that lies there from an earlier job is read through before it is used: its name says what is
// to be in it. However many workers of a host wait, one copy comes. It is taken at the speed of the
// disk: the controller sends no more than a window beyond what is written. A thread of its own
// reads and writes, because a network file system may let one wait for seconds, and an agent that
// is silent for that long counts as lost. There is such a thread only while it is needed: keepers
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

class Parcels {
 public:
  // `start` may be called inside calls of ours, the others as well.
  struct Handlers {
    std::function<void(const wire::ParcelWanted&)> ask;
    // The program lies in this file.
    std::function<void(const wire::StartWorker&, const std::string& program)> start;
    std::function<void(WorkerId, std::int32_t code, const std::string& reason)> failed;
  };
  Parcels(boost::asio::io_context& io, std::string private_directory, Handlers handlers);
  ~Parcels();

  // Starts it from its parcel: at once, or when that has come.
  void start(const wire::StartWorker& order);
  // Whether it was waiting; it waits no more.
  bool call_off(WorkerId worker);
  void take(const wire::ParcelPart& part);
  // The connection is another one, and parts that were under way are lost: asks for what follows
  // those that have come.
  void ask_again();

 private:
  struct Copy;
  void look_for(const std::string& parcel, Copy& copy);
  void begin(const std::string& parcel);
  void written(const std::string& parcel, std::int64_t bytes);
  void stored(const std::string& parcel, const std::string& folder);
  void failed(const std::string& parcel, const std::string& reason);
  std::unique_ptr<Copy> take_out(const std::string& parcel);
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
