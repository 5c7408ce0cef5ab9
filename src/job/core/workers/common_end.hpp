// Whether all members ended by the same mistake of the program, and which one ended first.
//
// A mistake that all workers make (an exit code, a crash in the same step) leaves nobody who holds
// the state. "State lost" would be true, and send a person to look for lost hosts; what the program
// said is the cause. One that was killed from outside, given up or lost with its host has made no
// mistake, and then the loss of the state is what happened. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace elasticrun::job::workers {

class CommonEnd {
 public:
  struct End {
    std::string worker;  // as a person knows it
    std::string how;     // "exited with code 3"
    int code = 0;
    int signal = 0;   // 0: none
    bool own = true;  // nobody else ended it, as far as is known
  };

  // A member of the world has ended.
  void add(End end) { ends_.push_back(std::move(end)); }
  // The world that was formed without them has stepped: it was not everybody's mistake.
  void survived() { ends_.clear(); }

  struct Mistake {
    int exit_code = 0;  // as a shell would say it
    std::string words;  // "worker 1 exited with code 3, and so did the others"
  };
  // When every end since then is the same mistake.
  std::optional<Mistake> mistake() const;

 private:
  std::vector<End> ends_;
};

}  // namespace elasticrun::job::workers
