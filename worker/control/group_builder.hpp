// Forms and closes groups in the background, while the training thread steps in another one.
//
// One thread and one queue do what may block. Abort does not go through the queue: it may be the
// very thing that a blocked connect is waiting for.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "worker/collective/group.hpp"

namespace elasticrun::worker::control {

class GroupBuilder {
 public:
  // Called on the background thread.
  struct Handlers {
    // `needs`: see Group.
    std::function<void(Generation, std::string addresses, std::vector<int> needs)> published;
    std::function<void(Generation, std::string way, int strangers)> formed;
    std::function<void(Generation, const collective::GroupBroken& error)> failed;
  };

  GroupBuilder(std::unique_ptr<collective::DataPlane> plane, Handlers handlers);
  ~GroupBuilder();
  GroupBuilder(const GroupBuilder&) = delete;
  GroupBuilder& operator=(const GroupBuilder&) = delete;

  // Any thread, without blocking. A generation's group is formed once; its answers are published
  // and formed, or failed at either point, or nothing when it is dropped meanwhile.
  void form(const collective::GroupSpec& spec);
  void connect(Generation generation, std::vector<std::string> addresses);
  // Whatever blocks in these groups fails within milliseconds; they are closed when nobody uses
  // them.
  void abort(Generation up_to);
  // What each group is held up by at present, of those that are.
  std::vector<collective::HeldUp> held_up() const;
  void drop(Generation generation);
  // Not used any more: closed in peace.
  void close(Generation below);

  // Training thread; see ControlChannel. A borrowed group is not closed.
  collective::Group* acquire(Generation generation);
  void release(Generation generation);

  // Aborts all groups and ends the thread; the handlers are not called any more afterwards.
  void stop();

 private:
  struct Entry {
    std::unique_ptr<collective::Group> group;  // from form on
    bool connected = false;
    bool borrowed = false;
    bool unwanted = false;
  };

  void run();
  void post(std::function<void()> work);  // lock held
  void discard(Entry& entry);             // lock held
  collective::Group* wanted(Generation generation);
  void do_form(const collective::GroupSpec& spec);
  void do_connect(Generation generation, const std::vector<std::string>& addresses);
  void sweep();

  const std::unique_ptr<collective::DataPlane> plane_;
  const Handlers handlers_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> work_;
  std::map<Generation, Entry> groups_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace elasticrun::worker::control
