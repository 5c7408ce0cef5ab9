// Writes this worker's part of a save: while the others wait, when the job stops; otherwise behind
// the program's back.
//
// In the second case the part is copied between two steps, which takes as long as copying memory,
// and a thread does all that touches the file system. So the state on the disk is that of one step,
// and the next step waits for no disk. A call to a file server that does not answer cannot be
// ended: its thread is left alone. One more save is copied beside it, for the world of the first
// may have ended; a third one fails.
#pragma once

#include <memory>
#include <string>

#include "wire/messages.hpp"
#include "worker/control/member_lock.hpp"
#include "worker/control/step_meter.hpp"
#include "worker/core/progress.hpp"
#include "worker/state/saved_state.hpp"

namespace elasticrun::worker::control {

// What one member writes.
struct Part {
  std::string folder;
  int rank = 0;
  state::Share share;
  std::string contents;  // text of that file; empty: another member writes it
};

class Saver {
 public:
  // All of these outlive this. `table` is sealed when the first save comes.
  Saver(MemberLock& member_lock, StepMeter& meter, state::StateTable& table);
  // Nothing is reported any more.
  ~Saver();
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  // Called between two steps; `progress` is that of the state. Reports by itself how it went.
  void save(const core::SaveOrder& order, const core::Progress& progress);

 private:
  struct Copy;
  void report_error(wire::Saved report, std::string error);
  bool make_copy(std::uint64_t bytes);
  void write_behind(Part part, wire::Saved report, Time begun);

  MemberLock& member_lock_;
  StepMeter& meter_;
  state::StateTable& table_;
  std::shared_ptr<Copy> copy_;   // made for the first save that does not stop the job
  std::weak_ptr<Copy> earlier_;  // the one before, which its thread still writes
};

}  // namespace elasticrun::worker::control
