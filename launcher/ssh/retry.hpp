// Decides which host is tried when: a limited number at once, and again after a pause when that may
// help.
//
// A thousand handshakes at once would make each of them late and make a jump host refuse most of
// them; one after the other would take minutes. Pauses double and are drawn at random around their
// nominal length: hosts that one server has refused together must not come back together. Pure: the
// driver makes the attempts.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.hpp"
#include "base/rng.hpp"
#include "base/time.hpp"
#include "launcher/ssh/trouble.hpp"

namespace elasticrun::launcher::ssh {

struct RetryLimits {
  int in_flight = 64;  // most hosts between their first packet and their running agent
  // Attempts per host in all. A host that is down is not waited for; a crowded one is.
  int brief_attempts = 3;
  int throttled_attempts = 12;
  Duration first_pause = std::chrono::milliseconds(100);
  Duration longest_pause = std::chrono::seconds(3);
};

// How long each stage may take.
struct StageLimits {
  Duration connect = std::chrono::seconds(10);  // also greeting and host key
  Duration login = std::chrono::seconds(20);    // keys may be checked against a slow directory
  Duration shell = std::chrono::seconds(20);    // start-up files of a login shell
  Duration copy = std::chrono::seconds(20);     // without progress
};
Duration deadline_of(Stage stage, const StageLimits& limits);

class Attempts {
 public:
  struct Wanted {
    HostId host;
  };
  struct Started {  // the host's agent runs
    HostId host;
  };
  struct Failed {
    HostId host;
    Trouble trouble;
  };
  struct Unwanted {
    HostId host;
  };
  struct PauseOver {};
  using Event = std::variant<Wanted, Started, Failed, Unwanted, PauseOver>;

  struct Attempt {
    HostId host;
  };
  struct GiveUp {
    HostId host;
    std::string reason;
  };
  using Action = std::variant<Attempt, GiveUp>;

  Attempts(const RetryLimits& limits, std::uint64_t seed) : limits_(limits), rng_(seed) {}

  std::vector<Action> step(const Event& event, Time now);
  // When PauseOver is due; `never` when no host is in a pause.
  Time wake_at() const;

 private:
  enum class Phase { waiting, trying, pausing };
  struct Entry {
    Phase phase = Phase::waiting;
    int attempts = 0;
    Time due = never;  // end of the host's pause; never: not in one
  };

  void on(const Wanted& event, Time now, std::vector<Action>& actions);
  void on(const Started& event, Time now, std::vector<Action>& actions);
  void on(const Failed& event, Time now, std::vector<Action>& actions);
  void on(const Unwanted& event, Time now, std::vector<Action>& actions);
  void on(const PauseOver& event, Time now, std::vector<Action>& actions);
  void forget(HostId host);
  Duration pause(int attempts);

  RetryLimits limits_;
  Rng rng_;
  std::map<HostId, Entry> hosts_;  // hosts neither started nor given up
  std::deque<HostId> queue_;       // waiting hosts, in order
  int in_flight_ = 0;
};

}  // namespace elasticrun::launcher::ssh
