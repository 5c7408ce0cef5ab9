// Whether all members ended by the same mistake of the program, and which member ended first.
//
// A mistake that all workers make (an exit code, a crash in the same step) leaves no worker that
// holds the state. "State lost" would be true, but would send the user to look for lost hosts; the
// cause is how the program ended. A worker that was killed from outside, given up or lost with its
// host has made no mistake; if there is one, the loss of the state is what happened. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace elasticrun::job::workers {

class CommonEnd {
 public:
  struct End {
    std::string worker;  // its name for the user
    std::string how;     // "exited with code 3"
    int code = 0;
    int signal = 0;   // 0: none
    bool own = true;  // nothing from outside ended it, as far as is known
  };

  // A member of the world has ended.
  void add(End end) { ends_.push_back(std::move(end)); }
  // The world that formed without these members has stepped, so not all members made the mistake.
  void survived() { ends_.clear(); }

  struct Mistake {
    int exit_code = 0;  // as a shell reports it
    std::string words;  // "worker 1 exited with code 3, and so did the others"
  };
  // The mistake, if all members that ended since survived() made the same one.
  std::optional<Mistake> mistake() const;

 private:
  std::vector<End> ends_;
};

}  // namespace elasticrun::job::workers
