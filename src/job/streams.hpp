// Which streams of which workers are shown on the terminal and which go to log files, as torchrun's
// --redirects, --tee and --local-ranks-filter say it. Workers are named by their slot on their
// host, which is their LOCAL_RANK where all slots of the host are used. Pure.
#pragma once

#include <map>
#include <optional>
#include <set>

namespace elasticrun::job {

// Streams as bits, so that 3 is both.
inline constexpr int standard_output = 1, standard_error = 2;

// Some streams of all workers ("3"), or of the workers that are named ("0:1,1:2").
struct StreamChoice {
  int of_all = 0;
  std::map<int, int> of_slot;

  bool has(int slot, int stream) const {
    const auto found = of_slot.find(slot);
    return ((found == of_slot.end() ? of_all : found->second) & stream) != 0;
  }
};

struct Streams {
  std::optional<StreamChoice> redirects;  // to the log files only
  std::optional<StreamChoice> tee;        // to the log files and the terminal
  std::set<int> slots;                    // whose lines are shown at all; empty: those of all

  bool shown(int slot, int stream) const {
    if (!slots.empty() && !slots.contains(slot)) return false;
    const bool away = redirects && redirects->has(slot, stream);
    return !away || (tee && tee->has(slot, stream));
  }
  // Where log files are wanted but no streams are named, all are logged.
  bool logged(int slot, int stream) const {
    if (!redirects && !tee) return true;
    return (redirects && redirects->has(slot, stream)) || (tee && tee->has(slot, stream));
  }
};

}  // namespace elasticrun::job
