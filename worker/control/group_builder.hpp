// Forms and closes groups in the background, while the training thread steps in another one.
//
// One thread with one queue does what may block. Abort does not go through the queue: a blocked
// connect may end only by the abort.
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
    // For `needs`, `formation` and `rejected` see collective::Group.
    std::function<void(Generation, std::string addresses, std::vector<int> needs)> published;
    std::function<void(Generation, std::string formation, int rejected)> formed;
    std::function<void(Generation, const collective::GroupBroken& error)> failed;
  };

  GroupBuilder(std::unique_ptr<collective::DataPlane> plane, Handlers handlers);
  ~GroupBuilder();
  GroupBuilder(const GroupBuilder&) = delete;
  GroupBuilder& operator=(const GroupBuilder&) = delete;

  // Any thread, without blocking. The group of a generation is formed once. The handlers called for
  // it are published and then formed, or failed instead of either, or none when it is dropped
  // meanwhile.
  void form(const collective::GroupSpec& spec);
  void connect(Generation generation, std::vector<std::string> addresses);
  // Makes every blocked call in the groups up to this generation fail within milliseconds; the
  // groups are closed when the training thread has released them.
  void abort(Generation up_to);
  // For each group that is held up at present, what it waits for.
  std::vector<collective::HeldUp> held_up() const;
  // Aborts and closes one group.
  void drop(Generation generation);
  // Closes the groups below this generation, which are not used any more, without an abort.
  void close(Generation below);

  // Training thread; see ControlChannel. A borrowed group is not closed.
  collective::Group* acquire(Generation generation);
  void release(Generation generation);

  // Aborts all groups and ends the thread; no handler is called afterwards.
  void stop();

 private:
  struct Entry {
    std::unique_ptr<collective::Group> group;  // null until it has been created
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
